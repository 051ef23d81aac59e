//! The verdicts of a profile about recorded screens, as people see them.

use crate::setup::Setup;
use model::text;
use ops::members::profiles::TestedRecording;
use profile::Composer;

/// Formats the verdicts about recordings.
pub(crate) fn table_of(setup: &Setup, tested: &[TestedRecording]) -> String {
    let rows = tested.iter().map(|one| ui::RecordingRow {
        screen: one.screen.clone(),
        expected: one.expected.clone(),
        found: one.tested.finding.state.to_string(),
        rule: one.tested.finding.rule.clone(),
        composer: composer(&one.tested.finding.composer),
        passed: one.passed,
    });
    ui::recording_table(rows, setup.out.paint)
}

/// Describes what the composer contains; `None` if that is not known.
pub(crate) fn composer(composer: &Composer) -> Option<String> {
    match composer {
        Composer::Empty => Some("empty".to_owned()),
        Composer::Holds(words) => Some(format!("holds {:?}", text::short(words, 60))),
        Composer::Unknown => None,
    }
}
