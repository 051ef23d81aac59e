//! Tests of the types: their examples, their faults, and arbitrary bodies.

use proptest::prelude::*;
use serde_json::json;
use strum::VariantArray;

use super::*;

const PAGE: &str = include_str!("../../../../docs/messages.md");

fn body(text: &str) -> Object {
    serde_json::from_str(text).expect("an object")
}

/// Returns the fault of the example of this type with `change` merged into it.
fn fault(kind: HandoffType, change: &Value) -> String {
    let mut given = body(kind.example());
    given.extend(change.as_object().expect("an object").clone());
    Handoff::read(kind, &given).expect_err("a fault").to_string()
}

#[test]
fn examples_are_valid_and_have_every_field() {
    for kind in HandoffType::VARIANTS {
        let example = body(kind.example());
        assert_eq!(example.get("type"), Some(&json!(kind.as_str())));
        let handoff = Handoff::read(*kind, &example);
        assert_eq!(handoff.map(|handoff| HandoffType::from(&handoff)), Ok(*kind));
        let mut listed: Vec<String> = kind.fields().into_iter().map(|field| field.name).collect();
        let mut given: Vec<String> = example.keys().filter(|key| *key != "type").cloned().collect();
        listed.sort_unstable();
        given.sort_unstable();
        assert_eq!(listed, given, "{kind:?}");
    }
}

#[test]
fn only_required_fields_must_be_there() {
    for kind in HandoffType::VARIANTS {
        for field in kind.fields() {
            let mut given = body(kind.example());
            for absent in [None, Some(Value::Null)] {
                match absent {
                    Some(null) => drop(given.insert(field.name.clone(), null)),
                    None => drop(given.shift_remove(&field.name)),
                }
                match Handoff::read(*kind, &given) {
                    Ok(_) => assert!(!field.is_required, "{kind:?} {}", field.name),
                    Err(fault) => {
                        assert!(field.is_required, "{kind:?} {}: {fault}", field.name);
                        assert!(fault.to_string().contains(&field.expected), "{fault}");
                    }
                }
            }
        }
    }
}

#[test]
fn field_of_another_form_is_named_with_what_was_expected() {
    for kind in HandoffType::VARIANTS {
        for field in kind.fields() {
            for wrong in [json!(7), json!({"a": 1}), json!([[]])] {
                let said = fault(*kind, &json!({ &field.name: wrong }));
                let begin = format!("`{}", field.name);
                assert!(said.starts_with(&begin) && said.contains(kind.as_str()), "{said}");
                assert!(said.ends_with(&format!("; expected {}", field.expected)), "{said}");
            }
        }
    }
}

#[test]
fn faults_are_sentences() {
    let table = [
        (
            HandoffType::DevProgress,
            json!({"status": "done"}),
            "`status` in `dev_progress` is \"done\"; expected `complete`, `partial` or `failed`",
        ),
        (
            HandoffType::DevBlocker,
            json!({"needs": ""}),
            "`needs` in `dev_blocker` is \"\"; expected the condition for going on, a text",
        ),
        (
            HandoffType::DevBlocker,
            json!({"attempted": "once"}),
            "`attempted` in `dev_blocker` is \"once\"; expected a list of texts",
        ),
        (
            HandoffType::TaskClaim,
            json!({"task_id": null}),
            "`task_id` in `task_claim` is null; expected the id of the task within its plan, a text",
        ),
        (
            HandoffType::ApiContract,
            json!({"endpoints": []}),
            "`endpoints` in `api_contract` is []; expected a list of at least one object with `method` and `path`",
        ),
        (
            HandoffType::ApiContract,
            json!({"endpoints": [["GET", "/"]]}),
            "`endpoints` in `api_contract` is [[\"GET\",\"/\"]]; expected a list of at least one object with `method` and `path`",
        ),
        (
            HandoffType::DepartmentResult,
            json!({"result": "pass"}),
            "`result` in `department_result` is \"pass\"; expected `PASS`, `PARTIAL` or `FAIL`",
        ),
    ];
    for (kind, change, expected) in table {
        assert_eq!(fault(kind, &change), expected);
    }
    let empty = Handoff::read(HandoffType::SeniorSpec, &Object::new()).expect_err("a fault");
    assert_eq!(
        empty.to_string(),
        "`plan_id` in `senior_spec` is missing; expected the id of the plan, a text"
    );
}

