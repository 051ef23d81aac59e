//! The keys of the dashboard in a real tmux: each action is pressed once, and its effect is read
//! from the team.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::dashboard::Terminal;
use crate::harness::{Stage, wait_for, wait_within};

/// The dashboard of the team `site`.
struct Keys {
    terminal: Terminal,
}

impl Keys {
    fn open(stage: Stage, columns: &str, rows: &str) -> Keys {
        let terminal = Terminal::open(stage);
        let size = ["resize-window", "-t", "mine:", "-x", columns, "-y", rows];
        terminal.stage.tmux(&size).expect("resized");
        terminal.keys(&["phalanx watch site; echo end=$?", "Enter"]);
        terminal.shows("Members by attention");
        Keys { terminal }
    }

    fn stage(&self) -> &Stage {
        &self.terminal.stage
    }

    fn json(&self, args: &[&str]) -> Value {
        self.stage().phalanx(&[&["--json", "-t", "site"], args].concat()).expect(0).json()
    }

    /// Shows only what contains the text, and waits until the line at the bottom names it.
    fn select(&self, text: &str, named: &str) {
        self.terminal.keys(&["/", "C-u", text, "Enter"]);
        self.footer(named);
    }

    fn footer(&self, words: &str) {
        wait_for(&format!("{words:?} at the bottom"), || {
            let screen = self.terminal.screen();
            screen.trim_end().lines().last().is_some_and(|line| line.contains(words)).then_some(())
        });
    }

    /// Closes a page, and waits until the line at the bottom is back.
    fn no_dialog(&self) {
        self.no_dialog_named("? help");
    }

    /// Does the same where another key shows the help.
    fn no_dialog_named(&self, help: &str) {
        self.terminal.keys(&["Escape"]);
        self.footer(help);
    }

    /// Presses keys, and waits for an effect.
    fn press(&self, keys: &[&str], effect: &str, is_there: impl Fn(&Keys) -> bool) {
        self.terminal.keys(keys);
        wait_for(
            &format!("{keys:?}: {effect}; on the screen:\n{}", self.terminal.screen()),
            || is_there(self).then_some(()),
        );
    }

    fn task(&self, id: &str) -> Value {
        self.json(&["task", "get", id])
    }

    fn request(&self, from: &str) -> Value {
        let all = self.json(&["requests", "--all"]);
        let found = all.as_array().expect("a list").iter().find(|one| one["from"] == from);
        found.cloned().unwrap_or_default()
    }

    fn member(&self, name: &str) -> Value {
        let status = self.json(&["status"]);
        let members = status["members"].as_array().expect("members");
        members.iter().find(|member| member["name"] == name).cloned().unwrap_or_default()
    }

    fn events(&self, event: &str, about: &str) -> usize {
        let journal = self.stage().journal("site");
        journal.iter().filter(|e| e["event"] == event && e["member"] == about).count()
    }

    fn close(self) {
        self.terminal.keys(&["Escape"]);
        wait_for("the dashboard to end", || {
            self.terminal.keys(&["q"]);
            self.terminal.screen().contains("end=0").then_some(())
        });
        self.terminal.close();
    }
}

fn team() -> Stage {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "site"]).expect(0);
    stage
}

fn ask(stage: &Stage, name: &str, command: &str) {
    stage.phalanx(&["--as", name, "ask", "permission", command]).expect(0);
}

