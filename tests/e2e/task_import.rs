//! Tasks from files: plans, check lists, manifests and exports, imported once and again.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Run, Stage, binary};

/// The example of the plans: 03-02 depends on 03-01, whose T3 depends on T1.
const FIRST: &str = r#"{"p":"03","n":"01","t":"Blocking"}
{"id":"T1","a":"Define td","f":["references/artifact-formats.md"]}
{"id":"T2","a":"Map plans to tasks","f":["references/teammate-api-patterns.md"]}
{"id":"T3","a":"Add ## Task-Level Blocking section","f":["references/teammate-api-patterns.md"],"td":["T1"]}
{"id":"T4","a":"Four"}
{"id":"T5","a":"Five"}
{"id":"T6","a":"Six"}
{"id":"T7","a":"Seven"}
"#;
const SECOND: &str = r#"{"p":"03","n":"02","d":["03-01"],"xd":["02/summary.jsonl"]}
{"id":"T1","a":"Resolve dependencies"}
{"id":"T2","a":"Test them","td":["T1"]}
"#;

fn stage() -> Stage {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage
}

fn import(stage: &Stage, files: &[&str]) -> Run {
    stage.phalanx(&[&["task", "import", "-t", "demo"], files].concat())
}

/// The tasks of a team, each as `KEY <- KEYS OF ITS BLOCKERS`.
fn edges(stage: &Stage, team: &str) -> Vec<String> {
    let board = stage.phalanx(&["--json", "task", "list", "--all", "-t", team]).expect(0).json();
    let tasks = board.as_array().expect("tasks");
    let key = |task: &Value| {
        let key = task["metadata"]["phalanx"]["key"].as_str();
        key.or(task["subject"].as_str()).unwrap_or_default().to_owned()
    };
    let blockers = |task: &Value| {
        let ids = task["blockedBy"].as_array().expect("ids").iter();
        let named = ids.filter_map(|id| tasks.iter().find(|other| other["id"] == *id));
        named.map(key).collect::<Vec<_>>().join(" ")
    };
    tasks.iter().map(|task| format!("{} <- {}", key(task), blockers(task))).collect()
}

#[test]
fn plans_are_imported_with_all_their_edges() {
    let stage = stage();
    fs::create_dir(stage.at("work/02")).expect("dir");
    stage.file("02/summary.jsonl", "{\"p\":\"02\",\"s\":\"complete\"}\n");
    let (first, second) = (stage.file("03-01.jsonl", FIRST), stage.file("03-02.jsonl", SECOND));
    let dry = import(&stage, &["--dry-run", &second, &first]).expect(0);
    assert!(dry.stdout.contains("9 created, 0 updated, 0 unchanged (dry run"), "{dry:?}");
    assert_eq!(edges(&stage, "demo"), Vec::<String>::new());
    // The dependent plan may come first.
    let done = import(&stage, &[&second, &first]).expect(0);
    assert!(done.stdout.ends_with("9 created, 0 updated, 0 unchanged\n"), "{done:?}");
    let got = edges(&stage, "demo");
    println!("{}", got.join("\n"));
    let all = "03-01/T1 03-01/T2 03-01/T3 03-01/T4 03-01/T5 03-01/T6 03-01/T7";
    assert_eq!(
        got,
        [
            format!("03-02/T1 <- {all}"),
            format!("03-02/T2 <- {all} 03-02/T1"),
            "03-01/T1 <- ".to_owned(),
            "03-01/T2 <- ".to_owned(),
            "03-01/T3 <- 03-01/T1".to_owned(),
            "03-01/T4 <- ".to_owned(),
            "03-01/T5 <- ".to_owned(),
            "03-01/T6 <- ".to_owned(),
            "03-01/T7 <- ".to_owned(),
        ]
    );
    let third = stage.phalanx(&["--json", "task", "get", "5"]).expect(0).json();
    assert_eq!(third["blocks"], json!(["1", "2"]));
    assert_eq!(third["subject"], "Add ## Task-Level Blocking section");
    assert_eq!(
        third["metadata"]["phalanx"]["files"],
        json!(["references/teammate-api-patterns.md"])
    );
    let created = stage.journal("demo").iter().filter(|e| e["event"] == "task_created").count();
    assert_eq!(created, 9);
    stage.phalanx(&["task", "claim", "5"]).expect(4);
    stage.phalanx(&["task", "complete", "3"]).expect(0);
    stage.phalanx(&["task", "claim", "5"]).expect(0);
}

