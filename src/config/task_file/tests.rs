//! The kinds of task files: what is read, and what is refused with which line.

use std::path::Path;

use proptest::prelude::*;
use strum::IntoEnumIterator;

use super::words::{slug, subject};
use super::{MAX_FAULTS, TaskFormat};
use model::board::task_definition::TaskFile;

/// A plan of the example in docs/cli/tasks.md.
const PLAN: &str = r#"{"p":"03","n":"02","t":"Wiring","d":["03-01"],"xd":["../02-01.summary.jsonl"]}

{"id":"T1","a":"Write the parser","f":["src/parse.rs"],"done":"tests pass"}
{"id":"T2","a":"Wire it up\nwith the server.","td":["T1","04-01/T9"]}
"#;

fn good(kind: TaskFormat, text: &str) -> TaskFile {
    kind.parse("todo list", text).expect("a good file")
}

/// The faults of a text, each as `LINE:COLUMN: MESSAGE`.
fn faults(kind: TaskFormat, text: &str) -> Vec<String> {
    let found = kind.parse("todo", text).expect_err("a bad file");
    found.iter().map(ToString::to_string).collect()
}

/// The key of each task, with its blockers.
fn keys(file: &TaskFile) -> Vec<(&str, Vec<&str>)> {
    let tasks = file.tasks.iter();
    tasks.map(|task| (task.key.as_str(), task.after.iter().map(String::as_str).collect())).collect()
}

#[test]
fn format_follows_from_extension_and_text() {
    let task = "---\nid: task-1\ntitle: Write\n---\n- [ ] #1 it works\n";
    let table = [
        ("a/03-01.plan.jsonl", "", TaskFormat::Plan),
        ("issues.jsonl", "{\"id\":\"x-1\",\"title\":\"Write\"}", TaskFormat::Beads),
        ("TODO.MD", "- [ ] a", TaskFormat::Checklist),
        ("page.md", "---\ntitle: A page\n---\n- [ ] a", TaskFormat::Checklist),
        ("task-1 - Write.md", task, TaskFormat::Backlog),
        ("a.json", "\u{feff}[]", TaskFormat::Export),
        ("tasks.json", " {}", TaskFormat::Taskmaster),
        ("team.toml", "", TaskFormat::Manifest),
    ];
    for (name, text, expected) in table {
        assert_eq!(TaskFormat::of(Path::new(name), text), Ok(expected), "{name}");
    }
    for name in ["a.txt", "md", ""] {
        let expected = TaskFormat::of(Path::new(name), "").expect_err("unknown");
        assert!(expected.contains(".md (checklist, backlog)"), "{expected}");
    }
}

#[test]
fn tk_16_task_of_backlog_has_its_title_and_names_what_is_left_out() {
    let text = "---\nid: TASK-7\ntitle: 'Write: the docs'\nstatus: In Progress\nassignee:\n  - '@ann'\n\
                labels: [docs]\ndependencies:\n  - task-3\npriority: high\n---\n\n## Description\n\n\
                <!-- SECTION:DESCRIPTION:BEGIN -->\nAll of them.\n<!-- SECTION:DESCRIPTION:END -->\n\n\
                ## Acceptance Criteria\n- [ ] #1 they read well\n";
    let file = good(TaskFormat::Backlog, text);
    let [task] = file.tasks.as_slice() else { panic!("{file:?}") };
    assert_eq!((task.key.as_str(), task.subject.as_str()), ("task-7", "Write: the docs"));
    assert_eq!((&task.after, task.is_done), (&vec!["task-3".to_owned()], false));
    assert_eq!(task.fields.labels, Some(vec!["docs".to_owned()]));
    assert!(task.description.contains("All of them.") && !task.description.contains("<!--"));
    let notes: Vec<&str> = file.notes.iter().map(|note| note.text.as_str()).collect();
    assert_eq!(
        notes,
        [
            "`task-7` is In Progress; taken as open",
            "`assignee` of `task-7`, @ann, has no counterpart; left out"
        ]
    );
    assert!(good(TaskFormat::Backlog, &text.replace("In Progress", "Done")).tasks[0].is_done);
    let fault = &faults(TaskFormat::Backlog, &text.replace("TASK-7", "[7"))[0];
    assert!(fault.starts_with("2:"), "{fault}");
}

