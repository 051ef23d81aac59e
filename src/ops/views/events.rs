//! The notice about a team that is polled for changes.

use sys::watch::PollingReason;

/// Returns the warning that is shown once if a team is polled.
pub fn polling_notice(reason: PollingReason) -> &'static str {
    match reason {
        PollingReason::NetworkFiles => {
            "the team is on a network file system: phalanx polls for changes every 2 s instead of being told"
        }
        PollingReason::LimitReached => {
            "the system's limit of watches for file changes is reached: phalanx polls every 2 s instead of being told"
        }
    }
}
