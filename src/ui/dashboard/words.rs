//! Text in cells: cutting, wrapping and drawing by display width, and lines that other pages have
//! painted. Foreign text becomes visible here and nowhere else.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::theme::{Theme, Tone};
use model::text;

/// Returns one line of at most `width` cells; longer text ends with `…`.
pub(super) fn cut(foreign: &str, width: usize) -> String {
    let shown = text::line(foreign);
    if shown.width() <= width {
        return shown;
    }
    let (mut out, mut used) = (String::new(), 0);
    for c in shown.chars() {
        let cells = c.width().unwrap_or(0);
        if used + cells + 1 > width {
            break;
        }
        used += cells;
        out.push(c);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// Draws a dim line at the top of the area.
pub(super) fn draw_note(words: &str, area: Rect, buffer: &mut Buffer, theme: Theme) {
    let line = Line::styled(cut(words, area.width.into()), theme.style(Tone::Dim));
    buffer.set_line(area.x, area.y, &line, area.width);
}

/// Returns the text of exactly `width` cells: cut, or padded with spaces.
pub(super) fn fit(foreign: &str, width: usize) -> String {
    let mut shown = cut(foreign, width);
    let missing = width.saturating_sub(shown.width());
    shown.extend(std::iter::repeat_n(' ', missing));
    shown
}

/// Returns `9/20` for an entry of a list, counted from 0; `None` if all `count` entries fit into
/// `rows`.
pub(super) fn position(at: usize, rows: usize, count: usize) -> Option<String> {
    (count > rows).then(|| format!("{}/{count}", (at + 1).min(count)))
}

/// Converts a line with the colours of [`Paint`](crate::Paint) into styled text. Any other
/// control character becomes visible.
pub(super) fn painted(line: &str, theme: Theme) -> Line<'static> {
    let mut spans = Vec::new();
    let mut style = Style::default();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        push(&mut spans, before, style);
        let Some((code, text)) = after.split_once('m') else { break };
        style = match code {
            "0" => Style::default(),
            "1" => theme.style(Tone::Strong),
            "2" => theme.style(Tone::Dim),
            "31" => theme.style(Tone::Bad),
            "32" => theme.style(Tone::Good),
            "33" => theme.style(Tone::Waiting),
            _ => theme.style(Tone::Strong),
        };
        rest = text;
    }
    push(&mut spans, rest, style);
    Line::from(spans)
}

fn push(spans: &mut Vec<Span<'static>>, words: &str, style: Style) {
    if !words.is_empty() {
        spans.push(Span::styled(text::line(words), style));
    }
}

/// Breaks a line into lines of at most `width` cells, at spaces if possible. Continuation lines
/// keep the indentation of the first.
pub(super) fn wrap(line: Line<'static>, width: usize) -> Vec<Line<'static>> {
    if width == 0 || line.width() <= width {
        return vec![line];
    }
    let indent = line
        .spans
        .iter()
        .flat_map(|span| span.content.chars())
        .take_while(|c| *c == ' ')
        .count()
        .min(width / 2);
    let mut lines: Vec<Vec<(char, Style)>> = vec![Vec::new()];
    let mut used = 0;
    for (c, style) in line
        .spans
        .iter()
        .flat_map(|span| span.content.chars().map(|c| (c, span.style)).collect::<Vec<_>>())
    {
        let cells = c.width().unwrap_or(0);
        if used + cells > width {
            let mut moved = Vec::new();
            if let Some(current) = lines.last_mut() {
                let space = current.iter().rposition(|(c, _)| *c == ' ');
                // A word that is longer than half a line is broken.
                if c != ' '
                    && let Some(at) = space.filter(|at| *at > indent && *at >= current.len() / 2)
                {
                    moved = current.split_off(at + 1);
                    current.truncate(at);
                }
            }
            let mut next: Vec<(char, Style)> = vec![(' ', Style::default()); indent];
            next.extend(moved);
            used = next.iter().map(|(c, _)| c.width().unwrap_or(0)).sum();
            lines.push(next);
            if c == ' ' {
                continue;
            }
        }
        used += cells;
        if let Some(current) = lines.last_mut() {
            current.push((c, style));
        }
    }
    lines.into_iter().map(join).collect()
}

fn join(cells: Vec<(char, Style)>) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    for (c, style) in cells {
        match spans.last_mut().filter(|span| span.style == style) {
            Some(span) => span.content.to_mut().push(c),
            None => spans.push(Span::styled(c.to_string(), style)),
        }
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::super::theme::ThemeColors;
    use super::*;

    const PLAIN: Theme =
        Theme { color: false, light: false, ascii: false, colors: ThemeColors::DEFAULT };

    fn wrapped(text: &str, width: usize) -> Vec<String> {
        wrap(Line::from(text.to_owned()), width).iter().map(Line::to_string).collect()
    }

    #[test]
    fn text_is_cut_by_display_width() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("ab", 0), "");
        assert_eq!(fit("日", 4), "日  ");
        assert_eq!(cut("a\u{1b}[2Jb", 9), "a\u{241b}[2Jb");
    }

    #[test]
    fn lines_break_at_spaces_and_keep_their_indentation() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("  one two three", 8), ["  one", "  two", "  three"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("日本語日本語", 5), ["日本", "語日", "本語"]);
        assert_eq!(wrapped("", 5), [""]);
    }

    #[test]
    fn sec_10_painted_text_keeps_no_escape_sequence() {
        let theme = Theme { color: true, ..PLAIN };
        let line = painted("a\u{1b}[31mred\u{1b}[0mb\u{1b}]0;x\u{7}\u{1b}[2Jc", theme);
        assert!(!line.to_string().contains(char::is_control), "{line:?}");
        assert_eq!(line.spans[1].style, theme.style(Tone::Bad));
        assert_eq!(line.spans[1].content, "red");
    }

    #[test]
    fn only_a_list_that_does_not_fit_has_a_position() {
        assert_eq!(position(0, 20, 20), None);
        assert_eq!(position(8, 19, 20).as_deref(), Some("9/20"));
        assert_eq!(position(99, 5, 20).as_deref(), Some("20/20"));
        assert_eq!(position(0, 0, 0), None);
    }
}
