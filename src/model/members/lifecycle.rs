//! The member lifecycle as a transition table. `docs/lifecycle.md` shows the same table.

use serde::{Deserialize, Serialize};

use MemberState::{
    AwaitingPermission, AwaitingPlan, Completed, Disappeared, Failed, Idle, Killed, Pending,
    ShutdownRequested, Starting, Working,
};

/// The last known state of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum MemberState {
    /// To be started; nothing runs yet.
    Pending,
    /// Its launcher was handed to a backend but has not yet proven that it runs.
    Starting,
    /// Runs and has work.
    Working,
    /// Runs and has no work.
    Idle,
    /// Runs and waits for approval of its plan.
    AwaitingPlan,
    /// Runs and waits for a permission.
    AwaitingPermission,
    /// Was asked to shut down and has not answered.
    ShutdownRequested,
    /// Ended by the shutdown handshake, or its program exited with code 0.
    Completed,
    /// Its program exited with another code or a signal, or failed to start.
    Failed,
    /// Was stopped by phalanx without its consent.
    Killed,
    /// Its process disappeared without a request.
    Disappeared,
}

/// The cause of a state change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The backend received the launcher.
    Placed,
    /// The member proved that it runs.
    Ready,
    /// The member began work.
    Work,
    /// The member has no more work.
    Rest,
    /// The member submitted a plan.
    PlanSent,
    /// The member asked for a permission.
    PermissionAsked,
    /// The member's plan or request was answered or timed out.
    Answered,
    /// The lead asked the member to shut down.
    Asked,
    /// The member rejected the shutdown, or the request timed out.
    Refused,
    /// The member agreed to shut down, and its placement is gone.
    Released,
    /// The program exited with this code; `None` if a signal killed it.
    Ended { code: Option<i32> },
    /// Phalanx stopped the member.
    Forced,
    /// The process is gone and left no exit record.
    Vanished,
}

/// A row of the table: in any of the `from` states, `cause` leads to `to`.
struct Transition {
    from: &'static [MemberState],
    cause: &'static str,
    to: MemberState,
    /// Side effects, for `docs/lifecycle.md`.
    follows: &'static str,
}

/// States of a member that runs.
const UP: [MemberState; 5] = [Working, Idle, AwaitingPlan, AwaitingPermission, ShutdownRequested];
/// States of a run that is not over.
const LIVING: [MemberState; 7] =
    [Pending, Starting, Working, Idle, AwaitingPlan, AwaitingPermission, ShutdownRequested];
const REMOVED: &str =
    "removed from the roster; its tasks are released; the lead is notified by mail";

/// All transitions. Any other combination of state and cause changes nothing.
const TABLE: [Transition; 16] = [
    line(&[Pending], "placed", Starting, "the record contains the placement"),
    line(&[Starting], "ready", Idle, "it is a member of the team; its prompt is in its mailbox"),
    line(&[Starting, Idle], "work", Working, "`isActive` is true"),
    line(
        &[Starting, Working],
        "rest",
        Idle,
        "`isActive` is false; one idle notification per transition",
    ),
    line(&[Working, Idle], "plan sent", AwaitingPlan, "a request awaits the lead's answer"),
    line(
        &[Working, Idle],
        "permission asked",
        AwaitingPermission,
        "a request awaits an answer by a person or a rule",
    ),
    line(&[AwaitingPlan, AwaitingPermission], "answered", Working, "the answer is in its mailbox"),
    line(
        &[Pending, Starting, Working, Idle, AwaitingPlan, AwaitingPermission],
        "asked",
        ShutdownRequested,
        "a request with a deadline is in its mailbox",
    ),
    line(&[ShutdownRequested], "refused", Working, "the request ends as `rejected`"),
    line(&LIVING, "released", Completed, REMOVED),
    line(&LIVING, "ended with 0", Completed, REMOVED),
    line(&LIVING, "ended otherwise", Failed, REMOVED),
    line(&LIVING, "forced", Killed, REMOVED),
    line(&LIVING, "vanished", Disappeared, REMOVED),
    line(&[AwaitingPlan], "rest", Idle, "it continued without the answer"),
    line(&[AwaitingPermission], "rest", Idle, "it continued without the answer"),
];

const fn line(
    from: &'static [MemberState],
    cause: &'static str,
    to: MemberState,
    follows: &'static str,
) -> Transition {
    Transition { from, cause, to, follows }
}

