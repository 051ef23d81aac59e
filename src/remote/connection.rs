//! One connection to a host, which the commands of many processes share: OpenSSH's own client with
//! a control socket.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::child::HostChild;
use super::error::{HostError, LoginFault, classify, last_lines};
use super::quote::push_word;
use super::script;
use model::team::host::HostConfig;
use sys::exec::{self, ExecCommand, ExecError, ExecOutput, start_piped};
use sys::{clock, fs, rand, socket};

/// Time in which a connection must be made.
pub(crate) const CONNECT: Duration = Duration::from_secs(30);

/// Time for a question to the local control socket.
const CONTROL: Duration = Duration::from_secs(5);

/// Bytes of `%C` in the path of a control socket, the separator before it, and the suffix that ssh
/// appends while it creates the socket.
const SOCKET_NAME: usize = 1 + 40 + 17;

/// Options that hold for every connection, whatever the user's configuration says:
/// - no prompt ever waits for a person;
/// - a cut network ends the connection after 15 s without an answer;
/// - the connection outlives the first command, for commands within the next five minutes;
/// - the command is the one given here, without forwardings of the user's configuration;
/// - stderr has messages about failures only.
const OPTIONS: [&str; 10] = [
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=2",
    "ControlMaster=auto",
    "ControlPersist=300",
    "ClearAllForwardings=yes",
    "ForwardX11=no",
    "RemoteCommand=none",
    "LogLevel=ERROR",
];

/// The connection to a host.
#[derive(Debug, Clone)]
pub struct HostConnection {
    host: HostConfig,
    /// Directory of the control socket.
    control_dir: PathBuf,
}

impl HostConnection {
    /// Connects to a host, or joins the connection that another process has made with the same
    /// `control_dir`. The directory becomes private.
    ///
    /// # Errors
    /// [`HostError::Unreachable`], [`HostError::HostKey`], [`HostError::Login`] or
    /// [`HostError::Shell`] if no command can be run there, [`HostError::LongPath`] for a directory
    /// that does not [`fit`](fits_socket).
    pub fn open(host: &HostConfig, control_dir: &Path) -> Result<HostConnection, HostError> {
        if !fits_socket(control_dir) {
            return Err(HostError::LongPath { dir: control_dir.display().to_string() });
        }
        fs::private_dir(control_dir)?;
        let connection = HostConnection { host: host.clone(), control_dir: control_dir.to_owned() };
        if !connection.is_connected() {
            connection.run(&["true".into()], &[], CONNECT)?;
        }
        Ok(connection)
    }

    pub fn host(&self) -> &HostConfig {
        &self.host
    }

    /// Runs a command to its end, with `stdin` as its input. Output of the login shell's start-up
    /// files is not part of the result. An exit status other than 0 is not an error.
    ///
    /// # Errors
    /// As [`HostConnection::open`], [`HostError::NoProgram`] for status 127, [`HostError::Lost`] if
    /// the connection ends first, [`HostError::Deadline`] at the deadline; the command may run on
    /// in both cases.
    pub fn run(
        &self,
        argv: &[OsString],
        stdin: &[u8],
        deadline: Duration,
    ) -> Result<ExecOutput, HostError> {
        let mark = rand::token();
        let output = match exec::run(&self.marked(&mark, argv, stdin)?, deadline) {
            Ok(output) => output,
            Err(ExecError::Deadline { .. }) => return Err(self.overdue(argv, deadline)),
            Err(e) => return Err(local(e)),
        };
        let Some(stdout) = after_mark(&output.stdout, &mark) else {
            return Err(self.login_failure(&output));
        };
        let stderr = after_mark(&output.stderr, &mark).unwrap_or(&output.stderr).to_vec();
        match output.code {
            Some(127) => {
                Err(HostError::NoProgram { host: self.host.name.clone(), program: program(argv) })
            }
            // ssh's own failures have the status that a command can have, too.
            Some(255) | None if !self.is_connected() => {
                Err(HostError::Lost { host: self.host.name.clone(), said: last_lines(&stderr) })
            }
            code => Ok(ExecOutput { code, stdout: stdout.to_vec(), stderr, ..output }),
        }
    }

    /// Runs a command that must succeed and returns its standard output.
    ///
    /// # Errors
    /// As [`HostConnection::run`]; [`HostError::Command`] for a status other than 0.
    pub fn read(
        &self,
        argv: &[OsString],
        stdin: &[u8],
        deadline: Duration,
    ) -> Result<Vec<u8>, HostError> {
        let output = self.run(argv, stdin, deadline)?;
        match output.code {
            Some(0) => Ok(output.stdout),
            code => Err(HostError::Command {
                host: self.host.name.clone(),
                program: program(argv),
                status: code.unwrap_or(255),
                said: last_lines(&output.stderr),
            }),
        }
    }

