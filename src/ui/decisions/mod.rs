//! Requests: their table, and the page of one.

pub(crate) mod request_page;
pub(crate) mod requests;
