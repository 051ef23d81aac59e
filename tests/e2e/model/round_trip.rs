//! Foreign content of files survives every change by phalanx byte for byte. Test files are written
//! in the format of `JSON.stringify(…, null, 2)`, with numbers that only other writers produce.

use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use super::{Place, cases};

#[derive(Debug, Clone)]
enum Json {
    /// A number, `true`, `false` or `null`, as written.
    Token(&'static str),
    Text(String),
    List(Vec<Json>),
    Map(Pairs),
}

type Pairs = Vec<(String, Json)>;

const TOKENS: [&str; 15] = [
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1.50",
    "1e+3",
    "1e-3",
    "-2.5e-7",
    "1e+21",
    "0.10",
    "18446744073709551616",
    "-9223372036854775809",
    "123456789012345678901234567890.5",
    "1795214628804",
];

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        proptest::sample::select(&TOKENS[..]).prop_map(Json::Token),
        text().prop_map(Json::Text)
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Json::List),
            pairs(inner, 4).prop_map(Json::Map)
        ]
    })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[\u{0}-\u{1f}\"\\\\/\u{7f}\u{2028}é😀]{0,6}"]
}

/// Unknown keys, all distinct.
fn pairs(value: impl Strategy<Value = Json>, most: usize) -> impl Strategy<Value = Pairs> {
    let unique = |(place, (key, value)): (usize, (String, Json))| (format!("{place}{key}"), value);
    vec((text(), value), 0..most)
        .prop_map(move |list| list.into_iter().enumerate().map(unique).collect())
}

fn strangers() -> impl Strategy<Value = Pairs> {
    pairs(json(), 4)
}

fn render(json: &Json, depth: usize, out: &mut String) {
    match json {
        Json::Token(token) => out.push_str(token),
        Json::Text(text) => quote(text, out),
        Json::List(list) => {
            block(out, '[', ']', depth, list, |item, out| render(item, depth + 1, out))
        }
        Json::Map(pairs) => block(out, '{', '}', depth, pairs, |(key, value), out| {
            quote(key, out);
            out.push_str(": ");
            render(value, depth + 1, out);
        }),
    }
}

fn block<T>(
    out: &mut String,
    open: char,
    close: char,
    depth: usize,
    items: &[T],
    item: impl Fn(&T, &mut String),
) {
    out.push(open);
    for (place, one) in items.iter().enumerate() {
        out.push_str(if place > 0 { ",\n" } else { "\n" });
        out.push_str(&"  ".repeat(depth + 1));
        item(one, out);
    }
    if !items.is_empty() {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    }
    out.push(close);
}

/// Writes a string with the escapes of `JSON.stringify`.
fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn written(json: &Json) -> String {
    let mut out = String::new();
    render(json, 0, &mut out);
    out
}

fn field(key: &str, value: &str) -> (String, Json) {
    (key.to_owned(), Json::Text(value.to_owned()))
}

fn token(key: &str, value: &'static str) -> (String, Json) {
    (key.to_owned(), Json::Token(value))
}

/// Known keys among unknown ones, in any order.
fn mixed(known: Pairs) -> impl Strategy<Value = Pairs> {
    strangers().prop_flat_map(move |strange| Just([known.clone(), strange].concat()).prop_shuffle())
}

fn changed(pairs: &Pairs, key: &str, value: &Json) -> Pairs {
    let one =
        |(k, v): &(String, Json)| (k.clone(), if k == key { value.clone() } else { v.clone() });
    pairs.iter().map(one).collect()
}

fn entry(id: &'static str) -> impl Strategy<Value = Pairs> {
    mixed(vec![
        field("from", "ann"),
        field("text", "x\ty"),
        token("read", "false"),
        field("msg_id", id),
    ])
}

fn task() -> impl Strategy<Value = (Pairs, Pairs, Pairs)> {
    let known = vec![
        field("id", "1"),
        field("subject", "s"),
        field("description", "d\n"),
        field("status", "pending"),
        ("blocks".to_owned(), Json::List(Vec::new())),
        ("blockedBy".to_owned(), Json::List(Vec::new())),
    ];
    (mixed(known), strangers(), mixed(vec![field("state", "pending")]))
}

