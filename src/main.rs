//! The `phalanx` program; its code is in the crates beside this file.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
