//! The key `worktree` of a member.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

use crate::model::value::{checked, inline_schema, parse_non_blank};
use crate::model::worktree::check_branch;

/// `worktree` of a member.
#[derive(Debug)]
pub(super) enum WorktreeKey {
    Own(bool),
    Branch(String),
}

inline_schema!(WorktreeKey, { "type": ["boolean", "string"] });

impl<'de> Deserialize<'de> for WorktreeKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WorktreeKey, D::Error> {
        deserializer.deserialize_any(WorktreeVisitor)
    }
}

struct WorktreeVisitor;

impl Visitor<'_> for WorktreeVisitor {
    type Value = WorktreeKey;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("true, false or the name of a branch")
    }

    fn visit_bool<E: Error>(self, own: bool) -> Result<WorktreeKey, E> {
        Ok(WorktreeKey::Own(own))
    }

    fn visit_str<E: Error>(self, branch: &str) -> Result<WorktreeKey, E> {
        let branch = checked(parse_non_blank(branch), check_branch);
        branch.map(WorktreeKey::Branch).map_err(E::custom)
    }
}
