//! Tests of the tools that a role and its team give a member.

use super::*;

fn names(rules: &[Rule]) -> Vec<String> {
    rules.iter().cloned().map(String::from).collect()
}

/// ID-02: the resolution order is the own list or else the parent's, minus every denied tool.
#[test]
fn id_02_nearest_allow_list_applies_and_all_denials_hold() {
    let rules = |text: &str| {
        if text.is_empty() { Vec::new() } else { Rule::parse_list(text).expect("patterns") }
    };
    let tools = |allowed: Option<&str>, disallowed: &str| Tools {
        allowed: allowed.map(rules),
        disallowed: rules(disallowed),
    };
    let table = [
        (tools(None, ""), tools(None, ""), None, ""),
        (tools(None, ""), tools(Some("Read,Edit"), "Bash"), Some("Read,Edit"), "Bash"),
        (tools(Some("Grep"), "Edit"), tools(Some("Read"), "Bash,Edit"), Some("Grep"), "Edit,Bash"),
        (
            tools(Some("Read,Edit(src/**),Bash(git:*)"), ""),
            tools(None, "Edit,Bash(rm:*)"),
            Some("Read,Bash(git:*)"),
            "Edit,Bash(rm:*)",
        ),
        (tools(Some(""), ""), tools(Some("Read"), ""), Some(""), ""),
    ];
    for (own, parent, allowed, disallowed) in table {
        let got = own.or(&parent).without_forbidden();
        assert_eq!(
            got.allowed.as_deref().map(|list| names(list).join(",")),
            allowed.map(str::to_owned)
        );
        assert_eq!(names(&got.disallowed).join(","), disallowed);
    }
}
