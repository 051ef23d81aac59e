//! Text tables with aligned columns. Empty columns are omitted, and lines can be cut to the
//! terminal's width.

use crate::paint::{Paint, Tint};
use model::text;

const GAP: usize = 2;
/// Minimum width of a column that is cut.
const LEAST: usize = 10;

/// A field of a table, without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    tint: Tint,
}

/// Creates a field in this style; control characters are made visible.
pub(crate) fn tinted(tint: Tint, words: impl AsRef<str>) -> Cell {
    Cell { text: text::line(words.as_ref()), tint }
}

pub(crate) fn cell(words: impl AsRef<str>) -> Cell {
    tinted(Tint::Plain, words)
}

/// Creates a field that may be empty.
pub(crate) fn maybe(words: Option<impl AsRef<str>>) -> Cell {
    cell(words.as_ref().map_or("", |w| w.as_ref()))
}

pub(crate) struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(heads: &[&'static str]) -> Table {
        Table { heads: heads.to_vec(), rows: Vec::new() }
    }

    /// Adds a row with one field per heading.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Formats the table, one line for each row.
    pub(crate) fn render(&self, paint: Paint) -> String {
        self.lines(&self.filled(), paint)
    }

    /// Formats the table in lines of at most `width` characters, if possible: drops the columns in
    /// `spare` one by one while the table is too wide, then cuts the columns in `elastic`, the
    /// first one first.
    pub(crate) fn render_within(
        mut self,
        width: usize,
        spare: &[&str],
        elastic: &[&str],
        paint: Paint,
    ) -> String {
        let named = |heads: &[&str], names: &[&str]| -> Vec<usize> {
            names.iter().filter_map(|name| heads.iter().position(|head| head == name)).collect()
        };
        let (spare, elastic) = (named(&self.heads, spare), named(&self.heads, elastic));
        let mut columns = self.filled();
        for column in spare {
            let least = |c: &usize| {
                if elastic.contains(c) { self.width(*c).min(LEAST) } else { self.width(*c) }
            };
            if columns.iter().map(|c| least(c) + GAP).sum::<usize>() <= width.saturating_add(GAP) {
                break;
            }
            columns.retain(|c| *c != column);
        }
        for column in elastic {
            let whole: usize = columns.iter().map(|c| self.width(*c) + GAP).sum();
            let surplus = whole.saturating_sub(width.saturating_add(GAP));
            let room = self.width(column).saturating_sub(surplus).max(LEAST);
            for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(column)) {
                cell.text = text::short(&cell.text, room);
            }
        }
        self.lines(&columns, paint)
    }

    fn lines(&self, columns: &[usize], paint: Paint) -> String {
        let widths: Vec<usize> = columns.iter().map(|column| self.width(*column)).collect();
        let heads = self.heads.iter().map(|h| tinted(Tint::Dim, h)).collect::<Vec<_>>();
        let lines =
            std::iter::once(&heads).chain(&self.rows).map(|row| line(row, columns, &widths, paint));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Returns the columns that are not empty.
    fn filled(&self) -> Vec<usize> {
        let filled = |column: &usize| {
            self.rows.iter().any(|row| row.get(*column).is_some_and(|c| !c.text.is_empty()))
        };
        (0..self.heads.len()).filter(filled).collect()
    }

    fn width(&self, column: usize) -> usize {
        let cells =
            self.rows.iter().filter_map(|row| row.get(column)).map(|c| c.text.chars().count());
        cells.chain([self.heads[column].len()]).max().unwrap_or(0)
    }
}

fn line(row: &[Cell], columns: &[usize], widths: &[usize], paint: Paint) -> String {
    let mut out = String::new();
    let mut gap = 0;
    for (column, width) in columns.iter().zip(widths) {
        let Some(cell) = row.get(*column) else { continue };
        // Padding is added only before the next field, so that no line ends in spaces.
        if !cell.text.is_empty() {
            out.push_str(&" ".repeat(gap));
            out.push_str(&paint.put(cell.tint, &cell.text));
            gap = 0;
        }
        gap += width - cell.text.chars().count() + GAP;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_empty_ones_omitted() {
        let mut table = Table::new(&["NAME", "PANE", "STATE"]);
        table.row(vec![cell("al\u{1b}ice"), cell(""), cell("idle")]);
        table.row(vec![cell("b"), cell(""), maybe(None::<&str>)]);
        assert_eq!(table.render(Paint { on: false }), "NAME    STATE\nal\u{241b}ice  idle\nb");
    }

    #[test]
    fn wide_table_drops_columns_then_cuts_one() {
        let table = || {
            let mut table = Table::new(&["NAME", "PID", "REASON"]);
            table.row(vec![cell("ada"), cell("4711"), cell("a reason of some thirty letters")]);
            table
        };
        let render =
            |width| table().render_within(width, &["PID"], &["REASON"], Paint { on: false });
        assert_eq!(render(80), "NAME  PID   REASON\nada   4711  a reason of some thirty letters");
        assert_eq!(render(30), "NAME  PID   REASON\nada   4711  a reason of some …");
        assert_eq!(render(21), "NAME  REASON\nada   a reason of so…");
        assert_eq!(render(1), "NAME  REASON\nada   a reason …");
    }

    #[test]
    fn colours_do_not_count_towards_the_width() {
        let mut table = Table::new(&["A", "B"]);
        table.row(vec![tinted(Tint::Good, "x"), cell("y")]);
        assert!(table.render(Paint { on: true }).ends_with("\u{1b}[32mx\u{1b}[0m  y"));
    }
}
