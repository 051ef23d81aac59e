//! Tests of permission rules, in particular that no command evades a denial.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn set(deny: &str, ask: &str, allow: &str) -> RuleSet {
    let list = |text: &str| {
        if text.is_empty() { Vec::new() } else { Rule::parse_list(text).expect("rules") }
    };
    RuleSet { deny: list(deny), ask: list(ask), allow: list(allow) }
}

fn judged(set: &RuleSet, tool: &str, input: &Value) -> Judgement {
    judge(&[("the team".to_owned(), set)], &Use { tool, input, home: Some("/home/u"), cwd: "/w" })
}

fn word(judgement: &Judgement) -> &'static str {
    judgement.into()
}

fn bash(set: &RuleSet, command: &str) -> &'static str {
    word(&judged(set, "Bash", &json!({"command": command})))
}

#[test]
fn command_line_is_allowed_only_if_every_command_is() {
    let rules = set(
        "Bash(git push:*), Bash(rm:*)",
        "Bash(git commit:*)",
        "Bash(git:*), Bash(npm run test), Bash(ls)",
    );
    let table = [
        ("git status", "allow"),
        ("git", "allow"),
        ("git log --oneline | git shortlog", "allow"),
        ("npm run test", "allow"),
        ("npm  run   test", "allow"),
        ("ls && git diff; ls", "allow"),
        ("git log \"$(git rev-parse HEAD)\"", "allow"),
        ("git diff 2>&1", "allow"),
        ("gitx status", "ask"),
        ("npm run test:unit", "ask"),
        ("npm run test --watch", "ask"),
        ("git status && curl x", "ask"),
        ("git log > ~/.bashrc", "ask"),
        ("git log `curl x`", "ask"),
        ("git log \"$(curl x)\"", "ask"),
        ("git commit -m x", "ask"),
        ("git $SUB", "ask"),
        ("", "ask"),
        ("git push", "deny"),
        ("git  'push' origin", "deny"),
        ("g\\it pu\"sh\"", "deny"),
        ("git status; git push", "deny"),
        ("git status\ngit push", "deny"),
        ("git log $(git push)", "deny"),
        ("git log `git push`", "deny"),
        ("(git push)", "deny"),
        ("/usr/bin/git push", "deny"),
        ("X=1 git push", "deny"),
        ("sudo -u me git push", "deny"),
        ("bash -c 'ls; git push'", "deny"),
        ("for x in *; do rm $x; done", "deny"),
        ("echo 'unclosed; git push", "ask"),
    ];
    for (command, expected) in table {
        assert_eq!(bash(&rules, command), expected, "{command}");
    }
}

#[test]
fn id_02_tools_narrowed_to_patterns_deny_other_uses() {
    let allowed = "Read, Bash(git:*), Bash(npm run test), Edit(src/**), Write";
    let allowed = Rule::parse_list(allowed).expect("rules");
    let denied = |tool: &str, input: Value| {
        let used = Use { tool, input: &input, home: Some("/home/u"), cwd: "/w" };
        match judge_tools(&allowed, &used) {
            Some(Judgement::Deny { rule }) => rule,
            other => format!("{other:?}"),
        }
    };
    let run = |command: &str| denied("Bash", json!({ "command": command }));
    let edit = |path: &str| denied("Edit", json!({ "file_path": path }));
    for command in ["git status", "git log | git shortlog", "npm run test"] {
        assert_eq!(run(command), "None", "{command}");
    }
    let only = "only Bash(git:*), Bash(npm run test) of its tools";
    for command in ["make", "git status && make", "git log > ~/.bashrc", "sudo git push"] {
        assert_eq!(run(command), only, "{command}");
    }
    assert_eq!(edit("src/a.rs"), "None");
    assert_eq!(edit("src/../b.rs"), "only Edit(src/**) of its tools");
    for tool in ["Read", "Write", "WebFetch", "SendMessage"] {
        assert_eq!(denied(tool, json!({ "file_path": "/etc/x" })), "None", "{tool}");
    }
}

#[test]
fn bare_tool_allows_clear_commands_but_no_runners() {
    let rules = set("Bash(rm:*)", "", "Bash");
    for (command, expected) in [
        ("make all", "allow"),
        ("echo $HOME", "allow"),
        ("$X all", "ask"),
        ("bash script.sh", "ask"),
        ("eval \"$X\"", "ask"),
        ("xargs rm", "deny"),
        ("find . -exec rm {} +", "deny"),
    ] {
        assert_eq!(bash(&rules, command), expected, "{command}");
    }
    assert_eq!(word(&judged(&set("", "", "Bash"), "Bash", &json!({"command": 7}))), "ask");
    assert_eq!(word(&judged(&set("Bash", "", "Bash"), "Bash", &json!({}))), "deny");
}

