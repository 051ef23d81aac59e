//! Links debug builds for Linux at a fixed address. A program at any address has some 140,000
//! addresses to relocate at each start, which takes two thirds of the time of a start without
//! optimisation, and the tests start many thousand. Release builds keep this protection.

#![allow(clippy::disallowed_methods, reason = "cargo passes its settings in the environment")]

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=scripts/build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "debug")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
    {
        println!("cargo:rustc-link-arg-bins=-no-pie");
        println!("cargo:rustc-link-arg-tests=-no-pie");
    }
}
