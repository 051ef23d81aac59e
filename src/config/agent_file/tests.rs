//! Tests of agent files, both realistic and malicious.

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> AgentFile {
    AgentFile::parse(text).unwrap_or_else(|said| panic!("{said}\n{text}"))
}

fn names(rules: &[Rule]) -> Vec<String> {
    rules.iter().cloned().map(String::from).collect()
}

#[test]
fn id_02_agent_file_fields_are_read_and_unknown_ones_listed() {
    let file = read(
        "\u{feff}---\r\nname: reviewer\r\ndescription: Use this: it reads, and 'judges' # often\r\n\
         tools: Read, Grep, Bash(git log:*)\ndisallowedTools:\n  - Edit\n  - \"Write\"\n# why\n\nmodel: sonnet\n\
         color: purple\npermissionMode: plan\nskills: [a, b]\nhooks:\n  Stop:\n    - x: y\n---\n\n\
         You review.\n\n--- not a line of the head\n",
    );
    assert_eq!(file.name, "reviewer");
    let role = &file.role;
    assert_eq!(role.description.as_deref(), Some("Use this: it reads, and 'judges'"));
    assert_eq!(role.prompt.as_deref(), Some("You review.\n\n--- not a line of the head"));
    assert_eq!(
        names(role.tools.allowed.as_deref().expect("a list")),
        ["Read", "Grep", "Bash(git log:*)"]
    );
    assert_eq!(names(&role.tools.disallowed), ["Edit", "Write"]);
    assert_eq!(
        (role.model.as_deref(), role.color.as_deref(), role.mode),
        (Some("sonnet"), Some("purple"), Some(Mode::Plan))
    );
    assert_eq!(file.notes, ["`skills` is not applied", "`hooks` is not applied"]);
}

#[test]
fn yaml_value_forms_are_parsed() {
    let role = |fields: &str| read(&format!("---\nname: x\ndescription: d\n{fields}\n---")).role;
    assert_eq!(role("model: inherit").model, None);
    assert_eq!(role("tools: '*'").tools.allowed, None);
    assert_eq!(role("tools: *").tools.allowed, None);
    assert_eq!(role("tools:").tools.allowed, Some(Vec::new()), "none at all is not all");
    let list = role("tools: [Read, 'Bash(git log:*, x)', \"Grep\"]").tools.allowed.expect("a list");
    assert_eq!(names(&list), ["Read", "Bash(git log:*, x)", "Grep"]);
    let said = |fields: &str| {
        read(&format!("---\nname: x\n{fields}\n---\n")).role.description.expect("words")
    };
    assert_eq!(said("description: |\n  one\n  two"), "one\ntwo");
    assert_eq!(said("description: >-\n  one\n  two"), "one two");
    assert_eq!(said("description: one\n  two"), "one two");
    assert_eq!(said("description: \"a \\\"b\\\"\\u0041\""), "a \"b\"A");
    assert_eq!(said("description: 'it''s'"), "it's");
}

/// ID-02: a restricting field that cannot be understood is never skipped.
#[test]
fn id_02_malformed_agent_files_are_refused() {
    let table = [
        ("no head", "it does not start"),
        ("", "it does not start"),
        ("---\nname: x\n", "no closing"),
        ("---\ndescription: d\n---\n", "no `name`"),
        ("---\nname: x\n---\n", "no `description`"),
        ("---\nname: x\nname: y\n---\n", "line 3: duplicate field `name`"),
        ("---\nname: x\nsomething\n---\n", "line 3: not a field"),
        ("---\n../x: y\n---\n", "is not a field name"),
        ("---\nname: \"x\n---\n", "line 2: `name`: its quotes"),
        ("---\nname: [a\n---\n", "line 2: `name`: its list"),
        ("---\nname: [a]\n---\n", "line 2: `name`: not a text"),
        ("---\nname: x\ndescription: d\ntools: Read Grep\n---\n", "line 4: `tools`"),
        ("---\nname: x\ndescription: d\ndisallowedTools: {Edit: 1}\n---\n", "not a list of tools"),
        ("---\nname: \"a\\u0000b\"\ndescription: d\n---\n", "NUL"),
    ];
    for (text, expected) in table {
        let said = AgentFile::parse(text).expect_err(text);
        assert!(said.contains(expected), "{text:?}: {said}");
    }
}

proptest! {
    /// Any text is either parsed or refused; none causes a panic.
    #[test]
    fn parsing_never_panics(text in ".{0,200}", head in "[-a-z:|>\\[\\]{}'\"#,() \\n\\t\\PC]{0,200}") {
        let _ = AgentFile::parse(&text);
        let _ = AgentFile::parse(&format!("---\n{head}\n---\n{text}"));
    }
}

#[test]
fn id_02_unknown_words_are_noted_with_what_is_used_instead() {
    let text = "---\nname: x\ndescription: d\npermissionMode: root\ncolor: mauve\n---\n";
    let file = AgentFile::parse(text).expect("a role");
    assert_eq!((file.role.mode, file.role.color.as_deref()), (None, None));
    assert_eq!(
        file.notes,
        [
            "line 4: `permissionMode`: `root` is unknown; the mode of a member without a role is used instead",
            "line 5: `color`: `mauve` is unknown; the next free colour is used instead"
        ]
    );
}
