//! Findings of `doctor`: a problem or an observation, what to do about it, and its repair.

use serde::Serialize;

use crate::OpsError;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Information; no action is needed.
    Note,
    /// A leftover, or something that works with restrictions.
    Warning,
    /// Something does not work, or runs without an owner: a person must act.
    Problem,
}

/// One reported problem or observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable identifier for scripts, for example `orphan_pane` or `stale_lock`.
    pub id: &'static str,
    pub severity: Severity,
    /// Description for people.
    pub what: String,
    /// A path, a socket or a process.
    #[serde(rename = "where")]
    pub place: String,
    /// The command to run, or a description of what to do.
    pub fix: Option<String>,
    /// Set if this run repaired it.
    pub fixed: bool,
    /// The reason why the repair failed, if it was attempted.
    pub failure: Option<String>,
}

impl Finding {
    pub(super) fn new(
        id: &'static str,
        severity: Severity,
        what: impl Into<String>,
        place: impl Into<String>,
    ) -> Finding {
        let (what, place) = (what.into(), place.into());
        Finding { id, severity, what, place, fix: None, fixed: false, failure: None }
    }

    /// Adds the advice shown to the user.
    pub(super) fn advise(self, fix: impl Into<String>) -> Finding {
        Finding { fix: Some(fix.into()), ..self }
    }

    /// Offers `--fix`; if `fix` is set, runs `mend` now. `Ok(false)` from `mend` means the object
    /// is in use again.
    pub(super) fn mend(self, fix: bool, mend: impl FnOnce() -> Result<bool, OpsError>) -> Finding {
        let offered = self.advise("phalanx doctor --fix");
        if !fix {
            return offered;
        }
        match mend() {
            Ok(true) => Finding { fixed: true, ..offered },
            Ok(false) => Finding {
                failure: Some("it is in use again and was left alone".to_owned()),
                ..offered
            },
            Err(e) => Finding { failure: Some(e.to_string()), ..offered },
        }
    }

    /// Returns whether a person has to act.
    pub fn is_open(&self) -> bool {
        self.severity == Severity::Problem && !self.fixed
    }
}
