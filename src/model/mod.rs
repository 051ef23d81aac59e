//! Domain types and the rules over them. Everything here is pure: it accesses no files, clocks,
//! processes or terminals.

pub(crate) mod board;
pub(crate) mod brief;
pub(crate) mod causes;
pub(crate) mod cycle;
pub(crate) mod digest;
pub(crate) mod envelope;
pub(crate) mod environ;
pub(crate) mod event;
pub(crate) mod external_change;
pub(crate) mod followup;
pub(crate) mod hook;
pub(crate) mod id;
pub(crate) mod input;
pub(crate) mod launch;
pub(crate) mod lifecycle;
pub(crate) mod limits;
pub(crate) mod mode;
pub(crate) mod name;
pub(crate) mod placement;
pub(crate) mod protocol;
pub(crate) mod question;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod request;
pub(crate) mod results;
pub(crate) mod role;
pub(crate) mod rules;
pub(crate) mod said;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod settings;
pub(crate) mod shutdown_check;
pub(crate) mod spec;
pub(crate) mod task;
pub(crate) mod task_definition;
pub(crate) mod team;
pub(crate) mod text;
pub(crate) mod time;
pub(crate) mod topic;
pub(crate) mod waiting;
pub(crate) mod wire;
pub(crate) mod worktree;
