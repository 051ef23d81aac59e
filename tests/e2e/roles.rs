//! Roles from the agent files of Claude Code and from the manifest, and how they reach the program.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Run, Stage, wait_for};
use crate::mcp::Client;

const REVIEWER: &str = "---\nname: reviewer\ndescription: reads\ntools: Read, Grep\ndisallowedTools: Edit, Bash(git push:*)\n\
    model: sonnet\ncolor: pink\npermissionMode: plan\nskills: x\n---\nMARKER-7: you only read.\n";

fn agent(dir: &Path, file: &str, text: &str) {
    let dir = dir.join("agents");
    fs::create_dir_all(&dir).expect("dir");
    fs::write(dir.join(file), text).expect("agent file");
}

/// A stage whose `claude` writes its arguments to a file.
fn with_claude() -> Stage {
    let mut stage = Stage::new();
    let out = stage.at("seen");
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > {0}.new\nmv {0}.new {0}\nexec sleep 300\n",
        out.display()
    );
    stage.shadow("claude", &script);
    stage
}

/// Waits for the arguments of `claude`.
fn args_of_claude(stage: &Stage) -> Vec<String> {
    let seen = wait_for("the program's words", || fs::read_to_string(stage.at("seen")).ok());
    seen.lines().map(str::to_owned).collect()
}