#[test]
fn key_is_shown_and_accepted_wherever_an_id_is() {
    let stage = stage();
    let plan = stage.file("03-01.jsonl", FIRST);
    import(&stage, &[&plan]).expect(0);
    let run = |line: &str| stage.phalanx(&line.split(' ').collect::<Vec<_>>());
    let listed = run("task list").expect(0).stdout;
    assert!(listed.contains("KEY") && listed.contains("03-01/T3"), "{listed}");
    let page = run("task get 03-01/T2").expect(0).stdout;
    assert!(page.starts_with("#2 Map plans") && page.contains("key        03-01/T2"), "{page}");
    let status = run("--json status").expect(0).json();
    assert_eq!(status["task_list"][1]["key"], "03-01/T2");

    run("task create Docs --blocked-by 03-01/T1,03-01/T2").expect(0);
    run("task update 8 --unblock 03-01/T2 --blocks 03-01/T7").expect(0);
    run("task block 03-01/T6 --by 03-01/T4 5").expect(0);
    run("task unblock 03-01/T6 --by 03-01/T5").expect(0);
    run("task claim 03-01/T1").expect(0);
    run("task progress 03-01/T1 40").expect(0);
    run("task comment 03-01/T1 half").expect(0);
    run("task assign 03-01/T2 team-lead").expect(0);
    run("task update 03-01/T4 --priority 3").expect(0);
    run("task fail 03-01/T4").expect(0);
    run("retry 03-01/T4").expect(0);
    run("task cancel 03-01/T4").expect(0);
    run("task delete 03-01/T4").expect(0);
    let done = run("task complete 03-01/T1 --result done").expect(0);
    assert!(done.stdout.contains("task 03-01/T1 is completed"), "{done:?}");
    let ended = run("--json wait --until task=03-01/T1 --timeout 5").expect(0).json();
    assert_eq!(ended[0]["name"], "1");
    let blockers = |id: &str| {
        let task = stage.phalanx(&["--json", "task", "get", id]).expect(0).json();
        task["blockedBy"].clone()
    };
    assert_eq!(
        [blockers("8"), blockers("7"), blockers("6")],
        [json!(["1"]), json!(["8"]), json!([])]
    );

    for line in ["task get 03-01/T33", "spawn ann --task 03-01/T33", "wait --until task=03-01/T33"]
    {
        let unknown = run(line).expect(3);
        assert!(
            unknown.stderr.contains("no task has the id or the key \"03-01/T33\""),
            "{unknown:?}"
        );
        assert!(unknown.stderr.contains("did you mean `03-01/T3`?"), "{unknown:?}");
        assert!(unknown.stderr.contains("phalanx task list --all"), "{unknown:?}");
    }
    // Another program copied a task with its metadata.
    let tasks = stage.root().join("tasks/demo");
    fs::copy(tasks.join("5.json"), tasks.join("20.json")).expect("copied");
    let ambiguous = run("task claim 03-01/T5").expect(2);
    assert!(
        ambiguous.stderr.contains("tasks 5, 20 have the same key \"03-01/T5\""),
        "{ambiguous:?}"
    );
    assert!(ambiguous.stderr.contains("such as 5"), "{ambiguous:?}");
    run("task claim 5").expect(0);
}

#[test]
fn errors_name_file_and_line_and_nothing_is_imported() {
    let stage = stage();
    let good = stage.file("03-01.jsonl", FIRST);
    let second = stage.file("03-02.jsonl", SECOND);
    let broken = stage.file(
        "bad.jsonl",
        "{\"p\":\"04\",\"n\":\"01\"}\n{\"id\":\"\\u001b[2J\",\"a\":7}\nnot json\n",
    );
    let run = import(&stage, &[&good, &second, &broken, "gone.md", "x.txt"]).expect(2);
    let at = |name: &str| stage.at("work").join(name).to_string_lossy().into_owned();
    for line in [
        format!("{}:1:1: `xd`: \"02/summary.jsonl\": no such file", at("03-02.jsonl")),
        format!("{}:2:", at("bad.jsonl")),
        format!("{}:3:1: a JSON object is expected here", at("bad.jsonl")),
        "gone.md: no such file or directory".to_owned(),
        "x.txt: its extension does not tell its format; expected are .jsonl (plan, beads), .md"
            .to_owned(),
        "hint: nothing was imported".to_owned(),
    ] {
        assert!(run.stderr.contains(&line), "{line} in {}", run.stderr);
    }
    assert!(!run.stderr.contains('\u{1b}'), "{run:?}");
    let missing = stage.file("03-02.jsonl", &SECOND.replace(",\"xd\":[\"02/summary.jsonl\"]", ""));
    let run = import(&stage, &[&missing]).expect(2);
    assert!(
        run.stderr.contains("03-02.jsonl:1:1: plan `03-02` depends on plan `03-01`"),
        "{run:?}"
    );
    let circle = stage.file(
        "circle.jsonl",
        "{\"p\":\"1\",\"n\":\"1\"}\n{\"id\":\"A\",\"a\":\"a\",\"td\":[\"B\"]}\n{\"id\":\"B\",\"a\":\"b\",\"td\":[\"A\"]}\n",
    );
    let run = import(&stage, &[&circle]).expect(2);
    assert!(
        run.stderr
            .contains("circle.jsonl:2:1: tasks form a dependency cycle: `1-1/A` after `1-1/B`"),
        "{run:?}"
    );
    assert_eq!(edges(&stage, "demo"), Vec::<String>::new());
    assert_eq!(stage.journal("demo").iter().filter(|e| e["event"] == "task_created").count(), 0);
}