    /// Starts a command whose input and output are used while it runs. Returns once it is about to
    /// be executed, within `deadline`.
    ///
    /// # Errors
    /// As [`HostConnection::open`]; [`HostError::Deadline`] at the deadline.
    pub fn start(
        &self,
        argv: &[OsString],
        deadline: Duration,
    ) -> Result<(HostChild, ChildStdin, BufReader<ChildStdout>), HostError> {
        let mark = rand::token();
        let (mut child, (stdin, stdout, stderr)) =
            start_piped(&self.marked(&mark, argv, &[])?).map_err(local)?;
        let (found, has_begun) = mpsc::channel();
        let wanted = mark.clone();
        thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let is_marked = skip_to_mark(&mut stdout, &wanted);
            // Fails after the deadline, when the child is killed.
            let _ = found.send(is_marked.then_some(stdout));
        });
        let Ok(begun) = has_begun.recv_timeout(deadline) else {
            return Err(self.overdue(argv, deadline));
        };
        match begun {
            Some(stdout) => {
                Ok((HostChild::new(self.host.name.clone(), child, stderr, mark), stdin, stdout))
            }
            None => {
                let mut said = Vec::new();
                let _ = stderr.take(1 << 16).read_to_end(&mut said);
                let code = child.wait().unwrap_or(None);
                let output = ExecOutput { code, signal: None, stdout: Vec::new(), stderr: said };
                Err(self.login_failure(&output))
            }
        }
    }

    /// Writes a file of this mode on the host, or replaces it, in one step. Its directory must
    /// exist.
    ///
    /// # Errors
    /// As [`HostConnection::read`].
    pub fn copy_to(
        &self,
        bytes: &[u8],
        path: &str,
        mode: u32,
        deadline: Duration,
    ) -> Result<(), HostError> {
        let temporary = format!("{path}.{}", rand::token());
        let words = [temporary.as_str(), &bytes.len().to_string(), &format!("{mode:o}"), path];
        self.read(&script::argv(script::COPY, &words), bytes, deadline).map(drop)
    }

    /// Reads a file of this length on the host.
    ///
    /// # Errors
    /// As [`HostConnection::start`]; [`HostError::Lost`] if the file has another length.
    pub fn copy_from(
        &self,
        path: &str,
        length: u64,
        deadline: Duration,
    ) -> Result<Vec<u8>, HostError> {
        let argv: Vec<OsString> = ["cat", "--", path].iter().map(Into::into).collect();
        let (child, _stdin, stdout) = self.start(&argv, CONNECT)?;
        let (sender, whole) = mpsc::channel();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // One byte more shows that the file is longer. What could not be read is missing.
            let _ = stdout.take(length + 1).read_to_end(&mut bytes);
            let _ = sender.send(bytes);
        });
        // The child is killed on return, which ends the thread.
        let bytes = whole.recv_timeout(deadline).map_err(|_| self.overdue(&argv, deadline))?;
        if u64::try_from(bytes.len()).ok() == Some(length) {
            return Ok(bytes);
        }
        Err(HostError::Lost { host: self.host.name.clone(), said: child.messages() })
    }

    /// Returns the local command line that runs a command on the host with this terminal.
    ///
    /// # Errors
    /// [`HostError::Nul`].
    pub fn interactive_argv(&self, argv: &[OsString]) -> Result<Vec<OsString>, HostError> {
        let mut words = vec!["ssh".into()];
        words.extend(self.options());
        words.extend(["-t".into(), self.destination(), shell_line("exec", &self.with_env(argv))?]);
        Ok(words)
    }

    /// Ends the connection, also for other processes; their commands are cut.
    pub fn close(&self) {
        let _ = self.control("exit");
    }

    /// Returns true if the shared connection exists. It ends by itself when the network is cut.
    pub(crate) fn is_connected(&self) -> bool {
        self.control("check")
    }

    fn control(&self, verb: &str) -> bool {
        let mut args = self.options();
        args.extend(["-O".into(), verb.into(), self.destination()]);
        exec::run(&ssh(args, &[]), CONTROL).is_ok_and(|output| output.code == Some(0))
    }

    fn destination(&self) -> OsString {
        self.host.ssh.clone().into()
    }

    fn options(&self) -> Vec<OsString> {
        // The socket is named after a digest of user, host, port and jump host. ssh expands `%`.
        let dir = self.control_dir.to_string_lossy().replace('%', "%%");
        let socket = OsString::from(format!("{dir}/%C"));
        let options = OPTIONS.iter().flat_map(|option| ["-o".into(), OsString::from(option)]);
        options.chain(["-S".into(), socket]).collect()
    }

    /// Returns the local command that runs a command on the host. The line for the login shell
    /// marks the beginning of the output on both streams, because start-up files may have printed
    /// before.
    fn marked(
        &self,
        mark: &str,
        argv: &[OsString],
        stdin: &[u8],
    ) -> Result<ExecCommand, HostError> {
        let begin = format!("printf '%s\\n' {mark}; printf '%s\\n' {mark} >&2; exec");
        let line = shell_line(&begin, &self.with_env(argv))?;
        let mut args = self.options();
        args.extend(["-T".into(), self.destination(), line]);
        Ok(ssh(args, stdin))
    }

    fn overdue(&self, argv: &[OsString], deadline: Duration) -> HostError {
        HostError::Deadline {
            host: self.host.name.clone(),
            program: program(argv),
            after_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
        }
    }

    fn with_env(&self, argv: &[OsString]) -> Vec<OsString> {
        let env =
            self.host.env.iter().map(|(name, value)| OsString::from(format!("{name}={value}")));
        let set: Vec<OsString> = env.collect();
        let program = if set.is_empty() { None } else { Some("env".into()) };
        program.into_iter().chain(set).chain(argv.iter().cloned()).collect()
    }

    /// Returns the error for a login that did not reach the command.
    fn login_failure(&self, output: &ExecOutput) -> HostError {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let host = self.host.name.clone();
        let (ssh, said) = (self.host.ssh.clone(), last_lines(&output.stderr));
        match classify(output.code, &stderr) {
            LoginFault::Network => HostError::Unreachable { host, ssh, said },
            LoginFault::HostKey => HostError::HostKey { host, ssh, said },
            LoginFault::Login => HostError::Login { host, ssh, said },
            LoginFault::Shell => {
                let all = [output.stdout.as_slice(), &output.stderr].concat();
                HostError::Shell { host, ssh, said: last_lines(&all) }
            }
        }
    }
}

