//! The title and the text of a pull request, from the task, its result and the commits.

use model::board::task::{Task, TaskState};
use model::id::MemberName;
use model::text;
use store::TeamStore;

use crate::OpsError;
use crate::review::tasks::task_in_review;

/// Characters of a title. GitHub allows 256, GitLab 255.
const TITLE: usize = 200;
/// Largest text, in bytes. GitHub allows 65,536 characters.
const BODY: usize = 60_000;
/// Largest part of the text, in bytes, so that the commits are always in it.
const PART: usize = 20_000;
/// Number of commits that the text lists.
const COMMITS: usize = 100;

/// Returns the task that the work of a member is for: the one in review, else the last one that the
/// member has begun.
pub(super) fn task_of(team: &TeamStore, member: &MemberName) -> Result<Option<Task>, OpsError> {
    let in_review = task_in_review(team, member)?.map(|task| task.id);
    let board = team.board()?;
    let is_own = |task: &&Task| {
        task.owner.as_deref().is_some_and(|owner| member.clashes_with(owner))
            && (task.state.is_running()
                || matches!(task.state, TaskState::InReview | TaskState::Completed))
    };
    let own = board.work().filter(is_own);
    Ok(own.max_by_key(|task| (Some(task.id) == in_review, task.id)).cloned())
}

/// Returns the title: the subject of the task, else that of the first commit.
pub(super) fn title(task: Option<&Task>, member: &MemberName, subjects: &[String]) -> String {
    let candidates = task.map(|task| &task.subject).into_iter().chain(subjects.first());
    let candidates = candidates.map(|subject| text::short(subject.trim(), TITLE));
    let mut named = candidates.filter(|subject| !subject.is_empty());
    named.next().unwrap_or_else(|| format!("Work of {member}"))
}

/// Returns the text. The directories of this machine are left out of it.
pub(super) fn body(task: Option<&Task>, subjects: &[String], private: &[&str]) -> String {
    let mut parts = Vec::new();
    if let Some(task) = task {
        parts.push(part(&task.description, private));
        if let Some(result) = &task.extra.result {
            parts.push(format!("## Result\n\n{}", part(result, private)));
        }
    }
    let mut commits = "## Commits\n".to_owned();
    for subject in subjects.iter().take(COMMITS) {
        commits.push_str(&format!("\n- {}", part(subject, private)));
    }
    if let more @ 1.. = subjects.len().saturating_sub(COMMITS) {
        commits.push_str(&format!("\n- and {more} more"));
    }
    parts.push(commits);
    parts.retain(|part| !part.trim().is_empty());
    cut(&(parts.join("\n\n") + "\n"), BODY)
}

/// Returns a text of a member without control characters and directories.
fn part(words: &str, private: &[&str]) -> String {
    let mut words = text::block(&text::line_breaks(words));
    for dir in private.iter().filter(|dir| dir.len() > 1) {
        words = words.replace(&format!("{dir}/"), "").replace(dir, ".");
    }
    cut(words.trim(), PART)
}

/// Cuts a text to `max` bytes.
pub(super) fn cut(words: &str, max: usize) -> String {
    const MARK: &str = "\n…";
    if words.len() <= max {
        return words.to_owned();
    }
    let end = words.floor_char_boundary(max.saturating_sub(MARK.len()));
    format!("{}{MARK}", &words[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::TaskId;

    fn task(subject: &str, description: &str, result: &str) -> Task {
        let mut task = Task::new(TaskId(4), subject, description);
        task.extra.result = (!result.is_empty()).then(|| result.to_owned());
        task
    }

    #[test]
    fn title_is_of_the_task_or_of_the_first_commit() {
        let ada = MemberName::existing("ada").expect("a name");
        let subjects = ["first".to_owned(), "second".to_owned()];
        let task = task("Tokens", "", "");
        assert_eq!(title(Some(&task), &ada, &subjects), "Tokens");
        assert_eq!(title(None, &ada, &subjects), "first");
        assert_eq!(title(None, &ada, &[" ".to_owned()]), "Work of ada");
        assert_eq!(title(None, &ada, &["x".repeat(999)]).chars().count(), TITLE);
    }

    #[test]
    fn rv_33_text_has_no_control_characters_and_no_directories_of_this_machine() {
        let task = task(
            "--fill\u{1b}[2J",
            "See /home/t/repo/.worktrees/demo-ada/a.rs\r\nand /home/t/repo.",
            "done\u{9b}2J\u{202e}",
        );
        let private = ["/home/t/repo/.worktrees/demo-ada", "/home/t/repo"];
        let words = body(Some(&task), &["one".to_owned()], &private);
        let expected =
            "See a.rs\nand ..\n\n## Result\n\ndone\u{fffd}2J\u{fffd}\n\n## Commits\n\n- one\n";
        assert_eq!(words, expected);
        let ada = MemberName::existing("ada").expect("a name");
        assert_eq!(title(Some(&task), &ada, &[]), "--fill\u{241b}[2J");
    }

    #[test]
    fn long_text_is_cut_and_keeps_the_commits() {
        let task = task("x", &"é".repeat(50_000), &"y".repeat(50_000));
        let subjects: Vec<String> = (0..150).map(|n| format!("commit {n}")).collect();
        let words = body(Some(&task), &subjects, &[]);
        assert!(words.len() <= BODY, "{}", words.len());
        assert!(words.contains("- commit 99\n- and 50 more\n"), "{}", &words[words.len() - 90..]);
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("éééé", 6), "é\n…");
    }
}