#[test]
fn fields_of_other_tools_are_accepted() {
    let mut given = body(HandoffType::CodeReviewResult.example());
    given.extend(body(r#"{"cycle": 1, "artifact": "review.jsonl", "findings": [1.5e3]}"#));
    assert!(Handoff::read(HandoffType::CodeReviewResult, &given).is_ok());
}

#[test]
fn handoffs_are_sentences_with_details() {
    let table = [
        ("reports 01-01/T3 complete (abc1234)", ""),
        (
            "is blocked on 01-02/T1: Dependency module from plan 01-01 not yet committed",
            "needs: 01-01 to complete first\ntried: Checked git log for 01-01 commits",
        ),
        ("has reviewed the design of plan 01-01", "concern: T2 depends on an undecided format"),
        ("approves the code of plan 01-01", ""),
        (
            "requests 1 change to the code of plan 01-01",
            "src/login.rs:42: The error is dropped; fix: Return it",
        ),
        ("has designed the architecture: phases/01/architecture.toon", ""),
        ("proposes an API contract with 1 endpoint", "POST /login"),
        ("reports the result of department backend: PASS", ""),
        ("claims 03-01/T3", "file: src/login.rs"),
        ("reports 03-01/T3 complete (abc1234)", "file: src/login.rs"),
        (
            "reports the state of agent dev-1: disappeared",
            "since 2026-02-17T10:30:00Z\ndepartment: backend\nbefore: idle\nafter a timeout",
        ),
    ];
    for (kind, (sentence, details)) in HandoffType::VARIANTS.iter().zip(table) {
        let handoff = Handoff::read(*kind, &body(kind.example())).expect("valid");
        assert_eq!(handoff.sentence(), sentence);
        assert_eq!(handoff.details().join("\n"), details);
    }
}

#[test]
fn only_messages_of_known_types_are_handoffs() {
    let of = |text: &str| Handoff::of_message(&Message::parse(text));
    assert!(matches!(of(HandoffType::DevProgress.example()), Some(Ok(_))));
    assert!(matches!(of(r#" {"type":"task_claim"} "#), Some(Err(_))));
    for other in ["done", r#"{"type":"brand_new"}"#, r#"{"type":"idle_notification"}"#, "{}", ""] {
        assert_eq!(of(other), None, "{other}");
    }
    assert!(HandoffType::VARIANTS.iter().all(|kind| !Message::is_kind(kind.as_str())));
}

#[test]
fn handoff_of_another_team_has_safe_names() {
    let line = |id: &str, kind: &str| json!({"id": id, "from_team": "back", "type": kind, "at": 5, "body": {"a": 1}});
    let good: TeamHandoff = serde_json::from_value(line("a-1", "api_contract")).expect("valid");
    assert_eq!(serde_json::to_value(&good).expect("json"), line("a-1", "api_contract"));
    assert_eq!(good.sentence(), None);
    for (id, kind) in [("", "a"), ("$(id)", "a"), ("a;b", "a"), ("a", "../x"), ("a", "a b")] {
        assert!(serde_json::from_value::<TeamHandoff>(line(id, kind)).is_err(), "{id} {kind}");
    }
}

#[test]
fn handoffs_page_shows_the_fields_of_each_type() {
    let names = |kind: &HandoffType, required: bool| {
        let fields = kind.fields().into_iter().filter(|field| field.is_required == required);
        fields.map(|field| format!("`{}`", field.name)).collect::<Vec<_>>().join(", ")
    };
    let row = |kind: &HandoffType| {
        let (required, optional) = (names(kind, true), names(kind, false));
        format!("| `{}` | {} | {required} | {optional} |", kind.as_str(), kind.purpose())
            .replace("|  |", "| |")
    };
    let rows: Vec<String> = HandoffType::VARIANTS.iter().map(row).collect();
    assert!(PAGE.contains(&rows.join("\n")), "docs/messages.md should have:\n{}", rows.join("\n"));
}

/// Arbitrary JSON of a few levels.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "(complete|PASS|idle|approve|proposed)".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("(f|ln|issue|fix|method|path|\\PC{0,4})", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bodies_are_read_or_refused(
        which in prop::sample::select(HandoffType::VARIANTS),
        values in prop::collection::vec((any::<prop::sample::Index>(), any_json()), 0..4),
    ) {
        let mut given = body(which.example());
        for (at, value) in values {
            let fields = which.fields();
            given.insert(at.get(&fields).name.clone(), value);
        }
        match Handoff::read(which, &given) {
            Ok(handoff) => {
                prop_assert!(!handoff.sentence().is_empty());
                let _ = handoff.details();
            }
            Err(fault) => prop_assert!(fault.to_string().contains("; expected ")),
        }
        let text = Value::Object(given).to_string();
        let known = Handoff::of_message(&Message::parse(&text));
        prop_assert!(known.is_some());
    }
}
