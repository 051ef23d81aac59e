//! The `phalanx` program; all code is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    phalanx::run()
}
