//! One member: its record, its state, where it runs, and what it uses.

pub mod assessment;
pub mod budget;
pub mod environ;
pub mod input;
pub mod launch;
pub mod lifecycle;
pub mod mode;
pub mod need;
pub mod placeholder;
pub mod placement;
pub mod prompt;
pub mod query;
pub mod rate_limit;
pub mod readiness;
pub mod record;
pub mod said;
pub mod spec;
pub mod transcript;
pub mod usage;
