//! A team at work and afterwards, its settings, and what makes one.

pub(crate) mod difference;
pub(crate) mod init;
pub(crate) mod live;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod settings;
pub(crate) mod templates;
pub(crate) mod view;
