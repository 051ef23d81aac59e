//! Parallel map over a bounded number of threads.

use std::panic::resume_unwind;
use std::thread;

/// Applies `work` to all items on at most `threads` threads and returns the results in order. Work
/// on the CPU wants one thread for each core, work that waits for the disk more.
pub fn parallel_map<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let work = &work;
    let threads = threads.clamp(1, items.len().max(1));
    if threads == 1 {
        return items.iter().map(work).collect();
    }
    thread::scope(|scope| {
        let parts = items.chunks(items.len().div_ceil(threads));
        let workers: Vec<_> = parts
            .map(|part| scope.spawn(move || part.iter().map(work).collect::<Vec<R>>()))
            .collect();
        let results =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|e| resume_unwind(e)));
        results.flatten().collect()
    })
}

/// Number of threads for a few milliseconds of work on the CPU: the cores, at most four.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_is_mapped_once_and_in_order() {
        for (count, threads) in [(0, 4), (1, 4), (7, 3), (16, 16), (5, 0), (3, 99)] {
            let items: Vec<usize> = (0..count).collect();
            let expected: Vec<usize> = items.iter().map(|n| n * 2).collect();
            assert_eq!(parallel_map(&items, threads, |n| n * 2), expected, "{count} on {threads}");
        }
    }
}
