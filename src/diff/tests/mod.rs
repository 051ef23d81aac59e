//! Patches for tests: written as git prints them, generated, and printed by git itself.

mod code;
mod git;
mod keys;
mod parse;
mod properties;
mod round_trip;
mod screens;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};

use crate::{Annotation, AnnotationPlace, AnnotationState, DiffAction, DiffSide, DiffView, Patch};

/// Parses a patch that is valid.
pub(super) fn patch(text: &str) -> Patch {
    Patch::parse(text.as_bytes()).expect("a valid patch")
}

/// Two files with changed lines, a renamed one and a binary one.
pub(super) const SAMPLE: &str = "\
diff --git a/src/auth.rs b/src/auth.rs
index 1111111..2222222 100644
--- a/src/auth.rs
+++ b/src/auth.rs
@@ -40,4 +40,4 @@ use std::env;
 fn token() -> Result<String> {
-\tlet t = env::var(\"TOKEN\").unwrap();
+\tlet t = env::var(\"TOKEN\")?;
 \tOk(t)
 }
@@ -88,3 +88,4 @@ fn check()
 one
-two
+alpha
+beta
 three
diff --git a/logo.png b/logo.png
index 1111111..2222222 100644
Binary files a/logo.png and b/logo.png differ
diff --git a/old b/new
similarity index 100%
rename from old
rename to new
diff --git a/notes.txt b/notes.txt
new file mode 100644
index 0000000..2222222
--- /dev/null
+++ b/notes.txt
@@ -0,0 +1 @@
+a note
\\ No newline at end of file
";

/// A view on a screen.
pub(super) struct Stage {
    pub(super) view: DiffView,
    pub(super) size: Size,
}

impl Stage {
    pub(super) fn new(patch: Patch, cols: u16, rows: u16) -> Stage {
        let view = DiffView::new("ada · demo-ada · 1a2b3c4 → 9f8e7d6", patch, false);
        Stage { view, size: Size::new(cols, rows) }
    }

    pub(super) fn sample(cols: u16, rows: u16) -> Stage {
        Stage::new(patch(SAMPLE), cols, rows)
    }

    pub(super) fn press(&mut self, code: KeyCode) -> Option<DiffAction> {
        self.view.handle(KeyEvent::new(code, KeyModifiers::NONE), self.size)
    }

    /// Presses the key of each character. Returns the last action.
    pub(super) fn keys(&mut self, keys: &str) -> Option<DiffAction> {
        keys.chars().map(|c| self.press(KeyCode::Char(c))).last().flatten()
    }

    pub(super) fn draw(&mut self) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, self.size.width, self.size.height));
        self.view.draw(buffer.area, &mut buffer, None);
        buffer
    }

    /// Returns the rows of the screen without spaces at their ends.
    pub(super) fn screen(&mut self) -> Vec<String> {
        let buffer = self.draw();
        let width = usize::from(self.size.width).max(1);
        buffer
            .content
            .chunks(width)
            .map(|row| {
                let row: String = row.iter().map(|cell| cell.symbol()).collect();
                row.trim_end().to_owned()
            })
            .collect()
    }
}

pub(super) fn draft(id: u64, line: u32, text: &str) -> Annotation {
    let path = b"src/auth.rs".to_vec();
    Annotation {
        id,
        place: AnnotationPlace::Line { path, side: DiffSide::New, line },
        state: AnnotationState::Draft,
        label: format!("R{id} must"),
        rows: vec![text.to_owned()],
    }
}
