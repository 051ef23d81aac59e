//! The gear that `scripts/test` runs the tests in (`PHALANX_GEAR`), and reports of skipped tests.

use std::fs::OpenOptions;
use std::io::Write;

/// True in the full gear: `scripts/test --full`, or `PHALANX_GEAR=full` with cargo.
pub(crate) fn is_full() -> bool {
    std::env::var("PHALANX_GEAR").as_deref() == Ok("full")
}

/// Picks a size by the gear.
pub(crate) fn sized<T>(default: T, full: T) -> T {
    if is_full() { full } else { default }
}

/// The variable that makes programs do without the mechanisms of Linux (`scripts/test --portable`),
/// if this run has it. Programs that a test starts with an environment of its own need it, too.
pub(crate) fn portable() -> Option<(&'static str, String)> {
    const NAME: &str = "SYS_TEST_PORTABLE";
    std::env::var(NAME).ok().map(|value| (NAME, value))
}

/// Reports that the calling test does not run. `scripts/test` lists these reports at its end, from
/// the file that `PHALANX_SKIPPED` names.
pub(crate) fn skip(reason: &str) {
    let thread = std::thread::current();
    let line = format!("{}: {reason}\n", thread.name().unwrap_or("a test"));
    eprint!("SKIPPED {line}");
    if let Some(path) = std::env::var_os("PHALANX_SKIPPED") {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the file of PHALANX_SKIPPED is writable");
    }
}

/// Reports a test that lacks a tool. In CI that is a failure.
pub(crate) fn skip_without(tool: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "CI must not skip this test: {tool}");
    skip(tool);
}
