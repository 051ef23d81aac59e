//! A fault of phalanx itself: one line instead of a backtrace, and a terminal that can be used again.

use std::io::{self, Write};
use std::panic::{self, PanicHookInfo};
use std::sync::{Mutex, PoisonError};

use super::fail::{Class, Told, exhausted};
use crate::model::text;

/// What the last panic said.
static LAST: Mutex<String> = Mutex::new(String::new());

/// From now on a panic is told in one line.
pub(super) fn watch() {
    panic::set_hook(Box::new(|info| {
        let said = said(info);
        let _ = writeln!(io::stderr().lock(), "{}", told(&said).text());
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = said;
    }));
}

/// The last panic as a failure.
pub(super) fn last() -> Told {
    told(&LAST.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Some libraries panic when the system refuses a thread or a file; phalanx is not at fault then.
fn told(said: &str) -> Told {
    if let Some(limit) = exhausted(said) {
        let hint = Some("raise the limit, or end other programs".to_owned());
        return Told { class: Class::Failed, message: limit.to_owned(), hint };
    }
    let hint = Some("this is a bug in phalanx; please report it with this line".to_owned());
    Told { class: Class::Internal, message: format!("internal error: {said}"), hint }
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
    fn a_fault_is_one_line_of_kind_internal() {
        let told = told(&text::line("bad\nthing"));
        assert_eq!(told.text().lines().count(), 2, "{}", told.text());
        assert_eq!(
            (told.class.code(), told.document()["error"]["kind"].as_str()),
            (70, Some("internal"))
        );
    }

    #[test]
    fn an_exhausted_limit_is_named_and_is_not_a_fault() {
        let thread = "OS can't spawn worker thread: Resource temporarily unavailable (os error 11) at x.rs:1";
        let file = "failed to create UnixStream: Os { code: 24, message: \"Too many open files\" } at x.rs:1";
        for (said, limit) in [(thread, "no more processes"), (file, "no more open files")] {
            let told = told(said);
            assert!(told.message.starts_with(limit) && told.class == Class::Failed, "{told:?}");
        }
    }
}
