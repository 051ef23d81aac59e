//! The command lines of the keys. `cli` parses them with the definition of the verbs: those of the
//! walk from the snapshot, and those of `command_lines.txt`.

use std::collections::BTreeSet;

use serde_json::json;

use super::walk::{Step, walk};
use super::{THEME, dashboard, picture, press};
use crate::dashboard::{ChosenCommand, Effect, TeamAction, command_line};

fn actions(effects: &[Effect]) -> impl Iterator<Item = &TeamAction> {
    effects.iter().filter_map(|effect| match effect {
        Effect::Run { command: ChosenCommand::Action(action), .. }
        | Effect::RunHere(ChosenCommand::Action(action))
        | Effect::Page(ChosenCommand::Action(action)) => Some(action),
        _ => None,
    })
}

/// Records each key with what the frame shows as highlighted, and its command line.
#[test]
fn pm_09_key_has_one_action_and_its_command_line_is_recorded() {
    let mut lines = BTreeSet::new();
    walk(|step: &Step| {
        let Step { case, key, object: shown, effects, is_refused } = step;
        let actions: Vec<&TeamAction> = actions(effects).collect();
        assert!(actions.len() <= 1, "{case}: {actions:?}");
        let Some(action) = actions.first() else { return };
        assert!(!is_refused, "{case}: {action:?}");
        if key == "y" {
            let word = match action {
                TeamAction::ApproveTask(task) => format!("approve #{task}"),
                _ => format!("approve {}", shown.member.as_deref().unwrap_or_default()),
            };
            assert!(shown.footer.starts_with(&format!("y {word}")), "{case}: {}", shown.footer);
        }
        let member = shown.member.as_ref().or(shown.owner.as_ref());
        let line = json!([key, member, shown.task, shown.request, command_line(action)]);
        lines.insert(line.to_string());
    });
    insta::assert_snapshot!("walk", Vec::from_iter(lines).join("\n"));
}

#[test]
fn keys_become_command_lines() {
    let table = include_str!("command_lines.txt").lines();
    for row in table.filter(|row| !row.starts_with('#')) {
        let (keys, expected) = row.split_once('|').expect("keys and a line");
        let mut dashboard = dashboard(THEME);
        picture(&mut dashboard, 120, 40);
        let effects = press(&mut dashboard, keys);
        let lines: Vec<Vec<String>> = actions(&effects).map(command_line).collect();
        let expected = shlex::split(expected).expect("quotes");
        let expected = if expected.is_empty() { Vec::new() } else { vec![expected] };
        assert_eq!(lines, expected, "{keys}");
    }
}
