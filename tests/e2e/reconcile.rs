//! `up` on a team that exists: the changes of its manifest, and only those (SP-17).

use serde_json::{Value, json};

use crate::harness::{Stage, wait_for};

const BASE: &str = r#"
[team]
name = "daily"
finish = "manual"

[[member]]
name = "ann"

[[member]]
name = "log"
run = ["sleep", "1000"]

[[member]]
name = "dev"
scale = { min = 1, max = 2 }
role = "tester"

[[task]]
key = "fmt"
subject = "Format"
run = ["true"]

[[task]]
key = "wait"
subject = "Wait for a file"
run = ["sh", "-c", "until test -e go; do sleep 0.1; done"]
owner = "ann"

[[task]]
key = "docs"
subject = "Docs"
run = ["true"]
after = ["wait"]
"#;

/// An edit of the manifest, and the changes that follow from it: `STEP NAME KEYS`.
struct Edit {
    from: &'static str,
    to: &'static str,
    changes: &'static [&'static str],
}

const EDITS: [Edit; 12] = [
    Edit {
        from: "[[task]]\nkey = \"fmt\"",
        to: "[[member]]\nname = \"bob\"\n[[task]]\nkey = \"fmt\"",
        changes: &["start bob "],
    },
    Edit { from: "\"1000\"", to: "\"2000\"", changes: &["restart log run"] },
    Edit {
        from: "[[member]]\nname = \"log\"\nrun = [\"sleep\", \"1000\"]\n",
        to: "",
        changes: &["end log "],
    },
    Edit { from: "max = 2", to: "max = 3", changes: &["change dev scale"] },
    Edit {
        from: "role = \"tester\"",
        to: "role = \"tester\"\nenv = { A = \"1\" }",
        changes: &["restart dev-1 env"],
    },
    Edit {
        from: "\"1000\"]",
        to: "\"1000\"]\nrestart = \"on-failure\"",
        changes: &["change log restart"],
    },
    Edit {
        from: "\"1000\"]",
        to: "\"1000\"]\nstart = \"when-needed\"\nprofile = \"worker\"",
        changes: &[],
    },
    Edit {
        from: "name = \"log\"",
        to: "name = \"journal\"",
        changes: &["start journal ", "end log "],
    },
    Edit {
        from: "subject = \"Docs\"",
        to: "subject = \"The docs\"",
        changes: &["edit docs subject"],
    },
    Edit { from: "subject = \"Format\"", to: "subject = \"Formatted\"", changes: &[] },
    Edit {
        from: "[[task]]\nkey = \"docs\"\nsubject = \"Docs\"\nrun = [\"true\"]\nafter = [\"wait\"]\n",
        to: "[[task]]\nkey = \"lint\"\nsubject = \"Lint\"\nrun = [\"true\"]\nafter = [\"fmt\"]\n",
        changes: &["create lint ", "cancel docs "],
    },
    Edit {
        from: "finish = \"manual\"",
        to: "finish = \"manual\"\nmax_members = 5",
        changes: &["set max_members 8 5"],
    },
];

fn shown(report: &Value) -> Vec<String> {
    let words = |value: &Value| {
        let list = value.as_array().into_iter().flatten();
        list.map(|word| word.as_str().expect("a word")).collect::<Vec<_>>().join(" ")
    };
    let changes = &report["changes"];
    let rows = |key: &str| changes[key].as_array().expect(key).clone();
    let text = |value: &Value| value.as_str().unwrap_or("default").to_owned();
    let members = rows("members").into_iter().map(move |of| {
        format!("{} {} {}", text(&of["step"]), text(&of["name"]), words(&of["keys"]))
    });
    let tasks = rows("tasks").into_iter().map(move |of| {
        format!("{} {} {}", text(&of["step"]), text(&of["key"]), words(&of["fields"]))
    });
    let settings = rows("settings").into_iter().map(move |of| {
        format!("set {} {} {}", text(&of["key"]), text(&of["now"]), text(&of["then"]))
    });
    members.chain(tasks).chain(settings).collect()
}

/// Name, process and command of each running member.
fn members(stage: &Stage) -> Vec<(String, Value)> {
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    let members = status["members"].as_array().expect("members");
    members
        .iter()
        .map(|of| (of["name"].as_str().expect("a name").to_owned(), of["pid"].clone()))
        .collect()
}

/// Key, state and subject of each task.
fn tasks(stage: &Stage) -> Vec<(String, String, String)> {
    let list = stage.phalanx(&["--json", "task", "list", "--all"]).expect(0).json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let row = |of: &Value| {
        (text(&of["metadata"]["phalanx"]["key"]), text(&of["state"]), text(&of["subject"]))
    };
    let mut rows: Vec<_> = list.as_array().expect("tasks").iter().map(row).collect();
    rows.sort();
    rows
}

