//! The rooms of `ops` and their order: a room uses only those before it.

use std::collections::BTreeSet;

use crate::code::{Source, sources};

/// From the ground up.
const ROOMS: [&str; 13] = [
    "authority",
    "hosts",
    "members",
    "mail",
    "team",
    "board",
    "ending",
    "decisions",
    "review",
    "starting",
    "views",
    "serving",
    "doctor",
];

#[test]
fn rooms_of_ops_use_only_those_before_them() {
    assert_eq!(against(&sources()), BTreeSet::new());
}

#[test]
fn a_use_against_the_order_is_caught() {
    let file = |name: &str, text: &str| Source::new(name, text);
    let files = [
        file("src/ops/mail/send.rs", "use crate::views::ps; use crate::authority::names;"),
        file("src/ops/doctor/mod.rs", "use crate::mail::send; use crate::{Context, now};"),
        file("src/ops/mail/inbox.rs", "struct Read { pub(in crate::mail) team: TeamName }"),
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
        for path in file.words.windows(3) {
            let [root, colons, to] = path else { continue };
            if root == "crate" && colons == "::" && rank(to).is_some_and(|other| other > own) {
                found.insert((from.clone(), to.clone()));
            }
        }
    }
    found
}
