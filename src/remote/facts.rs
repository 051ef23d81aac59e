//! Facts about a host, as its own programs report them.

use std::time::Duration;

use super::connection::{HostConnection, timed};
use super::error::HostError;
use super::script;
use sys::clock::machine_ms;

/// Time for all questions to a host.
const DEADLINE: Duration = Duration::from_secs(30);

/// The state of a host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostFacts {
    /// Operating system and architecture, as `uname -sm` prints them.
    pub system: String,
    /// True if the work directory exists, after an attempt to create it.
    pub has_dir: bool,
    pub is_writable: bool,
    /// True if the work directory belongs to the user there.
    pub is_own: bool,
    /// Permissions of the work directory.
    pub mode: Option<u32>,
    /// Path of phalanx.
    pub phalanx: Option<String>,
    /// First line of `phalanx --version`.
    pub phalanx_version: Option<String>,
    /// Line of `tmux -V`; `None` without tmux.
    pub tmux: Option<String>,
    /// Line of `git --version`; `None` without git.
    pub git: Option<String>,
}

/// The clock of a host compared with that of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    /// Time of the host minus time of this machine.
    pub offset_ms: i64,
    /// Largest error of the offset: half of the round trip, and the resolution of the host's
    /// `date`.
    pub error_ms: u64,
}

/// Asks a host for its facts; creates the work directory if it is missing.
///
/// # Errors
/// As [`HostConnection::read`].
pub fn facts(connection: &HostConnection) -> Result<HostFacts, HostError> {
    let host = connection.host();
    let program = host.phalanx.as_deref().unwrap_or_default();
    let argv = script::argv(script::FACTS, &[&host.dir, program]);
    let output = connection.read(&argv, &[], DEADLINE)?;
    Ok(parse_facts(&String::from_utf8_lossy(&output)))
}

fn parse_facts(output: &str) -> HostFacts {
    let mut facts = HostFacts::default();
    for line in output.lines() {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        let value = value.trim();
        match (key, value) {
            ("system", system) => facts.system = system.to_owned(),
            ("dir", "made") => facts.has_dir = true,
            ("dir", "writable") => facts.is_writable = true,
            ("dir", "own") => facts.is_own = true,
            ("mode", mode) => facts.mode = u32::from_str_radix(mode, 8).ok(),
            ("phalanx-path", path) => facts.phalanx = Some(path.to_owned()),
            ("phalanx", version) => facts.phalanx_version = Some(version.to_owned()),
            ("tmux", version) => facts.tmux = Some(version.to_owned()),
            ("git", version) => facts.git = Some(version.to_owned()),
            _ => {}
        }
    }
    facts
}

/// Compares the clocks over a connection that exists already.
///
/// # Errors
/// As [`HostConnection::read`].
pub fn clock_offset(connection: &HostConnection) -> Result<Option<ClockOffset>, HostError> {
    let argv: Vec<_> = script::CLOCK.split(' ').map(Into::into).collect();
    let before_ms = machine_ms();
    let (output, round_trip) = timed(|| connection.read(&argv, &[], DEADLINE));
    Ok(parse_clock(&String::from_utf8_lossy(&output?), before_ms, round_trip))
}

fn parse_clock(output: &str, before_ms: u64, round_trip: Duration) -> Option<ClockOffset> {
    /// Half of the resolution of a `date` that only knows seconds.
    const HALF_SECOND: u64 = 500;
    let digits: String = output.trim().chars().take_while(char::is_ascii_digit).collect();
    // `%3N` stays in place, or becomes `3N`, where it is unknown.
    let (there_ms, resolution_ms) = match (digits.len(), output.trim().ends_with('N')) {
        (13, false) => (digits.parse::<u64>().ok()?, 0),
        (10.., true) => (digits[..10].parse::<u64>().ok()? * 1000 + HALF_SECOND, HALF_SECOND),
        _ => return None,
    };
    let half_ms = u64::try_from(round_trip.as_millis()).ok()? / 2;
    let here_ms = before_ms + half_ms;
    Some(ClockOffset {
        offset_ms: i64::try_from(there_ms).ok()? - i64::try_from(here_ms).ok()?,
        error_ms: half_ms + 1 + resolution_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_parsed_and_missing_programs_are_none() {
        let output = "system Linux x86_64\ndir made\ndir writable\ndir own\nmode 700\n\
                      phalanx-path /w/bin/phalanx\nphalanx phalanx 0.1.0\ntmux tmux 3.3a\nother 1\n";
        let facts = parse_facts(output);
        assert_eq!((facts.system.as_str(), facts.mode), ("Linux x86_64", Some(0o700)));
        assert!(facts.has_dir && facts.is_writable && facts.is_own);
        assert_eq!(facts.phalanx.as_deref(), Some("/w/bin/phalanx"));
        assert_eq!(facts.phalanx_version.as_deref(), Some("phalanx 0.1.0"));
        assert_eq!((facts.tmux.as_deref(), facts.git), (Some("tmux 3.3a"), None));
        assert_eq!(parse_facts(""), HostFacts::default());
    }

    #[test]
    fn clock_offset_is_bounded_by_half_the_round_trip() {
        let offset = |output, before, ms| {
            let found = parse_clock(output, before, Duration::from_millis(ms))?;
            Some((found.offset_ms, found.error_ms))
        };
        let now = 1_700_000_000_000;
        assert_eq!(offset("1700000000050\n", now, 100), Some((0, 51)));
        assert_eq!(offset("1700000061050\n", now, 100), Some((61_000, 51)));
        assert_eq!(offset("1699999990050\n", now, 100), Some((-10_000, 51)));
        assert_eq!(offset("1700000000%3N\n", now, 100), Some((450, 551)), "BusyBox");
        assert_eq!(offset("17000000003N\n", now, 100), Some((450, 551)), "macOS");
        assert_eq!(offset("", now, 0), None);
        assert_eq!(offset("Mon Nov 23\n", now, 0), None);
    }
}
