//! Starts a process that outlives this one, by forking twice.

#![expect(unsafe_code, reason = "the second fork happens between std's fork and exec")]

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::process::{Command, Stdio};

use super::super::fs::{FsError, open_append};
use super::command::ExecError;
use super::fresh::start_fresh;

/// Starts `program` in `cwd`, as the leader of a new session, and returns its pid once it has been
/// executed. Standard input is /dev/null; both outputs are appended to `log` (created with mode
/// 0600), or discarded without one. An `env` of `None` inherits this process's environment. No
/// other descriptor is inherited, and no signal state.
///
/// The caller need not reap the process: its parent is init or the nearest subreaper among its
/// ancestors.
pub fn spawn_detached(
    program: &OsStr,
    args: &[OsString],
    env: Option<&[(OsString, OsString)]>,
    cwd: &Path,
    log: Option<&Path>,
) -> Result<i32, ExecError> {
    let argv: Vec<OsString> =
        std::iter::once(program.to_owned()).chain(args.iter().cloned()).collect();
    let fail = |source| ExecError::Io { argv: argv.clone(), source };
    let mut command = Command::new(program);
    command.args(args).current_dir(cwd).stdin(Stdio::null());
    let (stdout, stderr) = outputs(log).map_err(fail)?;
    command.stdout(stdout).stderr(stderr);
    if let Some(env) = env {
        command.env_clear().envs(env.iter().map(|(name, value)| (name, value)));
    }
    let (mut pid_reader, pid_writer) = io::pipe().map_err(fail)?;
    let pid_fd = pid_writer.as_raw_fd();
    start_fresh(&mut command, move || fork_again(pid_fd));
    let mut middle =
        command.spawn().map_err(|source| ExecError::start(argv.clone(), Some(cwd), source))?;
    // Returns at once: `spawn` waits until the last process is executed, and by then the middle one
    // has exited.
    middle.wait().map_err(fail)?;
    drop(pid_writer);
    let mut pid = [0; size_of::<i32>()];
    pid_reader.read_exact(&mut pid).map_err(fail)?;
    Ok(i32::from_ne_bytes(pid))
}

fn outputs(log: Option<&Path>) -> io::Result<(Stdio, Stdio)> {
    let Some(log) = log else { return Ok((Stdio::null(), Stdio::null())) };
    let file = open_append(log).map_err(|error| match error {
        FsError::Io { source, .. } => source,
        other => io::Error::other(other),
    })?;
    Ok((file.try_clone()?.into(), file.into()))
}

/// Runs in the child of std's fork. The grandchild writes its pid to `pid_fd` and returns to be
/// executed; the middle process exits, so that the grandchild is adopted.
fn fork_again(pid_fd: RawFd) -> io::Result<()> {
    // SAFETY: the process is single-threaded here; the new one makes async-signal-safe calls only.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => (),
        // SAFETY: _exit runs no exit handlers of the original process.
        _ => unsafe { libc::_exit(0) },
    }
    // SAFETY: setsid and getpid take nothing; write gets four bytes that live on this stack.
    unsafe {
        if libc::setsid() < 0 {
            return Err(io::Error::last_os_error());
        }
        let pid = libc::getpid().to_ne_bytes();
        if libc::write(pid_fd, pid.as_ptr().cast(), pid.len()) != 4 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
