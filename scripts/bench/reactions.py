"""Times until a message, a shutdown or a failure has its effect."""

import json
import os
import signal
import time

from common import BINARY, MEMBERS, ROUNDS, Stage, print_quantiles, process_floor, size, timed, until


def shutdown_ms(stage, name):
    """Shutdown request → member gone, by the journal."""
    asked = stage.journal("shutdown_requested", name)[0]["at"]
    return stage.journal("member_left", name)[0]["at"] - asked


def unled():
    """On PTYs, without a lead: `send` → handled by the worker; shutdown request → member gone; the whole
    command `shutdown`."""
    sends, shutdowns, commands = [], [], []
    with Stage() as stage:
        stage.phalanx("team", "create", "bench")
        for name in [f"w{n}" for n in range(size(30, 2))]:
            stage.phalanx("spawn", name, "--backend", "pty")

            def send():
                stage.phalanx("send", name, "hello")
                until(lambda: stage.has_read(name))

            sends.append(timed(send))
            commands.append(timed(lambda: stage.phalanx("shutdown", name)))
            shutdowns.append(shutdown_ms(stage, name))
    return sends, shutdowns, commands


def shutdowns_in_tmux():
    """Shutdown request → pane verified gone, under a running lead."""
    with Stage() as stage:
        stage.start_team("tmux")
        figures = []
        for name in [f"m{n}" for n in range(MEMBERS)]:
            stage.phalanx("shutdown", name)
            figures.append(shutdown_ms(stage, name))
        return figures


def killed_panes():
    """A pane killed from outside → its member removed from the team by the lead, by the journal."""
    with Stage() as stage:
        stage.start_tmux()
        stage.start_team("tmux")
        figures = []
        for name in [f"m{n}" for n in range(MEMBERS)]:
            pane = stage.record(name)["placement"]["tmux"]["pane_id"]
            began = time.time() * 1000
            stage.tmux("kill-pane", "-t", pane)
            figures.append(until(lambda: stage.journal("member_left", name))[0]["at"] - began)
        return figures


def released_tasks():
    """A worker killed with SIGKILL → its task released, by the journal."""
    figures = []
    for _ in range(ROUNDS):
        with Stage() as stage:
            stage.start_team("pty", 1)
            stage.phalanx("task", "create", "long", "--", "sleep", "300")
            until(lambda: stage.journal("task_claimed"))
            began = time.time() * 1000
            os.kill(stage.record("m0")["start"]["program"]["pid"], signal.SIGKILL)
            figures.append(until(lambda: stage.journal("task_released"))[0]["at"] - began)
    return figures


def silent_members():
    """The time beyond its deadline that `shutdown --deadline 1` takes for a stopped worker."""
    figures = []
    for _ in range(size(3, 1)):
        with Stage() as stage:
            stage.start_team("pty", 1)
            started = stage.record("m0")["start"]
            # A running launcher would continue the worker with SIGCONT.
            for process in ("launcher", "program"):
                os.kill(started[process]["pid"], signal.SIGSTOP)
            figures.append(timed(lambda: stage.run(BINARY, "--json", "shutdown", "m0", "--deadline", "1", ok=False)) - 1000)
    return figures


def torn_team_files():
    """A team file truncated in place → the lead has restored it."""
    with Stage() as stage:
        stage.start_team("pty", 1)
        path = stage.path("config.json")

        def is_whole():
            with open(path) as file:
                try:
                    return json.load(file)
                except ValueError:
                    return None

        figures = []
        for _ in range(ROUNDS):
            os.truncate(path, os.path.getsize(path) // 2)
            figures.append(timed(lambda: until(is_whole)))
        return figures


def run():
    sends, shutdowns, commands = unled()
    print("reaction times (p50 / p99)")
    print_quantiles([
        ("floor: `phalanx --version`, whole process", process_floor()),
        ("`send` started → worker has handled it (pty)", sends),
        ("shutdown request → member gone (pty, no lead)", shutdowns),
        ("`shutdown`, whole command (pty, no lead)", commands),
        ("shutdown request → pane gone (tmux)", shutdowns_in_tmux()),
        ("shutdown of a silent worker, beyond its deadline", silent_members()),
        ("pane killed → lead has removed the member (tmux)", killed_panes()),
        ("worker killed → its task is released (pty)", released_tasks()),
        ("torn team file → the lead has restored it", torn_team_files()),
    ])
