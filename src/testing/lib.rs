//! Access to the store, the parsers and the decisions for benches, fuzz targets and integration
//! tests. It can change at any time.

#[cfg(test)]
mod decide;
mod host;
mod parse;
mod team;

pub use fixture::{TestCluster, TestDatabase};
pub use host::{HostOutput, TestHost};
pub use lead::StepBench;
pub use parse::{
    parse_agent_output, parse_broker_message, parse_host_line, parse_hosts, parse_mailbox,
    parse_manifest, parse_patch, parse_protocol, parse_store_url, parse_task, parse_team,
};
pub use team::{Entry, Follower, TaskRow, TestTeam};