fn start(stage: &Stage, backend: &str) -> String {
    let manifest = stage.file("team.toml", BASE);
    stage.phalanx(&["up", &manifest, "--detach", "--backend", backend]).expect(0);
    wait_for("the first task to be over", || {
        let is_over =
            |(key, state, _): &(String, String, String)| key == "fmt" && state == "completed";
        let works =
            |(key, state, _): &(String, String, String)| key == "wait" && state == "in_progress";
        let all = tasks(stage);
        (all.iter().any(is_over) && all.iter().any(works)).then_some(())
    });
    manifest
}

/// Each edit changes what it names and nothing else: every other member keeps its process.
fn edits(stage: &Stage, backend: &str, is_led: bool) {
    for edit in &EDITS {
        let manifest = start(stage, backend);
        assert!(BASE.contains(edit.from), "{}", edit.from);
        stage.file("team.toml", &BASE.replacen(edit.from, edit.to, 1));
        let show = ["--json", "up", &manifest, "--dry-run", "--backend", backend];
        let run = stage.phalanx(&show);
        if edit.to.contains("when-needed") {
            // Its command needs the profile `shell`: nothing is half-applied.
            assert_eq!(run.code, 2, "{}", run.stderr);
            stage.phalanx(&["down", "--force"]).expect(0);
            continue;
        }
        let changes = shown(&run.expect(0).json());
        assert_eq!(changes, edit.changes, "{}", edit.to);
        let (before, board) = (members(stage), tasks(stage));
        if !changes.is_empty() {
            let refused = stage.phalanx(&["up", &manifest, "--backend", backend]).expect(4);
            assert!(refused.stderr.contains("`--yes` applies the changes"), "{}", refused.stderr);
            assert_eq!(
                (members(stage), tasks(stage)),
                (before.clone(), board.clone()),
                "{}",
                edit.to
            );
        }
        if !is_led {
            let status = stage.phalanx(&["--json", "status"]).expect(0).json();
            let pid = status["lead"]["pid"].as_i64().expect("a lead").to_string();
            stage.command("kill").args(["-9", &pid]).status().expect("kill runs");
            wait_for("the lead to be gone", || {
                let status = stage.phalanx(&["--json", "status"]).expect(0).json();
                status["lead"].is_null().then_some(())
            });
        }
        stage.phalanx(&["up", &manifest, "--yes", "--detach", "--backend", backend]).expect(0);
        assert_eq!(shown(&stage.phalanx(&show).expect(0).json()), [""; 0], "{}", edit.to);
        let after = members(stage);
        let touched = |name: &str| {
            changes
                .iter()
                .any(|row| row.starts_with("restart") && row.contains(&format!(" {name} ")))
        };
        for (name, pid) in &before {
            let now = after.iter().find(|(other, _)| other == name).map(|(_, pid)| pid);
            let is_ended = changes.contains(&format!("end {name} "));
            match (touched(name), is_ended) {
                (false, false) => assert_eq!(now, Some(pid), "{name} after {}", edit.to),
                (true, _) => assert!(now.is_some() && now != Some(pid), "{name} after {}", edit.to),
                (false, true) => assert_eq!(now, None, "{name} after {}", edit.to),
            }
        }
        let started = changes.iter().filter_map(|row| row.strip_prefix("start "));
        for name in started.map(str::trim) {
            assert!(after.iter().any(|(other, _)| other == name), "{name} after {}", edit.to);
        }
        let is_touched = |key: &str| changes.iter().any(|row| row.contains(&format!(" {key} ")));
        let (kept, same) = (tasks(stage), |row: &&(String, String, String)| !is_touched(&row.0));
        let of = |rows: &[(String, String, String)]| {
            rows.iter().filter(same).cloned().collect::<Vec<_>>()
        };
        assert_eq!(of(&kept), of(&board), "{}", edit.to);
        stage.phalanx(&["down", "--force"]).expect(0);
    }
    stage.assert_clean();
}

#[test]
fn tmux_sp_17_up_changes_what_the_manifest_changes_and_nothing_else() {
    edits(&super::stage(), "tmux", true);
}

#[test]
fn sp_17_up_changes_a_team_without_a_lead_and_leads_it() {
    edits(&super::stage_without_tmux(), "pty", false);
}

/// What was added by hand is left alone, and what ends by its own stays ended.
#[test]
fn sp_17_up_leaves_alone_what_was_added_by_hand() {
    let stage = super::stage_without_tmux();
    let manifest = start(&stage, "pty");
    stage.phalanx(&["spawn", "eve"]).expect(0);
    stage.phalanx(&["task", "create", "By hand", "--blocked-by", "2"]).expect(0);
    stage.phalanx(&["shutdown", "log", "--force"]).expect(0);
    stage.file("team.toml", &BASE.replace("\"docs\"", "\"pages\""));
    let shown_now = stage
        .phalanx(&["--json", "up", &manifest, "--dry-run", "--backend", "pty"])
        .expect(0)
        .json();
    assert_eq!(shown(&shown_now), ["create pages ", "cancel docs "]);
    assert_eq!(shown_now["changes"]["ended"], json!(["log"]));
    stage.phalanx(&["up", &manifest, "--yes", "--backend", "pty"]).expect(0);
    let names: Vec<String> = members(&stage).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["ann", "dev-1", "eve"]);
    let own = tasks(&stage)
        .into_iter()
        .find(|(_, _, subject)| subject == "By hand")
        .expect("the task by hand");
    assert_eq!(own.1, "blocked");
    // A member by hand has the name of one in the manifest.
    stage.file("team.toml", &BASE.replace("name = \"log\"", "name = \"eve\""));
    let refused = stage.phalanx(&["up", &manifest, "--yes", "--backend", "pty"]).expect(4);
    assert!(refused.stderr.contains("a member `eve` was started by hand"), "{}", refused.stderr);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// What vanished, with the lead as in a reboot or alone, is started again, without a question.