#[test]
fn plan_names_its_blockers_by_key() {
    let file = good(TaskFormat::Plan, &format!("\u{feff}{PLAN}"));
    let plan = file.plan.as_ref().expect("a header");
    assert_eq!((plan.id.as_str(), plan.line), ("03-02", 1));
    assert_eq!(plan.artifacts, ["../02-01.summary.jsonl"]);
    assert_eq!(
        keys(&file),
        [("03-02/T1", vec!["03-01/*"]), ("03-02/T2", vec!["03-01/*", "03-02/T1", "04-01/T9"])]
    );
    assert_eq!(file.tasks[0].fields.files, Some(vec!["src/parse.rs".to_owned()]));
    let last = &file.tasks[1];
    assert_eq!((last.line, last.subject.as_str()), (4, "Wire it up"));
    assert_eq!(last.description, "Wire it up\nwith the server.");
}

#[test]
fn plan_faults_have_their_lines() {
    assert_eq!(
        faults(TaskFormat::Plan, "{\"p\":\"03\",\"n\":2}\n\n{\"id\":\"T1\"}\n[\"T1\",\"x\"]\n"),
        [
            "1:15: `n`: invalid type: integer `2`, expected a string",
            "3:11: missing field `a`",
            "4:1: a JSON object is expected here",
        ]
    );
    let ids = "{\"p\":\"03\",\"n\":\"1\"}\n{\"id\":\"a\\u001b[2J\",\"a\":\" \",\"f\":[\"\"],\"td\":[\"\"]}\n{\"id\":\"T2\",\"a\":\"x\"} {}";
    let found = faults(TaskFormat::Plan, ids);
    assert_eq!(found.len(), 5, "{found:?}");
    assert!(found[0].starts_with("2:1: `id`: \"a\\u{1b}[2J\" is not a valid id"), "{found:?}");
    assert!(found[4].starts_with("3:21: trailing characters"), "{found:?}");
    assert_eq!(
        faults(TaskFormat::Plan, " \n"),
        ["1:1: the plan is empty: its first line is a header with `p` and `n`"]
    );
    let many = format!("{{\"p\":\"1\",\"n\":\"1\"}}\n{}", "x\n".repeat(1000));
    assert_eq!(faults(TaskFormat::Plan, &many).len(), MAX_FAULTS + 1);
}

#[test]
fn checklist_items_wait_for_the_items_below_them() {
    let text = "# Release\n\n- [ ] Ship **it**\n  - [x] Write the docs\n  - plain\n    - [ ] Tag it {#tag}\n\n    \
        The tag is signed:\n\n        git tag -s\n1. [ ] Übung\n   zwei\n\n```\n- [ ] not a task\n```\n";
    let file = good(TaskFormat::Checklist, text);
    assert_eq!(
        keys(&file),
        [
            ("todo-list/ship-it", vec!["todo-list/write-the-docs", "tag"]),
            ("todo-list/write-the-docs", vec![]),
            ("tag", vec![]),
            ("todo-list/übung-zwei", vec![]),
        ]
    );
    let described: Vec<(usize, &str, bool)> =
        file.tasks.iter().map(|t| (t.line, t.subject.as_str(), t.is_done)).collect();
    assert_eq!(
        described,
        [
            (3, "Ship **it**", false),
            (4, "Write the docs", true),
            (6, "Tag it", false),
            (11, "Übung zwei", false)
        ]
    );
    assert_eq!(file.tasks[0].description, "Ship **it**");
}

#[test]
fn tk_16_other_marks_of_check_lists_are_tasks_with_a_note() {
    let text = "# Plan\n\n- [ ] 1. First\n- [ ]* 2. Optional\n- [-] 3. Running\n  1. [~] Below\n- [x]* Over\n\
                - [-]no box\n- [y] no mark\n";
    let file = good(TaskFormat::Checklist, text);
    let found: Vec<(usize, &str, bool)> =
        file.tasks.iter().map(|t| (t.line, t.subject.as_str(), t.is_done)).collect();
    assert_eq!(
        found,
        [
            (3, "1. First", false),
            (4, "2. Optional", false),
            (5, "3. Running", false),
            (6, "Below", false),
            (7, "Over", true),
        ]
    );
    assert_eq!(file.tasks[2].after, ["todo-list/below"]);
    let notes: Vec<(usize, &str)> =
        file.notes.iter().map(|note| (note.line, note.text.as_str())).collect();
    assert_eq!(
        notes,
        [
            (4, "marked as optional; taken like the others"),
            (5, "marked as in progress; taken as open"),
            (6, "marked as in progress; taken as open"),
            (7, "marked as optional; taken like the others"),
        ]
    );
}

