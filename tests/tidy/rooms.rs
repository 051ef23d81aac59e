//! The rooms of `ops` and their order: a room uses only those before it.

use std::collections::BTreeSet;

use crate::code::{Source, sources};

/// From the ground up.
const ROOMS: [&str; 11] = [
    "authority",
    "mail",
    "members",
    "team",
    "board",
    "ending",
    "decisions",
    "starting",
    "views",
    "hosts",
    "doctor",
];

/// Uses against the order that are left for now: a module that is in the wrong room, or a function
/// that is.
const AGAINST: [(&str, &str); 17] = [
    ("board", "starting"),
    ("ending", "hosts"),
    ("ending", "starting"),
    ("mail", "decisions"),
    ("mail", "members"),
    ("mail", "team"),
    ("members", "decisions"),
    ("members", "starting"),
    ("members", "team"),
    ("members", "views"),
    ("starting", "hosts"),
    ("starting", "views"),
    ("team", "doctor"),
    ("team", "ending"),
    ("team", "hosts"),
    ("team", "starting"),
    ("views", "hosts"),
];

#[test]
fn rooms_of_ops_use_only_those_before_them() {
    let expected: BTreeSet<(String, String)> =
        AGAINST.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
    assert_eq!(against(&sources()), expected, "take mended pairs off the list, and add none");
}

#[test]
fn a_use_against_the_order_is_caught() {
    let file = |name: &str, text: &str| Source::new(name, text);
    let files = [
        file(
            "src/ops/mail/send.rs",
            "use crate::ops::views::ps; use crate::ops::authority::names;",
        ),
        file(
            "src/ops/doctor/mod.rs",
            "use crate::ops::mail::send; use crate::ops::{Context, now};",
        ),
    ];
    assert_eq!(against(&files), BTreeSet::from([("mail".to_owned(), "views".to_owned())]));
}

/// Returns the pairs of rooms of which the first one uses a later one.
fn against(files: &[Source]) -> BTreeSet<(String, String)> {
    let rank = |room: &str| ROOMS.iter().position(|one| *one == room);
    let mut found = BTreeSet::new();
    for file in files {
        let module = file.module();
        let [ops, from, ..] = module.as_slice() else { continue };
        let (true, Some(own)) = (ops == "ops", rank(from)) else { continue };
        for path in file.words.windows(5) {
            let [root, _, ops, _, to] = path else { continue };
            if root == "crate" && ops == "ops" && rank(to).is_some_and(|other| other > own) {
                found.insert((from.clone(), to.clone()));
            }
        }
    }
    found
}