#[test]
fn second_import_changes_only_what_the_file_changed() {
    let stage = stage();
    let first = stage.file("03-01.jsonl", FIRST);
    import(&stage, &[&first]).expect(0);
    let again = import(&stage, &[&first]).expect(0);
    assert_eq!(again.stdout, "0 created, 0 updated, 7 unchanged\n");
    stage.phalanx(&["task", "claim", "2"]).expect(0);
    stage.phalanx(&["task", "complete", "1"]).expect(0);
    stage.phalanx(&["task", "update", "3", "--blocked-by", "4", "--role", "writer"]).expect(0);
    let changed = FIRST
        .replace("Define td", "Define td again")
        .replace("Map plans", "Map all plans")
        .replace("\"td\":[\"T1\"]", "\"td\":[\"T2\"]")
        .replace("{\"id\":\"T7\",\"a\":\"Seven\"}", "{\"id\":\"T8\",\"a\":\"Eight\"}");
    stage.file("03-01.jsonl", &changed);
    let dry = import(&stage, &["--dry-run", &first]).expect(0);
    let run = import(&stage, &[&first]).expect(0);
    println!("{}", run.stdout);
    assert!(run.stdout.ends_with("1 created, 2 updated, 4 unchanged\n"), "{run:?}");
    assert!(dry.stdout.contains("1 created, 2 updated, 4 unchanged"), "{dry:?}");
    let task = |id: &str| stage.phalanx(&["--json", "task", "get", id]).expect(0).json();
    assert_eq!(
        (&task("1")["subject"], &task("1")["status"]),
        (&json!("Define td"), &json!("completed"))
    );
    assert_eq!(
        (&task("2")["subject"], &task("2")["owner"], &task("2")["status"]),
        (&json!("Map all plans to tasks"), &json!("team-lead"), &json!("in_progress"))
    );
    let third = task("3");
    assert_eq!(third["blockedBy"], json!(["4", "2"]), "the edge made by hand stays");
    assert_eq!(third["metadata"]["phalanx"]["role"], "writer");
    assert_eq!((&task("1")["blocks"], &task("2")["blocks"]), (&json!([]), &json!(["3"])));
    assert_eq!(task("7")["subject"], "Seven", "what vanished from the file stays");
    assert_eq!(task("8")["subject"], "Eight");
    let updated: Vec<Value> =
        stage.journal("demo").into_iter().filter(|e| e["event"] == "task_updated").collect();
    assert_eq!(updated.last().expect("an event")["detail"]["fields"], json!(["blockedBy"]));
}

#[test]
fn check_lists_and_manifests_are_imported() {
    let stage = stage();
    let list =
        "# Release\n\n- [ ] Ship it\n  - [x] Write the docs\n  - [ ] Tag the release {#tag}\n";
    let list = stage.file("TODO.md", list);
    let manifest = stage.file(
        "team.toml",
        "[[task]]\nkey = \"fmt\"\nsubject = \"Format\"\nrun = [\"true\"]\n[[task]]\nkey = \"test\"\nsubject = \"Test\"\n\
         run = [\"true\"]\nafter = [\"fmt\"]\n",
    );
    let run = import(&stage, &[&list, &manifest]).expect(0);
    assert!(run.stdout.ends_with("4 created, 0 updated, 0 unchanged, 1 done already\n"), "{run:?}");
    assert_eq!(edges(&stage, "demo"), ["TODO/ship-it <- tag", "tag <- ", "fmt <- ", "test <- fmt"]);
    let done = stage.file("TODO.md", "- [ ] Ship it\n  - [x] Tag the release {#tag}\n");
    let run = import(&stage, &[&done]).expect(0);
    assert!(run.stdout.ends_with("0 created, 0 updated, 2 unchanged\n"), "{run:?}");
    let tag = stage.phalanx(&["--json", "task", "get", "2"]).expect(0).json();
    assert_eq!(tag["status"], "pending");
    let owned =
        stage.file("owned.toml", "[[task]]\nkey = \"a\"\nsubject = \"A\"\nowner = \"nemo\"\n");
    let run = import(&stage, &[&owned]).expect(2);
    assert!(run.stderr.contains("owned.toml:2:1: ") && run.stderr.contains("nemo"), "{run:?}");
}

