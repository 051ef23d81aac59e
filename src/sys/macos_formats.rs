//! Formats of macOS, apart from its system calls so that they are tested on every system.

use jiff::Timestamp;

/// The arguments and variables of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcArgs {
    /// Command line, program first.
    pub(super) argv: Vec<Vec<u8>>,
    /// Variables, as `NAME=value`.
    pub(super) environment: Vec<Vec<u8>>,
}

/// Parses the answer to `sysctl` `KERN_PROCARGS2`: the number of arguments, the path of the
/// executable, NULs up to a word boundary, the arguments, and the variables up to an empty one.
/// `None` if it is shorter than it says.
pub(super) fn parse_arguments(answer: &[u8]) -> Option<ProcArgs> {
    let (count, rest) = answer.split_first_chunk()?;
    let count = usize::try_from(i32::from_ne_bytes(*count)).ok()?;
    let path = rest.iter().position(|byte| *byte == 0)?;
    let padding = rest[path..].iter().position(|byte| *byte != 0).unwrap_or(rest.len() - path);
    let mut words = rest[path + padding..].split(|byte| *byte == 0).map(<[u8]>::to_vec);
    let argv: Vec<Vec<u8>> = words.by_ref().take(count).collect();
    if argv.len() < count {
        return None;
    }
    Some(ProcArgs { argv, environment: words.take_while(|word| !word.is_empty()).collect() })
}

/// Returns a start time (microseconds since the epoch) in whole seconds, as `LC_ALL=C TZ=UTC ps -o
/// lstart=` prints it: `Mon Nov  2 03:04:05 2026`.
pub(super) fn start_text(micros: u64) -> String {
    let seconds = i64::try_from(micros / 1_000_000).unwrap_or(0);
    let start = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
    start.strftime("%a %b %e %H:%M:%S %Y").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn answer(count: i32, rest: &[u8]) -> Vec<u8> {
        [&count.to_ne_bytes(), rest].concat()
    }

    #[test]
    fn arguments_and_variables_are_separated() {
        let rest = b"/bin/sh\0\0\0\0\0sh\0-c\0\0echo a b\0HOME=/Users/ann\0EMPTY=\0\0ptr_munge=1\0";
        let parsed = parse_arguments(&answer(4, rest)).expect("complete");
        assert_eq!(parsed.argv, [&b"sh"[..], b"-c", b"", b"echo a b"]);
        assert_eq!(parsed.environment, [&b"HOME=/Users/ann"[..], b"EMPTY="]);
    }

    #[test]
    fn a_process_without_arguments_or_variables_is_parsed() {
        let parsed = parse_arguments(&answer(0, b"/bin/x\0\0")).expect("complete");
        assert_eq!(parsed, ProcArgs { argv: Vec::new(), environment: Vec::new() });
    }

    #[test]
    fn cut_or_negative_answers_are_rejected() {
        for bad in [&b""[..], b"\x01", &answer(1, b"/bin/sh"), &answer(-1, b"/bin/sh\0sh\0")] {
            assert_eq!(parse_arguments(bad), None, "{bad:?}");
        }
        assert_eq!(parse_arguments(&answer(9, b"/bin/sh\0sh\0")), None);
    }

    /// procps prints the same form as the `ps` of BSD.
    #[test]
    fn start_text_is_that_of_ps() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep is there");
        let ps = Command::new("ps")
            .args(["-o", "lstart=", "-p", &child.id().to_string()])
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .output();
        child.kill().expect("ours");
        child.wait().expect("ours");
        let printed = String::from_utf8(ps.expect("ps is there").stdout).expect("ASCII");
        // Reads the printed text back, because the start in microseconds is not known here.
        let read = jiff::fmt::strtime::parse("%a %b %e %H:%M:%S %Y", printed.trim());
        let read = read.and_then(|time| time.to_datetime()).expect("the form is the same");
        let start = read.to_zoned(jiff::tz::TimeZone::UTC).expect("in range").timestamp();
        let micros = u64::try_from(start.as_microsecond()).expect("after 1970");
        assert_eq!(start_text(micros + 999_999), printed.trim());
        assert_eq!(start_text(1_762_052_645_000_000), "Sun Nov  2 03:04:05 2025");
    }
}