/// At 80x24 the panel of requests is not drawn, so the highlighted member is all that a person
/// sees.
#[test]
fn pm_09_tmux_answers_go_to_the_highlighted_member() {
    let stage = team();
    stage
        .phalanx(&["spawn", "ann", "bob", "cat", "dan", "eve", "fay", "--backend", "pty"])
        .expect(0);
    ask(&stage, "bob", "make deploy-production");
    ask(&stage, "cat", "ls");
    ask(&stage, "dan", "make docs");
    ask(&stage, "eve", "git push");
    ask(&stage, "fay", "rm -rf /srv/site");
    let keys = Keys::open(stage, "80", "24");
    let states = |keys: &Keys| {
        ["bob", "cat", "dan", "eve", "fay"].map(|name| keys.request(name)["state"].clone())
    };
    let pending = || json!("pending");
    // A member without a request: nothing is answered.
    keys.select("ann", "message ann");
    for key in ["y", "Y", "r", "E"] {
        keys.terminal.keys(&[key]);
        keys.terminal.shows("ann has no open request");
    }
    assert_eq!(states(&keys), [pending(), pending(), pending(), pending(), pending()]);
    // The second one, for good, after a question that names the rule.
    keys.select("cat", "y approve cat: ls");
    keys.terminal.keys(&["Y"]);
    keys.terminal.shows("allow Bash(ls)");
    assert_eq!(states(&keys)[1], pending(), "it is confirmed first");
    keys.press(&["y"], "cat is allowed", |keys| states(keys)[1] == "allowed");
    wait_for("the rule", || {
        (keys.json(&["rules"])["team"]["allow"] == json!(["Bash(ls)"])).then_some(())
    });
    assert_eq!(states(&keys)[0], pending());
    keys.terminal.shows("Y approved for good cat: ls");
    keys.select("bob", "y approve bob: make deploy-production");
    keys.press(&["y"], "bob is allowed", |keys| states(keys)[0] == "allowed");
    keys.select("dan", "y approve dan: make docs");
    keys.press(&["r", "not now", "Enter"], "dan is denied", |keys| {
        let request = keys.request("dan");
        request["state"] == "denied" && request["reason"] == "not now"
    });
    keys.select("eve", "y approve eve: git push");
    keys.press(&["E", "C-u", "{\"command\": \"git pull\"}", "Enter"], "eve may pull", |keys| {
        let request = keys.request("eve");
        request["state"] == "allowed" && request["updated_input"]["command"] == "git pull"
    });
    // A path outside of its directory is confirmed.
    keys.select("fay", "y approve fay: rm -rf /srv/site");
    keys.terminal.keys(&["y"]);
    keys.terminal.shows("It names /srv/site");
    keys.press(&["y"], "fay is allowed", |keys| states(keys)[4] == "allowed");
    let journal = keys.stage().journal("site");
    let via = |name: &str| {
        let decided =
            journal.iter().find(|e| e["event"] == "request_decided" && e["member"] == name);
        decided.map(|event| event["detail"]["via"].clone()).unwrap_or_default()
    };
    assert_eq!(["bob", "cat", "dan", "eve"].map(via), ["y", "Y", "r", "E"]);
    keys.close();
}

#[test]
fn tmux_task_keys_change_the_highlighted_task() {
    let stage = team();
    stage.phalanx(&["spawn", "ann", "--backend", "pty"]).expect(0);
    for subject in ["Parse it", "Read it", "Break it", "Approve it", "Reject it"] {
        stage.phalanx(&["task", "create", subject]).expect(0);
    }
    stage.phalanx(&["task", "fail", "3"]).expect(0);
    for id in ["4", "5"] {
        stage.phalanx(&["--as", "ann", "task", "claim", id]).expect(0);
        stage.phalanx(&["--as", "ann", "task", "review", id]).expect(0);
    }
    let keys = Keys::open(stage, "120", "40");
    keys.press(&["N", "--a subject", "Enter"], "task 6", |keys| {
        keys.json(&["task", "list"]).as_array().is_some_and(|all| all.len() == 6)
    });
    assert_eq!(keys.task("6")["subject"], "--a subject");
    keys.terminal.keys(&["3"]);
    keys.select("Parse it", "edit #1");
    keys.terminal.keys(&["E"]);
    keys.terminal.shows("Edit task #1");
    keys.press(&["!", "Tab", "all of it", "Enter"], "new texts", |keys| {
        let task = keys.task("1");
        task["subject"] == "Parse it!" && task["description"] == "all of it"
    });
    keys.press(&["A", "C-u", "ann", "Enter"], "an owner", |keys| keys.task("1")["owner"] == "ann");
    keys.press(&["B", "#2", "Enter"], "a blocker", |keys| {
        keys.task("1")["blockedBy"] == json!(["2"])
    });
    wait_for("the blocker on the screen", || {
        keys.terminal.screen().contains("after #2").then_some(())
    });
    keys.press(&["U", "Enter"], "no blocker", |keys| keys.task("1")["blockedBy"] == json!([]));
    keys.press(&["C", "-x is odd", "Enter"], "a comment", |keys| {
        keys.task("1").to_string().contains("-x is odd")
    });
    keys.press(&["x", "no time", "Enter"], "the end", |keys| {
        let task = keys.task("1");
        task["state"] == "cancelled" && task.to_string().contains("no time")
    });
    keys.select("Break it", "retry #3");
    keys.press(&["u"], "another try", |keys| keys.task("3")["state"] == "pending");
    keys.select("Approve it", "y approve #4");
    keys.press(&["y"], "approval", |keys| keys.task("4")["state"] == "completed");
    keys.select("Reject it", "y approve #5");
    keys.press(&["r", "no", "Enter"], "its return", |keys| {
        keys.task("5")["state"] == "in_progress"
    });
    assert_eq!(keys.task("2")["state"], "pending");
    keys.close();
}