impl Cause {
    /// The name in the table.
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
    /// The name in tables and in `--json`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    pub fn is_over(self) -> bool {
        !LIVING.contains(&self)
    }

    /// Returns true if the member has proven that it runs and its run is not over.
    pub fn is_up(self) -> bool {
        UP.contains(&self)
    }

    /// Returns the transitions from this state: cause, next state, and side effects.
    pub fn ways_on(self) -> impl Iterator<Item = (&'static str, MemberState, &'static str)> {
        let from_here = move |line: &&Transition| line.from.contains(&self);
        TABLE.iter().filter(from_here).map(|line| (line.cause, line.to, line.follows))
    }

    /// Returns the state after `cause`; `None` if the cause changes nothing, as for a run that is
    /// over.
    pub fn after(self, cause: Cause) -> Option<MemberState> {
        let word = cause.word();
        TABLE
            .iter()
            .find(|line| line.cause == word && line.from.contains(&self))
            .map(|line| line.to)
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantArray;

    use super::*;

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
    fn terminal_states_have_no_transitions() {
        for state in MemberState::VARIANTS.iter().copied().filter(|s| s.is_over()) {
            assert!(CAUSES.into_iter().all(|cause| state.after(cause).is_none()), "{state:?}");
            assert!(!state.is_up());
        }
    }

    #[test]
    fn every_live_state_can_end_in_each_way() {
        for state in MemberState::VARIANTS.iter().copied().filter(|s| !s.is_over()) {
            let ends =
                CAUSES.into_iter().filter_map(|cause| state.after(cause)).filter(|s| s.is_over());
            let ends: Vec<&str> = ends.map(MemberState::as_str).collect();
            let expected = ["completed", "completed", "failed", "failed", "killed", "disappeared"]
                .map(str::to_owned);
            assert_eq!(ends, expected, "{state:?}");
        }
    }

    /// No state has two transitions for one cause or a transition to itself.
    #[test]
    fn transition_table_is_unambiguous() {
        for state in MemberState::VARIANTS.iter().copied() {
            for cause in CAUSES {
                let lines =
                    TABLE.iter().filter(|l| l.cause == cause.word() && l.from.contains(&state));
                assert!(lines.clone().count() <= 1, "{state:?} {cause:?}");
                assert!(lines.into_iter().all(|line| line.to != state), "{state:?} {cause:?}");
            }
        }
        let known = |line: &Transition| CAUSES.iter().any(|cause| cause.word() == line.cause);
        assert!(TABLE.iter().all(known), "a cause that nobody has");
    }

    #[test]
    fn lifecycle_page_shows_the_table() {
        let words = |states: &[MemberState]| {
            states
                .iter()
                .map(|state| format!("`{}`", state.as_str()))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let row = |line: &Transition| {
            let from =
                if line.from == LIVING { "any live state".to_owned() } else { words(line.from) };
            format!("| {from} | {} | {} | {} |", line.cause, words(&[line.to]), line.follows)
        };
        let page = include_str!("../../../docs/lifecycle.md");
        let (page, _) = page.split_once("## Activity of a member").expect("the next table");
        let shown: Vec<&str> =
            page.lines().filter(|l| l.starts_with("| `") || l.starts_with("| any")).collect();
        let expected: Vec<String> = TABLE.iter().map(row).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn pm_07_member_awaiting_an_answer_can_be_asked_to_shut_down() {
        for waiting in [AwaitingPlan, AwaitingPermission] {
            assert_eq!(waiting.after(Cause::Asked), Some(ShutdownRequested));
            assert_eq!(waiting.after(Cause::Answered), Some(Working));
        }
    }

    #[test]
    fn common_path_leads_from_pending_to_completed() {
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
    fn msg_12_rest_changes_state_only_once() {
        assert_eq!(Working.after(Cause::Rest), Some(Idle));
        assert_eq!(Idle.after(Cause::Rest), None);
    }

    #[test]
    fn exit_code_signal_and_disappearance_are_distinguished() {
        assert_eq!(Working.after(Cause::Ended { code: Some(7) }), Some(Failed));
        assert_eq!(Working.after(Cause::Ended { code: None }), Some(Failed));
        assert_eq!(Idle.after(Cause::Ended { code: Some(0) }), Some(Completed));
        assert_eq!(Idle.after(Cause::Vanished), Some(Disappeared));
    }
}
