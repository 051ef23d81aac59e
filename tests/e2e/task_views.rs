//! `task graph`, `task search` and the pages of `task list`.

use std::fs;

use serde_json::{Value, json};

use crate::harness::Stage;

/// A team whose task 3 waits for 1 and 2.
fn planned() -> Stage {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    for words in [
        &["task", "create", "Write the parser"][..],
        &["task", "create", "Say \"hi\"", "--description", "The parser has\nno cache yet"],
        &["task", "create", "Test", "--blocked-by", "1,2", "--description", "Also the Parser"],
    ] {
        stage.phalanx(words).expect(0);
    }
    stage
}

#[test]
fn graph_is_drawn_as_text_mermaid_dot_and_json() {
    let stage = planned();
    let draw = |words: &[&str]| stage.phalanx(&[&["task", "graph"], words].concat()).expect(0);
    assert_eq!(
        draw(&[]).stdout.replace("blocked", "pending"),
        "#1 Write the parser  pending\n  #3 Test  pending  (also after #2)\n#2 Say \"hi\"  pending\n"
    );
    let mermaid = draw(&["--format", "mermaid"]).stdout;
    assert!(mermaid.starts_with("flowchart LR\n"), "{mermaid}");
    assert!(mermaid.contains("t2[\"#35;2 Say #34;hi#34;\"]:::pending\n"), "{mermaid}");
    assert!(mermaid.contains("    t1 --> t3\n    t2 --> t3\n"), "{mermaid}");
    let dot = draw(&["--format", "dot"]).stdout;
    assert!(dot.contains(r##"t2 [label="#2 Say \"hi\"", class="##), "{dot}");
    let graph = stage.phalanx(&["--json", "task", "graph"]).expect(0).json();
    assert_eq!(graph["edges"], json!([["1", "3"], ["2", "3"]]));
    assert_eq!(graph["tasks"][0]["subject"], "Write the parser");
    stage.phalanx(&["task", "complete", "1"]).expect(0);
    assert!(!draw(&[]).stdout.contains("parser") && draw(&["--all"]).stdout.contains("parser"));
    stage.phalanx(&["task", "graph", "--format", "png"]).expect(2);
}

#[test]
fn search_ranks_subjects_first_and_prints_snippets() {
    let stage = planned();
    let found = stage.phalanx(&["task", "search", "parser"]).expect(0);
    let lines: Vec<&str> = found.stdout.lines().collect();
    assert!(lines[0].starts_with("#1 Write the parser"), "{found:?}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("    ")).count(), 2, "{found:?}");
    assert!(found.stdout.contains("\n    The parser has no cache yet\n"), "{found:?}");
    let ids = |words: &[&str]| -> Vec<String> {
        let found = stage.phalanx(&[&["--json", "task", "search"], words].concat()).expect(0);
        let tasks = found.json()["tasks"].as_array().expect("tasks").clone();
        tasks.iter().map(|task| task["id"].as_str().expect("id").to_owned()).collect()
    };
    assert_eq!(ids(&["parser"]), ["1", "2", "3"]);
    assert_eq!(ids(&["Parser"]), ["3"]);
    assert_eq!(ids(&["cache", "hi"]), ["2"]);
    assert_eq!(ids(&["hi cache nowhere"]), [""; 0]);
    let cut = stage.phalanx(&["task", "search", "parser", "--limit", "1"]).expect(0);
    assert!(cut.stdout.lines().count() == 1 && cut.stderr.contains("2 more"), "{cut:?}");
    let none = stage.phalanx(&["task", "search", "nowhere"]).expect(0);
    assert!(none.stdout.is_empty() && none.stderr.contains("no task contains"), "{none:?}");
    stage.phalanx(&["task", "search", " "]).expect(2);
    stage.phalanx(&["task", "search"]).expect(2);
}

#[test]
fn list_prints_pages_of_30_tasks() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    for id in 1..=61 {
        let text = format!(r#"{{"id":"{id}","subject":"s{id}","status":"pending"}}"#);
        fs::write(stage.root().join(format!("tasks/demo/{id}.json")), text).expect("write");
    }
    let list = |words: &[&str]| stage.phalanx(&[&["task", "list"], words].concat());
    let rows = |words: &[&str]| -> Vec<String> {
        let listed = list(words).expect(0).stdout;
        listed.lines().skip(1).filter_map(|line| Some(line.split_once(' ')?.0.into())).collect()
    };
    let first = list(&[]).expect(0);
    assert_eq!(first.stdout.lines().count(), 31);
    assert_eq!(first.stderr, "page 1 of 3; more: add --page 2\n");
    let all = list(&["--all", "--page", "2"]).expect(0).stderr;
    assert_eq!(all, "page 2 of 3; more: add --page 3\n");
    assert_eq!(rows(&["--page", "2"]).first().map(String::as_str), Some("31"));
    let last = list(&["--page", "3"]).expect(0);
    assert!(last.stdout.contains("s61") && last.stderr.is_empty(), "{last:?}");
    let beyond = list(&["--page", "4"]).expect(2);
    assert!(beyond.stderr.contains("there are 3 pages"), "{beyond:?}");
    list(&["--page", "0"]).expect(2);
    let count = |words: &[&str]| {
        let listed = stage.phalanx(&[&["--json", "task", "list"], words].concat()).expect(0);
        listed.json().as_array().map(Vec::len)
    };
    assert_eq!((count(&[]), count(&["--page", "3"])), (Some(61), Some(1)));
}

/// TK-14: a task that the lead ended keeps its owner, in each face.
#[test]
fn tk_14_faces_name_the_same_owner_of_an_ended_task() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.add_native("demo", &["ann"]);
    stage.phalanx(&["task", "create", "Hers", "--owner", "ann"]).expect(0);
    stage.phalanx(&["task", "create", "Free"]).expect(0);
    for id in ["1", "2"] {
        stage.phalanx(&["task", "cancel", id]).expect(0);
    }
    let owners = |tasks: &Value| -> Vec<Value> {
        let tasks = tasks.as_array().expect("tasks").iter();
        tasks.map(|task| task["owner"].clone()).collect()
    };
    let listed = stage.phalanx(&["--json", "task", "list", "--all"]).expect(0).json();
    assert_eq!(owners(&listed), [json!("ann"), json!(null)]);
    let status = stage.phalanx(&["--json", "status", "--all"]).expect(0).json();
    assert_eq!(owners(&status["task_list"]), owners(&listed));
}