/// ST-06: a native program counts as working for a moment after its turn, if it took mail in it. No
/// file changes at the end of that.
#[test]
fn tmux_st_06_dashboard_shows_what_only_time_changes() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "site"]).expect(0);
    let profile = "about = \"says little\"\nruns = \"native\"\nreads_mail = true\n[launch]\n\
        argv = [[\"sleep\", \"300\"]]\nprompt = \"mailbox\"\n\
        [ready]\nwhen = \"settled\"\nsettle_ms = 100\n";
    stage.profile("quiet", profile);
    stage.phalanx(&["spawn", "ann", "--profile", "quiet", "--backend", "pty"]).expect(0);
    let dir = stage.root().join("teams/site");
    let publish = |file: &Path, document: &Value| {
        fs::write(dir.join("new"), document.to_string()).expect("written");
        fs::rename(dir.join("new"), file).expect("renamed");
    };
    let is_active = |active: bool| {
        let file = dir.join("config.json");
        let mut team: Value =
            serde_json::from_slice(&fs::read(&file).expect("read")).expect("json");
        let members = team["members"].as_array_mut().expect("members");
        let ann = members.iter_mut().find(|member| member["name"] == "ann").expect("ann");
        ann["isActive"] = json!(active);
        publish(&file, &team);
    };
    is_active(true);
    let keys = Keys::open(stage, "120", "40");
    keys.terminal.shows("▶ 1  ○ 0");
    let inbox = dir.join("inboxes/ann.json");
    publish(
        &inbox,
        &json!([{"from": "team-lead", "text": "go", "timestamp": "2026-11-30T12:00:00.000Z", "read": true}]),
    );
    is_active(false);
    wait_within(Duration::from_secs(30), "it to rest", || {
        keys.terminal.screen().contains("▶ 0  ○ 1").then_some(())
    });
    keys.close();
}

#[test]
fn tmux_member_keys_act_on_the_highlighted_member() {
    let stage = team();
    stage.phalanx(&["spawn", "ann", "--backend", "pty"]).expect(0);
    stage
        .phalanx(&["spawn", "c", "--backend", "pty", "--", "sh", "-c", "sleep 1; exit 7"])
        .expect(0);
    stage.wait_event("site", "member_exited", "c");
    // All panels are shown, also the events.
    let keys = Keys::open(stage, "200", "50");
    keys.stage().phalanx(&["spawn", "pan", "--backend", "tmux"]).expect(0);
    let mail = |keys: &Keys, name: &str| keys.json(&["inbox", name, "--all"]).to_string();
    keys.select("ann", "message ann");
    keys.press(&["m", "--hello", "Enter"], "mail", |keys| mail(keys, "ann").contains("--hello"));
    keys.press(&["b", "to all", "Enter"], "mail", |keys| mail(keys, "pan").contains("to all"));
    let pid = keys.member("ann")["pid"].clone();
    keys.press(&["R", "y"], "another process", |keys| {
        let ann = keys.member("ann");
        ann["pid"].is_number() && ann["pid"] != pid
    });
    keys.select("pan", "message pan");
    keys.press(&["h"], "a hidden pane", |keys| keys.events("member_hidden", "pan") == 1);
    keys.terminal.shows("was hidden");
    keys.press(&["h"], "a shown pane", |keys| keys.events("member_shown", "pan") == 1);
    // No client is attached to its session; the refusal says what to do instead.
    keys.terminal.keys(&["f"]);
    keys.terminal.shows("phalanx attach");
    keys.no_dialog();
    keys.terminal.keys(&["e"]);
    keys.terminal.shows("Esc closes");
    keys.no_dialog();
    keys.select("ann", "message ann");
    keys.press(&["K", "y"], "its end", |keys| keys.member("ann").is_null());
    keys.terminal.shows("OUTCOME");
    keys.no_dialog();
    // One that has ended is resumed, and leaves the list.
    keys.terminal.keys(&["/", "C-u", "Enter"]);
    keys.select("failed", "resume c");
    keys.press(&["R"], "another run", |keys| keys.events("member_exited", "c") == 2);
    keys.select("failed", "remove c");
    keys.press(&["K", "y"], "no row", |keys| keys.member("c").is_null());
    keys.terminal.shows("OUTCOME");
    keys.no_dialog();
    keys.terminal.keys(&["/", "C-u", "Enter"]);
    keys.terminal.keys(&["+"]);
    keys.terminal.shows("Spawn a member");
    keys.press(&["eva", "Enter"], "a member", |keys| keys.member("eva")["pid"].is_number());
    keys.close();
}

