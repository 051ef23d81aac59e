"""Spawns of members and of plain commands in tmux, against tmux alone and mprocs."""

import atexit
import json
import os
import pty
import shlex
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading

from common import MEMBERS, ROUNDS, Stage, print_quantiles, size, timed, until

# A plain command that creates a file of its own once it runs.
COMMAND = ["sh", "-c", ": >up.$$; exec sleep 300"]
COMMANDS = size(8, 2)


class SpawnStage(Stage):
    def __enter__(self):
        self.start_tmux()
        return self

    def running(self):
        return [name for name in os.listdir(self.work) if name.startswith("up.")]

    def until_running(self, count, call):
        """Milliseconds from the call until `count` of the commands run."""

        def go():
            call()
            until(lambda: len(self.running()) == count)

        return timed(go)


def workers_separately(count, *options):
    """One `spawn` after the other; the milliseconds of each."""
    with SpawnStage() as stage:
        stage.phalanx("team", "create", "bench")
        return [timed(lambda: stage.phalanx("spawn", f"m{n}", *options)) for n in range(count)]


def workers_at_once(count):
    with SpawnStage() as stage:
        stage.phalanx("team", "create", "bench")
        return timed(lambda: stage.phalanx("spawn", *(f"m{n}" for n in range(count))))


def commands_separately():
    """The milliseconds until all run, and those of each `spawn`."""
    with SpawnStage() as stage:
        stage.phalanx("team", "create", "bench")
        took = []

        def go():
            took.extend(timed(lambda: stage.phalanx("spawn", f"m{n}", "--", *COMMAND)) for n in range(COMMANDS))

        return stage.until_running(COMMANDS, go), took


def commands_at_once():
    with SpawnStage() as stage:
        stage.phalanx("team", "create", "bench")
        names = [f"m{n}" for n in range(COMMANDS)]
        return stage.until_running(COMMANDS, lambda: stage.phalanx("spawn", *names, "--", *COMMAND))


def up(members, *lines):
    """All members with one `up --detach`; `lines` may give them commands."""
    with SpawnStage() as stage:
        manifest = os.path.join(stage.work, "bench.toml")
        with open(manifest, "w") as file:
            file.write(f'[team]\nname = "bench"\nfinish = "manual"\nmax_members = {members}\nbackend = "tmux"\n')
            for n in range(members):
                file.write("\n".join(["[[member]]", f'name = "m{n}"', *lines]) + "\n")
        return stage.until_running(members if lines else 0, lambda: stage.phalanx("up", manifest, "--detach"))


def tmux_commands(split):
    """The same commands with tmux alone, one process each: windows, or panes of one window."""
    with SpawnStage() as stage:

        def go():
            for _ in range(COMMANDS):
                if split:
                    tiled = [";", "select-layout", "-t", "there:", "tiled"]
                    stage.tmux("split-window", "-d", "-t", "there:", "-c", stage.work, "--", *COMMAND, *tiled)
                else:
                    stage.tmux("new-window", "-d", "-t", "there:", "-c", stage.work, "--", *COMMAND)

        return stage.until_running(COMMANDS, go)


def install_mprocs():
    """Installs mprocs with npm into a directory of this run; returns the program and its version, or
    `None` and the error."""
    folder = tempfile.mkdtemp(prefix="phxb", dir="/tmp")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    words = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, "mprocs"]
    try:
        subprocess.run(words, check=True, capture_output=True, timeout=120)
    except (OSError, subprocess.SubprocessError) as error:
        return None, str(error)
    # The package exports the path of its native binary, so that node is not measured.
    named = subprocess.run(["node", "-p", "require('mprocs')"], cwd=folder, capture_output=True, text=True)
    program = named.stdout.strip()
    if named.returncode != 0:
        return None, named.stderr.strip()
    version = subprocess.run([program, "--version"], capture_output=True, text=True)
    return program, version.stdout.strip()


def mprocs_commands(program):
    """The same commands with mprocs on its own terminal."""
    with SpawnStage() as stage:
        pids = []

        def go():
            pid, terminal = pty.fork()
            if pid == 0:
                os.chdir(stage.work)
                os.execve(program, [program, *[shlex.join(COMMAND)] * COMMANDS], stage.env)
            pids.append(pid)
            # mprocs would block if its output were not read.
            threading.Thread(target=drain, args=(terminal,), daemon=True).start()

        took = stage.until_running(COMMANDS, go)
        for pid in [*pids, *(int(name.removeprefix("up.")) for name in stage.running())]:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pids[0], 0)
        return took


def drain(terminal):
    try:
        while os.read(terminal, 1 << 16):
            pass
    except OSError:
        os.close(terminal)


def tmux_processes():
    """The tmux processes of the first and second `spawn` of a team, and of a batch."""
    with SpawnStage() as stage:
        count = stage.count_tmux()
        stage.phalanx("team", "create", "bench")
        found = []
        for names in (["a"], ["b"], [f"m{n}" for n in range(MEMBERS)]):
            before = count()
            stage.phalanx("spawn", *names)
            found.append(count() - before)
        return found


def run():
    program, version = install_mprocs()
    rows = {}

    def add(row, value):
        rows.setdefault(row, []).append(value)

    workers, commands, running = [], [], []
    for _ in range(ROUNDS):  # interleaved, so that a slow moment of the machine affects all of them
        took = workers_separately(MEMBERS)
        workers += took
        add(f"{MEMBERS} workers: a `spawn` each", sum(took))
        add(f"{MEMBERS} workers: one `spawn`", workers_at_once(MEMBERS))
        add(f"{MEMBERS} workers: one `up --detach`", up(MEMBERS))
        whole, took = commands_separately()
        commands += took
        add(f"{COMMANDS} commands: a `spawn` each", whole)
        add(f"{COMMANDS} commands: one `spawn`", commands_at_once())
        add(f"{COMMANDS} commands: one `up --detach`", up(COMMANDS, f"run = {json.dumps(COMMAND)}"))
        running += workers_separately(size(4, 1), "--until", "running")
        add(f"{COMMANDS} commands: `tmux new-window` each", tmux_commands(split=False))
        add(f"{COMMANDS} commands: `tmux split-window` each", tmux_commands(split=True))
        if program:
            add(f"{COMMANDS} commands: {version}", mprocs_commands(program))
    print(f"one `spawn` in tmux (median / p99 of {len(workers)})")
    print_quantiles([("a worker", workers), ("a worker, `--until running`", running), ("a plain command", commands)])
    first, second, batch = tmux_processes()
    print(f"  tmux processes: {first} for the first member of a team, {second} for the next, {batch} for {MEMBERS} at once")
    print(f"many in tmux, until all run, median of {ROUNDS}")
    floor = statistics.median(rows[f"{COMMANDS} commands: `tmux new-window` each"])
    for what, figures in rows.items():
        value = statistics.median(figures)
        ratio = f"   {value / floor:4.2f} ×" if what.startswith(f"{COMMANDS} ") else ""
        print(f"  {what:<48} {value:8.1f} ms{ratio}")
    if not program:
        print(f"  mprocs: skipped, it cannot be installed: {version}")
