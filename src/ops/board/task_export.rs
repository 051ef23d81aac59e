//! `task export`: the tasks of the board for a file.

use crate::OpsError;
use model::board::Board;
use model::board::task::Task;
use store::TeamStore;

/// Returns the open tasks of the board, or with `all` every task, in the order of their ids. An
/// edge to a task that is not among them is left out.
///
/// # Errors
/// [`OpsError::Failed`] if a task cannot be read, since a file without it would look complete.
pub fn export(team: &TeamStore, all: bool) -> Result<Vec<Task>, OpsError> {
    let board = team.board()?;
    if let Some(id) = board.unreadable.first() {
        let problem = format!("task {id} cannot be read, so the export would be incomplete");
        return Err(OpsError::Failed { problem });
    }
    Ok(select(&board, all))
}

fn select(board: &Board, all: bool) -> Vec<Task> {
    // The task of a member's readiness belongs to this run of the team; no file has its key.
    let is_shown = |task: &Task| {
        let is_open = !task.is_internal() && !task.state.frees_dependants();
        (all || is_open) && task.awaited_member().is_none()
    };
    let mut tasks: Vec<Task> =
        board.tasks.values().filter(|task| is_shown(task)).cloned().collect();
    for task in &mut tasks {
        let is_known = |id: &_| board.tasks.get(id).is_some_and(is_shown);
        task.blocks.retain(is_known);
        task.blocked_by.retain(is_known);
    }
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::board::task::TaskState;
    use model::id::TaskId;

    #[test]
    fn edges_to_tasks_that_are_left_out_are_removed() {
        let mut board = Board::default();
        for id in 1..=3 {
            board.tasks.insert(TaskId(id), Task::new(TaskId(id), "s", ""));
        }
        let done = board.tasks.get_mut(&TaskId(1)).expect("task");
        done.state = TaskState::Completed;
        board.tasks.get_mut(&TaskId(3)).expect("task").blocked_by =
            vec![TaskId(1), TaskId(2), TaskId(9)];
        let edges =
            |board: &Board, all| select(board, all).last().map(|task| task.blocked_by.clone());
        assert_eq!(edges(&board, false), Some(vec![TaskId(2)]));
        assert_eq!(edges(&board, true), Some(vec![TaskId(1), TaskId(2)]));
        assert_eq!(select(&board, false).len(), 2);
        board.tasks.get_mut(&TaskId(2)).expect("task").extra.key = Some("member:db".to_owned());
        assert_eq!(edges(&board, true), Some(vec![TaskId(1)]), "a member's readiness");
    }
}