/// A member over ACP beside its dashboard: its row, its screen, and both answers to a permission.
#[test]
fn tmux_member_over_acp_is_shown_and_answered() {
    let stage = team();
    let agent = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/acp/faulty.py");
    let words = ["spawn", "ann", "--profile", "acp", "--backend", "tmux", "--"];
    let keys = Keys::open(stage, "120", "40");
    keys.stage().phalanx(&[&words[..], &["python3", agent, "plain"]].concat()).expect(0);
    keys.select("ann", "message ann");
    keys.press(&["m", "hello there", "Enter"], "an answer", |keys| {
        let screen = keys.terminal.screen();
        screen.contains("You said:") && screen.contains("ann · idle")
    });
    let asks = |nth: usize| {
        keys.press(&["m", "please touch it", "Enter"], "a request", |keys| {
            keys.events("request_filed", "ann") == nth
        });
        keys.footer("y approve ann: touch made.txt");
    };
    let decided = |keys: &Keys, state: &str| {
        let all = keys.json(&["requests", "--all"]).to_string();
        all.contains(&format!("\"state\":\"{state}\""))
    };
    let made = keys.stage().at("work/made.txt");
    asks(1);
    keys.press(&["r", "not now", "Enter"], "a denial", |keys| decided(keys, "denied"));
    keys.footer("message ann");
    assert!(!made.exists());
    asks(2);
    keys.press(&["y"], "an approval", |keys| decided(keys, "allowed"));
    keys.press(&[], "the file", |_| made.exists());
    keys.close();
}

#[test]
fn tmux_team_is_started_from_a_form_and_ended_with_a_key() {
    let stage = team();
    stage.phalanx(&["spawn", "ann", "--backend", "pty"]).expect(0);
    let manifest = "[team]\nname = \"next\"\nfinish = \"manual\"\nbackend = \"pty\"\n\
        [[member]]\nname = \"ben\"\n";
    stage.file("next.toml", manifest);
    let keys = Keys::open(stage, "80", "24");
    keys.terminal.keys(&["T"]);
    keys.terminal.shows("Start a team from a template or a manifest");
    keys.terminal.keys(&["next.toml", "Enter"]);
    keys.stage().wait_event("next", "member_ready", "ben");
    keys.terminal.shows("team next runs in the background");
    keys.no_dialog();
    keys.terminal.keys(&["Q"]);
    keys.terminal.shows("end team site and delete it?");
    keys.terminal.keys(&["n"]);
    keys.footer("help");
    keys.terminal.keys(&["Q"]);
    keys.terminal.shows("These members are asked to end: ann");
    keys.terminal.keys(&["y"]);
    wait_for("the end of the team", || {
        (!keys.stage().root().join("teams/site").exists()).then_some(())
    });
    keys.terminal.keys(&["Escape", "Escape"]);
    keys.terminal.shows("team site was deleted");
    wait_for("the dashboard to end", || {
        keys.terminal.keys(&["q"]);
        keys.terminal.screen().contains("end=0").then_some(())
    });
    keys.stage().phalanx(&["down", "-t", "next", "--force"]).expect(0);
    keys.stage().tmux(&["kill-session", "-t", "=mine"]).expect("it is there");
    keys.stage().assert_clean();
}

