//! The work of members as a reviewer reads it: what waits for a review, and the changes of one
//! member.

pub mod changes;
pub mod overview;
#[cfg(test)]
mod tests;
