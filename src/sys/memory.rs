//! How this process takes memory from the system and gives it back. Refuses to know what it is for.

#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "mallopt and madvise are C functions")
)]

/// All threads share what is free: what one has given back another takes, where glibc otherwise keeps a stock for each,
/// as large as its largest moment. Before there is a second thread. Where the system has no such setting, nothing.
pub(crate) fn share_free() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes two numbers and touches nothing of ours; called while there is one thread.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Takes the program's code out of this process's map: for one that has started and is about to wait for long. What runs
/// again comes back from the system's cache, a few pages at a time. Elsewhere than on Linux, nothing.
pub(crate) fn drop_code() {
    #[cfg(target_os = "linux")]
    if let Some((start, length)) = linux::code() {
        let start = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: the range is a private mapping of our file that nobody can write to: what comes back is the same.
        unsafe {
            libc::madvise(start, length, libc::MADV_DONTNEED);
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::OnceLock;

    use crate::sys::fs;

    /// Many times what the list of a process's mappings takes.
    const MOST: u64 = 1024 * 1024;

    /// Where the program's code is mapped, and how long that is.
    pub(super) fn code() -> Option<(usize, usize)> {
        static FOUND: OnceLock<Option<(usize, usize)>> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let maps = fs::read("/proc/self/maps".as_ref(), MOST).ok().flatten()?;
            std::str::from_utf8(&maps)
                .ok()?
                .lines()
                .find_map(|line| mapped(line, code as *const () as usize))
        })
    }

    /// The range of a line, if it is for reading and executing only, of a file, private, and `inside` lies in it.
    fn mapped(line: &str, inside: usize) -> Option<(usize, usize)> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let (start, end) =
            (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
        let is_code = words.next()? == "r-xp" && words.nth(3)?.starts_with('/');
        (is_code && (start..end).contains(&inside)).then_some((start, end - start))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn only_a_file_that_is_executed_and_not_written_is_code() {
            let of = |words: &str| mapped(&format!("1000-3000 {words}"), 0x2000);
            assert_eq!(of("r-xp 00000000 fe:00 17          /usr/bin/a b"), Some((0x1000, 0x2000)));
            for other in [
                "r--p 00000000 fe:00 17 /usr/bin/a",
                "rwxp 00000000 fe:00 17 /usr/bin/a",
                "r-xs 00000000 fe:00 17 /usr/bin/a",
                "r-xp 00000000 00:00 0 [vdso]",
                "r-xp 00000000 00:00 0",
                "r-xp",
            ] {
                assert_eq!(of(other), None, "{other}");
            }
            assert_eq!(mapped("1000-3000 r-xp 0 0 0 /a", 0x3000), None, "somebody else's");
        }

        #[test]
        fn what_is_dropped_comes_back() {
            let (start, length) = code().expect("this is on Linux");
            assert!(length > 0 && start.is_multiple_of(4096));
            super::super::drop_code();
            assert_eq!(code(), Some((start, length)));
        }
    }
}