/// RV-01: the merge that was asked about is the one that is done.
#[test]
fn tmux_worktree_keys_commit_and_merge_the_highlighted_member() {
    let stage = team();
    fs::write(stage.at("work/a.txt"), "one\n").expect("a file");
    for args in [
        &["init", "--quiet", "-b", "main"][..],
        &["config", "user.name", "t"],
        &["config", "user.email", "t@example.org"],
        &["add", "a.txt"],
        &["commit", "--quiet", "-m", "first"],
    ] {
        assert!(stage.command("git").args(args).status().expect("git").success(), "{args:?}");
    }
    let run = "echo two >>a.txt; exec sleep 300";
    stage
        .phalanx(&["spawn", "tree", "--worktree", "--backend", "pty", "--", "sh", "-c", run])
        .expect(0);
    let keys = Keys::open(stage, "120", "40");
    keys.footer("tree");
    // The review has the terminal until it is left, and then the dashboard is back.
    keys.terminal.keys(&["d"]);
    keys.terminal.shows("tree · site-tree");
    keys.terminal.shows("+ two");
    keys.terminal.keys(&["q"]);
    keys.terminal.shows("Review · team site · into main");
    keys.terminal.keys(&["q"]);
    keys.terminal.shows("by attention");
    keys.terminal.keys(&["V"]);
    keys.terminal.shows("Review · team site · into main");
    keys.terminal.keys(&["q"]);
    keys.terminal.shows("by attention");
    keys.footer("tree");
    keys.no_dialog();
    let log = |keys: &Keys, branch: &str| {
        let output = keys.stage().command("git").args(["log", "--format=%s", branch]).output();
        String::from_utf8_lossy(&output.expect("git").stdout).into_owned()
    };
    keys.press(&["c", "the second", "Enter"], "a commit", |keys| {
        log(keys, "site-tree").starts_with("the second\n")
    });
    keys.terminal.shows("1 file changed");
    keys.no_dialog();
    keys.terminal.keys(&["M"]);
    keys.terminal.shows("land the work of tree now?");
    // A commit that comes after the question stays.
    fs::write(keys.stage().at("work/.worktrees/site-tree/late.txt"), "late\n").expect("a file");
    for args in [&["add", "late.txt"][..], &["commit", "--quiet", "-m", "late"]] {
        let dir = keys.stage().at("work/.worktrees/site-tree");
        let run = keys.stage().command("git").args(args).current_dir(dir).status();
        assert!(run.expect("git").success(), "{args:?}");
    }
    // Git replaces the file, which does not exist for a moment.
    let has = |keys: &Keys, text: &str| {
        fs::read_to_string(keys.stage().at("work/a.txt")).is_ok_and(|found| found == text)
    };
    assert!(has(&keys, "one\n"));
    keys.press(&["y"], "the merge", |keys| has(keys, "one\ntwo\n"));
    keys.terminal.shows("1 later commit(s) of tree stay");
    assert!(!keys.stage().at("work/late.txt").exists());
    keys.no_dialog();
    keys.terminal.keys(&["M"]);
    keys.terminal.shows("land the work of tree now?");
    keys.press(&["s"], "the squash", |keys| keys.stage().at("work/late.txt").exists());
    keys.terminal.shows("site-tree squashed into one commit on main");
    keys.no_dialog();
    keys.close();
}

