"""16 teammates started and closed, against tmux alone and against the commands of Claude Code."""

import os
import statistics
import sys

from common import MEMBERS, ROUNDS, Stage, timed, until

# The tmux commands with which Claude Code 2.1.329 starts one teammate: 14 processes, one after the
# other. Observed are their number, the `split-window -- cat` that creates the pane, and the
# `respawn-pane -k` that starts the program; the options, borders and layout in between are
# reconstructed. LEAD, WINDOW, PANE and PROGRAM are placeholders.
CLAUDE_CODE = [
    "display-message -p -t LEAD #{window_id}",
    "list-panes -t WINDOW -F #{pane_id}",
    "split-window -d -h -t LEAD -P -F #{pane_id} -- cat",
    "select-pane -t PANE -T teammate",
    "set-option -p -t PANE pane-border-style fg=blue",
    "set-option -p -t PANE pane-active-border-style fg=blue",
    "set-option -p -t PANE pane-border-format #{pane_title}",
    "set-option -w -t WINDOW pane-border-status top",
    "list-panes -t WINDOW -F #{pane_id}",
    "select-layout -t WINDOW main-vertical",
    "resize-pane -t LEAD -x 30%",
    "display-message -p -t PANE #{pane_id}",
    "list-panes -t WINDOW -F #{pane_id}",
    "respawn-pane -k -t PANE -- PROGRAM",
]


def floor():
    """Starts panes of the bare program with one `tmux source-file`, until all run it; then closes them
    with one tmux process, until they are gone."""
    with Stage() as stage:
        lines = ["new-session -d -x 200 -y 50 -s floor sleep 300"]
        lines += ["split-window -h -d -t floor: sleep 300\nselect-layout -t floor: tiled"] * (MEMBERS - 1)
        script = os.path.join(stage.work, "floor.conf")
        with open(script, "w") as file:
            file.write("\n".join(lines) + "\n")
        stage.start_tmux()

        def is_running():
            shown = stage.tmux("list-panes", "-s", "-t", "floor:", "-F", "#{pane_current_command}")
            return shown.split().count("sleep") == MEMBERS

        def start():
            stage.tmux("source-file", script)
            until(is_running)

        started = timed(start)
        panes = stage.tmux("list-panes", "-s", "-t", "floor:", "-F", "#{pane_id}").split()
        words = [word for pane in panes for word in ("kill-pane", "-t", pane, ";")]

        def close():
            stage.tmux(*words[:-1])
            until(lambda: not set(panes) & set(stage.tmux("list-panes", "-a", "-F", "#{pane_id}").split()))

        return started, timed(close)


def as_claude_code():
    """Starts panes of the bare program with the commands that Claude Code uses."""
    with Stage() as stage:
        stage.tmux("-f", "/dev/null", "new-session", "-d", "-x", "200", "-y", "50", "-s", "lead", "sleep", "300")
        lead, window = stage.tmux("list-panes", "-t", "lead:", "-F", "#{pane_id} #{window_id}").split()
        names = {"LEAD": lead, "WINDOW": window}

        def start():
            for _ in range(MEMBERS):
                for command in CLAUDE_CODE:
                    words = [names.get(word, word) for word in command.replace("PROGRAM", "sleep 300").split()]
                    output = stage.tmux(*words)
                    if words[0] == "split-window":
                        names["PANE"] = output.strip()

        return timed(start)


def start(backend):
    """Starts workers with one `up --detach`; the whole process, and by the journal from the first
    request until all are proven."""
    with Stage() as stage:
        if backend == "tmux":
            stage.start_tmux()
        whole = timed(lambda: stage.start_team(backend))
        asked = min(event["at"] for event in stage.journal("member_asked"))
        ready = max(event["at"] for event in stage.journal("member_ready"))
        return ready - asked, whole


def close(*options, is_led=True):
    """Ends workers in tmux with one command; by the journal from the first request until the last
    worker is off the roster and its pane verified gone, and the whole command."""
    with Stage() as stage:
        stage.start_tmux()
        lead = stage.start_team("tmux")
        if not is_led:
            os.kill(lead, 9)
            until(lambda: not os.path.exists(f"/proc/{lead}"))
        whole = timed(lambda: stage.phalanx("shutdown", "--all", *options))
        asked = min(event["at"] for event in stage.journal("shutdown_requested"))
        left = [event["at"] for event in stage.journal("member_left")]
        if len(left) != MEMBERS or len(stage.tmux("list-panes", "-a", "-F", "#{pane_id}").split()) != 1:
            sys.exit(f"{len(left)} of {MEMBERS} members left")
        return max(left) - asked, whole


def print_rows(title, floor, rows):
    print(title)
    floor_ms = statistics.median(floor[1])
    print(f"  {'floor: ' + floor[0]:<62} {floor_ms:8.1f} ms   1.00 ×")
    for what, figures in rows:
        value = statistics.median(figures)
        print(f"  {what:<62} {value:8.1f} ms   {value / floor_ms:5.2f} ×", flush=True)


def run():
    floors, peers, in_tmux, on_ptys, asked, forced, unled = [], [], [], [], [], [], []
    for _ in range(ROUNDS):  # interleaved, so that a slow moment of the machine affects all of them
        floors.append(floor())
        peers.append(as_claude_code())
        in_tmux.append(start("tmux"))
        on_ptys.append(start("pty"))
        asked.append(close())
        forced.append(close("--force"))
        unled.append(close(is_led=False))
    column = lambda figures, nth: [figure[nth] for figure in figures]
    print_rows(f"start of {MEMBERS} teammates, median of {ROUNDS}", ("one tmux source-file, bare program", column(floors, 0)), [
        ("peer: Claude Code 2.1.329's tmux commands", peers),
        ("tmux: request → all proven (journal)", column(in_tmux, 0)),
        ("tmux: `up --detach`, whole process", column(in_tmux, 1)),
        ("pty: request → all proven (journal)", column(on_ptys, 0)),
        ("pty: `up --detach`, whole process", column(on_ptys, 1)),
    ])
    for what, nth in (("journal", 0), ("whole process", 1)):
        ratio = statistics.median(column(in_tmux, nth)) / statistics.median(peers)
        print(f"  tmux ({what}) against the peer: {ratio:4.2f} ×")
    print_rows(f"close of {MEMBERS} teammates in tmux, median of {ROUNDS}", (f"one tmux process with {MEMBERS} kill-pane", column(floors, 1)), [
        (f"{what}, {part}", column(figures, nth))
        for what, figures in (("`shutdown --all`", asked), ("`shutdown --all --force`", forced), ("`shutdown --all`, no lead", unled))
        for part, nth in (("request → all gone (journal)", 0), ("whole command", 1))
    ])
