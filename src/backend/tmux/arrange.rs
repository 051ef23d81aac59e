//! How many panes a window can hold, and which windows a batch of new ones goes to: pure arithmetic. Refuses to know
//! tmux's commands.

/// The smallest useful pane (LY-04).
const LEAST: Size = Size { width: 40, height: 10 };

/// Columns and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

/// Which windows get how many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shares {
    /// For each window that is there.
    pub(super) there: Vec<usize>,
    /// For each window to be made: at least one.
    pub(super) new: Vec<usize>,
}

/// The most panes that are still of a useful size when tmux tiles them; a window holds one in any case.
pub(super) fn capacity(window: Size) -> usize {
    (2..).take_while(|count| fits(window, *count)).last().unwrap_or(1)
}

/// tmux's `tiled` adds a row first, then a column, until all fit; a separator stands between panes, and a border
/// with the name above the first row.
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

/// Fills the room that is there, in order; the rest goes evenly to as few new windows as can hold it.
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn ly_03_nobody_is_lost() {
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
    fn sizes_of_new_windows_never_exceed_the_capacity() {
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
