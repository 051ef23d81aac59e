//! The life of a member as one table: which state follows which cause. Knows neither processes nor files.

use serde::{Deserialize, Serialize};

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

impl MemberState {
    /// The word for people and for `--json`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            MemberState::Pending => "pending",
            MemberState::Starting => "starting",
            MemberState::Working => "working",
            MemberState::Idle => "idle",
            MemberState::ShutdownRequested => "shutdown_requested",
            MemberState::Completed => "completed",
            MemberState::Failed => "failed",
            MemberState::Killed => "killed",
            MemberState::Disappeared => "disappeared",
        }
    }

    /// Whether the member's run is over.
    pub(crate) fn is_over(self) -> bool {
        match self {
            MemberState::Completed | MemberState::Failed | MemberState::Killed | MemberState::Disappeared => {
                true
            }
            MemberState::Pending
            | MemberState::Starting
            | MemberState::Working
            | MemberState::Idle
            | MemberState::ShutdownRequested => false,
        }
    }

    /// The state after `cause`; none where the cause changes nothing (what is over stays over).
    pub(crate) fn after(self, cause: Cause) -> Option<MemberState> {
        use MemberState::{
            Completed, Disappeared, Failed, Idle, Killed, Pending, ShutdownRequested, Starting, Working,
        };
        if self.is_over() {
            return None;
        }
        let next = match cause {
            Cause::Placed if self == Pending => Starting,
            Cause::Ready if self == Starting => Idle,
            Cause::Work if matches!(self, Starting | Idle) => Working,
            Cause::Rest if matches!(self, Starting | Working) => Idle,
            Cause::Asked => ShutdownRequested,
            Cause::Refused if self == ShutdownRequested => Working,
            Cause::Released => Completed,
            Cause::Ended { code: Some(0) } => Completed,
            Cause::Ended { .. } => Failed,
            Cause::Forced => Killed,
            Cause::Vanished => Disappeared,
            Cause::Placed | Cause::Ready | Cause::Work | Cause::Rest | Cause::Refused => return None,
        };
        (next != self).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MemberState::*;

    const ALL: [MemberState; 9] =
        [Pending, Starting, Working, Idle, ShutdownRequested, Completed, Failed, Killed, Disappeared];

    #[test]
    fn what_is_over_stays_over() {
        let causes = [
            Cause::Placed,
            Cause::Ready,
            Cause::Work,
            Cause::Rest,
            Cause::Asked,
            Cause::Refused,
            Cause::Released,
            Cause::Ended { code: Some(0) },
            Cause::Forced,
            Cause::Vanished,
        ];
        for state in ALL.into_iter().filter(|s| s.is_over()) {
            for cause in causes {
                assert_eq!(state.after(cause), None, "{state:?} after {cause:?}");
            }
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