#[test]
fn tk_16_issues_of_beads_are_tasks() {
    let text = r#"{"id":"x-1","title":"Inventory","description":"d","status":"closed","priority":0,"issue_type":"task"}

{"id":"x-2","title":"Report","notes":"n","status":"open","priority":1,"dependencies":[{"issue_id":"x-2","depends_on_id":"x-1","type":"blocks"},{"issue_id":"x-2","depends_on_id":"x-3.1","type":"related"}]}
{"id":"x-3.1","title":"Later","status":"deferred","labels":["a"]}
{"id":"x-4","title":"Gone","status":"tombstone"}
"#;
    let file = good(TaskFormat::Beads, text);
    assert_eq!(keys(&file), [("x-1", vec![]), ("x-2", vec!["x-1"]), ("x-3.1", vec![])]);
    assert_eq!(file.tasks[1].description, "Report\n\nn");
    let facts: Vec<_> = file.tasks.iter().map(|t| (t.line, t.is_done, t.fields.priority)).collect();
    assert_eq!(facts, [(1, true, Some(2)), (3, false, Some(1)), (4, false, None)]);
    let lines: Vec<usize> = file.notes.iter().map(|note| note.line).collect();
    assert_eq!(lines, [3, 4, 5], "{:?}", file.notes);
    assert_eq!(
        faults(TaskFormat::Beads, &text.replace("\"title\":\"Later\",", "")),
        ["4:49: missing field `title`"]
    );
}

#[test]
fn tk_16_tasks_of_task_master_are_tasks() {
    let list = r#"{"tasks":[
  {"id":1,"title":"Core","status":"done","dependencies":[],"priority":"high"},
  {"id":2,"title":"Models","status":"pending","dependencies":[1],"details":"all","subtasks":[
    {"id":1,"title":"Users","status":"pending"},
    {"id":2,"title":"Groups","status":"deferred","dependencies":[1, "3.1"]}]},
  {"id":"3","title":"Dropped","status":"cancelled","subtasks":[{"id":1,"title":"Part"}]}
]}"#;
    let tagged = format!("{{\"master\":{list},\"my tag\":{{\"tasks\":[]}},\"note\":1}}");
    for (text, name) in [(list, "todo-list"), (&*tagged, "master")] {
        let file = good(TaskFormat::Taskmaster, text);
        let key = |id: &str| format!("{name}/{id}");
        let found: Vec<(String, Vec<String>)> =
            file.tasks.iter().map(|t| (t.key.clone(), t.after.clone())).collect();
        assert_eq!(
            found,
            [
                (key("1"), vec![]),
                (key("2.1"), vec![key("1")]),
                (key("2.2"), vec![key("2.1"), key("3.1"), key("1")]),
                (key("2"), vec![key("1"), key("2.1"), key("2.2")]),
                (key("3.1"), vec![]),
                (key("3"), vec![key("3.1")]),
            ]
        );
        assert_eq!(
            file.tasks.iter().map(|t| t.is_done).collect::<Vec<_>>(),
            [true, false, false, false, false, true]
        );
        assert_eq!(file.notes.len(), 2, "{:?}", file.notes);
        assert_eq!(file.tasks[3].description, "Models\n\nall");
    }
    let other = faults(TaskFormat::Taskmaster, "{\"name\":\"x\"}");
    assert!(other[0].contains("Task Master"), "{other:?}");
    assert!(faults(TaskFormat::Taskmaster, "{\"tasks\":[{\"id\":1}]}")[0].contains("title"));
}

#[test]
fn checklist_keys_are_unique_and_valid() {
    let text = "- [ ] Test\n- [ ] Build\n  - [ ] test!\n- [ ] ???\n- [ ] x {#a b}\n";
    assert_eq!(
        faults(TaskFormat::Checklist, text),
        [
            "3:1: the item has the key `todo/test`, as that in line 1; give one of them a key: `{#KEY}`",
            "4:1: the item needs a key, since its text has no words: `{#KEY}`",
            "5:1: the key \"a b\" is not a valid id: use letters, digits, `.`, `_` and `-`, at most 100 characters",
        ]
    );
}

