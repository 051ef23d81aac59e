//! Parses the answer of macOS to `sysctl` `KERN_PROCARGS2`: the arguments and the environment that
//! a process was started with.

/// The arguments and variables of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcArgs {
    /// Command line, program first.
    pub(super) argv: Vec<Vec<u8>>,
    /// Variables, as `NAME=value`.
    pub(super) environment: Vec<Vec<u8>>,
}

/// Parses the number of arguments, the path of the executable, NULs up to a word boundary, the
/// arguments, and the variables up to an empty one. `None` if it is shorter than it says.
pub(super) fn parse(answer: &[u8]) -> Option<ProcArgs> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(count: i32, rest: &[u8]) -> Vec<u8> {
        [&count.to_ne_bytes(), rest].concat()
    }

    #[test]
    fn arguments_and_variables_are_separated() {
        let rest = b"/bin/sh\0\0\0\0\0sh\0-c\0\0echo a b\0HOME=/Users/ann\0EMPTY=\0\0ptr_munge=1\0";
        let parsed = parse(&answer(4, rest)).expect("complete");
        assert_eq!(parsed.argv, [&b"sh"[..], b"-c", b"", b"echo a b"]);
        assert_eq!(parsed.environment, [&b"HOME=/Users/ann"[..], b"EMPTY="]);
    }

    #[test]
    fn a_process_without_arguments_or_variables_is_parsed() {
        let parsed = parse(&answer(0, b"/bin/x\0\0")).expect("complete");
        assert_eq!(parsed, ProcArgs { argv: Vec::new(), environment: Vec::new() });
    }

    #[test]
    fn cut_or_negative_answers_are_rejected() {
        for bad in [&b""[..], b"\x01", &answer(1, b"/bin/sh"), &answer(-1, b"/bin/sh\0sh\0")] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
        assert_eq!(parse(&answer(9, b"/bin/sh\0sh\0")), None);
    }
}
