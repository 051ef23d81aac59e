//! `host check --install`: copies phalanx to a host.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Context, OpsError};
use model::team::host::HostConfig;
use remote::{Executable, HostConnection, facts};
use sys::{fs, rand};

/// Time to copy the program over a slow line.
const COPY: Duration = Duration::from_secs(600);
/// Time for each of the other steps.
const STEP: Duration = Duration::from_secs(30);
/// Maximum size of a program, in bytes; a debug build has hundreds of megabytes.
const LARGEST: u64 = 1 << 30;

const HOW_TO_BUILD: &str = "build one: `rustup target add x86_64-unknown-linux-musl`, \
    `cargo build --release --target x86_64-unknown-linux-musl`, then pass it with `--from FILE`";

/// A program to install.
#[derive(Debug)]
pub struct ProgramFile {
    pub path: PathBuf,
    bytes: Vec<u8>,
    format: Option<Executable>,
}

/// Reads the program to install: `from`, else this program if it is linked statically.
///
/// # Errors
/// [`OpsError::Usage`] if this program needs libraries that a host may lack, or if `from` cannot be
/// read.
pub fn program_file(ctx: &Context, from: Option<&Path>) -> Result<ProgramFile, OpsError> {
    let path = match from {
        Some(from) => ctx.caller.cwd.join(from),
        None => ctx.caller.exe.clone(),
    };
    let bytes = fs::canonical(&path).and_then(|path| fs::read(&path, LARGEST))?;
    let bytes = bytes.ok_or_else(|| OpsError::Usage {
        problem: format!("there is no file {}", path.display()),
        hint: None,
    })?;
    let format = Executable::parse(&bytes);
    if from.is_none() && !format.is_some_and(|format| format.is_static) {
        return Err(OpsError::Usage {
            problem: format!(
                "{} is not linked statically, so it may not run elsewhere",
                path.display()
            ),
            hint: Some(HOW_TO_BUILD.to_owned()),
        });
    }
    Ok(ProgramFile { path, bytes, format })
}

/// Installs a program on a host as `DIR/bin/phalanx`, and returns its path there. It is copied
/// under another name, run once, and then renamed, so that a program that does not run there
/// replaces nothing.
///
/// # Errors
/// [`OpsError::Host`] if a step fails; [`OpsError::Failed`] if the program is for another
/// architecture, or does not run there.
pub fn install(
    host: &HostConfig,
    control_dir: &Path,
    program: &ProgramFile,
) -> Result<String, OpsError> {
    let connection = HostConnection::open(host, control_dir)?;
    let system = facts(&connection)?.system;
    if let Some(format) = program.format.filter(|format| !format.runs_on(&system)) {
        return Err(OpsError::Failed {
            problem: format!(
                "{} is for {}, and host `{}` is {system}",
                program.path.display(),
                format.system(),
                host.name
            ),
        });
    }
    let target = host.installed_program();
    let staged = format!("{target}.{}", rand::token());
    let dir = target.trim_end_matches("/phalanx").to_owned();
    let run = |words: &[&str]| -> Result<Vec<u8>, OpsError> {
        let argv: Vec<OsString> = words.iter().map(Into::into).collect();
        Ok(connection.read(&argv, &[], STEP)?)
    };
    run(&["mkdir", "-p", "--", &dir])?;
    let done = connection
        .copy_to(&program.bytes, &staged, 0o755, COPY)
        .map_err(OpsError::from)
        .and_then(|()| run(&[&staged, "--version"]))
        .and_then(|version| match version.starts_with(b"phalanx ") {
            true => run(&["mv", "-f", "--", &staged, &target]),
            false => Err(OpsError::Failed {
                problem: format!("{} is not phalanx", program.path.display()),
            }),
        });
    if let Err(e) = done {
        // The cause of the failure is reported, not that of the clean-up.
        let _ = run(&["rm", "-f", "--", &staged]);
        return Err(e);
    }
    Ok(target)
}
