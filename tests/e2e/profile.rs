//! Profiles on the command line: dry runs, launched command lines, and refusals.

use serde_json::json;

use crate::harness::{Stage, wait_for};

/// ID-01, ID-02, PM-06, EN-04: the native command line has each flag of docs/dev/protocol.md once,
/// and no flag that was not asked for.
#[test]
fn id_01_id_02_native_command_line_has_each_flag_once() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let dry = |more: &[&str]| {
        let line = [
            "--json",
            "spawn",
            "ada",
            "--profile",
            "claude",
            "--dry-run",
            "--env",
            "SECRET=s3cret",
        ];
        stage.phalanx(&[&line, more].concat()).expect(0)
    };
    let plain = dry(&[]).json();
    let words: Vec<&str> =
        plain["argv"].as_array().expect("argv").iter().filter_map(|w| w.as_str()).collect();
    let team =
        std::fs::read_to_string(stage.root().join("teams/alpha/config.json")).expect("config");
    let team: serde_json::Value = serde_json::from_str(&team).expect("json");
    let session = team["leadSessionId"].as_str().expect("a session");
    let flags = [
        "--agent-id",
        "ada@alpha",
        "--agent-name",
        "ada",
        "--team-name",
        "alpha",
        "--agent-color",
        "blue",
    ];
    assert_eq!(words[..11], [&["claude"][..], &flags, &["--parent-session-id", session]].concat());
    // phalanx chooses the session id, so that it can resume the session (CR-05).
    assert_eq!((words[11], words[12].len()), ("--session-id", 36));
    // Later releases start in auto mode if they are not told otherwise (PM-10).
    assert_eq!(words[13..16], ["--permission-mode", "default", "--append-system-prompt"]);
    assert!(words[16].contains("phalanx task complete ID --result") && words.len() == 17);
    assert_eq!(
        (&plain["model"], &plain["mode"], &plain["prompt"]),
        (&json!(null), &json!(null), &json!(null))
    );

    let asked =
        ["--model", "opus", "--mode", "plan", "--role", "reviewer", "--plan", "--prompt", "go"];
    let full = dry(&asked);
    assert!(!full.stdout.contains("s3cret"), "values are never shown: {full:?}");
    let full = full.json();
    let words: Vec<&str> =
        full["argv"].as_array().expect("argv").iter().filter_map(|w| w.as_str()).collect();
    let rest = ["--plan-mode-required", "--agent-type", "reviewer", "--model", "opus"];
    assert_eq!((words[13..18].to_vec(), words[18]), (rest.to_vec(), "--append-system-prompt"));
    assert_eq!(words.len(), 20);
    assert_eq!(
        (&full["model"], &full["mode"], &full["role"]),
        (&json!("opus"), &json!(null), &json!("reviewer"))
    );
    assert_eq!(full["prompt"], json!("mailbox"));
    let names: Vec<&str> =
        full["env"].as_array().expect("env").iter().filter_map(|w| w.as_str()).collect();
    for name in [
        "CLAUDECODE",
        "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS",
        "CLAUDE_CONFIG_DIR",
        "SECRET",
        "PHALANX_TOKEN",
    ] {
        assert_eq!(names.iter().filter(|n| **n == name).count(), 1, "{name} in {names:?}");
    }
    let bypass = dry(&["--mode", "bypassPermissions"]).json();
    let words = bypass["argv"].as_array().expect("argv");
    assert_eq!(words[words.len() - 3], json!("--dangerously-skip-permissions"), "{words:?}");
    let shown =
        stage.phalanx(&["spawn", "ada", "--profile", "claude", "--dry-run"]).expect(0).stdout;
    assert!(shown.contains("command  claude --agent-id ada@alpha"), "{shown}");
    assert!(!stage.root().join("teams/alpha/inboxes/ada.json").exists(), "nothing was written");
    assert!(stage.panes().is_empty(), "nothing was started");
}