#[test]
fn tmux_ly_14_changed_keys_work_and_are_the_ones_that_are_named() {
    let stage = team();
    stage.phalanx(&["spawn", "ann", "--backend", "pty"]).expect(0);
    ask(&stage, "ann", "ls");
    let printed = stage.phalanx(&["--json", "watch", "--print-keys"]).expect(0).json();
    let mut settings = printed["text"].as_str().expect("a text").to_owned();
    for (default, changed) in [
        (r#"help = ["?", "F1"]"#, r#"help = ["F4"]"#),
        (r#"quit = ["q", "C-c"]"#, r#"quit = ["F5"]"#),
        (r#"leave = ["Escape"]"#, r#"leave = ["F6"]"#),
        (r#"approve = ["y"]"#, r#"approve = ["F8"]"#),
        (r#"show-board = ["3"]"#, r#"show-board = ["F9"]"#),
    ] {
        assert!(settings.contains(&format!("\n{default}")), "{default}: {settings}");
        settings = settings.replace(&format!("\n{default}"), &format!("\n{changed}"));
    }
    let path = Path::new(printed["path"].as_str().expect("a path"));
    fs::create_dir_all(path.parent().expect("a directory")).expect("it is made");
    fs::write(path, settings).expect("a file");
    let keys = Keys::open(stage, "120", "40");
    keys.terminal.shows("2 Screen  F9 Board  4 Requests (1)");
    keys.footer("F8 approve ann: ls");
    keys.footer("F4 help");
    keys.press(&["y", "F8"], "ann is allowed", |keys| keys.request("ann")["state"] == "allowed");
    // The decision is stored before it is journaled.
    let decided = wait_for("the event of the decision", || {
        let journal = keys.stage().journal("site");
        journal.into_iter().find(|event| event["event"] == "request_decided")
    });
    assert_eq!(decided["detail"]["via"], "F8");
    keys.terminal.keys(&["/", "none", "Enter"]);
    keys.terminal.shows("no member matches: F6 ends the filter");
    keys.terminal.keys(&["F6"]);
    keys.terminal.shows("ann");
    // The default keys do nothing.
    keys.terminal.keys(&["q", "?", "F4"]);
    keys.terminal.shows("F5            quit; the team goes on");
    keys.no_dialog_named("F4 help");
    keys.terminal.keys(&["F5"]);
    keys.terminal.shows("end=0");
    keys.terminal.close();
}

#[test]
fn tmux_palette_completes_verbs_and_members_with_tab() {
    let stage = team();
    stage.phalanx(&["spawn", "ann", "bob", "--backend", "pty"]).expect(0);
    let keys = Keys::open(stage, "120", "40");
    keys.terminal.keys(&[":", "sh"]);
    keys.terminal.shows("│shutdown");
    keys.terminal.keys(&["C-u", "expl", "Tab"]);
    keys.terminal.shows("│explain ");
    keys.terminal.keys(&["b", "Tab"]);
    keys.terminal.shows("│explain bob ");
    keys.terminal.keys(&["Enter"]);
    keys.terminal.shows("bob: idle");
    keys.no_dialog();
    // Several candidates, one after the other.
    keys.terminal.keys(&[":", "send ", "Tab"]);
    keys.terminal.shows("│send team-lead");
    keys.terminal.keys(&["Tab"]);
    keys.terminal.shows("│send ann");
    keys.terminal.keys(&["Tab"]);
    keys.terminal.shows("│send bob");
    keys.press(&[" hello", "Enter"], "mail", |keys| {
        keys.json(&["inbox", "bob", "--all"]).to_string().contains("hello")
    });
    keys.close();
}

#[test]
fn tmux_search_goes_through_the_screen_and_its_scrollback() {
    let stage = team();
    let print = "i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); done; exec sleep 300";
    stage.phalanx(&["spawn", "ann", "--backend", "pty", "--", "sh", "-c", print]).expect(0);
    let keys = Keys::open(stage, "120", "40");
    keys.terminal.shows("line 199");
    keys.terminal.keys(&["2", "/", "LINE 17"]);
    keys.terminal.shows("match 11/11 of LINE 17: Esc goes live");
    keys.terminal.shows("line 181");
    keys.terminal.keys(&["Enter", "Down"]);
    keys.terminal.shows("match 1/11 of LINE 17");
    wait_for("the first match", || {
        let screen = keys.terminal.screen();
        (screen.contains("line 17 ") && !screen.contains("line 199")).then_some(())
    });
    keys.terminal.keys(&["Escape"]);
    keys.terminal.shows("line 199");
    wait_for("no search", || (!keys.terminal.screen().contains("match 1/11")).then_some(()));
    keys.close();
}
