//! From a launch request to a proven member.

pub mod agent_lead;
pub mod agents;
pub mod brief;
pub mod catch_up;
pub mod manifest;
pub mod one_shot;
pub mod reconcile;
pub mod recover;
pub mod rename;
pub mod resume;
pub mod roles;
pub mod settings;
pub mod spawn;
pub mod templates;
