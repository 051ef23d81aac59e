//! `--quiet`: a verb that confirms what it did prints nothing, one that creates something its name or
//! id.

use std::fs;

use testing::TestDatabase;

use crate::harness::Stage;

/// The verbs that create something.
const CREATES: [&str; 5] = ["team create", "task create", "spawn", "--as bob ask", "--as bob plan"];

/// Runs each line with `--quiet`, and asserts that it succeeds and prints nothing, or a name or an id
/// a line.
fn assert_quiet(stage: &Stage, lines: &[&str]) {
    for line in lines {
        let words = shlex::split(line).expect("a line for a shell");
        let mut args = vec!["--quiet"];
        args.extend(words.iter().map(String::as_str));
        let run = stage.phalanx(&args).expect(0);
        let is_new = CREATES.iter().any(|verb| line.starts_with(verb));
        assert_eq!((run.stdout.is_empty(), run.stderr.as_str()), (!is_new, ""), "{line} {run:?}");
        assert!(!run.stdout.contains(' '), "{line} {run:?}");
    }
}

#[test]
fn verbs_on_a_team_confirm_nothing_with_quiet() {
    let stage = Stage::without_tmux();
    fs::create_dir(stage.at("work/man")).expect("dir");
    stage.file(
        "body.json",
        r#"{"task": "01/T1", "plan_id": "1", "status": "complete", "commit": "abc1234"}"#,
    );
    stage.file("plan.md", "First this.\n");
    stage.file("fix.diff", "+ x\n");
    assert_quiet(
        &stage,
        &[
            "init made.toml",
            "man --dir man",
            "mcp install --for claude",
            "mcp install --for claude --undo",
            "team create other",
            "team delete -t other",
            "team create third",
            "rm third",
            "team create demo",
            "team set finish tasks-done",
            "team set --unset finish",
            "team upgrade",
            "rules deny 'Bash(rm:*)'",
            "rules deny --remove 'Bash(rm:*)'",
            "send team-lead hello",
            "inbox --clear",
            "spawn ada --backend pty -- cat",
            "spawn ben cid --backend pty",
            "type ada hello --enter",
            "keys ada Enter",
            "send ben hello",
            "broadcast 'hello all'",
            "handoff send ben --type dev_progress --file body.json",
            "workspace write fix.diff fix.diff",
            "workspace delete fix.diff",
            "wait ada --until ready",
            "lead --detach",
            "shutdown ada --force",
            "wait ada --until gone",
            "restart ben --force",
            "resume",
            "kill ben",
            "down --force",
        ],
    );
    stage.assert_clean();
}

#[test]
fn requests_and_modes_confirm_nothing_with_quiet() {
    let stage = Stage::without_tmux();
    stage.file("plan.md", "First this.\n");
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.add_native("demo", &["bob"]);
    assert_quiet(
        &stage,
        &[
            "mode bob plan",
            "mode --all plan",
            "--as bob ask permission 'make deploy'",
            "answer bob --approve",
            "--as bob plan submit plan.md",
            "adopt --detach",
            "down --force",
        ],
    );
}

#[test]
fn verbs_of_the_task_board_confirm_nothing_with_quiet() {
    let stage = Stage::without_tmux();
    stage.file("tasks.md", "- [ ] Imported\n");
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    assert_quiet(
        &stage,
        &[
            "task create First",
            "task create Second",
            "task create Third",
            "task update 1 --priority 3",
            "task block 1 --by 2",
            "task unblock 1 --by 2",
            "task claim 1",
            "task progress 1 50",
            "task comment 1 half",
            "task attach 1 tasks.md",
            "task remind 1 'Which licence?' --every 30",
            "task unremind 1",
            "task release 1",
            "task assign 1 team-lead",
            "task claim 1",
            "task fail 1 --reason broken",
            "task retry 1",
            "task claim 1",
            "task fail 1",
            "retry 1",
            "task cancel 1",
            "task delete 1",
            "task claim 2",
            "task review 2",
            "task reject 2 --reason more",
            "task claim 3",
            "task review 3",
            "task approve 3",
            "task create Fourth",
            "task claim 4",
            "task complete 4",
            "task import tasks.md",
            "team delete",
        ],
    );
}

#[test]
fn store_init_confirms_nothing_with_quiet() {
    let Some(database) = TestDatabase::create() else { return };
    assert_quiet(&Stage::without_tmux(), &[&format!("store init {}", database.url())]);
}

#[test]
fn tmux_panes_are_hidden_and_shown_without_a_word_with_quiet() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    let lines = ["spawn ada --backend tmux -- cat", "hide ada", "show ada", "down --force"];
    assert_quiet(&stage, &lines);
    stage.assert_clean();
}