#[test]
fn export_is_imported_into_another_team() {
    let stage = stage();
    import(&stage, &[&stage.file("03-01.jsonl", FIRST)]).expect(0);
    let formula =
        ["task", "create", "=cmd()", "--blocked-by", "3", "--type", "bug", "--label", "x"];
    stage.phalanx(&[&formula[..], &["--", "true"]].concat()).expect(0);
    stage.phalanx(&["task", "complete", "1"]).expect(0);
    let exported = stage.phalanx(&["task", "export"]).expect(0);
    assert_eq!(exported.json().as_array().map(Vec::len), Some(7));
    assert_eq!(exported.stdout.lines().count(), 9, "one task on each line");
    let file = stage.file("demo.json", &exported.stdout);
    stage.phalanx(&["team", "create", "other"]).expect(0);
    stage.phalanx(&["task", "create", "here first", "-t", "other"]).expect(0);
    let run = stage.phalanx(&["task", "import", &file, "-t", "other"]).expect(0);
    assert!(run.stdout.ends_with("7 created, 0 updated, 0 unchanged\n"), "{run:?}");
    let without_first: Vec<String> = edges(&stage, "other").into_iter().skip(1).collect();
    assert_eq!(
        without_first,
        [
            "03-01/T2 <- ",
            "03-01/T3 <- ",
            "03-01/T4 <- ",
            "03-01/T5 <- ",
            "03-01/T6 <- ",
            "03-01/T7 <- ",
            "demo/8 <- 03-01/T3",
        ]
    );
    let again = stage.phalanx(&["task", "import", &file, "-t", "other"]).expect(0);
    assert_eq!(again.stdout, "0 created, 0 updated, 7 unchanged\n");
    let last = stage.phalanx(&["--json", "task", "get", "8", "-t", "other"]).expect(0).json();
    assert_eq!((&last["subject"], &last["blockedBy"]), (&json!("=cmd()"), &json!(["3"])));
    let extra = &last["metadata"]["phalanx"];
    assert_eq!((&extra["run"], &extra["type"]), (&json!(["true"]), &json!("bug")));
    assert_eq!(extra["labels"], json!(["x"]));
    let csv =
        stage.phalanx(&["task", "export", "--format", "csv", "--all", "-t", "demo"]).expect(0);
    assert_eq!(csv.stdout.lines().count(), 9);
    assert!(csv.stdout.contains("\n8,,pending,,,,'=cmd(),3,,20"), "{csv:?}");
    stage.phalanx(&["--json", "task", "export", "--format", "csv", "-t", "demo"]).expect(2);
}

#[test]
fn simultaneous_imports_create_each_task_once() {
    let stage = stage();
    let first = stage.file("03-01.jsonl", FIRST);
    let runs: Vec<_> =
        (0..4).map(|_| stage.start(&["task", "import", "-t", "demo", &first])).collect();
    for run in runs {
        run.end().expect(0);
    }
    assert_eq!(edges(&stage, "demo").len(), 7);
}

/// The demands of the board and the access policy hold for imported tasks as for created ones.
#[test]
fn imported_tasks_meet_the_demands_of_the_board() {
    let stage = stage();
    stage.add_native("demo", &["ann"]);
    let set = |key: &str, value: &str| {
        stage.phalanx(&["team", "set", key, value, "-t", "demo"]).expect(0);
    };
    let list = stage.file("list.md", "- [ ] one\n");
    set("board.assignee", "true");
    for options in [&["--dry-run", &list][..], &[&list]] {
        let refused = import(&stage, options).expect(4);
        assert!(refused.stderr.contains("members: ann"), "{refused:?}");
    }
    set("board.assignee", "false");
    stage.phalanx(&["task", "create", "seen by nobody", "-t", "demo"]).expect(0);
    set("board.list_before_create", "true");
    let hasty = stage.phalanx(&["--as", "ann", "task", "import", &list, "-t", "demo"]).expect(4);
    assert!(hasty.stderr.contains("phalanx task list"), "{hasty:?}");
    set("board.version", "1");
    let absent = import(&stage, &[&list]).expect(4);
    assert!(absent.stderr.contains("needs version 2"), "{absent:?}");
    assert_eq!(edges(&stage, "demo"), ["seen by nobody <- "]);
    set("board.version", "2");
    stage.phalanx(&["--as", "ann", "task", "list", "-t", "demo"]).expect(0);
    stage.phalanx(&["--as", "ann", "task", "import", &list, "-t", "demo"]).expect(0);
    assert_eq!(edges(&stage, "demo").len(), 2);
}

