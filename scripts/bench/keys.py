"""From a key of the dashboard to its frame, on a terminal without tmux in between, beside what could delay it."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

from common import BINARY, print_quantiles, size, timed
from watch import TASKS, TICKING, WatchedTeam

PRESSES = size(25, 3)
MANY = size(64, 4)
SHOWN = b"Keys: Down scrolls"


class Terminal:
    """The dashboard on a terminal of its own, of 120x40."""

    def __init__(self, stage):
        self.pid, self.screen = pty.fork()
        if self.pid == 0:
            os.chdir(stage.work)
            os.execve(BINARY, [BINARY, "watch", "bench"], stage.env)
        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def read(self, limit):
        ready, _, _ = select.select([self.screen], [], [], limit)
        return os.read(self.screen, 1 << 16) if ready else b""

    def pass_time(self, seconds):
        end = time.monotonic() + seconds
        while (rest := end - time.monotonic()) > 0:
            self.read(rest)

    def press(self):
        """Milliseconds from the key of the help to its frame."""

        def go():
            os.write(self.screen, b"?")
            printed = b""
            while SHOWN not in printed:
                printed += self.read(10)

        took = timed(go)
        os.write(self.screen, b"\x1b")
        self.pass_time(0.15)
        return took

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.screen)
        os.waitpid(self.pid, 0)


def presses(stage, stopped=None):
    """While the process `stopped` is stopped, if it is given."""
    terminal = Terminal(stage)
    terminal.pass_time(3)
    try:
        if stopped:
            os.kill(stopped, signal.SIGSTOP)
        return [terminal.press() for _ in range(PRESSES)]
    finally:
        if stopped:
            os.kill(stopped, signal.SIGCONT)
        terminal.end()


def run():
    print(f"a key of the dashboard → its frame, {PRESSES} presses (p50 / p99)")
    with WatchedTeam() as stage:
        stage.fill(MANY, TICKING, "pty", 0)
        print_quantiles([(f"{MANY} members on PTYs print 5 lines/s", presses(stage), "3 ms")])
    with WatchedTeam() as stage:
        stage.fill(MANY, TICKING, "tmux", 0)
        print_quantiles([(f"{MANY} members in tmux print 5 lines/s", presses(stage), "3 ms")])
        server = int(stage.tmux("display-message", "-p", "#{pid}"))
        print_quantiles([("the same, the tmux server is stopped", presses(stage, server), "3 ms")])
    with WatchedTeam() as stage:
        stage.fill(0, "", "pty", TASKS)
        print_quantiles([(f"a board of {TASKS:,} open tasks", presses(stage), "3 ms")])
