//! The format of an executable: the machine that it is for, and whether it needs libraries.

/// An ELF executable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Executable {
    /// `e_machine` of its header.
    machine: u16,
    /// True if no program interpreter loads libraries for it.
    pub is_static: bool,
}

/// Architectures by `e_machine`, as `uname -m` prints them.
const MACHINES: [(u16, &[&str]); 6] = [
    (3, &["i686", "i586", "i386"]),
    (40, &["armv7l", "armv6l"]),
    (62, &["x86_64", "amd64"]),
    (183, &["aarch64", "arm64"]),
    (21, &["ppc64le"]),
    (243, &["riscv64"]),
];

/// Type of the program header that names the interpreter.
const PT_INTERP: u32 = 3;

impl Executable {
    /// Reads the header of a little-endian ELF file of 64 or 32 bits; `None` for other formats.
    pub fn parse(file: &[u8]) -> Option<Executable> {
        let is_64 = match file.get(..6)? {
            [0x7f, b'E', b'L', b'F', 2, 1] => true,
            [0x7f, b'E', b'L', b'F', 1, 1] => false,
            _ => return None,
        };
        let u16_at = |at: usize| Some(u16::from_le_bytes(file.get(at..at + 2)?.try_into().ok()?));
        let u32_at = |at: usize| Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?));
        let headers = if is_64 {
            u64::from_le_bytes(file.get(32..40)?.try_into().ok()?)
        } else {
            u64::from(u32_at(28)?)
        };
        let (size, count) =
            if is_64 { (u16_at(54)?, u16_at(56)?) } else { (u16_at(42)?, u16_at(44)?) };
        let kind = |nth: u16| {
            let at = headers.checked_add(u64::from(nth) * u64::from(size))?;
            u32_at(usize::try_from(at).ok().filter(|at| *at < file.len())?)
        };
        let is_static = !(0..count).any(|nth| kind(nth) == Some(PT_INTERP));
        Some(Executable { machine: u16_at(18)?, is_static })
    }

    /// Returns true if a host whose `uname -sm` prints `system` may run it.
    pub fn runs_on(self, system: &str) -> bool {
        let Some((os, machine)) = system.split_once(' ') else { return false };
        os != "Darwin" && self.names().is_none_or(|names| names.contains(&machine))
    }

    /// Returns the architecture that it is for.
    pub fn system(self) -> &'static str {
        self.names().and_then(|names| names.first().copied()).unwrap_or("another architecture")
    }

    fn names(self) -> Option<&'static [&'static str]> {
        MACHINES.iter().find(|(machine, _)| *machine == self.machine).map(|(_, names)| *names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::{env, fs};

    #[test]
    fn header_has_machine_and_interpreter() {
        let mut file = vec![0; 64 + 56];
        file[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        file[18] = 183;
        file[32] = 64;
        (file[54], file[56]) = (56, 1);
        let parsed = Executable::parse(&file).expect("an executable");
        assert!(parsed.is_static && parsed.runs_on("Linux aarch64"));
        assert!(!parsed.runs_on("Linux x86_64") && !parsed.runs_on("Darwin arm64"));
        assert_eq!(parsed.system(), "aarch64");
        file[64] = 3;
        assert!(!Executable::parse(&file).expect("an executable").is_static);
        for cut in 0..file.len() {
            let _ = Executable::parse(&file[..cut]);
        }
        assert_eq!(Executable::parse(b"#!/bin/sh\n"), None);
    }

    #[test]
    fn this_test_is_an_executable_for_this_machine() {
        let file = env::current_exe().expect("a program");
        let bytes = fs::read(&file, 1 << 30).expect("readable").expect("a file");
        if env::os() == "linux" {
            let parsed = Executable::parse(&bytes).expect("an executable");
            assert!(!parsed.is_static || cfg!(target_feature = "crt-static"));
        }
    }
}
