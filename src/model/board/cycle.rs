//! Cycles among tasks that wait for each other.

use std::collections::BTreeSet;

/// Returns a cycle among tasks of which each waits for those at the given indices. It starts with
/// its lowest index, each task waiting for the next.
///
/// Removes tasks that wait for nothing until only cycles and their dependants are left. Not
/// recursive, so that a long chain does not overflow the stack.
pub fn find_cycle(waits: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut open: Vec<usize> = waits.iter().map(Vec::len).collect();
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); waits.len()];
    for (task, befores) in waits.iter().enumerate() {
        for before in befores {
            waiting[*before].push(task);
        }
    }
    let mut free: Vec<usize> = (0..waits.len()).filter(|task| open[*task] == 0).collect();
    while let Some(done) = free.pop() {
        for task in &waiting[done] {
            open[*task] -= 1;
            if open[*task] == 0 {
                free.push(*task);
            }
        }
    }
    // Every task left waits for another one that is left, so this walk must return to a task that
    // it has visited.
    let mut at = open.iter().position(|open| *open > 0)?;
    let (mut path, mut seen) = (Vec::new(), BTreeSet::new());
    while seen.insert(at) {
        path.push(at);
        at = *waits[at].iter().find(|before| open[**before] > 0)?;
    }
    let mut cycle = path.split_off(path.iter().position(|task| *task == at)?);
    let first = cycle.iter().enumerate().min_by_key(|(_, task)| **task)?.0;
    cycle.rotate_left(first);
    Some(cycle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycle_starts_at_its_lowest_index_and_dependants_are_left_out() {
        assert_eq!(find_cycle(&[vec![1], vec![2], vec![]]), None);
        assert_eq!(find_cycle(&[vec![2], vec![], vec![3, 1], vec![2]]), Some(vec![2, 3]));
        assert_eq!(find_cycle(&[vec![1], vec![1]]), Some(vec![1]));
    }
}