#[test]
fn manifest_needs_only_tasks() {
    let text = "[[task]]\nkey = \"a\"\nsubject = \"A\"\nowner = \"ann\"\nrun = [\"true\"]\n\n[[task]]\nkey = \"b\"\n\
        subject = \"B\"\nafter = [\"a\"]\n";
    let file = good(TaskFormat::Manifest, text);
    assert_eq!(keys(&file), [("a", vec![]), ("b", vec!["a"])]);
    assert_eq!((file.tasks[0].line, file.tasks[1].line), (2, 8));
    assert_eq!(file.tasks[0].owner.as_deref(), Some("ann"));
    let fault = faults(TaskFormat::Manifest, &text.replace("[\"a\"]", "[\"aa\"]"));
    assert_eq!(fault, ["10:10: task `b` depends on unknown task `aa`"]);
}

#[test]
fn export_is_read_without_states_owners_and_times() {
    let text = r#"[
{"id":"4","subject":"A","description":"d","status":"in_progress","blocks":["7"],"blockedBy":[],"owner":"ann","metadata":{"type":"bug","phalanx":{"key":"03-01/T1","run":["true"],"claimed_at":5}}},
{"id":"7","subject":"B","status":"pending","blockedBy":["4"]},
{"id":"9","subject":"C","status":"completed"}
]"#;
    let file = good(TaskFormat::Export, text);
    assert_eq!(
        keys(&file),
        [("03-01/T1", vec![]), ("todo-list/7", vec!["03-01/T1"]), ("todo-list/9", vec![])]
    );
    let first = &file.tasks[0];
    assert_eq!(first.owner, None);
    assert_eq!(
        (
            first.fields.command.len(),
            first.fields.metadata.iter().any(|given| given.contains_key("type"))
        ),
        (1, true)
    );
    assert_eq!(file.tasks.iter().map(|t| t.is_done).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn export_faults_have_their_lines() {
    let bad = "[\n{\"id\":\"1\",\"subject\":\" \"},\n{\"id\":\"x\",\"subject\":\"s\"},\n\
        {\"id\":\"1\",\"subject\":\"s\",\"blockedBy\":[\"5\"]},\n{\"id\":\"2\",\"subject\":3}, 7]";
    let found = faults(TaskFormat::Export, bad);
    let starts = ["2:1: task 1 has no subject", "3:1: task id \"x\"", "5:1: task 2 is not as"];
    for (fault, start) in found.iter().zip(starts) {
        assert!(fault.starts_with(start), "{found:?}");
    }
    assert_eq!(
        found[3..],
        [
            "5:1: a JSON object is expected here",
            "4:1: two tasks have the id 1",
            "4:1: task 1 is blocked by task 5, which is not in the file",
        ]
    );
    assert!(faults(TaskFormat::Export, "{\"a\":1}")[0].starts_with("1:"));
    // Deep nesting is refused without exhausting the stack.
    assert_eq!(faults(TaskFormat::Export, &"[".repeat(100_000)).len(), 1);
}

#[test]
fn subjects_are_cut_between_words_and_slugs_keep_words() {
    assert_eq!(subject("\n  Do it \nnow"), "Do it");
    let cut = subject(&"word ".repeat(40));
    assert!(cut.ends_with("word…") && cut.chars().count() <= 100, "{cut}");
    assert_eq!(subject(&"ä".repeat(200)).chars().count(), 100);
    assert_eq!(slug("Write `src/a.rs` — now!", 80), "Write-src-a.rs-now");
    assert_eq!((slug("…", 80), slug("abc-def", 4)), (String::new(), "abc".to_owned()));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_files_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes);
        for kind in TaskFormat::iter() {
            let _ = kind.parse(&text, &text);
        }
    }

    #[test]
    fn texts_that_resemble_files_do_not_panic(
        parts in proptest::collection::vec(proptest::sample::select(PARTS.to_vec()), 0..60),
    ) {
        let text = parts.concat();
        for kind in TaskFormat::iter() {
            let _ = kind.parse("stem", &text);
        }
    }
}

const PARTS: [&str; 30] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ":",
    "\n",
    "  ",
    "- [ ] ",
    "- [x] ",
    "1. ",
    "> ",
    "text",
    "{#key}",
    "ä",
    "\u{1b}",
    "\0",
    "\r\n",
    "```",
    "\"id\"",
    "\"T1\"",
    "\"a\"",
    "\"p\"",
    "\"td\"",
    "[[task]]",
    "key = ",
    "subject = ",
    "\\ud800",
    "9",
];
