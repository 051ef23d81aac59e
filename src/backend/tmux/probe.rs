//! Checks that tmux is installed and recent enough (SP-08), without starting a server.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use sys::exec;

const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// The oldest version with all features in use: `list-panes -f`, `-e`, pane options.
const OLDEST: (u32, u32) = (3, 2);

/// Runs `program -V` and checks the version.
///
/// # Errors
/// Returns the problem, as a message for the user that names the package to install.
pub fn probe(program: &Path) -> Result<(), String> {
    let command = exec::ExecCommand {
        program: program.as_os_str().to_owned(),
        args: vec![OsString::from("-V")],
        ..exec::ExecCommand::default()
    };
    let wanted = format!("tmux {}.{} or later is needed (`apt install tmux`)", OLDEST.0, OLDEST.1);
    let shown = program.display();
    let output =
        exec::run(&command, ANSWER_WITHIN).map_err(|error| format!("{error}; {wanted}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let line = stdout.lines().next().unwrap_or_default();
    match version(line) {
        Some(Version::Number(number)) if number < OLDEST => {
            Err(format!("{shown} is {line:?}; {wanted}"))
        }
        Some(Version::Number(_) | Version::Named) if output.code == Some(0) => Ok(()),
        Some(Version::Number(_) | Version::Named) | None => {
            Err(format!("{shown} answers `-V` with {line:?}; {wanted}"))
        }
    }
}

enum Version {
    Number((u32, u32)),
    /// Built from the development head, or part of OpenBSD.
    Named,
}

/// Parses `tmux 3.3a`, `tmux next-3.7`, `tmux openbsd-7.8`, `tmux master`.
fn version(line: &str) -> Option<Version> {
    let name = line.strip_prefix("tmux ")?.trim();
    if name == "master" || name.starts_with("openbsd-") {
        return Some(Version::Named);
    }
    let (major, minor) = name.strip_prefix("next-").unwrap_or(name).split_once('.')?;
    let digits = minor.split(|c: char| !c.is_ascii_digit()).next()?;
    Some(Version::Number((major.parse().ok()?, digits.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sp_14_tmux_versions_are_parsed() {
        let table = [
            ("tmux 3.3a", Some((3, 3))),
            ("tmux 3.2", Some((3, 2))),
            ("tmux 2.9a", Some((2, 9))),
            ("tmux next-3.7", Some((3, 7))),
            ("tmux 3.5-rc2", Some((3, 5))),
            ("tmux 10.12", Some((10, 12))),
            ("psmux 1.0", None),
            ("tmux", None),
            ("tmux x.y", None),
            ("", None),
        ];
        for (line, expected) in table {
            let got = version(line).and_then(|version| match version {
                Version::Number(number) => Some(number),
                Version::Named => None,
            });
            assert_eq!(got, expected, "{line:?}");
        }
        assert!(matches!(version("tmux master"), Some(Version::Named)));
        assert!(matches!(version("tmux openbsd-7.8"), Some(Version::Named)));
    }
}
