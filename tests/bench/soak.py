"""Many calls and many MCP sessions, with the gateway's memory read between them. Bounded in count and in time."""

import json
import os
import subprocess
import time

# A soak ends after this long, whatever it has done by then.
MAX_S = 60 * 60
CHUNK_S = 15
# Memory may not grow by more than this from the first tenth of the work to its end.
MAX_GROWTH_MB = 20


def rss_mb(pid):
    with open(f"/proc/{pid}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024 / 1e6


def chunk(args, peer, flags):
    """A stretch of load; returns how much was done."""
    command = [os.path.join(args.tools, "mcpload"), "--json", "--url", peer.url, "--token", peer.token]
    command += ["--tool", peer.prefix + "echo", "--seconds", str(CHUNK_S), "--warmup", "0", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=CHUNK_S + 120)
    if done.returncode != 0:
        raise SystemExit(done.stderr.strip())
    report = json.loads(done.stdout)
    if report["errors"]:
        raise SystemExit(f"{report['errors']} errors: {report['failures']}")
    return report["ok"]


def phase(args, peer, name, wanted, flags, end):
    """Loads until `wanted` is done. True when memory stayed within its bound."""
    pid = peer.watch["peer"]
    done, baseline, now = 0, None, rss_mb(pid)
    print(f"{name}: {now:.1f} MB before")
    while done < wanted:
        if time.monotonic() > end:
            print(f"{name}: only {done:,} of {wanted:,} in the time allowed")
            return False
        done += chunk(args, peer, flags)
        now = rss_mb(pid)
        if baseline is None and done >= wanted / 10:
            baseline = now
        print(f"{name}: {done:>9,} of {wanted:,}, {now:.1f} MB", flush=True)
    growth = now - baseline
    verdict = "ok" if growth <= MAX_GROWTH_MB else f"more than {MAX_GROWTH_MB} MB"
    print(f"{name}: grew by {growth:.1f} MB after the first tenth: {verdict}")
    return growth <= MAX_GROWTH_MB


def run(args, peer):
    end = time.monotonic() + MAX_S
    calls = phase(args, peer, "calls", args.calls, ["--concurrency", "64", "--sessions", "16"], end)
    sessions = phase(args, peer, "sessions", args.sessions, ["--bench", "sessions", "--concurrency", "8"], end)
    return calls and sessions
