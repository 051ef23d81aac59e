"""A wrapped program: submission of a message, throughput of the wrapper, and its cost while idle."""

import atexit
import os
import pty
import shutil
import statistics
import sys
import tempfile
import time

from common import FAKE, ROUNDS, Stage, cpu_ms, memory, print_quantiles, size, timed, until

RELAYED = size(50_000_000, 1_000_000)
IDLE_SECONDS = size(20, 2)
KINDS = {
    "lines": "the quick brown fox jumps over the lazy dog, line %d\n",
    "coloured lines": "\x1b[32mok\x1b[0m the quick \x1b[1;34mbrown\x1b[0m fox jumps over the lazy dog %d\n",
    "drawn screens": "\x1b[%d;1H\x1b[2Kthe quick brown fox jumps over the lazy dog",
}


class WrappedStage(Stage):
    """A stage with the wrapped member `ada`, which accepts input without delay."""

    def __init__(self, program=None):
        super().__init__()
        self.turns = os.path.join(self.dir, "turns")
        self.add_profile()
        self.phalanx("team", "create", "bench")
        program = program or [os.path.join(FAKE, "fake-tui"), self.turns]
        self.phalanx("spawn", "ada", "--profile", "bench", "--backend", "pty", "--", *program)
        self.wrapper = self.record("ada")["start"]["program"]["pid"]

    def count_turns(self):
        if not os.path.exists(self.turns):
            return 0
        with open(self.turns) as file:
            return len(file.readlines())


def submissions():
    """Start of `send` → an idle program without input delay has the submitted text."""
    figures = []
    with WrappedStage() as stage:
        for n in range(size(50, 3)):

            def send():
                stage.phalanx("send", "ada", f"message {n}")
                until(lambda: stage.count_turns() == n + 1)

            figures.append(timed(send))
            until(lambda: stage.has_read("ada"))
            time.sleep(0.4)  # until the member has reported that it is idle
    return figures


def relayed(argv, env, cwd):
    """Milliseconds until all output of a command on a terminal was read, and its size in bytes."""
    began = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execvpe(argv[0], argv, env)
    count = 0
    while True:
        try:
            count += len(os.read(terminal, 1 << 16))
        except OSError:
            break
    os.waitpid(pid, 0)
    os.close(terminal)
    return (time.perf_counter() - began) * 1000, count


def relays():
    """Terminal output through `script -qc` and through the wrapper: the wrapper of the member is
    started again on a PTY of the benchmark, with a program that prints."""
    work = tempfile.mkdtemp(prefix="phxb", dir="/tmp")
    atexit.register(shutil.rmtree, work, ignore_errors=True)
    program, shown = os.path.join(work, "program"), os.path.join(work, "shown")
    with open(program, "w") as file:
        file.write(f'#!/bin/sh\n[ -n "$BENCH_GO" ] || exec {FAKE}/fake-tui {work}/log\nexec cat {shown}\n')
    os.chmod(program, 0o755)
    found = {}
    with WrappedStage([program]) as stage:
        process = f"/proc/{stage.wrapper}"
        words = lambda part: open(f"{process}/{part}", "rb").read().decode().rstrip("\0").split("\0")
        env, cwd = dict(word.split("=", 1) for word in words("environ")), os.readlink(f"{process}/cwd")
        argv = [os.readlink(f"{process}/exe"), *words("cmdline")[1:]]
        for kind, line in KINDS.items():
            with open(shown, "w") as file:
                written = nth = 0
                while written < RELAYED:
                    written += file.write(line % (nth % 40 + 1))
                    nth += 1
            bare, ours = [], []
            for _ in range(ROUNDS):
                bare.append(relayed(["script", "-qc", f"cat {shown}", "/dev/null"], env, cwd))
                ours.append(relayed(argv, {**env, "BENCH_GO": "1"}, cwd))
            if len({count for _, count in bare + ours}) != 1:
                sys.exit(f"{kind}: not the same bytes: {bare} {ours}")
            found[kind] = [statistics.median(took for took, _ in figures) for figures in (bare, ours)]
    return found


def idle():
    """MiB of memory, proportional and private, and milliseconds of CPU time."""
    with WrappedStage() as stage:
        stage.phalanx("send", "ada", "hello")
        time.sleep(3)
        before = cpu_ms(stage.wrapper)
        time.sleep(IDLE_SECONDS)
        return memory(stage.wrapper), memory(stage.wrapper, "Private_Dirty"), cpu_ms(stage.wrapper) - before


def run():
    print("a wrapped program (p50 / p99)")
    print_quantiles([("`send` started → text submitted, program idle", submissions())])
    for kind, (bare, ours) in relays().items():
        print(f"  {RELAYED // 1_000_000} MB of {kind:<16} `script -qc` {bare:8.0f} ms   wrapper {ours:8.0f} ms   {ours / bare:4.2f} ×")
    held, private, cpu = idle()
    print(f"  idle: {held:.1f} MiB (PSS), {private:.1f} of them private; {cpu:.0f} ms CPU in {IDLE_SECONDS} s")
