//! The request of another thread to stop a running program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that several threads share. Once it is set, the programs that run with it are killed
/// within 50 ms, and no other is started.
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Cancels what runs with this token or with a clone of it. Cannot be taken back.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
