//! Lines that scroll. Keys may go too far; each frame bounds the position.

/// The part that was drawn of lines that scroll.
#[derive(Debug, Default)]
pub(super) struct DrawnPart {
    /// The position of the part for the title, unless all is visible.
    pub(super) position: Option<String>,
    /// Number of lines beyond the part, on the side from which the panel counts them.
    pub(super) scrolled: usize,
    /// The entries whose beginnings are visible, counted from the last one. Empty for a panel that
    /// is not drawn from the end.
    pub(super) begun: Vec<usize>,
}

/// Returns the number of lines to scroll by, at most as many as leave the `rows` rows filled by
/// `count` lines.
pub(super) fn bounded(scrolled: usize, rows: usize, count: usize) -> usize {
    scrolled.min(count.saturating_sub(rows))
}
