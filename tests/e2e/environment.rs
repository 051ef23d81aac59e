//! What the programs of members find around them: numbers, variables, files of variables, a
//! wrapping command, and the account of Claude Code.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Stage, wait_for};

/// The text that a member has written to a file in the work directory.
fn written(stage: &Stage, file: &str) -> String {
    let path = stage.at("work").join(file);
    let read = || fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'));
    wait_for(file, read).trim_end().to_owned()
}

fn number(stage: &Stage, name: &str) -> Value {
    let path = stage.root().join(format!("teams/demo/phalanx/members/{name}.json"));
    let text = fs::read_to_string(path).expect("a record");
    serde_json::from_str::<Value>(&text).expect("json")["index"].clone()
}

#[test]
fn en_11_each_member_has_a_number_and_keeps_it() {
    let stage = Stage::without_tmux();
    fs::create_dir_all(stage.at("work/dir-ann")).expect("a directory");
    let member = |name: &str, more: &str| {
        format!(
            "[[member]]\nname = \"{name}\"\nrun = [\"sh\", \"-c\", \"echo $PHALANX_MEMBER_INDEX $PORT {{index}} \
             {{{{print}} >{name}-out; sleep 300\"]\n{more}"
        )
    };
    let manifest = stage.file(
        "demo.toml",
        &format!(
            "[team]\nname = \"demo\"\nfinish = \"manual\"\n[defaults]\nenv = {{ PORT = \"80{{index}}-{{name}}\" }}\n\
             {}{}{}",
            member("ann", "cwd = \"dir-{name}\"\n"),
            member("ben", ""),
            member("cleo", "")
        ),
    );
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    assert_eq!(written(&stage, "dir-ann/ann-out"), "1 801-ann 1 {{print}");
    assert_eq!(written(&stage, "ben-out"), "2 802-ben 2 {{print}");
    assert_eq!(written(&stage, "cleo-out"), "3 803-cleo 3 {{print}");
    stage.phalanx(&["shutdown", "ann", "ben", "--force"]).expect(0);
    fs::remove_file(stage.at("work/ben-out")).expect("removed");
    stage.phalanx(&["spawn", "dan", "--", "sleep", "300"]).expect(0);
    assert_eq!(number(&stage, "dan"), json!(1), "the lowest one that is free");
    stage.phalanx(&["resume", "ben", "ann"]).expect(0);
    assert_eq!(written(&stage, "ben-out"), "2 802-ben 2 {{print}");
    assert_eq!(number(&stage, "ann"), json!(4), "hers is taken");
    wait_for("her new number", || {
        (written(&stage, "dir-ann/ann-out") == "4 804-ann 4 {{print}").then_some(())
    });
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn en_11_unknown_placeholder_of_a_variable_is_refused_with_its_line() {
    let stage = Stage::without_tmux();
    let text = "[team]\nname = \"demo\"\n[[member]]\nname = \"ann\"\nenv = { PORT = \"80{nr}\" }\n";
    let up = stage.phalanx(&["up", &stage.file("demo.toml", text)]).expect(2).stderr;
    assert!(up.contains("demo.toml:5:16: ") && up.contains("`{nr}`"), "{up}");
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    let run = stage.phalanx(&["spawn", "ann", "--env", "A={nr}", "--", "true"]).expect(2).stderr;
    assert!(run.contains("`{nr}`") && run.contains("`{{nr}`"), "{run}");
}

#[test]
fn wrap_and_env_file_apply_to_every_kind_of_program() {
    let stage = Stage::without_tmux();
    let wrapped = "about = \"x\"\nruns = \"wrapped\"\n[launch]\nargv = [[\"sh\", \"-c\", \"eval $SAY >wrapped-out; sleep 300\"]]\n\
                   [ready]\nwhen = \"settled\"\nsettle_ms = 100\n";
    stage.profile("wrapped", wrapped);
    stage.file(".env", "# of everybody\nA=1\nexport B=\"two words\"\nC=file\n");
    let say = "echo $A-$B-$C-$OWN";
    let manifest = stage.file(
        "demo.toml",
        &format!(
            "[team]\nname = \"demo\"\nfinish = \"manual\"\n[defaults]\nwrap = [\"env\", \"OWN={{name}}\"]\n\
             env_file = \".env\"\nenv = {{ C = \"env\", SAY = \"{say}\" }}\n\
             [[member]]\nname = \"shell\"\nrun = [\"sh\", \"-c\", \"{say} >shell-out; sleep 300\"]\n\
             [[member]]\nname = \"bare\"\nwrap = []\nrun = [\"sh\", \"-c\", \"{say} >bare-out; sleep 300\"]\n\
             [[member]]\nname = \"work\"\n[[member]]\nname = \"other\"\nprofile = \"wrapped\"\n\
             [[task]]\nkey = \"t\"\nsubject = \"Say\"\nowner = \"work\"\nrun = [\"sh\", \"-c\", \"{say} >work-out\"]\n"
        ),
    );
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    let expected = |own: &str| format!("1-two words-env-{own}");
    assert_eq!(written(&stage, "shell-out"), expected("shell"));
    assert_eq!(written(&stage, "bare-out"), expected(""));
    assert_eq!(written(&stage, "work-out"), expected("work"));
    assert_eq!(written(&stage, "wrapped-out"), expected("other"));
    fs::remove_file(stage.at("work/shell-out")).expect("removed");
    stage.phalanx(&["restart", "shell", "--force"]).expect(0);
    assert_eq!(written(&stage, "shell-out"), expected("shell"));

    let missing =
        stage.phalanx(&["spawn", "x", "--env-file", "none", "--", "true"]).expect(2).stderr;
    assert!(missing.contains("work/none: it does not exist"), "{missing}");
    stage.file("bad", "A=1\nnot a line\n");
    let bad = stage.phalanx(&["spawn", "x", "--env-file", "bad", "--", "true"]).expect(2).stderr;
    assert!(bad.contains("work/bad: line 2 is not NAME=VALUE"), "{bad}");
    let status = stage.phalanx(&["--json", "status"]).expect(0).stdout;
    assert!(!status.contains("\"x\""), "{status}");
    let spawned =
        ["spawn", "y", "--wrap", "env 'OWN=a b'", "--", "sh", "-c", "echo $OWN >y-out; sleep 300"];
    stage.phalanx(&spawned).expect(0);
    assert_eq!(written(&stage, "y-out"), "a b");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// SEC-13: the secrets of broken files are in nothing that a run prints, stores or sends.
#[test]
fn sec_13_secrets_of_broken_files_are_in_no_output() {
    let stage = Stage::without_tmux();
    const SECRET: &str = "hunter2";
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    for (text, line) in [
        ("A=1\nB=\"open\nTOKEN=hunter2\n", 2),
        ("A=1\nB='open\nTOKEN='hunter2'\n", 2),
        ("# of all\nTOKEN=hunter2 and more\n", 2),
        ("TOKEN=\"a\nb\" hunter2\n", 1),
        ("A=1\nhunter2.part=\n", 2),
        ("A=1\n\nhunter2\n", 3),
    ] {
        stage.file("broken.env", text);
        let spawn = ["spawn", "x", "--env-file", "broken.env", "--", "true"];
        let run = stage.phalanx(&spawn).expect(2);
        assert!(run.stderr.contains(&format!("line {line} ")), "{text:?}: {}", run.stderr);
        assert!(!(run.stdout + &run.stderr).contains(SECRET), "{text:?}");
    }
    // The lead starts this member, and reports the failure.
    stage.file("broken.env", "B=\"open\nTOKEN=hunter2\n");
    let manifest = "[team]\nname = \"late\"\nfinish = \"manual\"\n[[member]]\nname = \"db\"\n\
        run = [\"sleep\", \"600\"]\n[[member]]\nname = \"web\"\nafter = [\"member:db\"]\n\
        run = [\"sleep\", \"600\"]\nenv_file = \"broken.env\"\n";
    let manifest = stage.file("late.toml", manifest);
    stage.phalanx(&["up", &manifest, "--detach", "--backend", "pty"]).expect(0);
    stage.wait_event("late", "warning", "web");
    let bad = stage.file("bad.toml", "[team]\nname = \"bad\"\n[defaults.env]\nTOKEN = \"hunter2\n");
    let run = stage.phalanx(&["up", &bad]).expect(2);
    assert!(!(run.stdout + &run.stderr).contains(SECRET), "a manifest");
    fs::create_dir(stage.at("home/.codex")).expect("a directory");
    let settings = stage.at("home/.codex/config.toml");
    fs::write(settings, "[env]\nTOKEN = \"hunter2\n").expect("settings");
    let run = stage.phalanx(&["mcp", "install", "--for", "codex"]).expect(4);
    assert!(run.stderr.contains("TOML parse error at line 2, "), "{}", run.stderr);
    assert!(!(run.stdout + &run.stderr).contains(SECRET), "settings of an agent");
    let found = std::process::Command::new("grep")
        .args(["-rlF", SECRET])
        .arg(stage.root().join("teams"))
        .output()
        .expect("grep runs");
    assert_eq!(String::from_utf8_lossy(&found.stdout), "", "journal, mailboxes, records");
    stage.phalanx(&["down", "-t", "late", "--force"]).expect(0);
    stage.phalanx(&["down", "-t", "demo", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn en_10_member_with_another_account_finds_its_team_there() {
    let mut stage = Stage::without_tmux();
    stage.shadow("claude", "#!/bin/sh\nexec sleep 300\n");
    let account = stage.at("account");
    fs::create_dir_all(&account).expect("a directory");
    let own = format!("CLAUDE_CONFIG_DIR={}", account.display());
    let spawn = |name: &str| {
        stage.phalanx(&["spawn", name, "--profile", "claude", "--env", &own, "--until", "running"])
    };
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    spawn("ann").expect(0);
    spawn("ben").expect(0);
    stage.phalanx(&["send", "ann", "hello"]).expect(0);
    let mail = fs::read_to_string(account.join("teams/demo/inboxes/ann.json")).expect("her mail");
    assert!(mail.contains("hello"), "{mail}");
    stage.phalanx(&["task", "create", "Write"]).expect(0);
    assert!(account.join("tasks/demo/1.json").exists());
    let explained = stage.phalanx(&["explain", "ann", "-v"]).expect(0).stdout;
    assert!(explained.contains(&format!("account     {}", account.display())), "{explained}");
    let links = || {
        let is_link = |dir: &str| account.join(dir).join("demo").is_symlink();
        ["teams", "tasks"].map(is_link)
    };
    stage.phalanx(&["shutdown", "ann", "--force"]).expect(0);
    assert_eq!(links(), [true; 2], "ben needs them");
    stage.phalanx(&["shutdown", "ben", "--force"]).expect(0);
    assert_eq!(links(), [false; 2]);
    spawn("ann").expect(0);
    stage.phalanx(&["down", "--force"]).expect(0);
    assert_eq!(links(), [false; 2]);

    // The account has a team of this name.
    fs::create_dir_all(account.join("teams/demo")).expect("a directory");
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    let refused = spawn("ann").expect(2).stderr;
    assert!(refused.contains("teams/demo is not this team"), "{refused}");
    let relative = ["spawn", "ann", "--profile", "claude", "--env", "CLAUDE_CONFIG_DIR=x"];
    assert!(stage.phalanx(&relative).expect(2).stderr.contains("is a relative path"));
    assert!(account.join("teams/demo").is_dir() && !account.join("tasks/demo").exists());
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}