#[test]
fn sp_17_up_starts_again_what_vanished() {
    let stage = super::stage_without_tmux();
    let manifest = start(&stage, "pty");
    for with_lead in [true, false] {
        let status = stage.phalanx(&["--json", "status"]).expect(0).json();
        let lead = status["lead"]["pid"].to_string();
        let (_, program) =
            members(&stage).into_iter().find(|(name, _)| name == "log").expect("a member");
        let stat = std::fs::read_to_string(format!("/proc/{program}/status")).expect("it runs");
        let launcher = stat.lines().find_map(|line| line.strip_prefix("PPid:")).expect("a parent");
        let launcher = launcher.trim().to_owned();
        let gone = if with_lead { vec![lead, launcher] } else { vec![launcher] };
        stage.command("kill").arg("-9").args(&gone).status().expect("kill runs");
        let before = members(&stage);
        let up = ["up", &manifest, "--detach", "--backend", "pty"];
        let up = wait_for("the end to be seen", || {
            Some(stage.phalanx(&up).expect(0)).filter(|up| up.stderr.contains("log runs"))
        });
        assert!(up.stderr.contains("is started again"), "{up:?}");
        let pid_of = |all: &[(String, Value)], name: &str| {
            all.iter().find(|(other, _)| other == name).map(|(_, pid)| pid.clone())
        };
        let after = members(&stage);
        assert!(pid_of(&after, "log").is_some_and(|pid| Some(pid) != pid_of(&before, "log")));
        assert_eq!(pid_of(&after, "ann"), pid_of(&before, "ann"));
    }
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// An `up` that is killed at any point is continued by the next one.
#[test]
fn sp_17_killed_up_is_continued() {
    let stage = super::stage_without_tmux();
    let _printed = stage.printed_if_failed("daily");
    let edited = BASE
        .replace("\"1000\"", "\"2000\"")
        .replace("name = \"dev\"\n", "name = \"eva\"\n")
        .replace("\"docs\"", "\"pages\"")
        .replace("finish = \"manual\"", "finish = \"manual\"\nmax_members = 5");
    let kill = |point: &str, manifest: &str| {
        let mut command = stage.command(crate::harness::binary());
        command.env("PHALANX_FAILPOINT", point);
        let ended =
            command.args(["up", manifest, "--yes", "--detach", "--backend", "pty"]).output();
        let ended = ended.expect("phalanx runs");
        assert!(
            ended.status.code().is_none(),
            "{point}: {}",
            String::from_utf8_lossy(&ended.stderr)
        );
    };
    let whole = |point: &str, text: &str, manifest: &str| {
        stage.phalanx(&["up", manifest, "--yes", "--detach", "--backend", "pty"]).expect(0);
        let left = stage.phalanx(&["--json", "up", manifest, "--dry-run", "--backend", "pty"]);
        assert_eq!(shown(&left.expect(0).json()), [""; 0], "{point}");
        let mut all = ["ann", "log", if text == BASE { "dev-1" } else { "eva-1" }];
        all.sort_unstable();
        wait_for(&format!("all members after {point}"), || {
            let mut names: Vec<String> =
                members(&stage).into_iter().map(|(name, _)| name).collect();
            names.sort_unstable();
            (names == all).then_some(())
        });
        let keys: Vec<String> = tasks(&stage)
            .into_iter()
            .filter(|(_, state, _)| state != "cancelled")
            .map(|(key, _, _)| key)
            .collect();
        let last = if text == BASE { "docs" } else { "pages" };
        assert_eq!(keys.len(), 3, "{point}: {keys:?}");
        assert!(keys.contains(&last.to_owned()), "{point}: {keys:?}");
    };
    for point in [
        "up.created",
        "up.settled",
        "spawn.intended",
        "spawn.placed",
        "spawn.joined",
        "spawn.proven",
    ] {
        let manifest = stage.file("team.toml", BASE);
        kill(point, &manifest);
        whole(point, BASE, &manifest);
        stage.phalanx(&["down", "--force"]).expect(0);
    }
    for point in ["up.cancelled", "up.set", "up.settled", "up.stopped", "up.started"] {
        let manifest = start(&stage, "pty");
        stage.file("team.toml", &edited);
        kill(point, &manifest);
        whole(point, &edited, &manifest);
        assert_eq!(tasks(&stage).len(), 4, "{point}: docs is cancelled, and none is twice");
        stage.phalanx(&["down", "--force"]).expect(0);
    }
    stage.assert_clean();
}
