//! Hosts on which members can run: those of a team's manifest, then those of the user's files.

pub mod away;
pub mod backend;
mod check;
pub mod client;
pub mod deliver;
mod install;
pub mod link;
pub(crate) mod log_part;
pub mod stop_mode;
pub mod wire;

use std::path::{Path, PathBuf};

use crate::{Context, OpsError};
use config::hosts::read_hosts;
use model::id::{HostName, nearest_name};
use model::team::host::{HostChoice, HostConfig};
use remote::fits_socket;
use sys::env;

pub use check::{HostReport, check};
pub use client::dead_runs;
pub(crate) use client::{HOSTS_ANSWER, HostAnswer, ask_hosts, read_log};
pub use install::{install, program_file};
pub(crate) use link::interactive;
pub use link::reach_store;
pub use wire::parse_line;

pub use config::hosts::ConfiguredHost;

/// Returns the hosts of `team`, the settings of a team, and of the user's files, in this order. Of
/// hosts with the same name the first one counts.
///
/// # Errors
/// [`OpsError::Usage`] for a file that cannot be read or parsed.
pub fn configured(ctx: &Context, team: &[HostConfig]) -> Result<Vec<ConfiguredHost>, OpsError> {
    let own = |host: &HostConfig| ConfiguredHost {
        config: host.clone(),
        source: "the team's settings".to_owned(),
    };
    let mut found: Vec<ConfiguredHost> = team.iter().map(own).collect();
    let clashes = |found: &[ConfiguredHost], host: &ConfiguredHost| {
        found.iter().any(|known| known.config.name.clashes_with(&host.config.name))
    };
    for host in of_user(ctx)? {
        if !clashes(&found, &host) {
            found.push(host);
        }
    }
    Ok(found)
}

/// Returns the hosts of the user's files.
///
/// # Errors
/// As [`configured`].
pub fn user_hosts(ctx: &Context) -> Result<Vec<HostConfig>, OpsError> {
    Ok(of_user(ctx)?.into_iter().map(|host| host.config).collect())
}

fn of_user(ctx: &Context) -> Result<Vec<ConfiguredHost>, OpsError> {
    read_hosts(&files(ctx)).map_err(|problem| OpsError::Usage {
        problem,
        hint: Some("the keys are described in `phalanx docs hosts`".to_owned()),
    })
}

/// The user's files: that of the config root, then that of the XDG configuration directory.
fn files(ctx: &Context) -> Vec<PathBuf> {
    let home = || ctx.caller.var("HOME").map(PathBuf::from).or_else(env::home_dir);
    let xdg = ctx.caller.var("XDG_CONFIG_HOME").map(PathBuf::from);
    // The specification of XDG ignores relative paths.
    let xdg = xdg.filter(|dir| dir.is_absolute()).or_else(|| Some(home()?.join(".config")));
    std::iter::once(ctx.store.hosts_file())
        .chain(xdg.map(|dir| dir.join("phalanx").join("hosts.toml")))
        .collect()
}

/// Returns the host of this name.
///
/// # Errors
/// [`OpsError::NoSuchHost`].
pub fn find<'h>(
    hosts: &'h [ConfiguredHost],
    name: &HostName,
) -> Result<&'h ConfiguredHost, OpsError> {
    let choice = HostChoice::Name(name.clone());
    let found = hosts.iter().find(|host| choice.accepts(&host.config));
    found.ok_or_else(|| no_such_host(&choice, hosts))
}

/// Returns the directory of the control sockets: one of the config root, else one for short paths.
pub fn control_dir(ctx: &Context) -> PathBuf {
    let short = match ctx.caller.var("XDG_RUNTIME_DIR").map(Path::new) {
        Some(dir) if dir.is_absolute() && fits_socket(&dir.join("phalanx-ssh")) => {
            dir.join("phalanx-ssh")
        }
        _ => PathBuf::from(format!("/tmp/phalanx-ssh-{}", env::effective_uid())),
    };
    let own = ctx.store.ssh_dir();
    if fits_socket(&own) { own } else { short }
}

/// Returns the error for a choice that no host satisfies.
pub(super) fn no_such_host(choice: &HostChoice, hosts: &[ConfiguredHost]) -> OpsError {
    let known: Vec<&str> = hosts.iter().map(|host| host.config.name.as_str()).collect();
    let (problem, nearest) = match choice {
        HostChoice::Name(name) => {
            (format!("host `{name}` is not configured"), nearest_name(name.as_str(), &known))
        }
        HostChoice::Labels(labels) => {
            (format!("no host has all of these labels: {}", labels.join(", ")), None)
        }
    };
    OpsError::NoSuchHost {
        problem,
        nearest: nearest.map(str::to_owned),
        known: known.into_iter().map(str::to_owned).collect(),
    }
}
