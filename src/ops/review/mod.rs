//! The work of members as a reviewer reads it: what waits for a review, the changes of one member,
//! and comments on them from the draft to the answer.

pub mod changes;
pub mod checks;
pub mod comments;
pub mod conflicts;
pub mod decide;
pub mod landing;
pub mod overview;
pub mod page;
pub mod pass;
pub mod place;
pub mod pull_request;
pub mod send;
pub mod tasks;
#[cfg(test)]
mod tests;
