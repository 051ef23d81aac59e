//! From a launch request to a proven member.

pub(crate) mod agent_lead;
pub(crate) mod agents;
pub(crate) mod brief;
pub(crate) mod catch_up;
pub(crate) mod manifest;
pub(crate) mod one_shot;
pub(crate) mod recover;
pub(crate) mod resume;
pub(crate) mod roles;
pub(crate) mod settings;
pub(crate) mod spawn;
pub(crate) mod templates;
