//! Pull requests by stand-ins of `gh` and `glab` (`fixtures/forge`), with a bare repository as the
//! remote. The real programs and services were not tried.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Run, Stage};
use crate::review::{mail, with_task_in_review};
use crate::worktree::git;

const STAND_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/forge/forge.py");

/// The worktree of `bob`.
const WORKTREE: &str = "work/.worktrees/alpha-bob";

/// A stage with a member `bob` that has a commit on `alpha-bob`, a remote `origin`, and both
/// programs, of which one is logged in.
fn stage(logged_in: &str) -> Stage {
    let mut stage = with_task_in_review();
    git(&stage, "work", &["init", "--quiet", "--bare", "-b", "main", "../remote.git"]);
    let remote = stage.at("remote.git").to_string_lossy().into_owned();
    git(&stage, "work", &["remote", "add", "origin", &remote]);
    git(&stage, "work", &["push", "--quiet", "origin", "main"]);
    stage.set_env("FORGE_DIR", &stage.at("").to_string_lossy());
    for tool in ["gh", "glab"] {
        stage.shadow(tool, &format!("#!/bin/sh\nexec python3 '{STAND_IN}' {tool} \"$@\"\n"));
    }
    let state = json!({
        "logged_in": logged_in, "requests": [], "discussions": [],
        "pulls/comments": [], "issues/comments": [], "pulls/reviews": [],
    });
    fs::write(stage.at("forge.json"), state.to_string()).expect("a file");
    stage
}

fn forge(stage: &Stage) -> Value {
    let state = fs::read_to_string(stage.at("forge.json")).expect("a file");
    serde_json::from_str(&state).expect("JSON")
}

fn set(stage: &Stage, key: &str, value: Value) {
    let mut state = forge(stage);
    state[key] = value;
    fs::write(stage.at("forge.json"), state.to_string()).expect("a file");
}

fn commit(stage: &Stage, message: &str) -> String {
    git(stage, WORKTREE, &["commit", "--quiet", "--allow-empty", "-m", message]);
    head(stage)
}

fn head(stage: &Stage) -> String {
    git(stage, WORKTREE, &["rev-parse", "HEAD"]).trim_end().to_owned()
}

/// Returns the commit of a branch of the remote; empty without one.
fn pushed(stage: &Stage, branch: &str) -> String {
    let name = format!("refs/heads/{branch}");
    git(stage, "remote.git", &["for-each-ref", "--format=%(objectname)", &name]).trim().to_owned()
}

fn open(stage: &Stage) -> Run {
    stage.phalanx(&["--json", "review", "bob", "--pr"])
}

fn sync(stage: &Stage) -> Value {
    stage.phalanx(&["--json", "review", "bob", "--sync"]).expect(0).json()
}

fn comments(stage: &Stage) -> Vec<Value> {
    let shown = stage.phalanx(&["--json", "review", "show", "bob"]).expect(0).json();
    shown["comments"].as_array().expect("comments").clone()
}