#[test]
fn path_host_and_mcp_patterns_are_matched() {
    let rules = set(
        "Read(~/.ssh/**), Read(.env), mcp__shell",
        "Edit(/etc/**)",
        "Read, Edit(src/**), WebFetch(domain:docs.rs), WebFetch(domain:*.example.org), mcp__files__read",
    );
    let table = [
        ("Read", json!({"file_path": "/w/a"}), "allow"),
        ("Grep", json!({"path": "x"}), "allow"),
        ("Read", json!({"file_path": "/home/u/.ssh/id"}), "deny"),
        ("Read", json!({"file_path": "/w/../home/u/.ssh/id"}), "deny"),
        ("Read", json!({"file_path": "/x/.env"}), "deny"),
        ("Read", json!({"file_path": "../a"}), "ask"),
        ("Read", json!({"file_path": "~/.ssh/id"}), "ask"),
        ("Glob", json!({"pattern": "/**"}), "ask"),
        ("Edit", json!({"file_path": "/w/src/a/b.rs"}), "allow"),
        ("Write", json!({"file_path": "src/b.rs"}), "allow"),
        ("Edit", json!({"file_path": "/w/srcs/b.rs"}), "ask"),
        ("Edit", json!({"file_path": "/w/src/../../etc/passwd"}), "ask"),
        ("Edit", json!({}), "ask"),
        ("WebFetch", json!({"url": "https://docs.rs/serde"}), "allow"),
        ("WebFetch", json!({"url": "https://DOCS.rs:443?x"}), "allow"),
        ("WebFetch", json!({"url": "https://a.example.org/"}), "allow"),
        ("WebFetch", json!({"url": "https://docs.rs.evil.com/"}), "ask"),
        ("WebFetch", json!({"url": "https://docs.rs@evil.com/"}), "ask"),
        ("WebFetch", json!({"url": "https://evil.com\\@docs.rs/"}), "ask"),
        ("WebFetch", json!({"url": "ftp://docs.rs/"}), "ask"),
        ("mcp__files__read", json!({}), "allow"),
        ("mcp__files__write", json!({}), "ask"),
        ("mcp__shell__run", json!({}), "deny"),
        ("mcp__shells__run", json!({}), "ask"),
        ("Task", json!({}), "ask"),
    ];
    for (tool, input, expected) in table {
        assert_eq!(word(&judged(&rules, tool, &input)), expected, "{tool} {input}");
    }
}

/// `*` in the name of a directory is an ordinary character: a rule must not cover its neighbours.
#[test]
fn working_and_home_directory_are_taken_literally() {
    let rules = set("", "", "Edit(src/**), Edit(*.md), Read(~/notes/*)");
    let table = [
        ("Edit", "/w/*/src/a.rs", "allow"),
        ("Edit", "/w/other/src/a.rs", "ask"),
        ("Edit", "/w/*/a/b.md", "allow"),
        ("Edit", "/w/other/b.md", "ask"),
        ("Read", "/home/*/notes/a", "allow"),
        ("Read", "/home/ann/notes/a", "ask"),
    ];
    for (tool, path, expected) in table {
        let input = json!({ "file_path": path });
        let used = Use { tool, input: &input, home: Some("/home/*"), cwd: "/w/*" };
        let judgement = judge(&[("the team".to_owned(), &rules)], &used);
        assert_eq!(word(&judgement), expected, "{tool} {path}");
    }
}

