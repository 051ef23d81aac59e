//! The life of a member as one table: which state follows which cause, and what goes with it. `docs/lifecycle.md`
//! shows the same table. Knows neither processes nor files.

use serde::{Deserialize, Serialize};

use MemberState::{
    AwaitingPermission, AwaitingPlan, Completed, Disappeared, Failed, Idle, Killed, Pending,
    ShutdownRequested, Starting, Working,
};

/// What a member is doing, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MemberState {
    /// Meant to be started; nothing runs yet.
    Pending,
    /// Its launcher was given to a backend; it has not proven that it runs.
    Starting,
    /// Runs and works on something.
    Working,
    /// Runs and has nothing to do.
    Idle,
    /// Runs and waits for somebody to approve its plan.
    AwaitingPlan,
    /// Runs and waits for somebody to permit what it wants to do.
    AwaitingPermission,
    /// Was asked to shut down and has not answered.
    ShutdownRequested,
    /// Ended by the handshake, or its program ended by itself with code 0.
    Completed,
    /// Its program ended by itself with another code, or never came up.
    Failed,
    /// Was ended by phalanx without its consent.
    Killed,
    /// Its process is gone and nobody had asked for it.
    Disappeared,
}

/// What makes a member change its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The backend was given the launcher.
    Placed,
    /// It proved that it runs.
    Ready,
    /// It took up work.
    Work,
    /// It has no work.
    Rest,
    /// It sent a plan.
    PlanSent,
    /// It asked for a permission.
    PermissionAsked,
    /// Its plan or its question was answered, or ran out.
    Answered,
    /// The lead asked it to shut down.
    Asked,
    /// It said no, or the request ran out.
    Refused,
    /// It agreed, and its placement is gone.
    Released,
    /// Its program ended by itself with this code (none: by a signal).
    Ended { code: Option<i32> },
    /// phalanx ended it.
    Forced,
    /// Its process is gone without an exit record of its own doing.
    Vanished,
}

/// One line of the table: from any of these states, by this cause, to that one.
struct Line {
    from: &'static [MemberState],
    cause: &'static str,
    to: MemberState,
    /// What else happens then, for the page.
    follows: &'static str,
}

/// States of a member that runs.
const UP: [MemberState; 5] = [Working, Idle, AwaitingPlan, AwaitingPermission, ShutdownRequested];
/// States of a run that is not over.
const LIVING: [MemberState; 7] =
    [Pending, Starting, Working, Idle, AwaitingPlan, AwaitingPermission, ShutdownRequested];
const GIVEN_BACK: &str =
    "off the roster; its tasks are free again; the lead's mailbox gets a notice";

/// Every transition there is. What is not here changes nothing.
const TABLE: [Line; 16] = [
    line(&[Pending], "placed", Starting, "the record holds the placement"),
    line(&[Starting], "ready", Idle, "it counts as a member; its prompt is in its mailbox"),
    line(&[Starting, Idle], "work", Working, "`isActive` is true"),
    line(&[Starting, Working], "rest", Idle, "`isActive` is false; one idle notification per edge"),
    line(&[Working, Idle], "plan sent", AwaitingPlan, "a request waits for the lead"),
    line(
        &[Working, Idle],
        "permission asked",
        AwaitingPermission,
        "a request waits for a person or a rule",
    ),
    line(&[AwaitingPlan, AwaitingPermission], "answered", Working, "the answer is in its mailbox"),
    line(
        &[Pending, Starting, Working, Idle, AwaitingPlan, AwaitingPermission],
        "asked",
        ShutdownRequested,
        "a request with a deadline is in its mailbox",
    ),
    line(&[ShutdownRequested], "refused", Working, "the request ends as `rejected`"),
    line(&LIVING, "released", Completed, GIVEN_BACK),
    line(&LIVING, "ended with 0", Completed, GIVEN_BACK),
    line(&LIVING, "ended otherwise", Failed, GIVEN_BACK),
    line(&LIVING, "forced", Killed, GIVEN_BACK),
    line(&LIVING, "vanished", Disappeared, GIVEN_BACK),
    line(&[AwaitingPlan], "rest", Idle, "it went on without the answer"),
    line(&[AwaitingPermission], "rest", Idle, "it went on without the answer"),
];

const fn line(
    from: &'static [MemberState],
    cause: &'static str,
    to: MemberState,
    follows: &'static str,
) -> Line {
    Line { from, cause, to, follows }
}

impl Cause {
    /// The word in the table.
    fn word(self) -> &'static str {
        match self {
            Cause::Placed => "placed",
            Cause::Ready => "ready",
            Cause::Work => "work",
            Cause::Rest => "rest",
            Cause::PlanSent => "plan sent",
            Cause::PermissionAsked => "permission asked",
            Cause::Answered => "answered",
            Cause::Asked => "asked",
            Cause::Refused => "refused",
            Cause::Released => "released",
            Cause::Ended { code: Some(0) } => "ended with 0",
            Cause::Ended { .. } => "ended otherwise",
            Cause::Forced => "forced",
            Cause::Vanished => "vanished",
        }
    }
}

