//! Panics of phalanx: prints one line instead of a backtrace.

use std::io::{self, Write};
use std::panic::{self, PanicHookInfo};
use std::sync::{Mutex, PoisonError};

use super::fail::{Told, exhausted};
use crate::model::text;
use crate::ops::Kind;

static LAST: Mutex<String> = Mutex::new(String::new());

pub(super) fn watch() {
    panic::set_hook(Box::new(|info| {
        let said = said(info);
        let _ = writeln!(io::stderr().lock(), "{}", told(&said).text());
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = said;
    }));
}

pub(super) fn last() -> Told {
    told(&LAST.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Converts a panic message. Some libraries panic when the system refuses a thread or a file; that
/// is not a bug in phalanx.
fn told(said: &str) -> Told {
    if let Some(limit) = exhausted(said) {
        let hint = Some("raise the limit, or end other programs".to_owned());
        return Told { class: Kind::Failed, message: limit.to_owned(), hint };
    }
    let hint = Some("this is a bug in phalanx; please report it with this line".to_owned());
    Told { class: Kind::Internal, message: format!("internal error: {said}"), hint }
}

fn said(info: &PanicHookInfo) -> String {
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
        let told = told(&text::line("bad\nthing"));
        assert_eq!(told.text().lines().count(), 2, "{}", told.text());
        assert_eq!(
            (told.class.code(), told.document()["error"]["kind"].as_str()),
            (70, Some("internal"))
        );
    }

    #[test]
    fn exhausted_limit_is_named_and_is_not_an_internal_error() {
        let thread = "OS can't spawn worker thread: Resource temporarily unavailable (os error 11) at x.rs:1";
        let file = "failed to create UnixStream: Os { code: 24, message: \"Too many open files\" } at x.rs:1";
        for (said, limit) in [(thread, "no more processes"), (file, "no more open files")] {
            let told = told(said);
            assert!(told.message.starts_with(limit) && told.class == Kind::Failed, "{told:?}");
        }
    }
}
