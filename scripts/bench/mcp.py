"""The server of tools: time to the first answer, cost of a call, and its cost while idle."""

import json
import statistics
import subprocess
import time

from common import BINARY, Stage, cpu_ms, memory, print_quantiles, process_floor, size, timed

IDLE_SECONDS = size(30, 3)


class Client:
    def __init__(self, stage):
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [BINARY, "mcp"], env=stage.env, cwd=stage.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.requests = 0
        self.request("initialize", about)
        self.started = (time.perf_counter() - began) * 1000
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.requests += 1
        self.send({"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params})
        while True:
            message = json.loads(self.process.stdout.readline())
            if message.get("id") == self.requests:
                return message["result"]

    def call(self, name, **arguments):
        return self.request("tools/call", {"name": name, "arguments": arguments})


def run():
    with Stage() as stage:
        stage.phalanx("team", "create", "bench")
        stage.phalanx("spawn", "ann", "--backend", "pty")
        starts = []
        for _ in range(size(30, 2)):
            with Client(stage) as client:
                starts.append(client.started)
        with Client(stage) as client:
            measure(stage, client, starts)


def measure(stage, client, starts):
    count = size(100, 3)
    lists = [timed(lambda: client.request("tools/list", {})) for _ in range(count)]
    message = {"type": "message", "recipient": "ann", "content": "hello", "summary": "hello"}
    calls, sends = [], []
    for _ in range(count):  # interleaved
        calls.append(timed(lambda: client.call("SendMessage", **message)))
        sends.append(timed(lambda: stage.phalanx("send", "ann", "hello")))
    print("the server of tools (p50 / p99; in brackets: at most)")
    print_quantiles([
        ("floor: `phalanx --version`, whole process", process_floor()),
        ("start → `initialize` answered", starts, "30"),
        ("`tools/list`", lists, "5"),
        ("`send`, whole command", sends),
        ("`SendMessage`", calls),
    ])
    over = statistics.median(calls) - statistics.median(sends)
    print(f"  `SendMessage` against the command: {over:+.1f} ms (10)")
    before = cpu_ms(client.process.pid)
    time.sleep(IDLE_SECONDS)
    cpu = cpu_ms(client.process.pid) - before
    print(f"  idle for {IDLE_SECONDS} s: {cpu:.0f} ms of CPU (0), {memory(client.process.pid):.1f} MiB (PSS) (12)")
    tools = json.dumps(client.request("tools/list", {})["tools"])
    print(f"  tool list: {len(tools)} bytes, about {len(tools) // 4} tokens (6000)")