/// A task file with our fields under `metadata.phalanx`.
fn task_file(outer: &Pairs, metadata: &Pairs, ours: Pairs) -> Json {
    let metadata = [metadata.clone(), vec![("phalanx".to_owned(), Json::Map(ours))]].concat();
    Json::Map([outer.clone(), vec![("metadata".to_owned(), Json::Map(metadata))]].concat())
}

fn maps(list: &[&Pairs]) -> Json {
    Json::List(list.iter().map(|pairs| Json::Map((*pairs).clone())).collect())
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn marking_and_removing_change_nothing_else(a in entry("a"), b in entry("b"), c in entry("c")) {
        let (place, path) = (Place::new(), "bob");
        fs::write(place.inbox(path), written(&maps(&[&a, &b, &c]))).expect("writable");
        place.team.mark("bob", &["b".to_owned()]).expect("usable");
        let marked = changed(&b, "read", &Json::Token("true"));
        prop_assert_eq!(fs::read_to_string(place.inbox(path)).expect("readable"), written(&maps(&[&a, &marked, &c])));
        place.team.remove("bob", &["a".to_owned()]).expect("usable");
        prop_assert_eq!(fs::read_to_string(place.inbox(path)).expect("readable"), written(&maps(&[&marked, &c])));
    }

    #[test]
    fn setting_a_member_field_changes_nothing_else(
        team in mixed(vec![field("name", "model")]),
        bob in mixed(vec![field("name", "bob"), field("model", "old")]),
        other in mixed(vec![field("name", "dora")]),
    ) {
        let place = Place::new();
        let file = |bob: &Pairs| {
            let members = ("members".to_owned(), maps(&[&other, bob]));
            written(&Json::Map([team.clone(), vec![members]].concat()))
        };
        fs::write(place.team_file(), file(&bob)).expect("writable");
        prop_assert_eq!(place.team.set_member("bob", "model", "new"), Ok(true));
        let set = changed(&bob, "model", &Json::Text("new".to_owned()));
        prop_assert_eq!(fs::read_to_string(place.team_file()).expect("readable"), file(&set));
    }

    #[test]
    fn claiming_and_releasing_change_nothing_else((outer, metadata, ours) in task()) {
        let place = Place::new();
        fs::write(place.task(1), written(&task_file(&outer, &metadata, ours.clone()))).expect("writable");
        place.team.claim(1, "bob").expect("free");
        prop_assert_eq!(place.team.release("bob"), Ok(vec![1]));
        let after = fs::read_to_string(place.task(1)).expect("readable");
        // The seal is a digest of the content, and events have random ids: these three keys differ,
        // and nothing else.
        let mut file: Value = serde_json::from_str(&after).expect("JSON");
        let phalanx = file["metadata"]["phalanx"].as_object_mut().expect("ours");
        for key in ["seal", "event", "cause"] {
            prop_assert!(phalanx.shift_remove(key).is_some(), "{} is missing in {}", key, after);
        }
        let released = [ours, vec![token("released", "1")]].concat();
        let expected = written(&task_file(&outer, &metadata, released));
        prop_assert_eq!(serde_json::to_string_pretty(&file).expect("JSON"), expected);
    }
}

/// The one exception: an exponent without a sign gets one, as `JSON.stringify` writes it. The value
/// stays the same.
#[test]
fn exponent_without_a_sign_gets_one() {
    let place = Place::new();
    let file =
        |numbers: &str| format!("[\n  {{\n    \"n\": [{numbers}],\n    \"msg_id\": \"a\"\n  }}\n]");
    fs::write(place.inbox("bob"), file("1e3, 1E3, 1E-3")).expect("writable");
    place.team.mark("bob", &["a".to_owned()]).expect("usable");
    let text = fs::read_to_string(place.inbox("bob")).expect("readable");
    let numbers: Vec<&str> =
        text.split(['[', ']', ',']).map(str::trim).filter(|n| n.starts_with('1')).collect();
    assert_eq!(numbers, ["1e+3", "1e+3", "1e-3"]);
}