fn argv_words(plan: &Value) -> Vec<String> {
    let argv = plan["argv"].as_array().expect("argv").iter();
    argv.filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

/// Returns the argument after a flag that must occur exactly once.
fn after(words: &[String], flag: &str) -> String {
    let places: Vec<usize> = (0..words.len()).filter(|at| words[*at] == flag).collect();
    assert_eq!(places.len(), 1, "{flag} in {words:?}");
    words[places[0] + 1].clone()
}

/// ID-02: the content of an agent file reaches the program, each part once: the name, by which the
/// program finds the prompt; model, mode and tools by their flags; and the tools that a team needs.
/// Keys that are not applied are reported.
#[test]
fn id_02_agent_file_reaches_the_program() {
    let stage = with_claude();
    agent(&stage.at("work/.claude"), "a.md", REVIEWER);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let made = stage
        .phalanx(&["--json", "spawn", "ada", "--profile", "claude", "--role", "reviewer"])
        .expect(0);
    assert!(made.stderr.contains("a.md: `skills` is not applied"), "{made:?}");
    let made = made.json();
    assert_eq!(
        (&made["color"], &made["model"], &made["agent_type"]),
        (&json!("pink"), &json!("sonnet"), &json!("reviewer"))
    );
    let seen = args_of_claude(&stage);
    assert_eq!(after(&seen, "--agent-type"), "reviewer");
    assert_eq!(
        after(&seen, "--tools"),
        "Read,Grep,SendMessage,TaskCreate,TaskGet,TaskList,TaskUpdate,ExitPlanMode"
    );
    assert_eq!(after(&seen, "--disallowedTools"), "Edit,Bash(git push:*)");
    assert_eq!(after(&seen, "--model"), "sonnet");
    assert!(seen.contains(&"--plan-mode-required".to_owned()), "{seen:?}");
    assert!(
        !seen.iter().any(|word| word.contains("MARKER-7")),
        "claude reads the file itself: {seen:?}"
    );
    assert!(
        !stage.phalanx(&["brief", "ada"]).expect(0).stdout.contains("MARKER-7"),
        "not a second time"
    );
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_eq!(status["members"][0]["role"], json!("reviewer"));
    // Options of `spawn` override the agent file.
    let asked = [
        "--json",
        "spawn",
        "bob",
        "--dry-run",
        "--profile",
        "claude",
        "--role",
        "reviewer",
        "--model",
        "opus",
        "--mode",
        "default",
    ];
    let argv = argv_words(&stage.phalanx(&asked).expect(0).json());
    assert_eq!(
        (after(&argv, "--model"), after(&argv, "--permission-mode")),
        ("opus".to_owned(), "default".to_owned())
    );
    stage.phalanx(&["shutdown", "ada", "--force"]).expect(0);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// ID-02: a role of the manifest is passed once, as a definition. A program without roles gets it
/// in its briefing, and limits that it cannot enforce are reported.
#[test]
fn id_02_manifest_role_reaches_the_program() {
    let stage = with_claude();
    let manifest = stage.file(
        "team.toml",
        "[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"pty\"\n[role.scout]\nprompt = \"MARKER-8: look\"\n\
         model = \"haiku\"\nallowed_tools = [\"Read\", \"Bash(ls:*)\"]\ncolor = \"red\"\n[role.reader]\nprompt = \"MARKER-9: read\"\n\
         disallowed_tools = [\"Edit\"]\n[[member]]\nname = \"ada\"\nprofile = \"claude\"\nrole = \"scout\"\n[[member]]\nname = \"bob\"\nrole = \"reader\"\n",
    );
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    let seen = args_of_claude(&stage);
    let agents: Value = serde_json::from_str(&after(&seen, "--agents")).expect("json");
    assert_eq!(agents, json!({"scout": {"description": "scout", "prompt": "MARKER-8: look"}}));
    assert_eq!(
        (after(&seen, "--agent-type"), after(&seen, "--model")),
        ("scout".to_owned(), "haiku".to_owned())
    );
    assert!(after(&seen, "--tools").starts_with("Read,Bash,SendMessage,"), "{seen:?}");
    assert_eq!(seen.iter().filter(|word| word.contains("MARKER-8")).count(), 1, "{seen:?}");
    let brief = stage.phalanx(&["brief", "bob"]).expect(0).stdout;
    assert!(brief.contains("\n\nYour role\nMARKER-9: read\n</system_context>"), "{brief}");
    assert!(!stage.phalanx(&["brief", "ada"]).expect(0).stdout.contains("MARKER-8"));
    let events = stage.phalanx(&["events"]).expect(0).stdout;
    assert!(events.contains("`claude` is held to Bash(ls:*) only where it asks"), "{events}");
    assert!(events.contains("`worker` cannot be kept from these tools: Edit"), "{events}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// ID-02: an unknown role is an error that names the nearest one, and so is an unreadable agent
/// file.
#[test]
fn id_02_unknown_role_is_refused() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    agent(&stage.root(), "r.md", &REVIEWER.replace("reviewer", "librarian"));
    let refused =
        |role: &str| -> Run { stage.phalanx(&["spawn", "ada", "--role", role]).expect(2) };
    let typo = refused("libarian").stderr;
    assert!(
        typo.contains("role `libarian` does not exist")
            && typo.contains("did you mean `librarian`?"),
        "{typo}"
    );
    assert!(refused("testr").stderr.contains("did you mean `tester`?"));
    agent(
        &stage.root(),
        "broken.md",
        "---\nname: broken\ndescription: d\ndisallowedTools: Bash(\n---\n",
    );
    let broken = refused("broken").stderr;
    assert!(broken.contains("broken.md: line 4: `disallowedTools`: "), "{broken}");
    agent(&stage.root(), "huge.md", &"x".repeat(300 * 1024));
    assert!(refused("huge").stderr.contains("larger than 262144 bytes"));
    let manifest = stage.file(
        "t.toml",
        "[team]\nname = \"beta\"\n[[member]]\nname = \"ada\"\nrole = \"cartografer\"\n[role.cartographer]\n",
    );
    let up = stage.phalanx(&["up", &manifest]).expect(2).stderr;
    assert!(up.contains("did you mean `cartographer`?"), "{up}");
    // An exact role name from an agent file works.
    stage.phalanx(&["spawn", "ada", "--role", "librarian"]).expect(0);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// Agent files are looked up in the directory of the member and its parents within the repository,
/// nearest first, then in those of the user. Symlinks out of the repository are not followed.
#[test]
fn id_02_nearest_agent_file_wins() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let with = |model: &str| format!("---\nname: scout\ndescription: d\nmodel: {model}\n---\n");
    let model = || {
        let asked = [
            "--json",
            "spawn",
            "ada",
            "--dry-run",
            "--profile",
            "claude",
            "--role",
            "scout",
            "--cwd",
            "repo/sub",
        ];
        stage.phalanx(&asked).expect(0).json()["model"].clone()
    };
    fs::create_dir_all(stage.at("work/repo/.git")).expect("repository");
    fs::create_dir_all(stage.at("work/repo/sub")).expect("dir");
    agent(&stage.at("work/.claude"), "s.md", &with("outside"));
    agent(&stage.root(), "s.md", &with("user"));
    assert_eq!(model(), json!("user"));
    let secret = stage.file("secret", &with("secret"));
    fs::create_dir_all(stage.at("work/repo/.claude/agents")).expect("dir");
    std::os::unix::fs::symlink(&secret, stage.at("work/repo/.claude/agents/t.md")).expect("link");
    assert_eq!(model(), json!("user"), "a link out of the repository is not followed");
    // Files in folders below are found too, but a link to a folder, even to its own, is not followed.
    let below = stage.at("work/repo/.claude/agents/team/review");
    fs::create_dir_all(&below).expect("dir");
    fs::write(below.join("s.md"), with("below")).expect("agent file");
    std::os::unix::fs::symlink("../..", below.join("loop")).expect("link");
    assert_eq!(model(), json!("below"));
    agent(&stage.at("work/repo/.claude"), "s.md", &with("top"));
    assert_eq!(model(), json!("top"));
    agent(&stage.at("work/repo/sub/.claude"), "s.md", &with("near"));
    assert_eq!(model(), json!("near"));
}

/// ID-02: the tool list of a member overrides that of its role, which overrides that of the team.
/// Denials add up, and all of it survives a resume.
#[test]
fn id_02_tool_lists_override_and_denials_add_up() {
    let stage = with_claude();
    let manifest = stage.file(
        "team.toml",
        "[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"pty\"\n[defaults]\ndisallowed_tools = [\"WebSearch\"]\n\
         [role.scout]\nallowed_tools = [\"Read\"]\ndisallowed_tools = [\"Bash\"]\n[[member]]\nname = \"ada\"\nprofile = \"claude\"\n\
         role = \"scout\"\nallowed_tools = [\"Grep\", \"Bash\"]\n",
    );
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    let first = args_of_claude(&stage);
    assert!(after(&first, "--tools").starts_with("Grep,SendMessage,"), "{first:?}");
    assert_eq!(after(&first, "--disallowedTools"), "Bash,WebSearch");
    // A member that joins later inherits from the team.
    let plan = stage
        .phalanx(&["--json", "spawn", "bob", "--profile", "codex", "--dry-run"])
        .expect(0)
        .json();
    assert_eq!(plan["warnings"], json!(["`codex` cannot be kept from these tools: WebSearch"]));
    stage.phalanx(&["shutdown", "ada", "--force"]).expect(0);
    fs::remove_file(stage.at("seen")).expect("seen");
    stage.phalanx(&["resume", "ada"]).expect(0);
    let again = args_of_claude(&stage);
    for flag in ["--tools", "--disallowedTools"] {
        assert_eq!(after(&again, flag), after(&first, flag));
    }
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// PM-10: a mode means the same, whichever way it is given: none is the mode that asks, whatever
/// the program's default is; `plan` is a plan to be approved; `manual` is `default` by its later
/// name. The mode of leads is refused.
#[test]
fn pm_10_mode_means_the_same_whichever_way_it_is_given() {
    const PLAN: &[&str] = &["--plan-mode-required"];
    const ASKS: &[&str] = &["--permission-mode", "default"];
    let cases: [(&str, Option<&[&str]>); 7] = [
        ("", Some(ASKS)),
        ("default", Some(ASKS)),
        ("manual", Some(ASKS)),
        ("acceptEdits", Some(&["--permission-mode", "acceptEdits"])),
        ("auto", Some(&["--permission-mode", "auto"])),
        ("plan", Some(PLAN)),
        ("delegate", None),
    ];
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let mut lead = Client::start(&stage, &["mcp"]);
    for (mode, expected) in cases {
        let option = (!mode.is_empty()).then(|| format!("--mode={mode}"));
        let mut call = json!({"name": "ada", "profile": "claude", "dry_run": true});
        if !mode.is_empty() {
            call["mode"] = json!(mode);
        }
        let front =
            if mode.is_empty() { String::new() } else { format!("permissionMode: {mode}\n") };
        let file = format!("---\nname: scout\ndescription: d\n{front}---\n");
        agent(&stage.at("work/.claude"), "scout.md", &file);
        let base = ["--json", "spawn", "ada", "--profile", "claude", "--dry-run"];
        let by_option =
            [&base[..], &option.iter().map(String::as_str).collect::<Vec<_>>()].concat();
        let by_role = [&base[..], &["--role", "scout"]].concat();
        let ways = [("option", stage.phalanx(&by_option)), ("role", stage.phalanx(&by_role))];
        for (way, run) in ways {
            let Some(expected) = expected else {
                // A role file is written for another program, so it only warns.
                let code = if way == "role" { 0 } else { 2 };
                let run = run.expect(code);
                assert!(format!("{run:?}").contains("`delegate`"), "{way}: {run:?}");
                continue;
            };
            assert_modes(&run.expect(0).stdout, expected, &format!("{mode:?} by {way}"));
        }
        match expected {
            Some(expected) => {
                let plan = lead.call("SpawnTeammate", call).to_string();
                assert_modes(&plan, expected, &format!("{mode:?} by MCP"));
            }
            None => {
                let refused = lead.refused("SpawnTeammate", call);
                assert!(refused.to_string().contains("delegate"), "{refused}");
            }
        }
    }
    assert_eq!(lead.end(), Some(0));
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// Checks the words of `argv`, as printed, that decide what the program asks about.
fn assert_modes(printed: &str, expected: &[&str], case: &str) {
    let words: Vec<&str> = printed.split('"').collect();
    let at = |flag: &str| words.iter().position(|word| *word == flag);
    let mut found = Vec::new();
    if let Some(at) = at("--permission-mode") {
        found.extend([words[at], words[at + 2]]);
    }
    found.extend(at("--plan-mode-required").map(|at| words[at]));
    assert_eq!(found, expected, "{case}: {printed}");
}
