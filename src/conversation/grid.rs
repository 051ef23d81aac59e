//! Draws a table of Markdown: in columns with wrapped cells, or as a list of fields where the
//! columns would be too narrow to read.

use crate::line::{Breaks, Look, Span, StyledLine, wrap};

/// Columns between two columns of the table.
const GAP: usize = 2;
/// A narrower column is not readable.
const LEAST: usize = 8;

/// A table, whose first row is its head.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    rows: Vec<Vec<StyledLine>>,
    row: Vec<StyledLine>,
}

impl Grid {
    pub(crate) fn add_cell(&mut self, cell: StyledLine) {
        self.row.push(cell);
    }

    pub(crate) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    pub(crate) fn draw(&self, room: usize) -> Vec<StyledLine> {
        match self.widths(room) {
            Some(widths) => self.in_columns(&widths),
            None => self.in_fields(room),
        }
    }

    /// Returns the widths of the columns, or `None` if they do not fit.
    fn widths(&self, room: usize) -> Option<Vec<usize>> {
        let count = self.rows.first().map_or(0, Vec::len);
        let mut widths = vec![1; count];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let room = room.checked_sub(GAP * count.saturating_sub(1))?;
        while widths.iter().sum::<usize>() > room {
            let widest = widths.iter_mut().max().filter(|width| **width > LEAST)?;
            *widest -= 1;
        }
        Some(widths)
    }

    fn in_columns(&self, widths: &[usize]) -> Vec<StyledLine> {
        let mut out = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            let none = StyledLine::default();
            let cells: Vec<Vec<StyledLine>> = row
                .iter()
                .zip(widths)
                .map(|(cell, width)| wrap(cell, &none, &none, *width, Breaks::Words))
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for part in 0..height {
                let cells = cells.iter().map(|cell| cell.get(part).cloned().unwrap_or_default());
                out.push(join(cells, widths));
            }
            if at == 0 {
                let rules =
                    widths.iter().map(|width| StyledLine::new(Look::DIM, &"─".repeat(*width)));
                out.push(join(rules, widths));
            }
        }
        out
    }

    /// Draws each field after the head of its column, and an empty row between two rows.
    fn in_fields(&self, room: usize) -> Vec<StyledLine> {
        let mut out = Vec::new();
        let Some((head, rows)) = self.rows.split_first() else { return out };
        let rest = StyledLine::new(Look::PLAIN, "  ");
        for (at, row) in rows.iter().enumerate() {
            if at > 0 {
                out.push(StyledLine::default());
            }
            for (name, cell) in head.iter().zip(row) {
                let mut first = name.clone();
                first.push(Span::new(Look::DIM, ": "));
                first.append(cell.clone());
                out.extend(wrap(&first, &StyledLine::default(), &rest, room, Breaks::Words));
            }
        }
        out
    }
}

/// Joins the cells of a row. The last one is not padded, so no row ends in spaces.
fn join(cells: impl Iterator<Item = StyledLine>, widths: &[usize]) -> StyledLine {
    let mut line = StyledLine::default();
    let mut room = 0;
    for (cell, width) in cells.zip(widths) {
        if !cell.is_empty() {
            line = line.padded(room);
            line.append(cell);
        }
        room += width + GAP;
    }
    line
}
