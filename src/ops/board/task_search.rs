//! `task search`: the tasks of the board that contain the words of a query.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::OpsError;
use model::board::Board;
use model::board::search::{Query, SearchHit, SearchTask, rank};
use model::board::task::{Task, TaskState};
use model::id::TaskId;
use store::TeamStore;
use sys::parallel;

/// Number of tasks for which a second thread is worth its start.
const WORTH_A_THREAD: usize = 2048;

/// A task that was found.
#[derive(Debug, Serialize)]
pub struct FoundTask {
    pub id: TaskId,
    pub subject: String,
    pub state: TaskState,
    pub owner: Option<String>,
    /// Higher is better. Scores of different queries are not comparable.
    pub score: u32,
    /// Text of the description or a comment around the first word found there; missing if the
    /// subject contains all words.
    pub snippet: Option<String>,
}

/// The best hits of a search.
#[derive(Debug, Serialize)]
pub struct FoundTasks {
    pub tasks: Vec<FoundTask>,
    /// Number of further hits.
    pub more: usize,
}

/// Returns the `limit` best tasks with snippets of at most `snippet` characters. Tasks that another
/// program reserves for itself are not searched.
pub fn search(
    team: &TeamStore,
    query: &Query,
    limit: usize,
    snippet: usize,
) -> Result<FoundTasks, OpsError> {
    Ok(search_board(&team.board()?, &team.comments()?, query, limit, snippet))
}

fn search_board(
    board: &Board,
    comments: &BTreeMap<TaskId, Vec<String>>,
    query: &Query,
    limit: usize,
    snippet: usize,
) -> FoundTasks {
    let comments = |task: &Task| comments.get(&task.id).map(Vec::as_slice).unwrap_or_default();
    let tasks: Vec<SearchTask> =
        board.work().map(|task| SearchTask { task, comments: comments(task) }).collect();
    let threads = (tasks.len() / WORTH_A_THREAD).clamp(1, parallel::cores());
    let parts: Vec<&[SearchTask]> = tasks.chunks(tasks.len().div_ceil(threads).max(1)).collect();
    let mut hits: Vec<SearchHit> =
        parallel::parallel_map(&parts, threads, |part| query.hits(part)).concat();
    rank(&mut hits);
    let more = hits.len().saturating_sub(limit);
    let found = |hit: &SearchHit| FoundTask {
        id: hit.task.id,
        subject: hit.task.subject.clone(),
        state: board.state(hit.task),
        owner: hit.task.owner.clone(),
        score: hit.score,
        snippet: hit.snippet(snippet),
    };
    FoundTasks { tasks: hits.iter().take(limit).map(found).collect(), more }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_is_the_same_on_several_threads_and_cut_at_the_limit() {
        let mut board = Board::default();
        for id in 1..=3 * WORTH_A_THREAD as u64 {
            let subject = if id % 3 == 0 { "a needle" } else { "hay" };
            board.tasks.insert(TaskId(id), Task::new(TaskId(id), subject, "d"));
        }
        let internal = board.tasks.get_mut(&TaskId(3)).expect("task");
        internal.metadata.insert("_internal".to_owned(), true.into());
        let found =
            search_board(&board, &BTreeMap::new(), &Query::new("needle").expect("query"), 3, 100);
        let ids: Vec<u64> = found.tasks.iter().map(|task| task.id.0).collect();
        assert_eq!((ids, found.more), (vec![6, 9, 12], WORTH_A_THREAD - 4));
        let none = search_board(
            &Board::default(),
            &BTreeMap::new(),
            &Query::new("x").expect("query"),
            3,
            100,
        );
        assert!(none.tasks.is_empty() && none.more == 0);
    }
}
