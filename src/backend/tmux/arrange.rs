//! Pure arithmetic of panes: how many a window can hold, and which windows a batch goes to.

/// The smallest useful pane (LY-04).
const LEAST: Size = Size { width: 40, height: 10 };

/// Columns and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

/// The distribution of a batch of panes over windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shares {
    /// Number of panes for each existing window.
    pub(super) there: Vec<usize>,
    /// Number of panes for each new window: at least one.
    pub(super) new: Vec<usize>,
}

/// The largest number of tiled panes that are all of a useful size; at least one.
pub(super) fn capacity(window: Size) -> usize {
    (2..).take_while(|count| fits(window, *count)).last().unwrap_or(1)
}

/// Checks that `count` tiled panes are of a useful size. tmux's `tiled` layout adds a row first,
/// then a column, until all panes fit. A separator stands between panes, and a border with the name
/// above the first row.
fn fits(window: Size, count: usize) -> bool {
    let (mut rows, mut columns) = (1, 1);
    while rows * columns < count {
        rows += 1;
        if rows * columns < count {
            columns += 1;
        }
    }
    let width = (window.width + 1) / columns;
    let height = window.height / rows;
    width > LEAST.width && height > LEAST.height
}

/// Fills the free places of existing windows in order, then spreads the rest evenly over as few new
/// windows as possible.
pub(super) fn share(count: usize, room: &[usize], capacity: usize) -> Shares {
    let mut rest = count;
    let mut take = |room: &usize| {
        let taken = rest.min(*room);
        rest -= taken;
        taken
    };
    let there = room.iter().map(&mut take).collect();
    let windows = rest.div_ceil(capacity.max(1));
    let new = (0..windows).map(|nth| rest / windows + usize::from(nth < rest % windows)).collect();
    Shares { there, new }
}

/// The width of a column beside the lead's pane: the smaller half, so that the lead keeps the
/// larger one. `None` if either would be too narrow or the pane is too low (LY-04).
pub(super) fn column(lead: Size) -> Option<usize> {
    let width = lead.width.saturating_sub(1) / 2;
    (width >= LEAST.width && lead.height >= LEAST.height).then_some(width)
}

/// The number of additional panes to cut from each pane of a column, at most `count` in all. Always
/// cuts the pane whose parts stay tallest, and never below a useful height.
pub(super) fn stack(heights: &[usize], count: usize) -> Vec<usize> {
    let mut more = vec![0; heights.len()];
    for _ in 0..count {
        let next = |nth: &usize| part(heights[*nth], more[*nth] + 2);
        let best = (0..heights.len()).rev().max_by_key(next);
        let Some(best) = best.filter(|nth| next(nth) >= LEAST.height) else { break };
        more[best] += 1;
    }
    more
}

/// The height of each part, in rows, if a pane is cut into `parts`; a separator line stands between
/// them.
pub(super) fn part(height: usize, parts: usize) -> usize {
    height.saturating_sub(parts - 1) / parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ly_04_column_leaves_the_lead_the_larger_half() {
        let table = [
            ((80, 24), None),
            ((81, 24), Some(40)),
            ((200, 50), Some(99)),
            ((200, 9), None),
            ((0, 0), None),
        ];
        for ((width, height), expected) in table {
            assert_eq!(column(Size { width, height }), expected, "{width}x{height}");
        }
    }

    #[test]
    fn ly_03_column_is_cut_evenly_down_to_a_useful_height() {
        assert_eq!(stack(&[50], 2), [2]);
        assert_eq!(stack(&[50], 9), [3], "four of eleven rows and three lines");
        assert_eq!(stack(&[24, 24], 3), [1, 1]);
        assert_eq!(stack(&[20, 50, 20], 1), [0, 1, 0]);
        assert_eq!(stack(&[], 3), Vec::<usize>::new());
        assert_eq!(stack(&[0, 9], 3), [0, 0]);
        assert_eq!((part(50, 3), part(24, 2), part(10, 1)), (16, 11, 10));
    }

    #[test]
    fn ly_03_capacity_keeps_panes_useful() {
        let table = [
            ((80, 24), 2),
            ((81, 24), 4),
            ((80, 10), 1),
            ((10, 3), 1),
            ((0, 0), 1),
            ((120, 40), 6),
            ((200, 50), 16),
            ((200, 22), 4),
            ((400, 300), 90),
        ];
        for ((width, height), expected) in table {
            assert_eq!(capacity(Size { width, height }), expected, "{width}x{height}");
        }
    }

    #[test]
    fn ly_03_every_member_is_assigned_a_window() {
        let shared = |count, room: &[usize], capacity, there: &[usize], new: &[usize]| {
            let expected = Shares { there: there.to_vec(), new: new.to_vec() };
            assert_eq!(share(count, room, capacity), expected, "{count} {room:?} {capacity}");
        };
        shared(0, &[3], 4, &[0], &[]);
        shared(3, &[], 4, &[], &[3]);
        shared(5, &[2, 0, 9], 4, &[2, 0, 3], &[]);
        shared(9, &[2], 4, &[2], &[4, 3]);
        shared(17, &[], 16, &[], &[9, 8]);
        shared(3, &[0], 1, &[0], &[1, 1, 1]);
        shared(2, &[], 0, &[], &[1, 1]);
    }

    #[test]
    fn new_windows_never_exceed_the_capacity() {
        for count in 0..200 {
            for capacity in 1..20 {
                let shares = share(count, &[3], capacity);
                let placed: usize = shares.there.iter().chain(&shares.new).sum();
                assert_eq!(placed, count);
                assert!(shares.new.iter().all(|share| (1..=capacity).contains(share)));
            }
        }
    }
}
