"""Starts what is measured: the upstream, the two hops, and the gateway with that upstream registered twice."""

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import time

READY_S = 30


@dataclasses.dataclass
class Peer:
    name: str
    url: str
    # Before the name of each tool.
    prefix: str = ""
    token: str = ""
    # Process trees whose CPU time and memory are read: label -> process id.
    watch: dict = dataclasses.field(default_factory=dict)


class Processes:
    """Processes that end with the block, each with a log of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.running = []

    def __enter__(self):
        # `./dev` ends this program with SIGTERM; what it started must end too.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        return self

    def start(self, name, command, env=None):
        path = os.path.join(self.folder, name + ".log")
        # Settings of the surroundings (a database, a proxy) must not reach what is measured.
        plain = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        with open(path, "wb") as log:
            process = subprocess.Popen(
                command, env=plain | (env or {}), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self.running.append(process)
        return process

    def until(self, what, process, ready):
        """Waits until `ready()` is true while the process lives."""
        end = time.monotonic() + READY_S
        while not ready():
            if process.poll() is not None or time.monotonic() > end:
                log = open(os.path.join(self.folder, what + ".log"), errors="replace").read()[-2000:]
                raise SystemExit(f"{what} did not start:\n{log}")
            time.sleep(0.05)

    def __exit__(self, *_):
        for process in reversed(self.running):
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def listening(address):
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
        return True
    except OSError:
        return False


def start_listener(processes, name, command):
    address = free_address()
    process = processes.start(name, [*command, "--listen", address])
    processes.until(name, process, lambda: listening(address))
    return address, process.pid


class Gatehouse:
    """`gatehouse up` on a database of its own, and its command."""

    def __init__(self, args, processes, folder):
        self.data = os.path.join(folder, "data")
        self.binary = os.path.abspath(args.gatehouse)
        env = {"DATABASE_URL": args.database, "GATEHOUSE_UPSTREAM_ALLOW": "127.0.0.0/8", "GATEHOUSE_LOG": "warn"}
        for listener in ("EDGE", "GRPC", "INTERACTION", "OAUTH", "TASK_POLLER", "OPS"):
            env[f"GATEHOUSE_{listener}_LISTEN"] = "127.0.0.1:0"
        self.process = processes.start("gatehouse", [self.binary, "up", "--data", self.data], env)
        endpoints = os.path.join(self.data, "endpoints.json")
        processes.until("gatehouse", self.process, lambda: os.path.exists(endpoints))
        self.mcp = json.load(open(endpoints))["mcp"]

    def run(self, *arguments):
        command = [self.binary, "--data", self.data, "--json", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise SystemExit(f"gatehouse {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return json.loads(done.stdout or "null")

    def session(self, server, upstream, read_only):
        """Registers the upstream as `server` and returns the token of a session that has it alone."""
        self.run("server", "add", server, upstream)
        self.run("server", "refresh", server)
        for tool in read_only:
            self.run("tools", "set", server, tool, "--read-only", "true")
        self.run("profile", "add", server, "--server", server)
        return self.run("session", "create", "--profile", server, "--mode", "auto")["token"]


def start(args, processes, folder):
    """Everything that is measured, in the order of the table."""
    tool = lambda name: os.path.join(args.tools, name)
    upstream, upstream_pid = start_listener(processes, "upstream", [tool("bench-upstream"), "--transport", "json"])
    found = [Peer("direct", f"http://{upstream}/mcp", watch={"upstream": upstream_pid})]
    for mode in ("raw", "envelope"):
        command = [tool("hop"), "--upstream", upstream, "--mode", mode, "--prefix", "up_"]
        address, pid = start_listener(processes, f"hop-{mode}", command)
        watch = {"peer": pid, "upstream": upstream_pid}
        found.append(Peer(f"hop-{mode}", f"http://{address}/mcp", "up_" if mode == "envelope" else "", watch=watch))
    gatehouse = Gatehouse(args, processes, folder)
    watch = {"peer": gatehouse.process.pid, "upstream": upstream_pid, "postgres": args.postgres}
    url = f"http://{upstream}/mcp"
    # The same upstream twice: with its tools overridden as read-only, and as it is, so that each call's audit row is
    # committed before the call goes out.
    for name, server, read_only in (("gatehouse", "up", ("echo", "big")), ("gatehouse-audited", "audited", ())):
        token = gatehouse.session(server, url, read_only)
        found.append(Peer(name, gatehouse.mcp, f"{server}__", token, watch))
    return found
