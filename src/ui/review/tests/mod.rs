//! Tests of the review screen on a sample team.

mod actions;
mod code;
mod keys;
mod pictures;
mod properties;

use std::collections::BTreeMap;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use diff::Patch;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};

use super::{
    ListedWork, OpenedWork, ReviewAction, ReviewEffect, ReviewNews, ReviewScreen, SeenWork,
    WorkList, WorkObject,
};
use crate::dashboard::{Theme, ThemeColors};
use model::id::{MemberName, TaskId};
use model::review::{
    AnswerKind, CheckEnd, CheckRun, CommentAnswer, CommentId, CommentKind, CommentLines,
    CommentPlace, LineSide, PlaceNow, PlacedComment, ReviewComment,
};
use model::time::Timestamp;
use ops::review::checks::WorkCheck;
use ops::review::overview::{CommentCounts, Overlap, WaitingWork};
use ops::review::tasks::OpenTask;

const PLAIN: Theme =
    Theme { color: false, light: false, ascii: false, colors: ThemeColors::DEFAULT };

const PATCH: &str = "\
diff --git a/src/auth.rs b/src/auth.rs
index 1111111..2222222 100644
--- a/src/auth.rs
+++ b/src/auth.rs
@@ -40,4 +40,4 @@ use std::env;
 fn token() -> Result<String> {
-    let t = env::var(\"TOKEN\").unwrap();
+    let t = env::var(\"TOKEN\")?;
     Ok(t)
 }
diff --git a/notes.txt b/notes.txt
new file mode 100644
index 0000000..3333333
--- /dev/null
+++ b/notes.txt
@@ -0,0 +1 @@
+a note
";

fn name(name: &str) -> MemberName {
    MemberName::existing(name).expect("a name")
}

/// Returns a commit id of which the screen shows a part that no other one has.
fn commit(short: &str) -> String {
    format!("{short:0<40}")
}

fn work(member: &str, task: Option<(u64, &str)>, version: u32) -> ListedWork {
    ListedWork {
        member: name(member),
        from: format!("demo-{member}"),
        host: None,
        task: task.map(|(id, subject)| OpenTask {
            id: TaskId(id),
            subject: subject.to_owned(),
            is_in_review: true,
        }),
        changes: Ok(WaitingWork {
            from: format!("demo-{member}"),
            host: None,
            since: Timestamp(0),
            base: commit("1a2b3c4"),
            head: commit(&head(member, version)),
            snapshot: commit(&snapshot(member, version)),
            commits: 4,
            uncommitted: 1,
            files: 9,
            added: 120,
            removed: 31,
            conflicts: Vec::new(),
        }),
        seen: SeenWork::Earlier,
        comments: CommentCounts { drafts: 1, sent: 0, answered: 1 },
        checks: Vec::new(),
        passed_by: Vec::new(),
    }
}

fn head(member: &str, version: u32) -> String {
    format!("{:02x}{version:x}aaaa", member.as_bytes()[0])
}

fn snapshot(member: &str, version: u32) -> String {
    format!("{:02x}{version:x}bbbb", member.as_bytes()[0])
}

fn list() -> WorkList {
    let mut ada = work("ada", Some((4, "Validate tokens")), 0);
    let run = |end, output: &str| CheckRun {
        commit: commit(&snapshot("ada", 0)),
        at: Timestamp(1),
        took_ms: 1,
        end,
        output: output.to_owned(),
    };
    let failed = run(CheckEnd::Failed { exit: 2 }, "auth.rs:41: unused");
    ada.checks = vec![
        WorkCheck { name: "lint".to_owned(), last: Some(failed) },
        WorkCheck { name: "test".to_owned(), last: None },
    ];
    let mut bob = work("bob", Some((5, "Cache")), 0);
    bob.seen = SeenWork::All;
    bob.comments = CommentCounts { sent: 3, ..CommentCounts::default() };
    let mut cyd = work("cyd", None, 0);
    cyd.seen = SeenWork::Never;
    cyd.comments = CommentCounts::default();
    if let Ok(changes) = &mut cyd.changes {
        changes.conflicts = vec!["docs/start.txt".to_owned()];
    }
    let mut dan = work("dan", None, 0);
    dan.host = Some("build".to_owned());
    dan.changes = Err("host `build` does not answer".to_owned());
    WorkList {
        into: "main".to_owned(),
        main: commit("0d0d0d0"),
        works: vec![ada, bob, cyd, dan],
        overlaps: vec![Overlap {
            first: name("ada"),
            second: name("bob"),
            files: vec!["src/auth.rs".to_owned(), "src/cache.rs".to_owned()],
            conflicts: vec!["src/auth.rs".to_owned()],
        }],
    }
}

fn comment(id: u32, line: u32, now: PlaceNow, text: &str) -> PlacedComment {
    let quote = ["    let t = env::var(\"TOKEN\")?;".as_bytes()];
    PlacedComment {
        comment: ReviewComment {
            id: CommentId(id),
            member: name("ada"),
            by: MemberName::lead(),
            task: Some(TaskId(4)),
            kind: CommentKind::Must,
            place: Some(CommentPlace {
                path: "src/auth.rs".to_owned(),
                lines: Some(CommentLines::quoting(LineSide::New, line, line, quote)),
            }),
            base: commit("1a2b3c4"),
            commit: commit("0000000"),
            text: text.to_owned(),
            remote: None,
            at: Timestamp(1),
            sent: None,
            answer: None,
            resolved: None,
        },
        now,
    }
}

/// A draft, a comment with an answer, and one whose lines are gone.
fn comments() -> Vec<PlacedComment> {
    let draft =
        comment(12, 41, PlaceNow::Same { first: 41, last: 41 }, "This still loses the name.");
    let mut answered =
        comment(9, 42, PlaceNow::Changed { first: 42, last: 42 }, "Return the error.");
    answered.comment.sent = Some(Timestamp(2));
    answered.comment.answer = Some(CommentAnswer {
        kind: AnswerKind::Done,
        text: "returns Err".to_owned(),
        at: Timestamp(3),
    });
    let mut gone = comment(7, 90, PlaceNow::Gone, "Is this used?");
    gone.comment.kind = CommentKind::Question;
    gone.comment.sent = Some(Timestamp(2));
    vec![gone, answered, draft]
}

fn opened(member: &str, version: u32) -> OpenedWork {
    OpenedWork {
        object: WorkObject {
            member: name(member),
            from: format!("demo-{member}"),
            into: "main".to_owned(),
            base: commit("1a2b3c4"),
            head: commit(&head(member, version)),
            snapshot: commit(&snapshot(member, version)),
            uncommitted: 1,
            task: Some(OpenTask {
                id: TaskId(4),
                subject: "Validate tokens".to_owned(),
                is_in_review: true,
            }),
        },
        nested: Vec::new(),
        since: commit("1a2b3c4"),
        patch: Patch::parse(PATCH.as_bytes()).expect("a valid patch"),
        comments: if member == "ada" { comments() } else { Vec::new() },
        look: Some(commit("7c6d5e4")),
        viewed: BTreeMap::new(),
    }
}

/// A screen on a terminal.
struct Stage {
    screen: ReviewScreen,
    size: Size,
    cursor: Option<Position>,
}

impl Stage {
    fn new(cols: u16, rows: u16) -> Stage {
        let mut screen = ReviewScreen::new("demo", PLAIN);
        screen.start(None);
        screen.apply(ReviewNews::List(Ok(list())));
        let mut stage = Stage { screen, size: Size::new(cols, rows), cursor: None };
        stage.draw();
        stage
    }

    /// A screen with the changes of ada.
    fn with_changes(cols: u16, rows: u16) -> Stage {
        let mut stage = Stage::new(cols, rows);
        let effects = stage.press("Enter");
        stage.open(&effects, opened("ada", 0));
        stage
    }

    /// Delivers changes to the request in these effects.
    fn open(&mut self, effects: &[ReviewEffect], work: OpenedWork) -> Vec<ReviewEffect> {
        let [ReviewEffect::Open(request)] = effects else { panic!("no request: {effects:?}") };
        let news = ReviewNews::Opened { number: request.number, work: Ok(Box::new(work)) };
        let effects = self.screen.apply(news);
        self.draw();
        effects
    }

    fn event(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Vec<ReviewEffect> {
        let effects = self.screen.handle(&Event::Key(KeyEvent::new(code, modifiers)), self.size);
        self.draw();
        effects
    }

    /// Presses the keys of these words: names of keys, single keys, or texts in quotes. Returns the
    /// effects of the last key.
    fn press(&mut self, keys: &str) -> Vec<ReviewEffect> {
        let mut effects = Vec::new();
        for word in keys.split(' ') {
            effects = match word {
                "Enter" => self.event(KeyCode::Enter, KeyModifiers::NONE),
                "Esc" => self.event(KeyCode::Esc, KeyModifiers::NONE),
                "Tab" => self.event(KeyCode::Tab, KeyModifiers::NONE),
                "A-Enter" => self.event(KeyCode::Enter, KeyModifiers::ALT),
                "C-c" => self.event(KeyCode::Char('c'), KeyModifiers::CONTROL),
                "C-s" => self.event(KeyCode::Char('s'), KeyModifiers::CONTROL),
                text => {
                    let mut last = Vec::new();
                    for c in text.chars() {
                        last = self.event(KeyCode::Char(c), KeyModifiers::NONE);
                    }
                    last
                }
            };
        }
        effects
    }

    fn draw(&mut self) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, self.size.width, self.size.height));
        self.cursor = self.screen.draw(buffer.area, &mut buffer, None);
        buffer
    }

    fn picture(&mut self) -> String {
        let width = usize::from(self.size.width).max(1);
        let buffer = self.draw();
        let rows = buffer.content.chunks(width).map(|row| {
            let row: String = row.iter().map(|cell| cell.symbol()).collect();
            row.trim_end().to_owned()
        });
        rows.collect::<Vec<_>>().join("\n")
    }

    fn last_row(&mut self) -> String {
        self.picture().lines().last().unwrap_or_default().to_owned()
    }

    fn done(&mut self, action: ReviewAction, words: Result<&str, &str>) -> Vec<ReviewEffect> {
        let words = words.map(str::to_owned).map_err(str::to_owned);
        let effects = self.screen.apply(ReviewNews::Done { action, words });
        self.draw();
        effects
    }
}
