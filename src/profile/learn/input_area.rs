//! The composer of a program, from the row of the cursor on its idle screens.

use unicode_width::UnicodeWidthChar;

use super::super::rule::Pattern;
use super::super::snapshot::Screenshot;
use super::lesson::{LabelledScreen, height, is_frame, pattern_of};

/// Minimum length of a drawn line.
const LINE: usize = 10;

/// The input area of a program, as patterns of a profile.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InputArea {
    /// Pattern of what the program draws before the text.
    prefix: String,
    /// Pattern of what it draws behind the text.
    suffix: Option<String>,
    pub(super) above: Option<String>,
    pub(super) until: Option<String>,
    pub(super) placeholder: Option<String>,
    pub(super) ghost: bool,
    /// Nothing is drawn below.
    pub(super) last: bool,
    /// It is in this number of rows at the end of the screen.
    pub(super) rows: usize,
}

/// The row of the cursor.
struct CursorRow<'l> {
    name: &'l str,
    look: &'l Screenshot,
    at: usize,
    /// The part before the cursor, padded up to it.
    before: String,
    after: String,
}

impl InputArea {
    /// Finds the input area on the idle screens.
    ///
    /// # Errors
    /// The reason why it cannot be found, which names a screen.
    pub(super) fn find(idle: &[&LabelledScreen]) -> Result<InputArea, String> {
        let rows: Vec<CursorRow> =
            idle.iter().map(|screen| CursorRow::new(screen)).collect::<Result<_, _>>()?;
        let first = rows.first().ok_or("no screen is idle")?;
        let starts = rows.iter().map(|row| row.before.trim_start());
        let before = starts.reduce(common_start).unwrap_or("");
        let is_indented = rows.iter().any(|row| row.before.starts_with(' '));
        let above = common(&rows, |row| drawn_line(row.row(row.at.checked_sub(1)?)?));
        if before.trim().is_empty() && above.is_none() {
            return Err(format!(
                "on {}, nothing before the cursor and no line above it marks where text is typed",
                first.name
            ));
        }
        let until =
            common(&rows, |row| row.look.rows[row.at + 1..].iter().find_map(|r| drawn_line(r)));
        let suffix = common(&rows, |row| {
            row.after.chars().next_back().filter(|c| is_frame(*c)).map(|c| format!(" *{c}$"))
        });
        let at_start = |row: &&CursorRow| pattern_of(row.before.trim_start()) == pattern_of(before);
        let (ghost, placeholder) = drawn_text(rows.iter().filter(at_start));
        let mut area = InputArea {
            prefix: prefix(before, is_indented),
            suffix,
            above,
            last: until.is_none() && rows.iter().all(|row| row.at + 1 >= height(row.look)),
            until,
            placeholder,
            ghost,
            rows: rows
                .iter()
                .map(|row| height(row.look).max(row.at + 1) - row.at)
                .max()
                .unwrap_or(1)
                + 2,
        };
        if area.misread(&rows).is_some() && area.above.is_none() {
            // The row above, such as the empty first row of a box, tells them apart.
            area.above = common(&rows, |row| {
                let above = row.row(row.at.checked_sub(1)?)?;
                let is_drawn = !above.contains(char::is_alphanumeric);
                is_drawn.then(|| format!("{}$", prefix(above, true)))
            });
        }
        match area.misread(&rows) {
            None => Ok(area),
            Some(row) => Err(format!(
                "on {}, a row below the cursor begins like the row in which text is typed",
                row.name
            )),
        }
    }

    /// Returns the pattern of the first row, with the group `text`.
    pub(super) fn line(&self) -> String {
        match &self.suffix {
            Some(suffix) => format!("{}(?<text>.*?){suffix}", self.prefix),
            None => format!("{}(?<text>.*)$", self.prefix),
        }
    }

    /// Returns a pattern that matches where the input area is on the screen.
    pub(super) fn shown(&self) -> String {
        let above = self.above.as_ref().map(|above| match above.strip_suffix('$') {
            Some(row) => format!(r"{row}\n"),
            None => format!(r"{above}[^\n]*\n"),
        });
        let prefix =
            if above.is_some() { self.prefix.trim_start_matches('^') } else { &self.prefix };
        let end = if self.last { r"[^\n]*\z" } else { "" };
        format!("{}{prefix}{end}", above.unwrap_or_default())
    }