/// The plan of [`FIRST`] later: a new text, a dependency less, one on a new task, three new tasks.
const LATER: &str = r#"{"p":"03","n":"01","t":"Blocking"}
{"id":"T1","a":"Define td well","f":["references/artifact-formats.md"]}
{"id":"T2","a":"Map plans to tasks","f":["references/teammate-api-patterns.md"],"td":["T9"]}
{"id":"T3","a":"Add ## Task-Level Blocking section","f":["references/teammate-api-patterns.md"]}
{"id":"T4","a":"Four"}
{"id":"T5","a":"Five"}
{"id":"T6","a":"Six"}
{"id":"T7","a":"Seven"}
{"id":"T8","a":"Eight","td":["T1"]}
{"id":"T9","a":"Nine","td":["T8"]}
{"id":"T10","a":"Ten"}
"#;

/// Tasks with subject, and edges of both sides.
fn board(stage: &Stage) -> Vec<Value> {
    let board = stage.phalanx(&["--json", "task", "list", "--all", "-t", "demo"]).expect(0).json();
    let mut tasks = board.as_array().expect("tasks").clone();
    tasks.sort_by_key(|task| task["id"].as_str().and_then(|id| id.parse::<u32>().ok()));
    let row =
        |task: &Value| json!([task["id"], task["subject"], task["blockedBy"], task["blocks"]]);
    tasks.iter().map(row).collect()
}

/// TK-10: an import that is killed at any of its steps has changed all tasks or none.
#[cfg(debug_assertions)]
#[test]
fn tk_10_killed_import_has_changed_all_tasks_or_none() {
    let points = ["temp.written", "temp.synced", "batch.committed", "batch.published"];
    let (mut none, mut all) = (0, 0);
    for point in points {
        for nth in 1.. {
            let stage = stage();
            let plan = stage.file("03-01.jsonl", FIRST);
            import(&stage, &[&plan]).expect(0);
            let before = board(&stage);
            stage.file("03-01.jsonl", LATER);
            let mut command = stage.command(binary());
            command.env("PHALANX_FAILPOINT", format!("{point}:{nth}"));
            command.args(["task", "import", "-t", "demo", &plan]);
            let run = Run::from(command.output().expect("phalanx runs"));
            if run.code == 0 {
                assert!(nth > 1, "{point} is not passed");
                break;
            }
            let about = format!("{point}, pass {nth}");
            let dir = stage.root().join("tasks/demo");
            let is_committed = dir.join(".batch").exists();
            let is_left = is_committed || dir.join(".batch.new").exists();
            let doctor = stage.phalanx(&["--json", "doctor"]).json();
            let findings = doctor["findings"].as_array().expect("findings").iter();
            let named = findings.filter(|finding| finding["id"] == "unfinished_tasks").count();
            assert_eq!(named, usize::from(is_left), "{about}: {doctor}");
            let after = board(&stage);
            if is_committed {
                assert_eq!(after.len(), 10, "{about}: {after:?}");
                all += 1;
            } else {
                assert_eq!(after, before, "{about}");
                none += 1;
            }
            // Another import completes what is missing, and a third one changes nothing.
            import(&stage, &[&plan]).expect(0);
            let again = import(&stage, &[&plan]).expect(0);
            assert!(again.stdout.contains("0 created, 0 updated, 10 unchanged"), "{again:?}");
            let done = board(&stage);
            let texts: Vec<&Value> = done.iter().map(|row| &row[1]).collect();
            assert!(texts.contains(&&json!("Define td well")), "{about}: {done:?}");
            if is_committed {
                assert_eq!(done, after, "{about}");
            }
            let left = [".batch", ".batch.new", ".lock.lock"].map(|name| dir.join(name).exists());
            assert_eq!(left, [false; 3], "{about}");
        }
    }
    println!("{none} kills without a change, {all} with the whole change");
    assert!(none > 5 && all > 5, "{none}, {all}");
}