#[test]
fn team_role_and_member_rules_combine_and_are_named() {
    let mut rules = TeamRules { team: set("", "", "Bash(git:*)"), ..TeamRules::default() };
    rules.roles.insert("tester".to_owned(), set("", "", "Bash(cargo test:*)"));
    rules.members.insert("ada".to_owned(), set("Bash(git push:*)", "", ""));
    let ada = MemberName::new("Ada").expect("name");
    let sets = rules.sets_for(&ada, Some("Tester"));
    let of = |command: &str| {
        let input = json!({"command": command});
        judge(&sets, &Use { tool: "Bash", input: &input, home: None, cwd: "/w" })
    };
    assert_eq!(
        of("git push"),
        Judgement::Deny { rule: "deny Bash(git push:*) of member ada".to_owned() }
    );
    let both = "allow Bash(git:*) of the team, Bash(cargo test:*) of role tester".to_owned();
    assert_eq!(
        of("git diff && cargo test x"),
        Judgement::Allow { rule: both, updates: Vec::new() }
    );
    let bob = MemberName::new("bob").expect("name");
    let input = json!({"command": "git push"});
    let said = judge(
        &rules.sets_for(&bob, None),
        &Use { tool: "Bash", input: &input, home: None, cwd: "/w" },
    );
    let updates =
        vec![json!({"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "git:*"}],
        "behavior": "allow", "destination": "session"})];
    assert_eq!(
        said,
        Judgement::Allow { rule: "allow Bash(git:*) of the team".to_owned(), updates }
    );
}

#[test]
fn invalid_patterns_are_refused() {
    for bad in [
        "",
        "(x)",
        "Bash(git",
        "Ba sh",
        "Bash(a && b)",
        "Bash('x')",
        "WebFetch(x)",
        "*",
        "Edit,",
        "mcp__*__x",
    ] {
        assert!(Rule::parse_list(bad).is_err(), "{bad}");
    }
    for good in
        ["Bash(git:*)", "Read(~/**)", "Edit", "mcp__a__b", "mcp__a__*", "WebFetch(domain:x)"]
    {
        let rule = Rule::parse(good).expect(good);
        assert_eq!(String::from(rule), good);
    }
    assert_eq!(Rule::parse_list("Bash(a, b), Edit").expect("two").len(), 2);
}

/// Fragments of shell commands.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "git", "push", "status", "rm", "-rf", "ls", " ", " ", " ", ";", "&&", "|", "\n", "&", "$(",
        ")", "(", "`", "'", "\"", "\\", "$X", "${X}", "${", "}", "{", ">", "<", "2>&1", "#", "*",
        "~", "bash -c", "sudo", "eval", "X=1", "\t", "\r", "é", "!", "=", "do", "/bin/",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// A denied command that stands unquoted on its own line is never allowed, whatever surrounds
    /// it.
    #[test]
    fn denial_is_never_overridden(before in pieces(), after in pieces(), allow in "[a-z]{1,8}") {
        let before = before.replace(['\'', '"', '\\'], " ");
        let rules = set("Bash(rm:*)", "", &format!("Bash, Bash({allow}:*), Bash(bash:*), Bash(sudo:*), Bash(git:*)"));
        prop_assert_ne!(bash(&rules, &format!("{before}\nrm -rf x\n{after}")), "allow");
    }

    /// Everything in an allowed line is on the allow list.
    #[test]
    fn only_listed_commands_are_allowed(command in pieces()) {
        let rules = set("", "", "Bash(git:*), Bash(ls:*)");
        if bash(&rules, &command) == "allow" {
            let line = shell::split(&command);
            prop_assert!(line.clear && !line.parts.is_empty());
            for part in line.parts {
                prop_assert!(matches!(part.words[0].text.as_str(), "git" | "ls"), "{command:?}");
            }
        }
    }

    /// Adding deny rules never allows more.
    #[test]
    fn adding_denials_never_allows_more(command in pieces(), deny in prop::sample::select(vec!["Bash(git:*)", "Bash(ls)", "Bash"])) {
        let without = set("Bash(rm:*)", "", "Bash(git:*), Bash(ls:*), Bash");
        let with = set(&format!("Bash(rm:*), {deny}"), "", "Bash(git:*), Bash(ls:*), Bash");
        if bash(&with, &command) == "allow" {
            prop_assert_eq!(bash(&without, &command), "allow");
        }
    }

    #[test]
    fn hostile_input_never_panics(tool in "\\PC{0,20}", text in "\\PC{0,200}") {
        let rules = set("Bash(rm:*), Read(~/**)", "Edit(/etc/**)", "Bash(git:*), Read(*.rs), WebFetch(domain:*.x.org)");
        for tool in [tool.as_str(), "Bash", "Read", "Write", "Glob", "WebFetch"] {
            for key in ["command", "file_path", "url"] {
                let judgement = judged(&rules, tool, &json!({ key: text }));
                prop_assert!(["allow", "deny", "ask"].contains(&word(&judgement)));
            }
        }
        let _ = Rule::parse_list(&text);
    }
}
