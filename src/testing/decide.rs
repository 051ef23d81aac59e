//! Decisions of phalanx as functions of plain data. Their tests are the specification: each is a
//! table of cases.

use std::iter;

use serde_json::{Value, json};

use backend::choose::{Facts, Tier, choose};
use model::board::Board;
use model::board::task::{Extra, Task, TaskState};
use model::decisions::rules::{Rule, RuleSet, Use, judge};
use model::id::{MemberName, TaskId};
use model::members::placement::BackendKind;
use profile::{self, Profile, Screenshot};

/// Evaluates permission rules on one use of a tool, by a member that works in `/w` and whose home
/// is `/home/u`. `rules` are the lists deny, ask and allow, each separated by commas; `subject` is
/// the command, the URL or the path. Returns `allow`, `deny`, or `ask` if a person must decide.
///
/// # Panics
/// If a rule is invalid.
#[must_use]
fn may_use_tool(rules: [&str; 3], tool: &str, subject: &str) -> &'static str {
    let [deny, ask, allow] = rules.map(|list| match list {
        "" => Vec::new(),
        list => Rule::parse_list(list).expect("valid rules"),
    });
    let rules = RuleSet { deny, ask, allow };
    let input = match tool {
        "Bash" => json!({"command": subject}),
        "WebFetch" => json!({"url": subject}),
        _ => json!({"file_path": subject}),
    };
    let used = Use { tool, input: &input, home: Some("/home/u"), cwd: "/w" };
    judge(&[("the team".to_owned(), &rules)], &used).into()
}

/// Judges a screen by the rules of a profile, which are given as TOML. Returns the program's state.
///
/// # Panics
/// If the rules are invalid.
#[must_use]
fn judge_screen(rules: &str, screen: &str) -> String {
    let text = format!("about = \"x\"\n[launch]\nargv = [[\"x\"]]\n{rules}");
    let profile = Profile::parse("x", &text).expect("valid rules");
    profile::judge(&profile, &Screenshot::of_text(screen)).state.to_string()
}

/// Returns the id of the task that the worker `member` claims next. Each task of `board` is an
/// object: `state` (`pending` if missing), `owner`, `blocked_by`, and the keys of
/// `metadata.phalanx`. Ids count from 1; `run` is a command if missing.
///
/// # Panics
/// If the member's name or a task is invalid.
#[must_use]
fn next_task(member: &str, role: Option<&str>, board: &Value) -> Option<u64> {
    let member = MemberName::existing(member).expect("a valid name");
    let mut tasks = Vec::new();
    for (id, given) in (1..).map(TaskId).zip(board.as_array().expect("a list of tasks")) {
        let mut extra: Extra = serde_json::from_value(given.clone()).expect("valid metadata");
        if given.get("run").is_none() {
            extra.run = vec!["true".to_owned()];
        }
        let blockers = given["blocked_by"].as_array().into_iter().flatten();
        tasks.push(Task {
            state: extra.state.unwrap_or(TaskState::Pending),
            owner: given["owner"].as_str().map(str::to_owned),
            blocked_by: blockers.filter_map(Value::as_u64).map(TaskId).collect(),
            extra,
            ..Task::new(id, "subject", "description")
        });
    }
    let tasks = tasks.into_iter().map(|task| (task.id, task)).collect();
    let board = Board { tasks, ..Board::default() };
    board.all_for_worker(&member, role).next().map(|task| task.id.0)
}

/// Chooses the backend of a team. `setting` is the value of `backend`; the others say whether the
/// caller's terminal is in tmux, whether tmux works, and whether the terminal is an iTerm2 session.
/// Returns `None` if the requested backend does not work here.
///
/// # Panics
/// If the setting is invalid.
#[must_use]
fn backend(setting: &str, inside_tmux: bool, tmux: bool, iterm2: bool) -> Option<&'static str> {
    let asked = setting.parse().expect("a valid setting");
    let works = |yes: bool| if yes { Ok(()) } else { Err("does not work".to_owned()) };
    let facts = Facts { inside_tmux, tmux: works(tmux), iterm2: works(iterm2) };
    Some(choose(asked, &facts).ok()?.backend.as_str())
}

