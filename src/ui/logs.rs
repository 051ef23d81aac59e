//! A line of a member's output behind the member's name, as Docker Compose prints it. Pure.

use super::paint::{Paint, Tint};
use crate::model::text;
use crate::ops::logs::{Line, Reader};

/// The line as it is, or behind `NAME |` with the name padded to `width`.
pub(crate) fn log_line(reader: &Reader, line: &Line, width: Option<usize>, paint: Paint) -> String {
    let Some(width) = width else { return line.text.clone() };
    let name = format!("{:<width$} |", text::line(reader.name.as_str()));
    let name = paint.put(Tint::member(Some(&reader.color)), &name);
    format!("{name} {}", line.text).trim_end().to_owned()
}
