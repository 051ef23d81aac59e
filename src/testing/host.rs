//! Commands on hosts, as the program runs them.

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Duration;

use model::id::HostName;
use model::team::host::HostConfig;
use remote::{HostConnection, HostError, timed};

/// A connection to a host.
#[derive(Debug)]
pub struct TestHost(HostConnection);

/// Status, standard output and standard error of a command.
pub type HostOutput = (Option<i32>, Vec<u8>, Vec<u8>);

impl TestHost {
    /// Connects to a host by its ssh destination.
    ///
    /// # Errors
    /// The message of the failure.
    pub fn open(ssh: &str, env: &[(&str, &str)], control_dir: &Path) -> Result<TestHost, String> {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let host = HostConfig {
            name: HostName::new(ssh).map_err(|e| e.to_string())?,
            ssh: ssh.to_owned(),
            dir: "/".to_owned(),
            env: env.collect(),
            capacity: None,
            labels: Vec::new(),
            phalanx: None,
            remote: None,
        };
        HostConnection::open(&host, control_dir).map(TestHost).map_err(|e| e.to_string())
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// The message of the failure.
    pub fn run(
        &self,
        argv: &[OsString],
        stdin: &[u8],
        deadline: Duration,
    ) -> Result<HostOutput, String> {
        let output = self.0.run(argv, stdin, deadline).map_err(|e: HostError| e.to_string())?;
        Ok((output.code, output.stdout, output.stderr))
    }

    /// Writes a file on the host.
    ///
    /// # Errors
    /// The message of the failure.
    pub fn copy_to(&self, bytes: &[u8], path: &str, mode: u32) -> Result<(), String> {
        let deadline = Duration::from_secs(60);
        self.0.copy_to(bytes, path, mode, deadline).map_err(|e| e.to_string())
    }

    /// Returns the local command line for a command with a terminal.
    ///
    /// # Errors
    /// The message of the failure.
    pub fn interactive_argv(&self, argv: &[OsString]) -> Result<Vec<OsString>, String> {
        self.0.interactive_argv(argv).map_err(|e| e.to_string())
    }

    /// Starts a command that answers each line of its input with a line. Sends the lines one by
    /// one, and returns the answers, the time of the slowest one, and the status of the command.
    ///
    /// # Errors
    /// The message of the failure.
    pub fn converse(
        &self,
        argv: &[OsString],
        lines: &[&str],
    ) -> Result<(Vec<String>, Duration, i32), String> {
        let deadline = Duration::from_secs(60);
        let started = self.0.start(argv, deadline).map_err(|e| e.to_string())?;
        let (child, mut stdin, mut stdout) = started;
        let (mut answers, mut slowest) = (Vec::new(), Duration::ZERO);
        for line in lines {
            let mut answer = String::new();
            let (done, time) = timed(|| {
                writeln!(stdin, "{line}")?;
                stdout.read_line(&mut answer)
            });
            done.map_err(|e| format!("{e}: {}", child.messages()))?;
            slowest = slowest.max(time);
            answers.push(answer.trim_end().to_owned());
        }
        drop(stdin);
        Ok((answers, slowest, child.wait().map_err(|e| e.to_string())?))
    }

    /// Ends the shared connection.
    pub fn close(&self) {
        self.0.close();
    }
}
