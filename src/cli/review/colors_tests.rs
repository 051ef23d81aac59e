//! Tests of the process that finds the words of code, with programs that go wrong.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use diff::CodeBlob;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::colors::Highlighter;
use super::jobs::ReviewJobs;
use super::jobs_tests::next;
use super::source::{PatchRange, ReviewSource, ReviewedWork};
use model::code::{CodeLanguage, LARGEST_CODE, TokenKind, TokenSpan};
use model::id::MemberName;
use model::review::{PlacedComment, ReviewLook};
use sys::clock::{Deadline, sleep};
use sys::exec::CancelToken;
use sys::fs;
use sys::proc::{Process, wait_exit};
use ui::review::{ReviewAction, ReviewEffect, ReviewNews, WorkList};

const LIMIT: Duration = Duration::from_secs(20);
const TEXT: &[u8] = b"fn f() {}\n";

/// A team with one content.
struct OneContent;

impl ReviewSource for OneContent {
    fn works(&self) -> Result<WorkList, String> {
        Ok(WorkList::default())
    }

    fn reviewed(&self, _: &MemberName, _: &CancelToken) -> Result<ReviewedWork, String> {
        Err("none".to_owned())
    }

    fn patch(
        &self,
        _: &MemberName,
        _: &PatchRange<'_>,
        _: &CancelToken,
    ) -> Result<Vec<u8>, String> {
        Err("none".to_owned())
    }

    fn content(
        &self,
        _: &MemberName,
        blob: &str,
        _: usize,
        _: &CancelToken,
    ) -> Result<Vec<u8>, String> {
        match blob {
            "panic" => panic!("a bug"),
            "missing" => Err("no such content".to_owned()),
            _ => Ok(TEXT.to_vec()),
        }
    }

    fn comments(&self, _: &MemberName, _: &str) -> Result<Vec<PlacedComment>, String> {
        Ok(Vec::new())
    }

    fn look(&self, _: &MemberName) -> Result<Option<ReviewLook>, String> {
        Ok(None)
    }

    fn message(&self, _: &MemberName) -> Result<String, String> {
        Ok(String::new())
    }

    fn conflicts(&self, _: &MemberName) -> Result<String, String> {
        Err("not used".to_owned())
    }

    fn perform(&self, _: &ReviewAction, _: &CancelToken) -> Result<String, String> {
        Ok(String::new())
    }

    fn watch(&self, on_change: Box<dyn Fn() + Send>) -> Result<Box<dyn Any>, String> {
        Ok(Box::new(on_change))
    }
}

/// Returns a highlighter that is a script in this directory.
fn script(dir: &Path, name: &str, lines: &str, deadline: Duration) -> Highlighter {
    let path = dir.join(name);
    assert!(fs::create_new(&path, lines.as_bytes()).expect("a script"));
    Highlighter { program: "sh".into(), args: vec![path.into()], deadline }
}

/// Returns the process that a script has written to a file.
fn written_process(file: &Path) -> Process {
    let limit = Deadline::after(LIMIT);
    while !fs::exists(file) {
        assert!(!limit.expired(), "a run in time");
        sleep(Duration::from_millis(2));
    }
    let text = fs::read(file, 100).expect("a file").expect("a process id");
    let pid = String::from_utf8(text).expect("digits").trim().parse().expect("a number");
    Process::of(pid).expect("a running process")
}

fn run(highlighter: &Highlighter, text: &[u8]) -> Option<model::code::CodeTokens> {
    highlighter.run(CodeLanguage::Rust, text.to_vec(), &CancelToken::default())
}

#[test]
fn words_of_the_program_are_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let words =
        "test \"$1 $2\" = 'highlight rust' && cat >/dev/null && echo '[[[0,2,\"keyword\"]],[]]'";
    let good = script(dir.path(), "good", words, LIMIT);
    let expected = vec![vec![TokenSpan { start: 0, end: 2, kind: TokenKind::Keyword }], Vec::new()];
    assert_eq!(run(&good, TEXT), Some(expected));
    for plain in [&b""[..], b"\xff", b"a\0b", &vec![b'a'; LARGEST_CODE + 1], b"one line"] {
        assert_eq!(run(&good, plain), None);
    }
}

