//! Panics of phalanx: prints one line instead of a backtrace.

use std::io::{self, Write};
use std::panic::{self, PanicHookInfo};
use std::sync::{Mutex, PoisonError};

use crate::fail::{ErrorMessage, exhausted};
use model::text;
use ops::Kind;
use sys::contain;

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());
static RESTORE: Mutex<Option<fn()>> = Mutex::new(None);

/// Sets what the panic hook calls before it prints, to restore the terminal; `None` for nothing.
pub(super) fn restore_before_message(restore: Option<fn()>) {
    *RESTORE.lock().unwrap_or_else(PoisonError::into_inner) = restore;
}

pub(super) fn install_panic_hook() {
    panic::set_hook(Box::new(|info| {
        if contain::is_contained() {
            return;
        }
        if let Some(restore) = *RESTORE.lock().unwrap_or_else(PoisonError::into_inner) {
            restore();
        }
        let text = panic_text(info);
        let _ = writeln!(io::stderr().lock(), "{}", error_message(&text).text());
        *LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }));
}

pub(super) fn last_panic() -> ErrorMessage {
    error_message(&LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Converts a panic message. Some libraries panic when the system refuses a thread or a file; that
/// is not a bug in phalanx.
fn error_message(panic: &str) -> ErrorMessage {
    if let Some(limit) = exhausted(panic) {
        let hint = Some("raise the limit, or end other programs".to_owned());
        return ErrorMessage { kind: Kind::Failed, message: limit.to_owned(), hint };
    }
    let hint = Some("this is a bug in phalanx; please report it with this line".to_owned());
    ErrorMessage { kind: Kind::Internal, message: format!("internal error: {panic}"), hint }
}

fn panic_text(info: &PanicHookInfo) -> String {
    let payload = info.payload();
    let words = payload.downcast_ref::<&str>().copied();
    let words =
        words.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic");
    let place =
        info.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
    format!("{}{place}", text::line(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_is_an_internal_error_on_one_line() {
        let error = error_message(&text::line("bad\nthing"));
        assert_eq!(error.text().lines().count(), 2, "{}", error.text());
        assert_eq!(
            (error.kind.exit_code(), error.document()["error"]["kind"].as_str()),
            (70, Some("internal"))
        );
    }

    #[test]
    fn exhausted_limit_is_named_and_is_not_an_internal_error() {
        let thread = "OS can't spawn worker thread: Resource temporarily unavailable (os error 11) at x.rs:1";
        let file = "failed to create UnixStream: Os { code: 24, message: \"Too many open files\" } at x.rs:1";
        for (panic, limit) in [(thread, "no more processes"), (file, "no more open files")] {
            let error = error_message(panic);
            assert!(error.message.starts_with(limit) && error.kind == Kind::Failed, "{error:?}");
        }
    }
}
