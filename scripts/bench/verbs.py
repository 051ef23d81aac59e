"""Single verbs, as an agent or a script calls them without a terminal, beside what they rest on."""

import json
import os
import shutil
import subprocess

from common import BINARY, Stage, print_quantiles, process_floor, size, timed

CALLS = size(30, 2)
BOARDS = size((100, 10_000, 100_000), (20, 200))
JOURNAL_MB = size(15, 1)


def figures(stage, *argv, calls=CALLS):
    return [timed(lambda: stage.run(BINARY, *argv)) for _ in range(calls)]


def system_calls(stage, *argv):
    """The system calls and the started programs of a verb, with those of its children."""
    if not shutil.which("strace"):
        return "strace is missing"
    trace = os.path.join(stage.dir, "trace")
    argv = ["strace", "-f", "-qq", "-o", trace, BINARY, *argv]
    subprocess.run(argv, env=stage.env, cwd=stage.work, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    with open(trace) as file:
        lines = [line for line in file if "(" in line]
    programs = [line for line in lines if "execve" in line and line.rstrip().endswith("= 0")]
    return f"{len(lines)} system calls, {len(programs)} programs"


def fill_board(stage, count):
    """Fills the board up to `count` tasks, as another program writes them."""
    folder = os.path.join(stage.root, "tasks", "bench")
    for task in range(1, count + 1):
        path = os.path.join(folder, f"{task}.json")
        if not os.path.exists(path):
            fields = {"id": str(task), "subject": f"Task {task}", "description": "", "status": "pending"}
            with open(path, "w") as file:
                json.dump({**fields, "blocks": [], "blockedBy": []}, file)


def fill_journal(stage):
    with open(stage.path("phalanx", "journal.jsonl"), "r+") as file:
        line = file.readline()
        file.seek(0, os.SEEK_END)
        file.write(line * (JOURNAL_MB * 1024 * 1024 // len(line)))


def run():
    with Stage() as stage:
        stage.start_tmux()
        stage.phalanx("team", "create", "bench")
        stage.phalanx("spawn", "cat", "--backend", "tmux", "--", "cat")
        stage.phalanx("spawn", "ann", "--backend", "pty")
        pane = stage.record("cat")["placement"]["tmux"]["pane_id"]
        verbs = {
            "status": ["status"],
            "send": ["send", "ann", "hello"],
            "keys, tmux": ["keys", "cat", "x"],
            "type, tmux": ["type", "cat", "x"],
        }
        print(f"\nSingle verbs, {CALLS} calls each: median / 99 %")
        print_quantiles([("floor: a process of phalanx without work", process_floor())])
        floor = [timed(lambda: stage.tmux("send-keys", "-t", pane, "x")) for _ in range(CALLS)]
        print_quantiles([("floor: tmux send-keys", floor)])
        for name, argv in verbs.items():
            print_quantiles([(name, figures(stage, *argv), system_calls(stage, *argv))])
        for count in BOARDS:
            fill_board(stage, count)
            made = figures(stage, "task", "create", "another", calls=max(CALLS // 4, 1))
            print_quantiles([(f"task create, {count:,} tasks", made, "12 ms")])
        fill_journal(stage)
        last = figures(stage, "events", "-n", "100", calls=max(CALLS // 4, 1))
        print_quantiles([(f"events -n 100, journal of {JOURNAL_MB} MB", last, "20 ms")])
