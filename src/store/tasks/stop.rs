//! Ending the command of a task before another member takes the task from its owner: the taker
//! asks, the owner ends the command and confirms, and only then the task changes hands.

use crate::model::id::{MemberName, TaskId};
use crate::model::task::{Stopping, Task};
use crate::model::time::Timestamp;
use crate::store::error::StoreError;
use crate::store::team::TeamStore;

impl TeamStore {
    /// Asks the owner of a running task to end its command. A command that has ended for an earlier
    /// taker stays ended.
    pub(crate) fn ask_to_stop(
        &self,
        id: TaskId,
        by: &MemberName,
        until: Timestamp,
    ) -> Result<Task, StoreError> {
        self.change_task(id, |task| {
            if task.state.is_running() {
                let earlier = task.extra.stopping.take();
                let stopped = earlier.is_some_and(|earlier| earlier.stopped);
                task.extra.stopping = Some(Stopping { by: by.to_string(), until, stopped });
            }
            Ok(())
        })
    }

    /// Records that nothing of the command runs any longer, if `who` still has the task and was
    /// asked to stop.
    pub(crate) fn confirm_stopped(&self, id: TaskId, who: &MemberName) -> Result<(), StoreError> {
        self.change_task(id, |task| {
            let is_mine = task.state.is_running() && task.is_owned_by(who);
            if let Some(stopping) = task.extra.stopping.as_mut().filter(|_| is_mine) {
                stopping.stopped = true;
            }
            Ok(())
        })
        .map(drop)
    }
}
