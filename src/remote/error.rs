//! Failures of the connection to a host, classified by ssh's own messages.

use model::id::HostName;
use model::text;
use sys::exec::ExecError;
use sys::fs::FsError;

/// Lines of a program's messages that are kept.
const LAST_LINES: usize = 3;
/// Stands for an empty message.
const NO_MESSAGE: &str = "no message";

/// A failure of the connection to a host, or of a command there.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// No connection could be made; `said` has ssh's last lines.
    #[error("host `{host}` cannot be reached: {said}")]
    Unreachable { host: HostName, ssh: String, said: String },
    /// The connection ended while the command ran; the command may have been carried out.
    #[error("the connection to host `{host}` was lost{}", reason(said))]
    Lost { host: HostName, said: String },
    /// The key of the host is unknown, or is not the known one.
    #[error("the identity of host `{host}` is not verified: {said}")]
    HostKey { host: HostName, ssh: String, said: String },
    #[error("host `{host}` refuses the login: {said}")]
    Login { host: HostName, ssh: String, said: String },
    /// The login shell did not run the command.
    #[error("the login shell of host `{host}` does not run commands: {said}")]
    Shell { host: HostName, ssh: String, said: String },
    #[error("host `{host}` has no program `{program}`")]
    NoProgram { host: HostName, program: String },
    /// The command ended with another status than 0.
    #[error("`{program}` failed on host `{host}`, status {status}: {said}")]
    Command { host: HostName, program: String, status: i32, said: String },
    #[error("`{program}` on host `{host}` did not end within {after_ms} ms")]
    Deadline { host: HostName, program: String, after_ms: u64 },
    /// A word that no command line can hold.
    #[error("a word of the command contains a NUL character")]
    Nul,
    /// The path of the control socket would not fit into a socket address.
    #[error("the directory {dir} is too long for a control socket")]
    LongPath { dir: String },
    /// This machine has no ssh.
    #[error("there is no OpenSSH client on this machine")]
    NoClient,
    #[error(transparent)]
    Exec(ExecError),
    #[error(transparent)]
    File(#[from] FsError),
}

impl HostError {
    /// Returns the next step for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            HostError::Unreachable { ssh, .. } => Some(format!("try it by hand: `ssh {ssh} true`")),
            HostError::HostKey { ssh, .. } => Some(format!(
                "log in once and compare the key with the host's: `ssh {ssh}`; remove a key that has changed with \
                 `ssh-keygen -R HOST`"
            )),
            HostError::Login { ssh, .. } => Some(format!(
                "install your key with `ssh-copy-id {ssh}`, or load it with `ssh-add`; phalanx never asks for a password"
            )),
            HostError::Shell { ssh, .. } => {
                Some(format!("see what it prints with `ssh {ssh} true`"))
            }
            HostError::Lost { host, .. } => {
                Some(format!("see whether it is back with `phalanx host check {host}`"))
            }
            HostError::Deadline { host, .. } => {
                Some(format!("see how fast it answers with `phalanx host check {host}`"))
            }
            HostError::NoProgram { host, program } => Some(match program.as_str() {
                "phalanx" => format!("install it with `phalanx host check {host} --install`"),
                program => format!("install `{program}` on the host"),
            }),
            HostError::NoClient => Some("install it: `apt-get install openssh-client`".to_owned()),
            HostError::LongPath { .. } => Some("set `XDG_RUNTIME_DIR` to a short path".to_owned()),
            HostError::Command { .. }
            | HostError::Nul
            | HostError::Exec(_)
            | HostError::File(_) => None,
        }
    }
}

/// The reason why a login did not reach the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoginFault {
    Network,
    HostKey,
    Login,
    Shell,
}

/// Classifies an exit of ssh before the command began. ssh exits with 255 for its own failures, and
/// its messages are in English on every system.
pub(super) fn classify(code: Option<i32>, stderr: &str) -> LoginFault {
    let says = |words: &[&str]| words.iter().any(|words| stderr.contains(words));
    if says(&["Host key verification failed", "HOST IDENTIFICATION HAS CHANGED"]) {
        LoginFault::HostKey
    } else if says(&["Permission denied (", "Too many authentication failures"]) {
        LoginFault::Login
    } else if code == Some(255) {
        LoginFault::Network
    } else {
        LoginFault::Shell
    }
}

/// Returns the end of a sentence about a connection that ssh may have ended silently.
fn reason(said: &str) -> String {
    if said == NO_MESSAGE { String::new() } else { format!(": {said}") }
}

/// Returns the last lines of a message from another program, on one line.
pub(super) fn last_lines(foreign: &[u8]) -> String {
    let plain = text::plain(&String::from_utf8_lossy(foreign));
    let lines: Vec<&str> = plain.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    if last.is_empty() { NO_MESSAGE.to_owned() } else { text::line(&last.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_ssh_are_classified() {
        let table = [
            ("Host key verification failed.\r\n", LoginFault::HostKey),
            ("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @", LoginFault::HostKey),
            ("ann@build: Permission denied (publickey).", LoginFault::Login),
            ("Received disconnect: 2: Too many authentication failures", LoginFault::Login),
            ("ssh: connect to host b port 22: Connection refused", LoginFault::Network),
            ("ssh: Could not resolve hostname b", LoginFault::Network),
            ("kex_exchange_identification: Connection closed by remote host", LoginFault::Network),
            ("", LoginFault::Network),
        ];
        for (stderr, expected) in table {
            assert_eq!(classify(Some(255), stderr), expected, "{stderr}");
        }
        assert_eq!(classify(Some(1), "This account is not available"), LoginFault::Shell);
    }

    #[test]
    fn last_lines_are_plain_text_on_one_line() {
        assert_eq!(last_lines(b"1\n2\n\x1b[31m3\x1b[0m\r\n\n4\x9b\n"), "2; 3; 4\u{fffd}");
        assert_eq!(last_lines(b"\n"), "no message");
    }
}
