//! Carries out the lead's effects, each through the module in charge of it.

use tokio::task::JoinHandle;

use super::LeadDriver;
use crate::background::warn;
use crate::effect::{Effect, STOP_DEADLINE_S};
use crate::event::Event;
use crate::sources::{self, LeadInput};
use crate::starter;
use crate::stopper::DueStop;
use model::id::MemberName;
use ops::ending::stop::MemberStop;
use ops::members::presence;
use ops::{self, Context, OpsError, TeamStore};

impl LeadDriver<'_> {
    pub(super) fn carry_out(&mut self, effect: Effect) -> Result<(), OpsError> {
        match effect {
            Effect::WatchExit { name, incarnation, process } => {
                sources::watch_exit(name, incarnation, process, self.queue.inputs());
            }
            // If the label thread has ended, the only loss is the label.
            Effect::Label { runs } => drop(self.labels.send(runs)),
            Effect::Acknowledge { ids } => ops::mail::inbox::record_handled(self.team, &ids)?,
            Effect::AskShutdown { names, reason, force } => {
                let options = ops::ending::shutdown::ShutdownOptions {
                    reason: Some(reason),
                    deadline_s: STOP_DEADLINE_S,
                    force,
                    ..Default::default()
                };
                ops::ending::shutdown::ask(self.team, &MemberName::lead(), &names, &options)?;
            }
            Effect::Start { kind, specs } => {
                starter::start(self.ctx, self.team, kind, specs, self.queue.inputs());
            }
            Effect::StopRun { name, incarnation, mode } => {
                let record = self.team.member_record(&name)?.filter(|run| run.is(&incarnation));
                let ending = record.map(|record| MemberStop { record, mode });
                // The stopper outlives the driver, so sending cannot fail.
                let _ = self.stopper.send(DueStop { name, incarnation, ending });
            }
            Effect::Remove(removals) => {
                ops::ending::remove::remove(self.ctx, self.team, &removals)?
            }
            Effect::Agree { request, work_left } => {
                ops::ending::shutdown::record_agreement(self.team, &request, &work_left)?
            }
            Effect::Resolve { request, outcome, answer } => {
                ops::ending::shutdown::resolve(self.team, &request, outcome, answer.as_deref())?;
            }
            Effect::MoveOn { name, incarnation, cause, reason } => {
                presence::move_on(self.team, &name, &incarnation, cause, reason.as_deref())?;
            }
            Effect::Deactivate(name) => presence::set_active(self.team, &name, false)?,
            Effect::Health { name, incarnation, silence } => {
                self.run_blocking(Some(name.clone()), move |ctx, team| {
                    ops::effects::health::record_silence(ctx, team, &name, &incarnation, silence)
                });
            }
            Effect::CheckActivity { name, incarnation } => {
                let inputs = self.queue.inputs();
                self.run_blocking(Some(name.clone()), move |ctx, team| {
                    let found = ops::effects::health::fingerprint(ctx, team, &name, &incarnation)?;
                    if let Some(fingerprint) = found {
                        let event = Event::Activity { name, incarnation, fingerprint };
                        inputs.send(LeadInput::Done(event));
                    }
                    Ok(())
                });
            }
            Effect::JournalRestart { member, failures, delay_ms } => {
                ops::effects::restart::record_breaker(self.team, &member, failures, delay_ms)?;
            }
            Effect::Release(name) => {
                // A worker may need seconds to end its command.
                self.run_blocking(Some(name.clone()), move |_, team| {
                    ops::board::task::release_hanging(team, &name)
                });
            }
            Effect::FailLate(task) => {
                self.run_blocking(None, move |_, team| {
                    ops::effects::time_limit::fail_late(team, task)
                });
            }
            Effect::ReleaseAbsent(name) => ops::board::task::release_absent(self.team, &name)?,
            Effect::SettleReadiness { task, member } => {
                ops::effects::readiness::settle(self.team, task, &member)?
            }
            Effect::Resume(name) => {
                self.run_blocking(Some(name.clone()), move |ctx, team| {
                    ops::starting::resume::start_again(ctx, team, &name)
                });
            }
            Effect::PutBack { name, incarnation } => {
                presence::put_back(self.team, &name, &incarnation)?
            }
            Effect::CheckIdle { name, incarnation } => {
                self.run_blocking(Some(name.clone()), move |ctx, team| {
                    ops::effects::idle_check::check_screen(ctx, team, &name, &incarnation)
                });
            }
            Effect::Announce { id, step } => {
                self.run_blocking(None, move |ctx, team| {
                    ops::effects::announce::announce(ctx, team, &id, step)
                });
            }
            Effect::AnnouncePrompt { name, incarnation } => {
                self.run_blocking(Some(name.clone()), move |_, team| {
                    ops::effects::announce::announce_prompt(team, &name, &incarnation)
                });
            }
            Effect::Remind { name, incarnation, task, step } => {
                // A worker whose task fails may need seconds to end its command.
                self.run_blocking(Some(name.clone()), move |_, team| {
                    ops::effects::remind::remind(team, &name, &incarnation, task, step)
                });
            }
            Effect::Recover { task, owner } => {
                if let Some(task) = ops::board::task::claimed(self.team, task, &owner)? {
                    ops::board::task::resume(self.team, task, &owner)?;
                }
            }
            Effect::SendReminder(task) => {
                if let Some(sent) = ops::effects::task_reminder::send_reminder(self.team, task)? {
                    self.run_blocking(Some(sent.by.clone()), move |_, team| {
                        ops::effects::notify::run_notify(team, &sent.by, &sent.subject)
                    });
                }
            }
            Effect::ReportRefused(task) => ops::effects::offer::report_refused(self.team, task)?,
            Effect::Offer { task, name, incarnation } => {
                ops::effects::offer::send(self.team, task, &name, &incarnation)?
            }
            Effect::ResetReminders { name, incarnation } => {
                ops::effects::remind::reset_reminders(self.team, &name, &incarnation)?
            }
            Effect::Report(tasks) => ops::effects::results::report(self.team, &tasks)?,
            Effect::ReportBudget(of) => ops::effects::budget::report(self.team, &of)?,
            Effect::ResumeLimited { name, incarnation } => {
                ops::effects::limit::resume(self.team, &name, &incarnation)?
            }
            Effect::ReportLimit { name, incarnation } => {
                ops::effects::limit::report(self.team, &name, &incarnation)?
            }
            Effect::Hook(occasion) => {
                self.hooks.iter().for_each(|hooks| hooks.run(occasion.clone()))
            }
            Effect::JournalChange(change) => ops::board::task::journal_change(self.team, change)?,
            Effect::NotifyUnblocked(tasks) => {
                ops::board::task::notify_unblocked(self.team, &tasks)?
            }
            Effect::Warn { member, text } => warn(self.team, member, text)?,
        }
        Ok(())
    }

    /// Runs `work` on a blocking thread, because what it calls may hang. A failure is a warning in
    /// the journal.
    pub(super) fn run_blocking(
        &self,
        about: Option<MemberName>,
        work: impl FnOnce(&Context, &TeamStore) -> Result<(), OpsError> + Send + 'static,
    ) -> JoinHandle<()> {
        let (ctx, team) = (self.ctx.clone(), self.team.clone());
        tokio::task::spawn_blocking(move || {
            if let Err(e) = work(&ctx, &team)
                && team.exists()
            {
                // The warning is best effort: the journal is only a history.
                let _ = warn(&team, about, e.to_string());
            }
        })
    }
}
