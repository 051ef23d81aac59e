//! Derives the profile of a program from screens whose state a person has named. The result is a
//! pure function of the screens, and each rule is one phrase that a person can find on them.

mod input_area;
mod lesson;
mod marker;
mod sheet;
#[cfg(test)]
mod tests;

use super::rule::Pattern;
use input_area::InputArea;
use lesson::{LearnedRule, labelled};
use marker::find_markers;

pub use lesson::{LabelledScreen, LearnGap, LearnedProfile, Lesson, ScreenLabel, steady_text};

/// Derives a profile.
pub fn learn(lesson: &Lesson) -> LearnedProfile {
    let mut gaps = Vec::new();
    let idle: Vec<&LabelledScreen> = labelled(lesson.screens, ScreenLabel::Idle);
    let area =
        InputArea::find(&idle).map_err(|problem| gaps.push(LearnGap::NoComposer { problem })).ok();
    let mut rules = Vec::new();
    for label in [ScreenLabel::Ended, ScreenLabel::Asks, ScreenLabel::Working] {
        let (markers, mut missed) = find_markers(lesson, label);
        let is_one = markers.len() == 1;
        let named = markers.into_iter().enumerate().map(|(at, marker)| {
            let number = if is_one { String::new() } else { format!("-{}", at + 1) };
            LearnedRule {
                name: format!("{}{number}", label.as_str()),
                label,
                rows: Some(marker.rows),
                patterns: vec![marker.pattern_of(label)],
                absent: Vec::new(),
            }
        });
        rules.extend(named);
        if label == ScreenLabel::Working
            && !missed.is_empty()
            && let Some(rule) = area.as_ref().and_then(|area| without_prompt(area, lesson))
        {
            rules.push(rule);
            missed.clear();
        }
        gaps.extend(missed);
    }
    // An input area is enough: whatever else an idle screen shows can be a greeting.
    let (rows, patterns) = match &area {
        Some(area) => (area.rows, vec![area.shown()]),
        None => {
            let (markers, missed) = find_markers(lesson, ScreenLabel::Idle);
            gaps.extend(missed);
            let rows = markers.iter().map(|marker| marker.rows).max().unwrap_or(1);
            (rows, markers.into_iter().take(1).map(|marker| marker.pattern).collect())
        }
    };
    if !patterns.is_empty() {
        let name = ScreenLabel::Idle.as_str().to_owned();
        rules.push(LearnedRule {
            name,
            label: ScreenLabel::Idle,
            rows: Some(rows),
            patterns,
            absent: Vec::new(),
        });
    }
    LearnedProfile { text: sheet::write(lesson, area.as_ref(), &rules), gaps }
}

/// Returns the rule of a program that shows nothing while it works: the cursor is not behind its
/// prompt. `None` if it is, on a working screen.
fn without_prompt(area: &InputArea, lesson: &Lesson) -> Option<LearnedRule> {
    let working = labelled(lesson.screens, ScreenLabel::Working);
    let prompt = area.prompt()?;
    let pattern = Pattern::new(&prompt).ok()?;
    let is_prompt = |screen: &&LabelledScreen| {
        let row = screen.look.rows.get(usize::from(screen.look.cursor.0));
        row.is_some_and(|row| pattern.find(row).is_some())
    };
    (!working.iter().any(is_prompt)).then(|| LearnedRule {
        name: "no-prompt".to_owned(),
        label: ScreenLabel::Working,
        rows: None,
        patterns: vec!["^.*$".to_owned()],
        absent: vec![prompt],
    })
}