impl MemberState {
    /// The word for people and for `--json`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Pending => "pending",
            Starting => "starting",
            Working => "working",
            Idle => "idle",
            AwaitingPlan => "awaiting_plan",
            AwaitingPermission => "awaiting_permission",
            ShutdownRequested => "shutdown_requested",
            Completed => "completed",
            Failed => "failed",
            Killed => "killed",
            Disappeared => "disappeared",
        }
    }

    /// Whether the member's run is over.
    pub(crate) fn is_over(self) -> bool {
        !LIVING.contains(&self)
    }

    /// Whether it has proven that it runs, and its run is not over.
    pub(crate) fn is_up(self) -> bool {
        UP.contains(&self)
    }

    /// What can happen to a member in this state: the cause, the next state, and what else follows, in words.
    pub(crate) fn ways_on(self) -> impl Iterator<Item = (&'static str, MemberState, &'static str)> {
        let from_here = move |line: &&Line| line.from.contains(&self);
        TABLE.iter().filter(from_here).map(|line| (line.cause, line.to, line.follows))
    }

    /// The state after `cause`; none where the cause changes nothing (what is over stays over).
    pub(crate) fn after(self, cause: Cause) -> Option<MemberState> {
        let word = cause.word();
        TABLE
            .iter()
            .find(|line| line.cause == word && line.from.contains(&self))
            .map(|line| line.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [MemberState; 11] = [
        Pending,
        Starting,
        Working,
        Idle,
        AwaitingPlan,
        AwaitingPermission,
        ShutdownRequested,
        Completed,
        Failed,
        Killed,
        Disappeared,
    ];
    const CAUSES: [Cause; 15] = [
        Cause::Placed,
        Cause::Ready,
        Cause::Work,
        Cause::Rest,
        Cause::PlanSent,
        Cause::PermissionAsked,
        Cause::Answered,
        Cause::Asked,
        Cause::Refused,
        Cause::Released,
        Cause::Ended { code: Some(0) },
        Cause::Ended { code: Some(7) },
        Cause::Ended { code: None },
        Cause::Forced,
        Cause::Vanished,
    ];

    #[test]
    fn what_is_over_stays_over() {
        for state in ALL.into_iter().filter(|s| s.is_over()) {
            assert!(CAUSES.into_iter().all(|cause| state.after(cause).is_none()), "{state:?}");
            assert!(!state.is_up());
        }
    }

    #[test]
    fn every_run_that_is_not_over_can_end_in_each_way() {
        for state in ALL.into_iter().filter(|s| !s.is_over()) {
            let ends =
                CAUSES.into_iter().filter_map(|cause| state.after(cause)).filter(|s| s.is_over());
            let ends: Vec<&str> = ends.map(MemberState::as_str).collect();
            let expected = ["completed", "completed", "failed", "failed", "killed", "disappeared"]
                .map(str::to_owned);
            assert_eq!(ends, expected, "{state:?}");
        }
    }

    /// Each line decides on its own: no state has two ways to go by one cause, and none leads to where it starts.
    #[test]
    fn the_table_is_unambiguous() {
        for state in ALL {
            for cause in CAUSES {
                let lines =
                    TABLE.iter().filter(|l| l.cause == cause.word() && l.from.contains(&state));
                assert!(lines.clone().count() <= 1, "{state:?} {cause:?}");
                assert!(lines.into_iter().all(|line| line.to != state), "{state:?} {cause:?}");
            }
        }
        let known = |line: &Line| CAUSES.iter().any(|cause| cause.word() == line.cause);
        assert!(TABLE.iter().all(known), "a cause that nobody has");
    }

    /// The page shows what is done.
    #[test]
    fn the_page_shows_the_table() {
        let words = |states: &[MemberState]| {
            states
                .iter()
                .map(|state| format!("`{}`", state.as_str()))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let row = |line: &Line| {
            let from = if line.from == LIVING {
                "any that is not over".to_owned()
            } else {
                words(line.from)
            };
            format!("| {from} | {} | {} | {} |", line.cause, words(&[line.to]), line.follows)
        };
        let page = include_str!("../../docs/lifecycle.md");
        let shown: Vec<&str> =
            page.lines().filter(|l| l.starts_with("| `") || l.starts_with("| any")).collect();
        let expected: Vec<String> = TABLE.iter().map(row).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn pm_07_a_member_that_waits_for_an_answer_can_be_asked_to_end() {
        for waiting in [AwaitingPlan, AwaitingPermission] {
            assert_eq!(waiting.after(Cause::Asked), Some(ShutdownRequested));
            assert_eq!(waiting.after(Cause::Answered), Some(Working));
        }
    }

    #[test]
    fn the_common_walk() {
        let walk = [
            (Cause::Placed, Starting),
            (Cause::Ready, Idle),
            (Cause::Work, Working),
            (Cause::Asked, ShutdownRequested),
            (Cause::Refused, Working),
            (Cause::Rest, Idle),
            (Cause::Asked, ShutdownRequested),
            (Cause::Released, Completed),
        ];
        let mut state = Pending;
        for (cause, next) in walk {
            state = state.after(cause).expect("a step of the walk");
            assert_eq!(state, next);
        }
    }

    #[test]
    fn msg_12_rest_is_an_edge() {
        assert_eq!(Working.after(Cause::Rest), Some(Idle));
        assert_eq!(Idle.after(Cause::Rest), None);
    }

    #[test]
    fn ends_are_told_apart() {
        assert_eq!(Working.after(Cause::Ended { code: Some(7) }), Some(Failed));
        assert_eq!(Working.after(Cause::Ended { code: None }), Some(Failed));
        assert_eq!(Idle.after(Cause::Ended { code: Some(0) }), Some(Completed));
        assert_eq!(Idle.after(Cause::Vanished), Some(Disappeared));
    }
}
