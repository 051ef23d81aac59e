"""A member over ACP: its cost at rest, and the time from an agent's update to the frame in its pane."""

import os
import re
import sys
import time

from common import ROOT, Stage, cpu_ms, memory, print_quantiles, size, until

AGENT = os.path.join(ROOT, "fixtures", "acp", "faulty.py")
IDLE_SECONDS = size(60, 2)
UPDATES = size(200, 10)
# Runs the agent, and puts the time at which a piece of text is written into the piece.
STAMPING = """\
import json, subprocess, sys, time
agent = subprocess.Popen([sys.executable, *sys.argv[1:]], stdout=subprocess.PIPE)
for line in agent.stdout:
    message = json.loads(line)
    update = message.get("params", {}).get("update", {})
    if update.get("sessionUpdate") == "agent_message_chunk":
        update["content"]["text"] = f" t{time.monotonic_ns()}t "
        line = json.dumps(message).encode() + b"\\n"
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
"""


class AcpStage(Stage):
    """A stage with the member `ada`, an agent of `fixtures/acp` over ACP."""

    def __init__(self, *agent):
        super().__init__()
        self.phalanx("team", "create", "bench")
        self.phalanx("spawn", "ada", "--profile", "acp", "--backend", "pty", "--deadline", "60", "--", sys.executable, *agent)
        self.process = self.record("ada")["start"]["program"]["pid"]
        self.log = self.path("phalanx", "logs", "ada.log")


def idle():
    """MiB of memory, proportional and private, and milliseconds of CPU time, after a turn."""
    with AcpStage(AGENT, "plain") as stage:
        stage.phalanx("send", "ada", "hello")
        until(lambda: stage.has_read("ada"))
        time.sleep(3)  # until the turn has ended and is reported
        before = cpu_ms(stage.process)
        time.sleep(IDLE_SECONDS)
        return memory(stage.process), memory(stage.process, "Private_Dirty"), cpu_ms(stage.process) - before


def frames():
    """Milliseconds from the write of each update to the frame with its text, as the terminal gets it."""
    figures = {}
    with AcpStage("-c", STAMPING, AGENT, "slow") as stage:
        cpu, began = cpu_ms(stage.process), time.monotonic()
        stage.phalanx("send", "ada", "hello")
        with open(stage.log, "rb") as log:
            seen = b""

            def read():
                nonlocal seen
                piece = log.read()
                now = time.monotonic_ns()
                seen = seen[-100:] + piece
                for stamp in re.findall(rb"t(\d{9,})t", seen) if piece else []:
                    figures.setdefault(stamp, (now - int(stamp)) / 1e6)
                return len(figures) >= UPDATES

            until(read, limit=60.0)
        return list(figures.values()), (cpu_ms(stage.process) - cpu) / len(figures), time.monotonic() - began


def run():
    held, private, cpu = idle()
    print("a member over ACP (p50 / p99)")
    print(f"  idle: {held:.1f} MiB (PSS), {private:.1f} of them private; {cpu:.0f} ms CPU in {IDLE_SECONDS} s", flush=True)
    shown, cpu, took = frames()
    print_quantiles([("update of the agent → its frame in the pane", shown)])
    print(f"  CPU of its phalanx process: {cpu:.2f} ms for each of {len(shown)} updates in {took:.0f} s")