/// EN-02, ID-01: the arguments, variables and prompt as the program sees them; the prompt is in its
/// mailbox before it starts.
#[test]
fn en_02_native_claude_gets_its_arguments_and_variables() {
    let mut stage = Stage::new();
    let out = stage.at("seen");
    let script = format!(
        "#!/bin/sh\nif test -s \"$CLAUDE_CONFIG_DIR/teams/alpha/inboxes/ada.json\"; then mail=there; fi\n\
         printf '%s\\n' \"$CLAUDECODE $CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS $CLAUDE_CONFIG_DIR $mail\" \"$@\" > {0}.new\n\
         mv {0}.new {0}\nexec sleep 300\n",
        out.display()
    );
    stage.shadow("claude", &script);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let line = [
        "--json",
        "spawn",
        "ada",
        "--profile",
        "claude",
        "--model",
        "opus",
        "--prompt",
        "do; \"it\"",
    ];
    stage.phalanx(&line).expect(0);
    let seen = wait_for("the program's words", || std::fs::read_to_string(&out).ok());
    let mut lines = seen.lines();
    assert_eq!(lines.next(), Some(format!("1 1 {} there", stage.root().display()).as_str()));
    assert_eq!(lines.clone().filter(|word| *word == "--model").count(), 1, "{seen}");
    assert!(
        seen.contains("--agent-id\nada@alpha\n")
            && seen.contains("--model\nopus\n--append-system-prompt\n")
            && seen.ends_with("</system_context>\n"),
        "{seen}"
    );
    stage.phalanx(&["send", "ada", "hello"]).expect(0);
    stage.phalanx(&["shutdown", "ada", "--force"]).expect(0);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// TK-17: Claude Code offers the tools for tasks only where a variable asks for them, so a member
/// has it. A value that a person has set takes precedence, wherever it is set.
#[test]
fn tk_17_native_claude_has_the_tools_for_tasks_unless_a_person_says_no() {
    const NAME: &str = "CLAUDE_CODE_ENABLE_TODO_TOOLS";
    let mut stage = Stage::without_tmux();
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"${NAME}\" > \"$OUT\"\nexec sleep 300\n");
    stage.shadow("claude", &script);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let file = stage.file("vars", &format!("{NAME}=from-file\n"));
    let value = format!("{NAME}=0");
    let cases = [
        ("a", vec![], None, "1"),
        ("b", vec!["--env", &value], None, "0"),
        ("c", vec!["--env-file", &file], None, "from-file"),
        ("d", vec![], Some("mine"), "mine"),
    ];
    for (name, more, own, expected) in cases {
        let out = stage.at(name);
        let out = out.to_str().expect("a path in UTF-8");
        let mut command = stage.command(crate::harness::binary());
        command.env_remove(NAME).envs(own.map(|own| (NAME, own)));
        command.args(["spawn", name, "--profile", "claude", "--backend", "pty"]);
        command.args(["--env", &format!("OUT={out}")]).args(more);
        crate::harness::Run::from(command.output().expect("phalanx runs")).expect(0);
        let seen = wait_for("the variable", || {
            std::fs::read_to_string(out).ok().filter(|text| text.ends_with('\n'))
        });
        assert_eq!(seen.trim_end(), expected, "{name}");
    }
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// EN-02: in the default config root, Claude Code reads other files when CLAUDE_CONFIG_DIR is set,
/// even to that root. A member therefore gets the variable exactly when its caller had it.
#[test]
fn en_02_member_in_the_default_root_gets_the_callers_variable() {
    let stage = Stage::new();
    let root = stage.at("home").join(".claude");
    let root = root.to_str().expect("a path in UTF-8");
    let names = |vars: &[(&str, &str)], args: &[&str]| {
        let mut command = stage.command(crate::harness::binary());
        command.env_remove("PHALANX_CONFIG_DIR").envs(vars.iter().copied()).args(args);
        command.args(["--json", "spawn", "ada", "--profile", "claude", "--dry-run"]);
        let run = crate::harness::Run::from(command.output().expect("phalanx runs")).expect(0);
        run.json()["env"].as_array().expect("env").clone()
    };
    let is_set = |vars: &[(&str, &str)], args: &[&str]| {
        let names = names(vars, args);
        assert!(names.contains(&json!("CLAUDECODE")), "{names:?}");
        names.contains(&json!("CLAUDE_CONFIG_DIR"))
    };
    let mut command = stage.command(crate::harness::binary());
    command.args(["--config-dir", root, "team", "create", "alpha"]);
    crate::harness::Run::from(command.output().expect("phalanx runs")).expect(0);
    assert!(!is_set(&[], &[]), "the caller does not have it");
    assert!(is_set(&[("CLAUDE_CONFIG_DIR", root)], &[]));
    assert!(is_set(&[("CLAUDE_CONFIG_DIR", root)], &["--config-dir", root]));
    assert!(
        !is_set(&[("CLAUDE_CONFIG_DIR", "/elsewhere")], &["--config-dir", root]),
        "the flag chose the root"
    );
    assert!(!is_set(&[("CLAUDE_CONFIG_DIR", "/elsewhere"), ("PHALANX_CONFIG_DIR", root)], &[]));
}

/// ID-01, PM-06: an option that the profile cannot pass on is refused, not dropped.
#[test]
fn pm_06_option_that_a_profile_cannot_pass_on_is_refused() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let codex = ["spawn", "ada", "--profile", "codex"];
    let run = stage.phalanx(&[&codex[..], &["--dry-run", "--mode", "delegate"]].concat()).expect(2);
    assert!(
        run.stderr.contains("no permission mode `delegate`") && run.stderr.contains("dontAsk"),
        "{run:?}"
    );
    let plan = stage
        .phalanx(&[&codex[..], &["--dry-run", "--prompt=-x; y", "--json"]].concat())
        .expect(0)
        .json();
    let notify = format!("notify=[\"{}\",\"hook\"]", crate::harness::binary());
    let argv = plan["argv"].as_array().expect("argv");
    assert_eq!(argv[..3], [json!("codex"), json!("-c"), json!(notify)]);
    let server = format!("mcp_servers.phalanx.command=\"{}\"", crate::harness::binary());
    assert!(argv.contains(&json!(server)), "{argv:?}");
    let end = argv.iter().position(|word| word == "--").expect("the end of the options");
    let first = argv[end + 1].as_str().filter(|_| argv.len() == end + 2).expect("one word more");
    assert!(first.starts_with("<system_context>\nYou are `ada`"), "{first}");
    assert!(first.ends_with("\n</system_context>\n\n-x; y"), "{first}");
    assert_eq!(plan["brief"], json!("first-message"));
    assert_eq!((&plan["runs"], &plan["prompt"]), (&json!("wrapped"), &json!("argv")));
    let run = stage.phalanx(&["spawn", "ada", "--profile", "codx", "--dry-run"]).expect(2);
    assert!(run.stderr.contains("did you mean `codex`?"), "{run:?}");
    stage.phalanx(&["down"]).expect(0);
}

