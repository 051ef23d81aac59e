//! Formats the results of `task search`.

use crate::paint::{Paint, Tint};
use crate::views::life::{task_mark, task_word};
use model::text;
use ops::board::task_search::FoundTask;

/// Maximum length of a subject, in characters.
const SUBJECT: usize = 72;

/// Returns two lines for each task, the second one with the snippet, if there is one.
pub fn found_tasks(tasks: &[FoundTask], paint: Paint) -> String {
    let mut lines = Vec::new();
    for task in tasks {
        let state = paint.put(task_mark(task.state).1, task_word(task.state));
        let owner = task.owner.as_deref().map(|owner| format!(", {}", text::line(owner)));
        let subject = text::short(&task.subject, SUBJECT);
        lines.push(format!("#{} {subject}  {state}{}", task.id, owner.unwrap_or_default()));
        let snippet = task.snippet.iter().map(|text| paint.put(Tint::Dim, &text::line(text)));
        lines.extend(snippet.map(|text| format!("    {text}")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::board::task::TaskState;
    use model::id::TaskId;

    #[test]
    fn found_task_has_a_line_and_a_snippet_without_control_characters() {
        let task = FoundTask {
            id: TaskId(3),
            subject: "Fix\u{1b} it".to_owned(),
            state: TaskState::InProgress,
            owner: Some("ada".to_owned()),
            score: 1,
            snippet: Some("…why\u{9b} and how".to_owned()),
        };
        assert_eq!(
            found_tasks(&[task], Paint { on: false }),
            "#3 Fix\u{241b} it  in progress, ada\n    …why\u{fffd} and how"
        );
    }
}
