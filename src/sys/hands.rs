//! The same for many things, side by side. Refuses to know what it is.

use std::panic::resume_unwind;
use std::thread;

/// Does `each` to all of `items` on at most `most` threads; what comes of it, in order. A thread for what costs this
/// machine's cores, more for what waits for its disk.
pub(crate) fn side_by_side<T: Sync, R: Send>(
    items: &[T],
    most: usize,
    each: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let each = &each;
    let hands = most.clamp(1, items.len().max(1));
    if hands == 1 {
        return items.iter().map(each).collect();
    }
    thread::scope(|scope| {
        let parts = items.chunks(items.len().div_ceil(hands));
        let hands: Vec<_> = parts
            .map(|part| scope.spawn(move || part.iter().map(each).collect::<Vec<R>>()))
            .collect();
        hands
            .into_iter()
            .flat_map(|hand| hand.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

/// How many of this machine's cores are worth to be used at once for a few milliseconds.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_done_once_and_answered_in_order() {
        for (count, most) in [(0, 4), (1, 4), (7, 3), (16, 16), (5, 0), (3, 99)] {
            let items: Vec<usize> = (0..count).collect();
            let expected: Vec<usize> = items.iter().map(|n| n * 2).collect();
            assert_eq!(side_by_side(&items, most, |n| n * 2), expected, "{count} by {most}");
        }
    }
}