#[test]
fn profiles_are_listed_shown_and_tested() {
    let stage = Stage::new();
    let listed = stage.phalanx(&["--json", "profile", "list"]).expect(0).json();
    let names: Vec<&str> =
        listed.as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            "acp",
            "aider",
            "amp",
            "claude",
            "claude-acp",
            "codex",
            "codex-acp",
            "copilot",
            "copilot-acp",
            "gemini",
            "gemini-acp",
            "opencode",
            "opencode-acp",
            "qwen",
            "qwen-acp",
            "shell",
            "worker"
        ]
    );
    let sheet = stage.phalanx(&["profile", "show", "codex"]).expect(0).stdout;
    stage.profile("mine", &sheet);
    let (ours, theirs) =
        (["--json", "profile", "show", "mine"], ["--json", "profile", "show", "codex"]);
    let mut mine = stage.phalanx(&ours).expect(0).json();
    mine["name"] = json!("codex");
    assert_eq!(mine, stage.phalanx(&theirs).expect(0).json(), "what is shown can be read again");
    stage.profile("mine", &format!("{sheet}\nspeed = 1\n"));
    let run = stage.phalanx(&["profile", "show", "mine"]).expect(2);
    assert!(
        run.stderr.contains("mine.toml:") && run.stderr.contains("unknown key `speed`"),
        "{run:?}"
    );
    let screen = stage.file("a.ansi", "\x1b[2JSign in with ChatGPT\r\nPress enter to continue");
    let found = stage
        .phalanx(&["--json", "profile", "test", "codex", "--screen", &screen])
        .expect(0)
        .json();
    assert_eq!((&found["state"], &found["rule"]), (&json!("needs_login"), &json!("login")));
    let odd = stage.file("odd.ansi", "2. Yes, I accept");
    let near = stage.phalanx(&["profile", "test", "claude", "--screen", &odd]).expect(0).stdout;
    assert!(near.contains("unknown: no rule matches\nnearest rule bypass: "), "{near}");
    assert!(near.contains("(1 of 2 conditions hold)"), "{near}");
    let watched =
        stage.phalanx(&["profile", "test", "shell", "--for", "5", "--", "echo", "x"]).expect(0);
    assert!(
        watched.stdout.contains("unknown") && watched.stderr.contains("ended by itself"),
        "{watched:?}"
    );
    stage.assert_clean();
}

