//! The proof that a placement is ours. Every backend reports what it observed, and the rules here
//! turn that into a verdict; only a placement with the verdict *owned* is closed.
//!
//! - *gone*: a complete list does not contain the place, or its server, terminal program or
//!   launcher has ended.
//! - *owned*: the place exists, and each part of its identity is as recorded.
//! - *foreign*: the place exists, and a part differs, so that its id now belongs to something else.
//! - *unknown*: the record is invalid, the answer is missing or incomplete, or a part cannot be
//!   read.
//!
//! The parts are compared in a fixed order, and the first that is not as recorded decides:
//!
//! - tmux: token, pid of the pane's process, start time of that process. The server is the recorded
//!   one, by pid and start time, and owns the recorded socket.
//! - iTerm2: token, terminal.
//! - PTY: pid and start time of the launcher.
//!
//! Seconds may pass between the verdict and the close, in which the processes end. A place that
//! changes meanwhile is not closed: tmux and iTerm2 compare the identity in the step that closes,
//! and a launcher is signalled through a pidfd.

use super::error::BackendError;
use model::members::placement::{Placement, ProcessId, Verdict};
use sys::proc::{self, Liveness, Process};

/// A recorded placement and the token that proves it ours.
#[derive(Debug, Clone, Copy)]
pub struct Mark<'a> {
    pub placement: &'a Placement,
    pub token: &'a str,
}

impl<'a> Mark<'a> {
    pub fn new(placement: &'a Placement, token: &'a str) -> Mark<'a> {
        Mark { placement, token }
    }

    /// The error for a placement that was not touched.
    pub(super) fn not_ours(self, verdict: Verdict) -> BackendError {
        BackendError::NotOurs { place: self.placement.to_string(), verdict }
    }
}

/// The reason of an unknown verdict if a backend returns too few answers.
pub(super) const NO_ANSWER: &str = "the backend did not answer";
/// The reason of an unknown verdict on a placement of ours whose close was not permitted.
const NOT_PERMITTED: &str = "its close was not permitted";

/// A backend's observation of the place with the recorded id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Observation {
    /// It certainly does not exist.
    Absent,
    /// It exists. Its parts, in the order of comparison; without any, nothing is proven.
    Present(Vec<IdentityPart>),
    /// It could not be observed; the reason.
    Unclear(String),
}

impl Observation {
    /// Something else is in its place; the difference.
    pub(super) fn different(difference: &str) -> Observation {
        Observation::Present(vec![IdentityPart::Different(difference.to_owned())])
    }
}

/// A part of an identity, compared with the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IdentityPart {
    Same,
    /// The name of the part that differs.
    Different(String),
    /// The reason why the part cannot be read.
    Unreadable(String),
}

impl IdentityPart {
    /// Compares the part `name`.
    pub(super) fn compare<T: PartialEq + ?Sized>(
        name: &str,
        recorded: &T,
        observed: &T,
    ) -> IdentityPart {
        if recorded == observed {
            IdentityPart::Same
        } else {
            IdentityPart::Different(name.to_owned())
        }
    }
}

/// Applies the rules.
pub(super) fn judge(observation: Observation) -> Verdict {
    let parts = match observation {
        Observation::Absent => return Verdict::Gone,
        Observation::Unclear(reason) => return Verdict::Unknown { reason },
        Observation::Present(parts) => parts,
    };
    match parts
        .into_iter()
        .reduce(|first, next| if first == IdentityPart::Same { next } else { first })
    {
        Some(IdentityPart::Same) => Verdict::Owned,
        Some(IdentityPart::Different(difference)) => Verdict::Foreign { difference },
        Some(IdentityPart::Unreadable(reason)) => Verdict::Unknown { reason },
        None => Verdict::Unknown { reason: "no part of it was compared".to_owned() },
    }
}

/// The state of a recorded process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessState {
    Running,
    Ended,
    /// Its pid now belongs to another process.
    Replaced,
    Unknown,
}

pub(super) fn process_state(process: ProcessId) -> ProcessState {
    match proc::liveness(process.pid, process.start) {
        Liveness::Alive => ProcessState::Running,
        Liveness::Unknown => ProcessState::Unknown,
        Liveness::Dead if Process::of(process.pid).is_some() => ProcessState::Replaced,
        Liveness::Dead => ProcessState::Ended,
    }
}

/// The result of closing a placement.
#[derive(Debug)]
pub enum CloseOutcome {
    /// It was ours, and it is closed now.
    Closed,
    /// It did not exist.
    Gone,
    /// Its id belongs to something else, which was not touched.
    Foreign { difference: String },
    /// It is not known whose it is; it was not touched.
    Unknown { reason: String },
    /// It is ours, but could not be closed: [`BackendError::StillThere`], or the error that kept it
    /// from closing.
    Failed(BackendError),
}

impl CloseOutcome {
    /// The outcome for a placement that was not closed because of its verdict. *Owned* does not
    /// keep a placement from being closed, so it counts as unknown.
    pub fn refused(verdict: Verdict) -> CloseOutcome {
        match verdict {
            Verdict::Gone => CloseOutcome::Gone,
            Verdict::Foreign { difference } => CloseOutcome::Foreign { difference },
            Verdict::Unknown { reason } => CloseOutcome::Unknown { reason },
            Verdict::Owned => CloseOutcome::Unknown { reason: NO_ANSWER.to_owned() },
        }
    }