/// RV-41: a program that fails, is killed or prints something else leaves the text plain.
#[test]
fn rv_41_program_that_goes_wrong_leaves_the_text_plain() {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, lines) in [
        ("crash", "cat >/dev/null; kill -SEGV $$"),
        ("fail", "echo '[[],[]]'; exit 70"),
        ("garbage", "cat"),
        ("empty", "cat >/dev/null"),
        ("kind", "echo '[[[0,2,\"evil\"]],[]]'"),
        ("number", "echo '[[[-1,2,\"keyword\"]],[]]'"),
        ("short", "echo '[[]]'"),
        ("endless", "exec yes '[[[['"),
    ] {
        let bad = script(dir.path(), name, lines, LIMIT);
        assert_eq!(run(&bad, TEXT), None, "{name}");
    }
    let program = dir.path().join("none").into();
    let none = Highlighter { program, args: Vec::new(), deadline: LIMIT };
    assert_eq!(run(&none, TEXT), None);
}

fn started(highlighter: Highlighter) -> (ReviewJobs, UnboundedReceiver<ReviewNews>) {
    let (sender, news) = unbounded_channel();
    let jobs = ReviewJobs::start_with(Arc::new(OneContent), sender, highlighter).expect("threads");
    (jobs, news)
}

fn read_code(jobs: &mut ReviewJobs, ids: &[&str]) {
    let member = MemberName::existing("ada").expect("a name");
    let blob = |id: &&str| CodeBlob { id: (*id).to_owned(), language: CodeLanguage::Rust };
    jobs.take(ReviewEffect::ReadCode { member, code: ids.iter().map(blob).collect() });
}

/// RV-40: the process of a text at which it hangs is killed at the deadline, and others go on
/// meanwhile.
#[test]
fn rv_40_hanging_program_is_killed_and_the_text_stays_plain() {
    let dir = tempfile::tempdir().expect("a directory");
    let marker = dir.path().join("pid");
    // The first run hangs with a child of its own; later ones answer.
    let lines = format!(
        "if mkdir {0}.dir; then sleep 1000 & echo $! >{0}.new; mv {0}.new {0}; wait; fi\n\
         echo '[[],[]]'",
        marker.display()
    );
    let deadline = Duration::from_secs(2);
    let (mut jobs, mut news) = started(script(dir.path(), "hang", &lines, deadline));
    read_code(&mut jobs, &["missing", "panic", "hangs", "good"]);
    let process = written_process(&marker);
    jobs.take(ReviewEffect::ReadList);
    assert_eq!(next(&mut news), ReviewNews::List(Ok(WorkList::default())), "before the deadline");
    let ReviewNews::Code { code, .. } = next(&mut news) else { panic!("no words") };
    assert_eq!(code.id, "good", "the hanging one has none");
    assert!(wait_exit(process, LIMIT), "killed");
    // The results are kept.
    read_code(&mut jobs, &["hangs", "good"]);
    let ReviewNews::Code { code, .. } = next(&mut news) else { panic!("no words") };
    assert_eq!(code.id, "good");
}

/// RV-40: the end of the screen does not wait for the process.
#[test]
fn rv_40_end_of_the_screen_kills_the_process() {
    let dir = tempfile::tempdir().expect("a directory");
    let marker = dir.path().join("pid");
    let lines = format!("echo $$ >{0}.new; mv {0}.new {0}; exec sleep 1000", marker.display());
    let program = script(dir.path(), "hang", &lines, Duration::from_secs(900));
    let (mut jobs, _news) = started(program);
    read_code(&mut jobs, &["hangs", "never"]);
    let process = written_process(&marker);
    drop(jobs);
    assert!(wait_exit(process, LIMIT), "killed");
}