    /// Returns the pattern of what the program draws before the text; `None` if it draws nothing
    /// there.
    pub(super) fn prompt(&self) -> Option<String> {
        self.prefix.contains(|c: char| !"^ *?".contains(c)).then(|| self.prefix.clone())
    }

    /// Returns a screen on which another row below the cursor would count as the composer.
    fn misread<'r, 'l>(&self, rows: &'r [CursorRow<'l>]) -> Option<&'r CursorRow<'l>> {
        let shown = Pattern::new(&self.shown()).ok()?;
        rows.iter().find(|row| {
            let start = row.at + usize::from(self.above.is_none());
            let below = row.look.rows.get(start..).unwrap_or_default().join("\n");
            shown.find(&below).is_some()
        })
    }
}

impl CursorRow<'_> {
    fn new(screen: &LabelledScreen) -> Result<CursorRow<'_>, String> {
        let look = &screen.look;
        let at = usize::from(look.cursor.0);
        let row = look.rows.get(at).filter(|_| look.cursor_shown);
        let row = row.ok_or_else(|| format!("{} shows no cursor", screen.name))?;
        let column = usize::from(look.cursor.1);
        let (mut cells, mut split) = (0, row.len());
        for (byte, c) in row.char_indices() {
            if cells >= column {
                split = byte;
                break;
            }
            cells += c.width().unwrap_or(0);
        }
        let (before, after) = row.split_at(split);
        let before = format!("{before}{}", " ".repeat(column.saturating_sub(cells)));
        Ok(CursorRow { name: &screen.name, look, at, before, after: after.to_owned() })
    }

    fn row(&self, at: usize) -> Option<&str> {
        self.look.rows.get(at).map(String::as_str)
    }
}

/// Returns what all rows yield, if it is the same.
fn common(rows: &[CursorRow], of: impl Fn(&CursorRow) -> Option<String>) -> Option<String> {
    let mut found = rows.iter().map(of);
    let first = found.next()??;
    found.all(|other| other.as_ref() == Some(&first)).then_some(first)
}

/// Returns the common beginning of two texts. Numbers count as equal: prompts count their inputs.
fn common_start<'t>(one: &'t str, other: &str) -> &'t str {
    let (mut left, mut right) = (one.char_indices().peekable(), other.chars().peekable());
    let mut end = 0;
    while let (Some((at, a)), Some(b)) = (left.peek().copied(), right.peek().copied()) {
        if a.is_ascii_digit() && b.is_ascii_digit() {
            while left.next_if(|(_, c)| c.is_ascii_digit()).is_some() {}
            while right.next_if(char::is_ascii_digit).is_some() {}
        } else if a == b {
            left.next();
            right.next();
        } else {
            return &one[..at];
        }
        end = left.peek().map_or(one.len(), |(at, _)| *at);
    }
    &one[..end]
}

/// Returns the pattern of a row's beginning. Its indentation may vary, and blanks at its end are
/// not there while nothing is typed.
fn prefix(before: &str, is_indented: bool) -> String {
    let text = before.trim();
    let indent = if is_indented { " *" } else { "" };
    let blanks = before.len() - before.trim_end().len();
    let gap = match blanks {
        0 => String::new(),
        _ if text.is_empty() => String::new(),
        1 => " ?".to_owned(),
        more => format!(" {{0,{more}}}"),
    };
    format!("^{indent}{}{gap}", pattern_of(text))
}

/// Returns the pattern of a row that is a drawn line.
fn drawn_line(row: &str) -> Option<String> {
    let line: Vec<char> = row.trim().chars().collect();
    if line.len() < LINE || !line.iter().all(|c| is_frame(*c)) {
        return None;
    }
    Some(format!("^ *{}{}{{8,}}", line[0], line[1]))
}

/// Returns whether the program draws faint text in an empty composer, and the pattern of text that
/// it draws otherwise.
fn drawn_text<'r, 'l: 'r>(rows: impl Iterator<Item = &'r CursorRow<'l>>) -> (bool, Option<String>) {
    let (mut ghost, mut texts) = (false, Vec::new());
    for row in rows {
        let text = row.after.trim_end_matches(|c| is_frame(c) || c == ' ').trim_start();
        let column = usize::from(row.look.cursor.1);
        if text.is_empty() {
            continue;
        }
        if row.look.is_faint(row.at, column) {
            ghost = true;
        } else {
            texts.push(pattern_of(text));
        }
    }
    texts.sort();
    texts.dedup();
    (ghost, (!texts.is_empty()).then(|| format!("^(?:{})$", texts.join("|"))))
}
