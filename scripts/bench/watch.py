"""The dashboard in a tmux pane of 120x40: first frame, CPU and memory."""

import json
import os
import subprocess
import time

from common import BINARY, Stage, cpu_ms, memory, size, timed, until

TICKING = "while :; do printf '\\033[32mtick\\033[0m %s\\n' $((i=i+1)); sleep 0.2; done"
RESTING = "sleep 1000"
SECONDS = size(20, 2)
TASKS = size(10_000, 100)
FEW, MANY = size(20, 2), size(64, 4)


class WatchedTeam(Stage):
    """The dashboard of a team with plain commands as members."""

    def __enter__(self):
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", "-s", "person", "sh")
        self.phalanx("team", "create", "bench")
        return self

    def fill(self, members, command, backend, tasks):
        for nth in range(members):
            self.phalanx("spawn", f"m{nth:02}", "--backend", backend, "--", "sh", "-c", command)
        if tasks:
            plan = os.path.join(self.work, "plan.jsonl")
            with open(plan, "w") as file:
                file.write(json.dumps({"p": "01-01", "n": "large", "d": []}) + "\n")
                for nth in range(1, tasks + 1):
                    file.write(json.dumps({"id": f"T{nth}", "a": f"Task {nth} of a large board"}) + "\n")
            self.phalanx("task", "import", plan)

    def open(self):
        """Opens the dashboard; the milliseconds until its first frame with members."""
        command = f"{BINARY} --config-dir $PHALANX_CONFIG_DIR watch bench"

        def start():
            self.tmux("send-keys", "-t", "person", command, "Enter")
            until(lambda: "m00" in self.screen())

        took = timed(start)
        shell = self.tmux("display", "-p", "-t", "person", "#{pane_pid}").strip()
        children = subprocess.run(["ps", "--ppid", shell, "-o", "pid="], capture_output=True, text=True)
        self.dashboard = int(children.stdout.split()[0])
        return took

    def screen(self):
        return self.tmux("capture-pane", "-p", "-t", "person")

    def cpu(self):
        """Percent of a core, with the processes that it starts."""
        before = cpu_ms(self.dashboard, with_children=True)
        time.sleep(SECONDS)
        return (cpu_ms(self.dashboard, with_children=True) - before) / SECONDS / 10


def run():
    print(f"the dashboard, {SECONDS} s each (in brackets: at most)")
    for what, members, command, backend, tasks in [
        (f"{FEW} members on PTYs print 5 lines/s", FEW, TICKING, "pty", 0),
        (f"{FEW} members in tmux print 5 lines/s", FEW, TICKING, "tmux", 0),
        (f"{FEW} members at rest", FEW, RESTING, "pty", 0),
        (f"{MANY} members at rest, {TASKS} tasks", MANY, RESTING, "pty", TASKS),
    ]:
        with WatchedTeam() as watched:
            watched.fill(members, command, backend, tasks)
            first_frame = watched.open()
            time.sleep(2)
            cpu, held = watched.cpu(), memory(watched.dashboard)
        print(f"  {what:<36} first frame {first_frame:4.0f} ms (100)   "
              f"{cpu:4.2f} % of a core (1)   {held:4.1f} MiB (PSS) (15)", flush=True)
