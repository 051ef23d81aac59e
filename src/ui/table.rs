//! Tables of text: columns aligned, no frames, empty columns left out, and cut to a terminal's
//! width where that is asked for.

use super::paint::{Paint, Tint};
use crate::model::text;

/// A column that is cut to fit keeps at least this width.
const NARROWEST: usize = 16;
/// Spaces between two columns.
const GAP: usize = 2;

/// One field of a table, fit to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    tint: Tint,
}

/// A field in a look of its own; foreign text is made fit to print.
pub(crate) fn tinted(tint: Tint, words: impl AsRef<str>) -> Cell {
    Cell { text: text::line(words.as_ref()), tint }
}

/// A plain field.
pub(crate) fn cell(words: impl AsRef<str>) -> Cell {
    tinted(Tint::Plain, words)
}

/// A field that may have nothing in it.
pub(crate) fn maybe(words: Option<impl AsRef<str>>) -> Cell {
    cell(words.as_ref().map_or("", |w| w.as_ref()))
}

/// Rows under their headings.
pub(crate) struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(heads: &[&'static str]) -> Table {
        Table { heads: heads.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; it has as many fields as there are headings.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Makes every line fit into `width`: drops the columns of `optional`, first one first, for as
    /// long as `flexible` would be cut below its least width, and then cuts `flexible`.
    pub(crate) fn fit(&mut self, width: usize, flexible: &str, optional: &[&str]) {
        let mut optional = optional.iter();
        loop {
            let Some(column) = self.heads.iter().position(|head| *head == flexible) else { return };
            let filled = self.filled();
            let others = filled.iter().filter(|other| **other != column);
            let used: usize = others.map(|other| self.width(*other) + GAP).sum();
            let room = width.saturating_sub(used);
            if room < self.width(column).min(NARROWEST)
                && let Some(head) = optional.next()
            {
                self.drop_column(head);
                continue;
            }
            let room = room.max(self.heads[column].len());
            for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(column)) {
                cell.text = text::short(&cell.text, room);
            }
            return;
        }
    }

    fn drop_column(&mut self, head: &str) {
        if let Some(column) = self.heads.iter().position(|other| *other == head) {
            self.heads.remove(column);
            self.rows.iter_mut().for_each(|row| drop(row.remove(column)));
        }
    }

    /// The columns in which something stands.
    fn filled(&self) -> Vec<usize> {
        let filled =
            |column: &usize| self.rows.iter().any(|row| row.get(*column).is_some_and(|c| !c.text.is_empty()));
        (0..self.heads.len()).filter(filled).collect()
    }

    /// The table, one line for each row.
    pub(crate) fn render(&self, paint: Paint) -> String {
        let columns = self.filled();
        let widths: Vec<usize> = columns.iter().map(|column| self.width(*column)).collect();
        let heads = self.heads.iter().map(|h| tinted(Tint::Dim, h)).collect::<Vec<_>>();
        let lines = std::iter::once(&heads).chain(&self.rows).map(|row| line(row, &columns, &widths, paint));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|c| c.text.chars().count());
        cells.chain([self.heads[column].len()]).max().unwrap_or(0)
    }
}

fn line(row: &[Cell], columns: &[usize], widths: &[usize], paint: Paint) -> String {
    let mut out = String::new();
    let mut gap = 0;
    for (column, width) in columns.iter().zip(widths) {
        let Some(cell) = row.get(*column) else { continue };
        // Padding is held back until something follows: no line ends in spaces.
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
    fn columns_are_aligned_and_empty_ones_left_out() {
        let mut table = Table::new(&["NAME", "PANE", "STATE"]);
        table.row(vec![cell("al\u{1b}ice"), cell(""), cell("idle")]);
        table.row(vec![cell("b"), cell(""), maybe(None::<&str>)]);
        assert_eq!(table.render(Paint { on: false }), "NAME    STATE\nal\u{241b}ice  idle\nb");
    }

    #[test]
    fn a_table_that_is_too_wide_drops_columns_and_cuts_one() {
        let table = |width| {
            let mut table = Table::new(&["ID", "SUBJECT", "BY", "TIME"]);
            table.row(vec![
                cell("#1"),
                cell("Check every link of the pages"),
                cell("benjamin"),
                cell("2.1s"),
            ]);
            table.fit(width, "SUBJECT", &["BY", "TIME"]);
            table.render(Paint { on: false })
        };
        assert_eq!(
            table(80),
            "ID  SUBJECT                        BY        TIME\n#1  Check every link of the pages  benjamin  2.1s"
        );
        assert_eq!(
            table(40),
            "ID  SUBJECT               BY        TIME\n#1  Check every link of…  benjamin  2.1s"
        );
        assert_eq!(table(30), "ID  SUBJECT               TIME\n#1  Check every link of…  2.1s");
        assert_eq!(table(20), "ID  SUBJECT\n#1  Check every lin…");
        assert_eq!(table(1), "ID  SUBJECT\n#1  Check …");
    }

    #[test]
    fn colours_do_not_count_as_width() {
        let mut table = Table::new(&["A", "B"]);
        table.row(vec![tinted(Tint::Good, "x"), cell("y")]);
        assert!(table.render(Paint { on: true }).ends_with("\u{1b}[32mx\u{1b}[0m  y"));
    }
}