    /// The outcome for a placement that was not closed because the caller did not permit it.
    pub fn not_permitted(verdict: Verdict) -> CloseOutcome {
        match verdict {
            Verdict::Owned => CloseOutcome::Unknown { reason: NOT_PERMITTED.to_owned() },
            other => CloseOutcome::refused(other),
        }
    }

    /// Returns the verdict on a placement that is closed now.
    ///
    /// # Errors
    /// [`BackendError::NotOurs`] for a placement that was not touched, or the error of the close.
    pub fn into_verdict(self, placement: &Placement) -> Result<Verdict, BackendError> {
        let not_ours = |verdict| BackendError::NotOurs { place: placement.to_string(), verdict };
        match self {
            CloseOutcome::Closed => Ok(Verdict::Owned),
            CloseOutcome::Gone => Ok(Verdict::Gone),
            CloseOutcome::Foreign { difference } => Err(not_ours(Verdict::Foreign { difference })),
            CloseOutcome::Unknown { reason } => Err(not_ours(Verdict::Unknown { reason })),
            CloseOutcome::Failed(error) => Err(error),
        }
    }
}

/// A placement that was just proven ours. Only [`close_proven`] makes one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Proven<'a>(Mark<'a>);

impl<'a> Proven<'a> {
    pub(super) fn mark(&self) -> Mark<'a> {
        self.0
    }
}

/// Receives the verdicts before anything is closed, for example to journal them. Nothing is closed
/// if it returns false.
pub type BeforeClose<'a> = dyn FnMut(&[Verdict]) -> bool + 'a;

/// Passes the placements with the verdict *owned* to `close`, which returns one outcome for each.
/// Returns one outcome per mark, in order.
pub(super) fn close_proven<'a>(
    marks: &[Mark<'a>],
    verdicts: Vec<Verdict>,
    before: &mut BeforeClose<'_>,
    close: impl FnOnce(&[Proven<'a>]) -> Vec<CloseOutcome>,
) -> Vec<CloseOutcome> {
    if !before(&verdicts) {
        return verdicts.into_iter().map(CloseOutcome::not_permitted).collect();
    }
    let owned = marks.iter().zip(&verdicts).filter(|(_, verdict)| **verdict == Verdict::Owned);
    let proven: Vec<Proven<'a>> = owned.map(|(mark, _)| Proven(*mark)).collect();
    let mut closed = if proven.is_empty() { Vec::new() } else { close(&proven) }.into_iter();
    verdicts
        .into_iter()
        .map(|verdict| match verdict {
            Verdict::Owned => closed.next().unwrap_or_else(|| CloseOutcome::refused(verdict)),
            other => CloseOutcome::refused(other),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::members::placement::PtyHold;

    #[test]
    fn sd_05_first_part_that_is_not_as_recorded_decides() {
        let different = || IdentityPart::Different("token".to_owned());
        let unreadable = || IdentityPart::Unreadable("no answer".to_owned());
        let (foreign, unknown) = ("foreign (token)", "unknown (no answer)");
        let present = Observation::Present;
        let table = [
            (present(vec![IdentityPart::Same, IdentityPart::Same]), "owned"),
            (present(vec![IdentityPart::Same, different(), unreadable()]), foreign),
            (present(vec![IdentityPart::Same, unreadable(), different()]), unknown),
            (present(Vec::new()), "unknown (no part of it was compared)"),
            (Observation::different("token"), foreign),
            (Observation::Unclear("no answer".to_owned()), unknown),
            (Observation::Absent, "gone"),
        ];
        for (observation, expected) in table {
            assert_eq!(judge(observation.clone()).to_string(), expected, "{observation:?}");
        }
    }

    #[test]
    fn sd_05_only_owned_placements_are_closed_and_none_without_consent() {
        let launcher = ProcessId { pid: 1, start: 1 };
        let placement = Placement::Pty(PtyHold { launcher, log: String::new() });
        let marks = ["a", "b", "c", "d"].map(|token| Mark { placement: &placement, token });
        let verdicts = || {
            vec![
                Verdict::Gone,
                Verdict::Owned,
                Verdict::Unknown { reason: "no answer".to_owned() },
                Verdict::Foreign { difference: "token".to_owned() },
            ]
        };
        for consent in [true, false] {
            let mut closed = Vec::new();
            let outcomes = close_proven(&marks, verdicts(), &mut |_| consent, |proven| {
                closed.extend(proven.iter().map(|proven| proven.mark().token));
                proven.iter().map(|_| CloseOutcome::Closed).collect()
            });
            assert_eq!(closed, if consent { vec!["b"] } else { Vec::new() });
            assert!(matches!(outcomes[0], CloseOutcome::Gone), "{outcomes:?}");
            match &outcomes[1] {
                CloseOutcome::Closed => assert!(consent),
                CloseOutcome::Unknown { reason } => {
                    assert_eq!((consent, reason.as_str()), (false, NOT_PERMITTED));
                }
                other => panic!("{other:?}"),
            }
            assert!(matches!(outcomes[2], CloseOutcome::Unknown { .. }), "{outcomes:?}");
            assert!(matches!(outcomes[3], CloseOutcome::Foreign { .. }), "{outcomes:?}");
        }
    }
}
