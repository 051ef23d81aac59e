//! The ways in which a run is ended, also on another host.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The way in which a run is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopMode {
    /// The member has agreed: its program may exit by itself first.
    Agreed,
    /// The program gets SIGTERM, and SIGKILL after this time.
    Graceful(Duration),
    /// The launcher is signalled at once.
    Immediate,
}

impl StopMode {
    /// Returns the time between SIGTERM and SIGKILL for the program.
    pub(crate) fn grace(self) -> Duration {
        match self {
            StopMode::Graceful(grace) => grace,
            StopMode::Agreed | StopMode::Immediate => Duration::ZERO,
        }
    }
}