/// Every face says what is missing of an agent, and what to type; none does where nothing is.
#[test]
fn agents_that_cannot_work_are_named_with_what_to_type() {
    const INSTALL: &str = "npm install -g @openai/codex";
    let mut stage = Stage::without_tmux();
    let manifest = "[team]\nname = \"up\"\nbackend = \"pty\"\n[[member]]\nname = \"ann\"\n\
        profile = \"codex\"\n[[task]]\nkey = \"a\"\nsubject = \"A\"\n";
    let manifest = stage.file("team.toml", manifest);
    stage.phalanx(&["team", "create", "hand"]).expect(0);
    let faces = |stage: &Stage| {
        let spawn = ["spawn", "ann", "-t", "hand", "--profile", "codex", "--backend", "pty"];
        let said: Vec<String> = [&spawn[..], &["up", &manifest]]
            .map(|args| stage.phalanx(args).stderr)
            .map(|said| said.lines().filter(|l| l.starts_with("warning: ")).collect())
            .into();
        let list = stage.phalanx(&["profile", "list"]).expect(0).stdout;
        let line = list.lines().find(|line| line.starts_with("codex ")).expect("a line").to_owned();
        let doctor = stage.phalanx(&["doctor"]).stdout;
        let found = doctor.lines().find(|line| line.starts_with("  codex ")).map(str::to_owned);
        (said, line, found)
    };
    let (said, line, found) = faces(&stage);
    let missing = format!("warning: `codex` is not on PATH; install it: `{INSTALL}`");
    assert_eq!((said, found), (vec![missing.clone(), missing], None));
    assert!(line.contains(&format!("no: {INSTALL}")), "{line}");

    stage.shadow(
        "codex",
        "#!/bin/sh\n[ \"$1\" != --version ] || { echo codex-cli 9.8.7; exit; }\nexit 3\n",
    );
    let (said, line, found) = faces(&stage);
    let login =
        "warning: no login of codex was found; to log in: run `codex login`, or set OPENAI_API_KEY";
    assert_eq!(said, [login, login]);
    for line in [line, found.expect("an agent")] {
        assert!(line.contains("9.8.7") && line.contains("no login found"), "{line}");
    }

    stage.set_env("OPENAI_API_KEY", "made-up");
    let (said, line, found) = faces(&stage);
    assert_eq!(said, ["", ""]);
    for line in [line, found.expect("an agent")] {
        assert!(line.contains("9.8.7") && line.contains("logged in"), "{line}");
    }
    stage.phalanx(&["down", "-t", "hand", "--force"]).expect(0);
    stage.assert_clean();
}
