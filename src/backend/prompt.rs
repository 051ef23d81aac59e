//! The line of a screen in which a program asks for input.

/// Returns the text before the cursor, or the last line above it that is not blank. `None` on the
/// alternate screen, which belongs to full-screen programs.
pub(super) fn prompt_line(screen: &vt100::Screen) -> Option<String> {
    if screen.alternate_screen() {
        return None;
    }
    let (row, column) = screen.cursor_position();
    let (_, columns) = screen.size();
    let before = screen.rows(0, column).nth(usize::from(row)).unwrap_or_default();
    let above = || {
        let rows: Vec<String> = screen.rows(0, columns).take(usize::from(row)).collect();
        rows.into_iter().rev().find(|line| !line.trim().is_empty())
    };
    if before.trim().is_empty() { above() } else { Some(before) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_the_cursor_or_the_last_one_above_is_found() {
        let table = [
            ("one\r\nContinue? ", Some("Continue? ")),
            ("Continue?\r\n\r\n", Some("Continue?")),
            ("Ok? (y/N) yes\x1b[3D", Some("Ok? (y/N)")),
            ("", None),
            ("Sure?\x1b[?1049h~\r\nSure?", None),
        ];
        for (output, expected) in table {
            let mut terminal = vt100::Parser::new(5, 20, 0);
            terminal.process(output.as_bytes());
            let found = prompt_line(terminal.screen());
            let found = found.as_deref().map(str::trim_end);
            assert_eq!(found, expected.map(str::trim_end), "{output:?}");
        }
    }
}