/// Returns true if the path of a control socket in this directory fits into a socket address.
pub fn fits_socket(dir: &Path) -> bool {
    dir.as_os_str().len() + SOCKET_NAME <= socket::LONGEST_PATH
}

/// Measures the time of `act`.
pub fn timed<T>(act: impl FnOnce() -> T) -> (T, Duration) {
    let begun = clock::Deadline::after(Duration::MAX);
    let done = act();
    (done, begun.elapsed())
}

fn ssh(args: Vec<OsString>, stdin: &[u8]) -> ExecCommand {
    ExecCommand { program: "ssh".into(), args, env: None, cwd: None, stdin: stdin.to_vec() }
}

fn local(error: ExecError) -> HostError {
    match error {
        ExecError::NotFound { .. } => HostError::NoClient,
        e => HostError::Exec(e),
    }
}

fn program(argv: &[OsString]) -> String {
    argv.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
}

fn shell_line(begin: &str, argv: &[OsString]) -> Result<OsString, HostError> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut line = begin.as_bytes().to_vec();
    for word in argv {
        if word.as_bytes().contains(&0) {
            return Err(HostError::Nul);
        }
        line.push(b' ');
        push_word(&mut line, OsStr::new(word));
    }
    Ok(OsString::from_vec(line))
}

/// Returns the output after the line of the mark.
fn after_mark<'o>(output: &'o [u8], mark: &str) -> Option<&'o [u8]> {
    let line = format!("{mark}\n");
    let at = memchr::memmem::find(output, line.as_bytes())?;
    Some(&output[at + line.len()..])
}

/// Reads up to the line that ends with the mark; returns false if the stream ends first.
fn skip_to_mark(stream: &mut impl BufRead, mark: &str) -> bool {
    let line = format!("{mark}\n");
    let mut read = Vec::new();
    loop {
        read.clear();
        match stream.read_until(b'\n', &mut read) {
            Ok(0) | Err(_) => return false,
            Ok(_) if read.ends_with(line.as_bytes()) => return true,
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_before_the_mark_is_dropped() {
        assert_eq!(after_mark(b"noise m\nreal\nm\n", "m"), Some(b"real\nm\n".as_slice()));
        assert_eq!(after_mark(b"noise", "m"), None);
        let mut stream: &[u8] = b"welcome\nno newline m\nreal\n";
        assert!(skip_to_mark(&mut stream, "m"));
        assert_eq!(stream, b"real\n");
        assert!(!skip_to_mark(&mut stream, "m"));
    }

    #[test]
    fn control_socket_must_fit_into_an_address() {
        assert!(fits_socket(Path::new("/home/somebody/.claude/phalanx/ssh")));
        assert!(!fits_socket(Path::new(&format!("/{}", "x".repeat(60)))));
    }
}
