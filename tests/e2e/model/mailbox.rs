//! Compares a mailbox with an in-memory list, with a foreign writer that rewrites the file and
//! keeps unknown fields.

use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use testing::Entry;

use super::{Place, cases};

#[derive(Debug, Clone)]
enum Act {
    Append(String),
    /// Marks messages by position, and one unknown id.
    Mark(Vec<Index>),
    Remove(Vec<Index>),
    /// As Claude Code 2.1.34: sets `read` and adds a field of its own.
    ForeignMark(Index),
    /// As Claude Code 2.1.329: removes an entry.
    ForeignRemove(Index),
    /// As a program that writes no ids.
    ForeignAppend(String),
}

fn act() -> impl Strategy<Value = Act> {
    let text = prop_oneof![any::<String>(), "[a-z \"\\\\{}\n<>&]{0,40}", Just("[]".to_owned())];
    prop_oneof![
        4 => text.clone().prop_map(Act::Append),
        2 => vec(any::<Index>(), 0..3).prop_map(Act::Mark),
        1 => vec(any::<Index>(), 0..3).prop_map(Act::Remove),
        1 => any::<Index>().prop_map(Act::ForeignMark),
        1 => any::<Index>().prop_map(Act::ForeignRemove),
        1 => text.prop_map(Act::ForeignAppend),
    ]
}

/// An expected entry: id if the sender gave one, sender, text, read.
type Known = (Option<String>, String, String, bool);

struct Run {
    place: Place,
    known: Vec<Known>,
    acts: usize,
}

impl Run {
    fn entries(&self) -> Vec<Entry> {
        self.place.team.entries("bob").expect("readable")
    }

    /// Resolves indexes to current positions.
    fn places(&self, at: &[Index]) -> Vec<usize> {
        let places = at.iter().filter(|_| !self.known.is_empty());
        places.map(|index| index.index(self.known.len())).collect()
    }

    /// Returns the ids at these positions, and all positions with one of them: without ids,
    /// messages with the same sender, time and text are one message.
    fn chosen(&self, at: &[Index]) -> (Vec<String>, Vec<usize>) {
        let entries = self.entries();
        let mut ids: Vec<String> =
            self.places(at).iter().map(|place| entries[*place].0.clone()).collect();
        ids.push("nobody has this id".to_owned());
        let hit = (0..entries.len()).filter(|place| ids.contains(&entries[*place].0)).collect();
        (ids, hit)
    }

    fn act(&mut self, act: &Act) {
        self.acts += 1;
        let team = &self.place.team;
        match act {
            Act::Append(text) => {
                let id = format!("id-{}", self.acts);
                team.append("bob", "ann", text, &id).expect("on the roster");
                self.known.push((Some(id), "ann".to_owned(), text.clone(), false));
            }
            Act::Mark(at) => {
                let (ids, hit) = self.chosen(at);
                team.mark("bob", &ids).expect("usable");
                hit.iter().for_each(|place| self.known[*place].3 = true);
            }
            Act::Remove(at) => {
                let (ids, hit) = self.chosen(at);
                team.remove("bob", &ids).expect("usable");
                let mut place = 0..;
                self.known.retain(|_| place.next().is_some_and(|place| !hit.contains(&place)));
            }
            Act::ForeignMark(_) | Act::ForeignRemove(_) | Act::ForeignAppend(_) => {
                self.foreign(act)
            }
        }
    }

    fn foreign(&mut self, act: &Act) {
        let path = self.place.inbox("bob");
        let text = fs::read_to_string(&path).expect("readable");
        let mut file: Vec<Value> = serde_json::from_str(&text).expect("an array");
        match act {
            Act::ForeignMark(at) => self.places(&[*at]).iter().for_each(|place| {
                file[*place]["read"] = json!(true);
                file[*place]["theirs"] = json!({"n": 1.5});
                self.known[*place].3 = true;
            }),
            Act::ForeignRemove(at) => self.places(&[*at]).iter().for_each(|place| {
                file.remove(*place);
                self.known.remove(*place);
            }),
            Act::ForeignAppend(text) => {
                // An entry without an id is identified by sender, time and text, so each gets its
                // own time.
                let timestamp = format!("t{}", self.acts);
                file.push(
                    json!({"from": "old", "text": text, "timestamp": timestamp, "read": false}),
                );
                self.known.push((None, "old".to_owned(), text.clone(), false));
            }
            Act::Append(_) | Act::Mark(_) | Act::Remove(_) => (),
        }
        fs::write(&path, serde_json::to_string_pretty(&file).expect("JSON")).expect("writable");
    }

    fn check(&self) {
        let entries = self.entries();
        assert_eq!(entries.len(), self.known.len());
        for ((id, from, text, read), known) in entries.iter().zip(&self.known) {
            assert_eq!((from, text, *read), (&known.1, &known.2, known.3));
            assert!(known.0.as_ref().is_none_or(|sent| sent == id), "{id} is not {:?}", known.0);
        }
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn mailbox_matches_its_model(acts in vec(act(), 1..25)) {
        let mut run = Run { place: Place::new(), known: Vec::new(), acts: 0 };
        for act in &acts {
            run.act(act);
            run.check();
        }
        let text = fs::read_to_string(run.place.inbox("bob")).expect("readable");
        let file: Vec<Value> = serde_json::from_str(&text).expect("an array");
        let strange = file.iter().filter(|entry| entry.get("theirs").is_some());
        for entry in strange {
            prop_assert_eq!(entry["theirs"].to_string(), r#"{"n":1.5}"#);
        }
    }
}
