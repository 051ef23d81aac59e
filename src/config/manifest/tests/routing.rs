//! Tests of `[team.routing]`.

use crate::manifest::Manifest;

fn read(keys: &str) -> Result<String, String> {
    let text = format!("[team]\nname = \"t\"\n[team.routing]\n{keys}");
    let manifest = Manifest::parse(&text).map_err(|e| e.to_string())?;
    Ok(serde_json::to_string(&manifest.settings.routing).expect("json"))
}

#[test]
fn routing_rules_are_read() {
    let keys =
        "allow = [\"dev -> senior\", \"*->lead\"]\nescalate = { dev = \"senior\" }\ndeny = []";
    assert_eq!(
        read(keys).as_deref(),
        Ok(r#"{"allow":["dev -> senior","* -> lead"],"escalate":{"dev":"senior"}}"#)
    );
}

#[test]
fn invalid_routing_rules_are_refused() {
    let table = [
        (
            "allow = [\"dev senior\"]",
            "4:10: `allow` in [team.routing]: `dev senior` is not a rule such as `dev -> lead`",
        ),
        (
            "escalate = { dev = \"*\" }",
            "4:20: `dev` in [team.routing.escalate] must be a role, a member or `lead`, not `*`",
        ),
        (
            "escalate = \"lead\"",
            "4:12: `team.routing.escalate` must be a table, [team.routing.escalate], not a string",
        ),
        (
            "escalate = { \"a->b\" = \"lead\" }",
            "4:14: `a->b` in [team.routing.escalate]: `a->b` is not a role, a member, `lead` or `*`",
        ),
        ("alow = []", "4:1: unknown key `alow` in [team.routing]; did you mean `allow`?"),
    ];
    for (keys, said) in table {
        assert_eq!(read(keys), Err(said.to_owned()), "{keys}");
    }
}
