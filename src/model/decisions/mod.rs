//! Questions, requests and rules.

pub mod question;
pub mod request;
pub mod rules;
pub mod shutdown_check;
pub mod user_question;