/// RV-30: what was looked at is pushed, also if the member commits meanwhile or has checked out
/// another branch; a commit that only the remote has stays.
#[test]
fn rv_30_pull_request_has_the_commits_that_were_looked_at() {
    let stage = stage("gh");
    let seen = head(&stage);
    set(&stage, "late", json!(stage.at(WORKTREE)));
    let report = open(&stage).expect(0).json();
    assert_ne!(head(&stage), seen, "the member has committed meanwhile");
    assert_eq!((&report["head"], pushed(&stage, "alpha-bob")), (&json!(seen), seen.clone()));
    assert_eq!(forge(&stage)["requests"][0]["opened_at"], json!(seen));

    // The member may not choose the branch that is pushed to.
    git(&stage, WORKTREE, &["switch", "--quiet", "-c", "release"]);
    let later = commit(&stage, "on another branch");
    open(&stage).expect(0);
    assert_eq!((pushed(&stage, "alpha-bob"), pushed(&stage, "release")), (later, String::new()));
    let member = stage.phalanx(&["--as", "bob", "review", "bob", "--pr"]).expect(4);
    assert!(member.stderr.contains("only the lead may"), "{member:?}");

    let foreign = git(&stage, "remote.git", &["rev-parse", "alpha-bob^{tree}"]);
    let args = ["-c", "user.name=x", "-c", "user.email=x", "commit-tree", "-p", "alpha-bob", "-m"];
    let foreign = git(&stage, "remote.git", &[&args[..], &["foreign", foreign.trim()]].concat());
    git(&stage, "remote.git", &["update-ref", "refs/heads/alpha-bob", foreign.trim()]);
    commit(&stage, "apart from it");
    let rejected = stage.phalanx(&["review", "bob", "--pr"]).expect(4);
    for part in ["alpha-bob` of origin has commits that are not among", "git merge FETCH_HEAD"] {
        assert!(rejected.stderr.contains(part), "{rejected:?}");
    }
    assert_eq!(pushed(&stage, "alpha-bob"), foreign.trim());
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// RV-31: the second call pushes and finds the pull request of the first, with either program.
#[test]
fn rv_31_pull_request_is_opened_once() {
    for (tool, label) in [("gh", "PR #41"), ("glab", "MR !41")] {
        let stage = stage(tool);
        let first = open(&stage).expect(0).json();
        assert_eq!(
            (&first["tool"], &first["number"], &first["is_new"], &first["into"]),
            (&json!(tool), &json!(41), &json!(true), &json!("main"))
        );
        let request = &forge(&stage)["requests"][0];
        assert_eq!((&request["title"], &request["into"]), (&json!("Count"), &json!("main")));
        let body = request["body"].as_str().expect("a text");
        assert_eq!(body, "## Result\n\ncounted\n\n## Commits\n\n- two more\n");

        let later = commit(&stage, "one more");
        let second = stage.phalanx(&["review", "1", "--pr"]).expect(0).stdout;
        assert!(second.contains(&format!("{label} was open, and is up to date: ")), "{second}");
        assert_eq!(pushed(&stage, "alpha-bob"), later);
        assert_eq!(forge(&stage)["requests"].as_array().expect("requests").len(), 1);
        let shown = stage.phalanx(&["review", "show", "bob"]).expect(0).stdout;
        let url = first["url"].as_str().expect("an address");
        assert!(shown.contains(&format!("{label} is open: {url}")), "{shown}");
        let journal = stage.journal("alpha");
        let opened = journal.iter().filter(|event| event["event"] == "pull_request_opened");
        assert_eq!(opened.map(|event| &event["detail"]["url"]).collect::<Vec<_>>(), [url]);

        // A new one after the first was merged.
        let mut requests = forge(&stage)["requests"].clone();
        requests[0]["state"] = json!("MERGED");
        set(&stage, "requests", requests);
        assert_eq!(sync(&stage)["state"], "merged");
        commit(&stage, "after the merge");
        assert_eq!(open(&stage).expect(0).json()["number"], 42);
        stage.phalanx(&["down", "--force"]).expect(0);
    }
}

/// EN-12: what the forge has merged is not kept, although this machine has no merge of it.
#[test]
fn en_12_worktree_of_a_merged_pull_request_is_removed() {
    for tool in ["gh", "glab"] {
        let stage = stage(tool);
        let standing = || {
            let listed = stage.phalanx(&["--json", "worktree", "list"]).expect(0).json();
            (listed[0]["condition"].clone(), listed[0]["evidence"].clone())
        };
        open(&stage).expect(0);
        let mut requests = forge(&stage)["requests"].clone();
        requests[0]["state"] = json!("MERGED");
        set(&stage, "requests", requests);
        assert_eq!(standing(), (json!("unmerged"), Value::Null));
        sync(&stage);
        assert_eq!(standing(), (json!("merged"), json!("pull-request")));
        commit(&stage, "after the merge");
        assert_eq!(standing(), (json!("unmerged"), Value::Null));
        git(&stage, WORKTREE, &["reset", "--quiet", "--hard", "HEAD~"]);
        stage.phalanx(&["down", "--force"]).expect(0);
        assert!(!stage.at(WORKTREE).exists(), "{tool}");
    }
}

/// RV-31: nothing is pushed for a pull request that cannot be opened; the message says why, and what
/// to type.
#[test]
fn rv_31_nothing_is_pushed_if_no_pull_request_can_be_opened() {
    let stage = stage("");
    let refused = |words: &[&str]| {
        let run = stage.phalanx(&["review", "bob", "--pr"]).expect(4);
        for part in words {
            assert!(run.stderr.contains(part), "{part}: {run:?}");
        }
        assert_eq!((pushed(&stage, "alpha-bob"), forge(&stage)["requests"].clone()), {
            (String::new(), json!([]))
        });
    };
    refused(&["`gh` is not logged in; `glab` is not logged in", "gh auth login"]);
    let sync = stage.phalanx(&["review", "bob", "--sync"]).expect(4);
    assert!(sync.stderr.contains("phalanx review bob --pr"), "{sync:?}");
    for tool in ["gh", "glab"] {
        fs::remove_file(stage.at("bin").join(tool)).expect("removed");
    }
    // A machine with the real programs reports that these are not logged in.
    refused(&[
        "no program can open a pull request: `gh` is not ",
        "`glab` is not ",
        "gh auth login",
    ]);
    fs::write(stage.at(WORKTREE).join("new.txt"), "new\n").expect("a file");
    refused(&["1 file(s) of `bob` are not committed", "commit your work"]);
    fs::remove_file(stage.at(WORKTREE).join("new.txt")).expect("removed");
    git(&stage, "work", &["remote", "rename", "origin", "other"]);
    let remote = stage.phalanx(&["review", "bob", "--pr"]).expect(2);
    assert!(remote.stderr.contains("no git remote `origin`"), "{remote:?}");
    assert!(remote.stderr.contains("git remote add origin URL"), "{remote:?}");
    git(&stage, "work", &["merge", "--quiet", "alpha-bob"]);
    refused(&["main has all its commits"]);
    stage.phalanx(&["review", "--pr"]).expect(2);
    stage.phalanx(&["review", "bob", "--pr", "--sync"]).expect(2);
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// RV-32: each comment of a pull request becomes one draft, at its lines as they are now; the author
/// sees it when it is sent.
#[test]
fn rv_32_comments_of_a_pull_request_become_drafts_once() {
    let stage = stage("gh");
    let first = head(&stage);
    open(&stage).expect(0);
    let line = |id: u32, body: &str, more: Value| {
        let mut line = json!({
            "id": id, "body": body, "user": {"login": "octo"}, "path": "a.txt", "line": 3,
            "start_line": 2, "side": "RIGHT", "start_side": "RIGHT", "commit_id": first,
        });
        line.as_object_mut().expect("an object").extend(more.as_object().expect("it").clone());
        line
    };
    let unknown = "1".repeat(40);
    set(
        &stage,
        "pulls/comments",
        json!([
            line(1, "Why\u{1b}[2J\r\ntwo?", json!({})),
            line(2, "Lost.", json!({"commit_id": unknown})),
            line(3, "Elsewhere.", json!({"path": "../secret", "start_line": null})),
        ]),
    );
    set(&stage, "issues/comments", json!([{"id": 1, "body": "Nice.", "user": null}]));
    let reviews = json!([{"id": 1, "body": "", "state": "APPROVED"}, {"id": 2, "body": "x", "state": "PENDING"}]);
    set(&stage, "pulls/reviews", reviews);
    fs::write(stage.at(WORKTREE).join("a.txt"), "zero\none\ntwo\nthree\n").expect("a file");
    git(&stage, WORKTREE, &["commit", "--quiet", "-am", "zero"]);
    let before = mail(&stage, "bob");

    let report = sync(&stage);
    assert_eq!(
        (&report["drafts"], &report["state"]),
        (&json!(["R1", "R2", "R3", "R4"]), &json!("open"))
    );
    let all = comments(&stage);
    let texts: Vec<_> = all.iter().map(|comment| comment["text"].as_str().expect("text")).collect();
    let expected = [
        "@octo: Why\u{241b}[2J\ntwo?",
        "@octo, on a.txt:2-3: Lost.",
        "@octo, on ../secret:3: Elsewhere.",
        "@ghost: Nice.",
    ];
    assert_eq!(texts, expected);
    assert_eq!(all[0]["place"]["lines"]["quote"], json!(["two", "three"]));
    assert_eq!(all[0]["now"], json!({"lines": "same", "first": 3, "last": 4}));
    assert_eq!((&all[1]["place"], &all[2]["place"]), (&json!({"path": "a.txt"}), &Value::Null));
    assert!(all.iter().all(|comment| comment["sent"] == Value::Null && comment["kind"] == "must"));
    assert_eq!(mail(&stage, "bob"), before, "drafts are not sent");

    // A discarded one does not come back, and a new one comes alone.
    stage.phalanx(&["review", "discard", "R4"]).expect(0);
    assert_eq!(sync(&stage)["drafts"], json!([]));
    open(&stage).expect(0);
    assert_eq!(sync(&stage)["drafts"], json!([]));
    let again = stage.phalanx(&["review", "bob", "--sync"]).expect(0).stdout;
    assert!(again.contains("no new comments"), "{again}");
    set(&stage, "pulls/reviews", json!([{"id": 3, "body": "Done.", "state": "APPROVED"}]));
    assert_eq!(sync(&stage)["drafts"], json!(["R5"]));
    assert_eq!(comments(&stage).len(), 4);

    stage.phalanx(&["review", "send", "bob"]).expect(0);
    let sent = mail(&stage, "bob").pop().expect("a message");
    assert!(
        sent.contains("[R1] must · a.txt:2-3 (new)\n    two\n    three\n  @octo: Why"),
        "{sent}"
    );
    assert_eq!(sync(&stage)["drafts"], json!([]));
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// RV-32: the same with notes of GitLab.
#[test]
fn rv_32_notes_of_a_merge_request_become_drafts_once() {
    let stage = stage("glab");
    open(&stage).expect(0);
    let position = json!({
        "head_sha": head(&stage), "old_path": "a.txt", "new_path": "a.txt", "old_line": null,
        "new_line": 2,
    });
    let author = json!({"username": "ann"});
    set(
        &stage,
        "discussions",
        json!([
            {"id": "d1", "notes": [{"id": 1, "body": "Why?", "author": author, "position": position}]},
            {"id": "d2", "notes": [
                {"id": 2, "body": "added 1 commit", "system": true},
                {"id": 3, "body": "Nice.", "author": author},
            ]},
        ]),
    );
    assert_eq!(sync(&stage)["drafts"], json!(["R1", "R2"]));
    assert_eq!(sync(&stage)["drafts"], json!([]));
    let all = comments(&stage);
    assert_eq!((&all[0]["text"], &all[1]["text"]), (&json!("@ann: Why?"), &json!("@ann: Nice.")));
    assert_eq!(all[0]["now"], json!({"lines": "same", "first": 2, "last": 2}));
    assert_eq!(all[0]["remote"], "glab:note:1");
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// RV-33: the words of a member reach the program as data: no option, no command, no control
/// characters, and without the directories of this machine.
#[test]
fn rv_33_words_of_a_member_are_data_for_the_program() {
    for tool in ["gh", "glab"] {
        let stage = stage(tool);
        let place = stage.at(WORKTREE).canonicalize().expect("it is there");
        commit(&stage, "$(touch pwned) `touch pwned`; touch pwned");
        let subject = "--subject=--web $(touch pwned)\u{1b}]0;x\u{7}";
        let result = format!("see {}/a.txt\u{9b}2J", place.display());
        stage.phalanx(&["task", "approve", "1"]).expect(0);
        stage.phalanx(&["task", "create", subject, "--owner", "bob"]).expect(0);
        stage.phalanx(&["--as", "bob", "task", "claim", "2"]).expect(0);
        stage.phalanx(&["--as", "bob", "task", "review", "2", "--result", &result]).expect(0);
        open(&stage).expect(0);
        let request = &forge(&stage)["requests"][0];
        let title = request["title"].as_str().expect("a title");
        assert!(title.starts_with("--web $(touch pwned)"), "{title}");
        let body = request["body"].as_str().expect("a text");
        assert!(body.contains("see a.txt") && body.contains("- $(touch pwned) `touch"), "{body}");
        let is_clean = |text: &str| !text.chars().any(|c| c.is_control() && c != '\n');
        assert!(is_clean(title) && is_clean(body), "{request}");
        for dir in ["work", WORKTREE, "remote.git"] {
            assert!(!stage.at(dir).join("pwned").exists(), "{dir}");
        }
        stage.phalanx(&["down", "--force"]).expect(0);
    }
}
