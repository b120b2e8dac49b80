#!/usr/bin/env python3
"""Measures the gateway beside a direct connection and two bare hops. Called by `./dev bench`, `./dev soak` and `./dev test`.

Every round visits each workload, and within it each peer in turn, starting one peer further each round, so that slow
drifts of a noisy machine fall on all peers alike. Everything listens on loopback and ends with this program.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import peers
import soak
import table

# The text of a result that the gateway passes on whole is 100,000 characters by default: 97 KiB stays below it.
BIG = json.dumps({"kb": 97, "tag": "t{{n}}"})
# name: (mcpload's arguments, calls in flight, tool to call)
WORKLOADS = {
    "echo-1": ([], 1, "echo"),
    "echo-16": ([], 16, "echo"),
    "echo-128": ([], 128, "echo"),
    "big-16": (["--args", BIG], 16, "big"),
    "list-16": (["--bench", "list", "--min-tools", "20"], 16, "echo"),
    "sessions-8": (["--bench", "sessions"], 8, "echo"),
}
MAX_SESSIONS = 16


def measure(mcpload, peer, workload, seconds, warmup):
    """One run of mcpload against one peer: its report, or what went wrong."""
    flags, in_flight, tool = WORKLOADS[workload]
    command = [mcpload, "--json", "--url", peer.url, "--tool", peer.prefix + tool, *flags]
    command += ["--concurrency", str(in_flight), "--sessions", str(min(in_flight, MAX_SESSIONS))]
    command += ["--seconds", str(seconds), "--warmup", str(warmup)]
    for label, pid in peer.watch.items():
        command += ["--watch", f"{label}={pid}"]
    if peer.token:
        command += ["--token", peer.token]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + warmup + 120)
    if done.returncode != 0:
        return {"failed": done.stderr.strip()[-500:] or "mcpload failed without a word"}
    return json.loads(done.stdout)


def rounds(args, all_peers):
    """Runs everything and yields one record a run."""
    mcpload = os.path.join(args.tools, "mcpload")
    seconds, warmup = (0.4, 0.1) if args.smoke else (args.seconds, 0.5)
    for number in range(1 if args.smoke else args.rounds):
        for workload in args.workloads:
            turn = number % len(all_peers)
            for peer in all_peers[turn:] + all_peers[:turn]:
                record = measure(mcpload, peer, workload, seconds, warmup)
                yield record | {"peer": peer.name, "workload": workload, "round": number}
            print(f"round {number + 1}: {workload} done", file=sys.stderr, flush=True)


def bench(args, all_peers):
    """Prints the table; of a smoke test only a count, since its times mean nothing. True when no call failed anywhere."""
    records = []
    with open(args.out, "w") if args.out else open(os.devnull, "w") as out:
        for record in rounds(args, all_peers):
            records.append(record)
            out.write(json.dumps(record) + "\n")
    if args.smoke:
        print(f"{sum(r.get('ok', 0) for r in records):,} calls to {len(all_peers)} peers")
    else:
        print(table.render(records))
    wrong = [r for r in records if r.get("failed") or r["errors"] or not r["ok"]]
    for record in wrong:
        print(f"{record['peer']} {record['workload']}: {record.get('failed') or record['failures'] or 'no call'}", file=sys.stderr)
    return not wrong


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", required=True, help="folder with mcpload, bench-upstream and hop")
    parser.add_argument("--gatehouse", required=True, help="the gatehouse binary")
    parser.add_argument("--database", required=True, help="URL of a superuser of a throw-away Postgres")
    parser.add_argument("--postgres", required=True, type=int, help="process id of that Postgres")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one measured window")
    parser.add_argument("--workloads", type=lambda names: names.split(","), default=list(WORKLOADS))
    parser.add_argument("--out", help="file for one line of JSON a run")
    parser.add_argument("--smoke", action="store_true", help="a few hundred calls: that everything answers, not how fast")
    parser.add_argument("--soak", action="store_true", help="many calls and sessions, with the gateway's memory watched")
    parser.add_argument("--calls", type=int, default=1_000_000, help="calls of a soak")
    parser.add_argument("--sessions", type=int, default=10_000, help="MCP sessions of a soak")
    args = parser.parse_args()
    unknown = set(args.workloads) - set(WORKLOADS)
    if unknown:
        parser.error(f"there is no workload {', '.join(sorted(unknown))}; there are {', '.join(WORKLOADS)}")
    return args


def main():
    args = arguments()
    with tempfile.TemporaryDirectory(prefix="gatehouse-bench-") as folder, peers.Processes(folder) as processes:
        all_peers = peers.start(args, processes, folder)
        if args.soak:
            gatehouse = next(peer for peer in all_peers if peer.name == "gatehouse")
            passed = soak.run(args, gatehouse)
        else:
            passed = bench(args, all_peers)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
