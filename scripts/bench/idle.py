"""A lead of idle members: tmux processes, CPU and memory, also after many members have come and gone."""

import json
import os
import time

from common import Stage, cpu_ms, memory, size, stat

IDLE_MEMBERS = size(50, 3)
IDLE_SECONDS = size(60, 3)
LEFT = size(60, 2)


def idle():
    """The number of tmux processes, counted by a shadowed `tmux`, and the lead's CPU time, children (seen
    by the page faults of reaped ones) and memory."""
    with Stage() as stage:
        count = stage.count_tmux()
        lead = stage.start_team("tmux", IDLE_MEMBERS)
        faults = lambda: int(stat(lead)[8])
        time.sleep(3)  # until the start has settled
        before = count(), cpu_ms(lead), faults()
        time.sleep(IDLE_SECONDS)
        after = count(), cpu_ms(lead), faults()
        return [now - then for now, then in zip(after, before)], memory(lead)


def churn():
    """MiB and descriptors of a lead of five workers, before and after members that came and went."""
    with Stage() as stage:
        lead = stage.start_team("pty", 6)
        stage.phalanx("shutdown", "m5")  # makes room for one
        held = lambda: (memory(lead), len(os.listdir(f"/proc/{lead}/fd")))
        time.sleep(3)  # until the start has settled
        before = held()
        for n in range(LEFT):
            stage.phalanx("spawn", f"w{n}", "--backend", "pty")
            task = json.loads(stage.phalanx("task", "create", f"t{n}", "--", "true"))["id"]
            stage.phalanx("wait", "--until", f"task={task}", "--timeout", "20")
            stage.phalanx("shutdown", f"w{n}")
        time.sleep(3)
        return before, held()


def run():
    (calls, cpu, faults), held = idle()
    print(f"{IDLE_MEMBERS} idle members in tmux, {IDLE_SECONDS} s: {calls} tmux processes")
    share = cpu / IDLE_SECONDS / 10
    print(f"  the lead: {share:.2f} % of a core, {faults} page faults of children, {held:.1f} MiB (PSS)", flush=True)
    (held, files), (held_after, files_after) = churn()
    print(f"a lead, {LEFT} members later: {held:.1f} → {held_after:.1f} MiB (PSS), {files} → {files_after} descriptors")
