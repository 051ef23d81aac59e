"""Stages, timing and the cost of processes, for all sections."""

import atexit
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "release", "phalanx")
FAKE = os.path.join(ROOT, "fixtures", "fake-tui")
# Set by `run --small`.
IS_SMALL = bool(os.environ.get("PHALANX_BENCH_SMALL"))


def size(full, small):
    return small if IS_SMALL else full


MEMBERS = size(16, 3)
ROUNDS = size(9, 1)


class Stage:
    """An isolated config root, home directory and tmux server. All of it ends with the stage."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="phxb", dir="/tmp")
        # Only at exit: for minutes after a deletion, ext4 skips the freed inodes at each file
        # creation, which would distort the next figure.
        atexit.register(shutil.rmtree, self.dir, ignore_errors=True)
        for sub in ("home", "tmux", "work"):
            os.mkdir(os.path.join(self.dir, sub))
        self.root = os.path.join(self.dir, "config")
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": os.path.join(self.dir, "home"),
            "TMUX_TMPDIR": os.path.join(self.dir, "tmux"),
            "PHALANX_CONFIG_DIR": self.root,
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
        }
        self.work = os.path.join(self.dir, "work")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in self.teams():
            self.run(BINARY, "down", "--force", "-t", name, ok=False)
        self.tmux("kill-server", ok=False)

    def teams(self):
        folder = os.path.join(self.root, "teams")
        return os.listdir(folder) if os.path.isdir(folder) else []

    def run(self, *argv, ok=True):
        done = subprocess.run(argv, env=self.env, cwd=self.work, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if ok and done.returncode != 0:
            sys.exit(f"{' '.join(argv)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def phalanx(self, *argv):
        return self.run(BINARY, "--json", *argv)

    def tmux(self, *argv, ok=True):
        return self.run("tmux", "-u", *argv, ok=ok)

    def start_tmux(self):
        """Starts the server, as a user has one."""
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "200", "-y", "50", "-s", "there", "sleep", "3000")

    def count_tmux(self):
        """Shadows `tmux` with a script that counts its runs; returns a function that reads the count."""
        calls = os.path.join(self.dir, "calls")
        folder = os.path.join(self.dir, "bin")
        os.mkdir(folder)
        with open(os.path.join(folder, "tmux"), "w") as file:
            file.write(f'#!/bin/sh\necho "$1" >> {calls}\nexec {shutil.which("tmux")} "$@"\n')
        os.chmod(os.path.join(folder, "tmux"), 0o755)
        self.env["PATH"] = folder + ":" + self.env["PATH"]

        def count():
            if not os.path.exists(calls):
                return 0
            with open(calls) as file:
                return len(file.readlines())

        return count

    def start_team(self, backend, members=MEMBERS):
        """Starts the workers m0, m1 … of the team `bench`, and a detached lead; returns its pid."""
        lines = [f'[team]\nname = "bench"\nfinish = "manual"\nmax_members = {members}\nbackend = "{backend}"']
        lines += [f'[[member]]\nname = "m{n}"' for n in range(members)]
        manifest = os.path.join(self.work, "bench.toml")
        with open(manifest, "w") as file:
            file.write("\n".join(lines) + "\n")
        return json.loads(self.phalanx("up", manifest, "--detach"))["lead_pid"]

    def path(self, *parts):
        """A path in the directory of the team `bench`."""
        return os.path.join(self.root, "teams", "bench", *parts)

    def journal(self, event=None, member=None):
        with open(self.path("phalanx", "journal.jsonl")) as file:
            lines = file.read().split("\n")
        # The last line may still be incomplete.
        events = [json.loads(line) for line in lines[:-1]]
        return [e for e in events if event in (None, e["event"]) and member in (None, e.get("member"))]

    def record(self, member):
        with open(self.path("phalanx", "members", f"{member}.json")) as file:
            return json.load(file)

    def has_read(self, member):
        """Whether the member has read all its messages, of which there is one."""
        with open(self.path("inboxes", f"{member}.json")) as file:
            entries = json.load(file)
        return entries and all(entry["read"] for entry in entries)

    def add_profile(self):
        add_profile(self.root)


def add_profile(root):
    """Adds the profile `bench`, of a program that accepts input without delay."""
    profiles = os.path.join(root, "phalanx", "profiles")
    os.makedirs(profiles)
    with open(os.path.join(FAKE, "fake.toml")) as source, open(os.path.join(profiles, "bench.toml"), "w") as file:
        file.write(source.read().replace("settle_ms = 150", "settle_ms = 0"))


def timed(call):
    """Milliseconds that a call takes."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def until(holds, limit=30.0):
    """Polls a condition without pauses, because the figures are a few milliseconds."""
    end = time.perf_counter() + limit
    while True:
        found = holds()
        if found:
            return found
        if time.perf_counter() > end:
            sys.exit(f"a condition did not hold within {limit:.0f} s")


def process_floor():
    """Milliseconds of a process of phalanx without work."""
    return [timed(lambda: subprocess.run([BINARY, "--version"], capture_output=True)) for _ in range(30)]


def quantiles(values):
    """The median and the 99th percentile."""
    ordered = sorted(values)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


def stat(pid):
    """The fields of /proc/PID/stat after the name."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()


def cpu_ms(pid, with_children=False):
    fields = stat(pid)[11:15 if with_children else 13]
    return sum(map(int, fields)) * 1000 / os.sysconf("SC_CLK_TCK")


def memory(pid, field="Pss"):
    """MiB. The proportional set: pages that several processes share count in parts, so that the sum over
    all processes is the memory that is in use. `Private_Dirty` is what ends with the process."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(f"{field}:")) / 1024


def print_quantiles(rows):
    """Prints rows of a name, figures in milliseconds, and a target."""
    for what, figures, *target in rows:
        middle, high = quantiles(figures)
        print(f"  {what:<50} {middle:8.1f} / {high:.1f} ms{''.join(f' ({words})' for words in target)}", flush=True)
