//! One line about a team, for the status line of tmux. tmux expands the output of a command once
//! as a format and then reads styles in it, so foreign text must contain neither.

use model::members::assessment::Doing;
use model::members::lifecycle::MemberState;
use model::text;
use ops::members::status::Status;

/// The form of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusLineFormat {
    /// The line may contain characters that are not ASCII.
    pub utf8: bool,
    /// The line contains styles of tmux.
    pub styled: bool,
}

/// The figures of the line.
#[derive(Debug, Clone, Copy, Default)]
struct TeamFigures {
    working: usize,
    requests: usize,
    /// Members that a person has to look at.
    troubled: usize,
    /// Tasks that are completed or cancelled.
    done: usize,
    tasks: usize,
}

impl TeamFigures {
    fn new(status: &Status) -> TeamFigures {
        let members = |is_counted: fn(&Doing) -> bool| {
            status.members.iter().filter(|member| is_counted(&member.state.doing)).count()
        };
        let counts = &status.tasks;
        let done = counts.completed + counts.cancelled;
        let open = [
            counts.pending,
            counts.blocked,
            counts.in_progress,
            counts.in_review,
            counts.failed,
            counts.stale,
        ];
        TeamFigures {
            working: members(|doing| matches!(doing, Doing::Working | Doing::Retrying)),
            requests: status.requests,
            // A lead removes a member that failed from the team, which then is among those that
            // left.
            troubled: members(is_troubled)
                + status.left.iter().filter(|member| member.resumable).count(),
            done,
            tasks: done + open.iter().sum::<usize>(),
        }
    }
}

/// Returns true for a member that does not respond, or whose run ended without a request.
fn is_troubled(doing: &Doing) -> bool {
    matches!(
        doing,
        Doing::Unresponsive | Doing::Ended(MemberState::Failed | MemberState::Disappeared)
    )
}

/// Formats the line: `site 3▶ 1? 2! 7/12`. Figures that are 0 are omitted, and so are the tasks of
/// a team without any.
pub fn status_line(status: &Status, format: StatusLineFormat) -> String {
    line(status.team.as_str(), TeamFigures::new(status), format)
}

fn line(team: &str, figures: TeamFigures, format: StatusLineFormat) -> String {
    let working = if format.utf8 { "▶" } else { ">" };
    let marked = [
        (figures.working, working, "green"),
        (figures.requests, "?", "yellow"),
        (figures.troubled, "!", "red"),
    ];
    let shown = marked.iter().filter(|(number, _, _)| *number > 0);
    let shown = shown.map(|(number, mark, color)| {
        let text = format!("{number}{mark}");
        if format.styled { format!("#[fg={color}]{text}#[default]") } else { text }
    });
    let tasks = Some(format!("{}/{}", figures.done, figures.tasks)).filter(|_| figures.tasks > 0);
    std::iter::once(literal(team, format)).chain(shown).chain(tasks).collect::<Vec<_>>().join(" ")
}

/// Returns foreign text in a form that tmux shows unchanged.
fn literal(foreign: &str, format: StatusLineFormat) -> String {
    let plain = text::line(foreign).replace('#', "##");
    if format.utf8 {
        return plain;
    }
    plain.chars().map(|c| if c.is_ascii() { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::shown_state;
    use model::id::{MemberName, TeamName};
    use model::members::need::Need;
    use ops::members::status::{LeftStatus, MemberStatus, TaskCounts};

    const PLAIN: StatusLineFormat = StatusLineFormat { utf8: true, styled: false };
    const ASCII: StatusLineFormat = StatusLineFormat { utf8: false, styled: false };
    const STYLED: StatusLineFormat = StatusLineFormat { utf8: true, styled: true };

    fn figures(
        working: usize,
        requests: usize,
        troubled: usize,
        (done, tasks): (usize, usize),
    ) -> TeamFigures {
        TeamFigures { working, requests, troubled, done, tasks }
    }

    #[test]
    fn status_line_omits_figures_that_are_zero() {
        let table = [
            (figures(3, 1, 2, (7, 12)), PLAIN, "site 3▶ 1? 2! 7/12"),
            (figures(3, 1, 2, (7, 12)), ASCII, "site 3> 1? 2! 7/12"),
            (figures(3, 1, 0, (7, 12)), PLAIN, "site 3▶ 1? 7/12"),
            (figures(0, 0, 2, (0, 12)), PLAIN, "site 2! 0/12"),
            (figures(0, 0, 0, (12, 12)), ASCII, "site 12/12"),
            (figures(1, 0, 0, (0, 0)), PLAIN, "site 1▶"),
            (figures(0, 0, 0, (0, 0)), PLAIN, "site"),
            (figures(0, 0, 0, (0, 0)), STYLED, "site"),
            (
                figures(3, 1, 2, (7, 12)),
                STYLED,
                "site #[fg=green]3▶#[default] #[fg=yellow]1?#[default] #[fg=red]2!#[default] 7/12",
            ),
            (
                figures(0, 1, 0, (0, 1)),
                StatusLineFormat { utf8: false, styled: true },
                "site #[fg=yellow]1?#[default] 0/1",
            ),
        ];
        for (figures, format, expected) in table {
            assert_eq!(line("site", figures, format), expected, "{figures:?} {format:?}");
        }
    }

    #[test]
    fn sec_02_name_in_status_line_is_neither_format_nor_style() {
        let hostile = "a#(touch x)#[fg=red]#{pane_id}##\u{1b}[2J\nü";
        let shown = line(hostile, TeamFigures::default(), PLAIN);
        assert_eq!(shown, "a##(touch x)##[fg=red]##{pane_id}####␛[2J␊ü");
        let shown = line(hostile, TeamFigures::default(), ASCII);
        assert!(shown.is_ascii() && !shown.contains(char::is_control), "{shown:?}");
    }

    #[test]
    fn figures_count_troubled_members_and_ended_tasks() {
        let name = |name: &str| MemberName::existing(name).expect("a name");
        let member = |(nth, doing): (usize, Doing)| MemberStatus {
            name: name(&format!("m{nth}")),
            state: shown_state(doing, None),
            role: None,
            profile: None,
            backend: None,
            host: None,
            is_elsewhere: false,
            pane: None,
            pid: None,
            color: None,
            task: None,
            activity: None,
            idle_ms: None,
            limited_until: None,
            usage: None,
        };
        let ended = Doing::Ended;
        let states = [
            Doing::Working,
            Doing::Idle,
            Doing::Working,
            Doing::Unresponsive,
            ended(MemberState::Failed),
            ended(MemberState::Disappeared),
        ];
        let calm = [
            Doing::Running,
            ended(MemberState::Killed),
            ended(MemberState::Completed),
            Doing::Waiting(Need::Permission),
        ];
        let left = |resumable| LeftStatus {
            name: name("gone"),
            state: shown_state(ended(MemberState::Failed), None),
            age_ms: 1,
            gave_up_after: None,
            resumable,
        };
        let status = Status {
            team: TeamName::existing("site").expect("a name"),
            lead: None,
            dead_lead: None,
            members: states.into_iter().chain(calm).enumerate().map(member).collect(),
            left: vec![left(true), left(false)],
            tasks: TaskCounts {
                pending: 1,
                blocked: 2,
                in_progress: 3,
                in_review: 4,
                completed: 5,
                failed: 6,
                cancelled: 7,
                stale: 8,
            },
            task_list: Vec::new(),
            requests: 9,
            unread: None,
            usage: None,
            budgets: Vec::new(),
        };
        assert_eq!(status_line(&status, PLAIN), "site 2▶ 9? 4! 12/36");
    }
}