/// Returns the places that a spawn tries, in order, if each of them fails.
///
/// # Panics
/// If there is no such backend.
#[must_use]
fn fallback(backend: &str, in_iterm2: bool) -> Vec<&'static str> {
    let backend: BackendKind = backend.parse().expect("a backend");
    let tiers = iter::successors(Some(Tier::Place(backend)), |tier| tier.next(|| in_iterm2));
    tiers.map(Tier::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strictest_rule_decides_which_tool_may_be_used() {
        // A command line is allowed only if each of its commands is.
        let rules = ["Bash(git push:*)", "", "Bash(git:*), Bash(npm test)"];
        let bash = |command| may_use_tool(rules, "Bash", command);
        assert_eq!(bash("git status"), "allow");
        assert_eq!(bash("git log | git shortlog"), "allow");
        assert_eq!(bash("npm test"), "allow");
        assert_eq!(bash("npm test --watch"), "ask", "only `:*` permits further words");
        assert_eq!(bash("git status && curl x"), "ask");
        assert_eq!(bash("git log > ~/.bashrc"), "ask", "a redirection writes a file");
        assert_eq!(bash("git $SUB"), "ask", "the shell decides which command this is");

        // A denial applies to every part of a command line, however it is written.
        assert_eq!(bash("git status; git push"), "deny");
        assert_eq!(bash("sudo /usr/bin/git 'push'"), "deny");
        assert_eq!(bash("bash -c 'git push'"), "deny");

        // `Edit` covers all tools that change files, `Read` all that read them. `**` stands for any
        // number of directories, `*` for characters of one name.
        let rules = ["Read(~/.ssh/**), Read(.env)", "Edit(*.lock)", "Read, Edit(src/**)"];
        let file = |tool, path| may_use_tool(rules, tool, path);
        assert_eq!(file("Edit", "/w/src/a/b.rs"), "allow");
        assert_eq!(file("Write", "src/b.rs"), "allow");
        assert_eq!(file("Write", "src/b.lock"), "ask");
        assert_eq!(file("Edit", "/w/srcs/b.rs"), "ask");
        assert_eq!(file("Edit", "src/../../etc/passwd"), "ask", "`..` may lead anywhere");
        assert_eq!(file("Grep", "/home/u/.ssh/id"), "deny");
        assert_eq!(file("Read", "/x/.env"), "deny", "a bare name is denied in every directory");

        // The strictest list decides.
        assert_eq!(may_use_tool(["Bash", "Bash", "Bash"], "Bash", "ls"), "deny");
        assert_eq!(may_use_tool(["", "Bash", "Bash"], "Bash", "ls"), "ask");
        assert_eq!(
            may_use_tool(["", "", ""], "Bash", "ls"),
            "ask",
            "nothing is allowed by default"
        );

        let rules = ["", "", "WebFetch(domain:*.example.org)"];
        let fetch = |url| may_use_tool(rules, "WebFetch", url);
        assert_eq!(fetch("https://docs.example.org/x"), "allow");
        assert_eq!(fetch("https://example.org.evil.net/"), "ask");
    }

    #[test]
    fn first_matching_rule_judges_the_screen() {
        let rules = r#"
            [[rule]]
            name = "approval"
            state = "dialog:approval"
            match = ['^Allow (?<text>.*)\?$', '^1\. Yes']

            [[rule]]
            name = "working"
            state = "working"
            area = "last 2"
            match = ['esc to interrupt']

            [[rule]]
            name = "idle"
            state = "idle"
            match = ['^> ']
            not = ['^error']
        "#;
        assert_eq!(judge_screen(rules, "> type here"), "idle");

        // The first rule that matches decides.
        assert_eq!(judge_screen(rules, "> type here\nThinking (esc to interrupt)"), "working");

        // A rule sees its area only, without empty rows at the end of the screen.
        assert_eq!(judge_screen(rules, "(esc to interrupt)\nold\n> type here"), "idle");
        assert_eq!(judge_screen(rules, "(esc to interrupt)\n\n\n\n"), "working");

        // All patterns must match, and none of `not`.
        assert_eq!(judge_screen(rules, "Allow rm -r x?\n1. Yes\n2. No"), "dialog:approval");
        assert_eq!(judge_screen(rules, "Allow rm -r x?"), "unknown");
        assert_eq!(judge_screen(rules, "error: no network\n> type here"), "unknown");

        // No rule matches: nothing may be typed.
        assert_eq!(judge_screen(rules, "Segmentation fault"), "unknown");
        assert_eq!(judge_screen("", "> type here"), "unknown");
    }

    #[test]
    fn worker_claims_the_most_urgent_task_that_it_may_run() {
        let next = |board| next_task("ann", Some("tester"), &board);

        // Higher priority first, then the lower id; the worker's own tasks before all others.
        assert_eq!(next(json!([{}, {}])), Some(1));
        assert_eq!(next(json!([{}, {"priority": 1}])), Some(2));
        assert_eq!(next(json!([{"priority": 1}, {"owner": "ann"}])), Some(2));
        assert_eq!(next(json!([{"owner": "bob"}, {}])), Some(2));

        // A task with an open blocker waits. A failed blocker stays open.
        let behind = |state| json!([{"state": state, "owner": "bob"}, {"blocked_by": [1]}]);
        assert_eq!(next(behind("in_progress")), None);
        assert_eq!(next(behind("failed")), None);
        assert_eq!(next(behind("completed")), Some(2));
        assert_eq!(next(behind("cancelled")), Some(2));
        assert_eq!(next(json!([{"blocked_by": [7]}])), Some(1), "7 was deleted");

        // One task at a time.
        assert_eq!(next(json!([{"state": "in_progress", "owner": "ann"}, {}])), None);

        // A task with a role is for members with that role; a task without one is for all.
        assert_eq!(next(json!([{"role": "writer"}, {"role": "tester"}])), Some(2));
        assert_eq!(next_task("ann", None, &json!([{"role": "tester"}, {}])), Some(2));

        // Tasks that may touch the same files do not run at the same time.
        let runs = json!({"state": "in_progress", "owner": "bob", "files": ["src/a/*"]});
        let beside = |files| json!([runs, {"files": [files]}]);
        assert_eq!(next(beside("src/a/x.rs")), None);
        assert_eq!(next(beside("src/**")), None);
        assert_eq!(next(beside("src/b/*")), Some(2));

        // A worker runs commands; a task without one is for agents.
        assert_eq!(next(json!([{"run": []}])), None);
    }

    #[test]
    fn backend_is_chosen_or_refused() {
        // `auto`: the tmux or iTerm2 that the caller sees, else tmux in the background, else PTYs.
        // The flags: the caller is in tmux, tmux works, the terminal is iTerm2.
        assert_eq!(backend("auto", true, true, false), Some("tmux"));
        assert_eq!(backend("auto", true, true, true), Some("tmux"));
        assert_eq!(backend("auto", false, true, true), Some("iterm2"));
        assert_eq!(backend("auto", false, true, false), Some("tmux"));
        assert_eq!(backend("auto", true, false, false), Some("pty"));
        assert_eq!(backend("auto", false, false, false), Some("pty"));

        // An explicit choice is carried out or refused, never replaced.
        assert_eq!(backend("tmux", false, true, true), Some("tmux"));
        assert_eq!(backend("tmux", false, false, true), None);
        assert_eq!(backend("iterm2", true, true, false), None);
        assert_eq!(backend("pty", true, true, true), Some("pty"));
    }

    #[test]
    fn failed_place_falls_back_to_the_next_one() {
        assert_eq!(fallback("tmux", false), ["tmux", "pty", "one-shot"]);
        assert_eq!(fallback("tmux", true), ["tmux", "iterm2", "pty", "one-shot"]);
        assert_eq!(fallback("iterm2", true), ["iterm2", "pty", "one-shot"]);
        assert_eq!(fallback("pty", true), ["pty", "one-shot"]);
    }
}
