//! Reads what changed in the team, and steps over it.

use std::collections::BTreeSet;

use tokio::task::JoinHandle;

use super::{LeadDriver, MARK_DELAY, MAX_MARK_DELAY};
use crate::event::{AnswerSent, Event, SignOfLife};
use crate::hooks::HookRunner;
use crate::state::LeadEnd;
use model::decisions::question::Question;
use model::id::MemberName;
use model::members::record::MemberRecord;
use model::topic::Topic;
use ops::{self, OpsError};
use sys::clock::Deadline;

impl LeadDriver<'_> {
    /// Forgets the records and requests that have changed. Returns what is to be read: all of a
    /// kind are read together.
    pub(super) fn forget_changed(&mut self, topics: BTreeSet<Topic>) -> BTreeSet<Topic> {
        let together = |topic| match topic {
            Topic::Member(stem) => {
                self.records.forget(&stem);
                Topic::Members
            }
            Topic::Request(stem) => {
                self.requests.forget(&stem);
                Topic::Requests
            }
            other => other,
        };
        topics.into_iter().map(together).collect()
    }

    /// Reads the files of a topic and steps over them.
    pub(super) fn read(&mut self, topic: &Topic) -> Result<(), OpsError> {
        if !self.team.exists() {
            return self.step(Event::End(LeadEnd::TeamGone));
        }
        match topic {
            Topic::Roster => self.read_roster(),
            Topic::Mail(owner) if *owner != MemberName::lead().file_stem() => Ok(()),
            Topic::Mail(_) => {
                self.read(&Topic::Members)?;
                let latest =
                    self.mark.map_or(Deadline::after(MAX_MARK_DELAY), |(_, latest)| latest);
                self.mark = Some((Deadline::after(MARK_DELAY), latest));
                // The mailbox is read before questions are filed, because filing takes them out of
                // it.
                self.read_mail()?;
                self.process_questions()
            }
            Topic::Members | Topic::Member(_) => {
                // Questions of members that have exited are closed first.
                let processed = self.due.map_or(Ok(()), |_| self.process_questions());
                let records = self.team.member_records_again(&mut self.records)?;
                // No process of another host is watched from here; its launcher records the exit.
                let has_ended = |record: &&MemberRecord| {
                    record.is_elsewhere && record.exit.is_some() && !record.state.is_over()
                };
                let ended: Vec<MemberRecord> = records.iter().filter(has_ended).cloned().collect();
                self.step(Event::Members(records))?;
                if !ended.is_empty() {
                    // The last messages of a run precede its exit.
                    self.read_mail()?;
                }
                ended.into_iter().try_for_each(|run| self.step(Event::Exited(Box::new(run))))?;
                processed
            }
            Topic::Requests | Topic::Request(_) => {
                let processed = self.process_questions();
                let requests = self.team.requests_again(&mut self.requests)?;
                self.step(Event::Requests(requests))?;
                processed
            }
            Topic::Tasks => self.read_board(),
            Topic::Journal => self.read_journal(),
            Topic::Settings => self.read_settings(),
            Topic::Everything => {
                self.records.forget_all();
                self.requests.forget_all();
                let mail = Topic::Mail(MemberName::lead().file_stem());
                let parts = [Topic::Settings, mail, Topic::Roster, Topic::Tasks, Topic::Journal];
                parts.iter().try_for_each(|part| self.read(part))
            }
        }
    }

    fn read_settings(&mut self) -> Result<(), OpsError> {
        let (Some(before), Some(now)) = (self.settings.clone(), self.team.settings()?) else {
            return Ok(());
        };
        if before == now || !self.state.leads() {
            return Ok(());
        }
        self.settings = Some(now.clone());
        if before.hooks != now.hooks {
            // Earlier events belong to the old hooks, which finish what they have started.
            self.read_journal()?;
            self.hooks = HookRunner::start(self.ctx, self.team)?.map(|(hooks, _)| hooks);
        }
        if before.budgets.is_empty() && !now.budgets.is_empty() {
            self.state.budget.reported = ops::effects::budget::reported(self.team)?;
        }
        let is_counted_anew = before.budgets != now.budgets || before.prices != now.prices;
        self.step(Event::Settings { before: Box::new(before), now: Box::new(now) })?;
        if is_counted_anew { self.read(&Topic::Members) } else { Ok(()) }
    }

    fn read_roster(&mut self) -> Result<(), OpsError> {
        if !self.state.leads() {
            return Ok(());
        }
        let file = self.team.team_file_now()?;
        self.team_file = file.version.filter(|_| file.is_remembered);
        let Some(team) = file.team() else {
            // A program that reads a torn team file does not find its team. The restorer waits for
            // writers that may still be active, so it runs on a thread of its own.
            if self.restorer.as_ref().is_none_or(JoinHandle::is_finished) {
                let restorer = self.run_blocking(None, |_, team| Ok(team.restore_team_file()?));
                self.restorer = Some(restorer);
            }
            return Ok(());
        };
        let says = team.members.into_iter().map(|member| (member.name, member.is_active));
        self.step(Event::Roster(says.collect()))?;
        // The step comes first: it restores members that another program has removed.
        if !file.is_remembered && self.team.remember_team_file(&file)? {
            self.team_file = file.version;
        }
        Ok(())
    }

    pub(super) fn check_team_file(&mut self) -> Result<(), OpsError> {
        if self.team.is_shared() {
            // The shared store reports each change.
            return Ok(());
        }
        match self.team.team_file_version()? {
            found if found.is_some() && found == self.team_file => Ok(()),
            _ => self.read(&Topic::Roster),
        }
    }

    /// Files and expires the members' questions. Callers do their own work before they return its
    /// failure.
    pub(super) fn process_questions(&mut self) -> Result<(), OpsError> {
        if !self.state.leads() {
            return Ok(());
        }
        let waiting = ops::decisions::decide::process_requests(self.ctx, self.team)?;
        self.due = waiting.iter().map(|question| question.deadline_at).min();
        if self.tells_agent {
            self.notify_agent_lead(&waiting)?;
        }
        self.step(Event::Filed(waiting))
    }

    /// Notifies the agent lead of each question once, also across a change of the lead.
    fn notify_agent_lead(&mut self, waiting: &[Question]) -> Result<(), OpsError> {
        self.asked.retain(|id| waiting.iter().any(|question| question.id == *id));
        for question in waiting {
            if !self.asked.contains(&question.id) {
                ops::starting::agent_lead::send_question(self.team, question)?;
                self.asked.insert(question.id.clone());
            }
        }
        Ok(())
    }

    pub(super) fn read_mail(&mut self) -> Result<(), OpsError> {
        // The reply to a request that was just filed may already be here, so requests are read
        // first.
        let requests = self.team.requests_again(&mut self.requests)?;
        self.step(Event::Requests(requests))?;
        // The lead can be stopped after the read, so that what arrived meanwhile is not in it.
        let read_at = ops::now();
        let mail = ops::mail::inbox::read_for_loop(self.team)?;
        self.step_at(Event::Mail(mail), read_at)
    }

    fn read_board(&mut self) -> Result<(), OpsError> {
        let board = self.team.board()?;
        // The files of a team that is being deleted disappear; another program did not
        // delete them.
        self.step(if self.team.exists() {
            Event::Board(board)
        } else {
            Event::End(LeadEnd::TeamGone)
        })
    }

    fn read_journal(&mut self) -> Result<(), OpsError> {
        let events = self.journal.read()?;
        events.iter().for_each(|event| (self.report)(event));
        if let Some(hooks) = &mut self.hooks {
            let for_hooks = hooks.journal.read()?;
            self.step(Event::Journal(for_hooks))?;
        }
        let signs: Vec<SignOfLife> = events.iter().filter_map(SignOfLife::from_journal).collect();
        if !signs.is_empty() {
            self.step(Event::SignsOfLife(signs))?;
        }
        let answers: Vec<AnswerSent> = events.iter().filter_map(AnswerSent::from_journal).collect();
        if answers.is_empty() {
            return Ok(());
        }
        // The answered question may have been sent a moment ago, so the mailbox is read first.
        self.read(&Topic::Mail(MemberName::lead().file_stem()))?;
        self.step(Event::Answers(answers))
    }

    /// Reads the mail before the exits of runs are handled, once for all of them: the last messages
    /// of a run precede its exit.
    pub(super) fn read_last_words(&mut self) -> Result<(), OpsError> {
        if self.team.exists() {
            self.read(&Topic::Mail(MemberName::lead().file_stem()))?;
        }
        Ok(())
    }
}
