//! Formats lines of members' output with the name as prefix, as Docker Compose prints them.

use crate::paint::{Paint, Tint};
use model::text;
use ops::views::logs::{LogLine, LogReader};

/// Returns the line, prefixed with `NAME |` if `width` is given; the name is padded to `width`.
pub fn log_line(reader: &LogReader, line: &LogLine, width: Option<usize>, paint: Paint) -> String {
    let Some(width) = width else { return line.text.clone() };
    let name = format!("{:<width$} |", text::line(reader.name.as_str()));
    let name = paint.put(Tint::member(Some(&reader.color)), &name);
    format!("{name} {}", line.text).trim_end().to_owned()
}
