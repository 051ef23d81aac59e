//! Gathers the evidence about the members of a team for [`assessment::assess`]. All that is read
//! here is read once for the whole team, except mailboxes, which only members at rest need.

use std::collections::BTreeMap;
use std::path::Path;

use crate::members::{lead, output, presence, profiles};
use crate::{Context, now};
use model::board::Board;
use model::decisions::question::Question;
use model::id::{MemberName, TaskId};
use model::members::assessment::{
    self, Assessment, Doing, Evidence, OpenRequest, ScreenSign, UntakenMail,
};
use model::members::lifecycle::MemberState;
use model::members::need::Need;
use model::members::placement::IN_PROCESS;
use model::members::record::MemberRecord;
use model::team::Team;
use model::time::Timestamp;
use profile::{ScreenFinding, ScreenState, Screenshot, judge};
use store::TeamStore;
use sys::proc::Liveness;
use sys::{clock, fs};

/// More lines than any screen has.
pub(crate) const SCREEN_LINES: usize = 200;

/// The parts of a team that say what its members are doing.
pub(crate) struct TeamEvidence<'t> {
    team: &'t TeamStore,
    roster: &'t Team,
    is_led: bool,
    /// The oldest open request of each member, by its name in lower case.
    requests: BTreeMap<String, OpenRequest>,
    /// The task in progress of each member.
    working: BTreeMap<String, TaskId>,
    /// The task that each idle worker is about to claim.
    next: BTreeMap<String, TaskId>,
    /// The task that was assigned to each member and that it could begin.
    given: BTreeMap<String, TaskId>,
}

impl<'t> TeamEvidence<'t> {
    /// Collects what all members share. The roster is to be read before the records.
    pub(crate) fn gather(
        team: &'t TeamStore,
        roster: &'t Team,
        board: &Board,
        records: &[MemberRecord],
        questions: &[Question],
        is_led: bool,
    ) -> TeamEvidence<'t> {
        let mut requests: BTreeMap<String, OpenRequest> = BTreeMap::new();
        for question in questions.iter().filter(|question| question.is_open()) {
            let request = open_request(question);
            let oldest = requests.entry(question.from.folded()).or_insert_with(|| request.clone());
            if request.since < oldest.since {
                *oldest = request;
            }
        }
        let is_idle_worker =
            |record: &&MemberRecord| record.runs_commands() && record.state == MemberState::Idle;
        let idle: Vec<(&MemberName, Option<&str>)> = records
            .iter()
            .filter(is_idle_worker)
            .map(|record| (&record.name, record.request.role.as_deref()))
            .collect();
        TeamEvidence {
            team,
            roster,
            is_led,
            requests,
            working: board.working(),
            next: board.next_for_workers(&idle),
            given: board.given(),
        }
    }

    /// Returns the task in progress that a member owns.
    pub(crate) fn task_of(&self, name: &MemberName) -> Option<TaskId> {
        self.working.get(&name.folded()).copied()
    }

    /// Returns the task that was assigned to a member and that it could begin.
    pub(crate) fn given_to(&self, name: &MemberName) -> Option<TaskId> {
        self.given.get(&name.folded()).copied()
    }

    /// Returns whether a request of a member is open.
    pub(crate) fn has_request(&self, name: &MemberName) -> bool {
        self.requests.contains_key(&name.folded())
    }

    /// Returns what a member waits for, with the command that answers it; `None` if it does not, or
    /// if its request is still to be filed.
    pub(crate) fn needs(&self, name: &MemberName, record: Option<&MemberRecord>) -> Option<String> {
        let found = self.assess(name, record, None);
        let need = found.doing.need().filter(|need| *need != Need::Limit)?;
        let reason = found.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let remedy = match (self.has_request(name), need) {
            (true, _) => format!("`phalanx answer {name} --approve`, or `--reject`"),
            (false, Need::Permission | Need::Plan) => return None,
            (false, _) => need.remedy(name),
        };
        Some(format!("{}{reason}; {remedy}", need.words()))
    }

    /// Decides what a member is doing. `screen` is its screen, if it was read for this.
    pub(crate) fn assess(
        &self,
        name: &MemberName,
        record: Option<&MemberRecord>,
        screen: Option<&ScreenSign>,
    ) -> Assessment {
        let is_dead = record.is_some_and(|r| presence::liveness(r) == Liveness::Dead);
        // The launcher may have recorded the end and exited since the record was read.
        let later = record
            .filter(|record| is_dead && record.exit.is_none() && !record.state.is_over())
            .and_then(|record| self.team.member_record(&record.name).ok().flatten())
            .filter(|later| record.is_some_and(|record| record.is(&later.incarnation)));
        let record = later.as_ref().or(record);
        let is_active = self.roster.member(name).and_then(|member| member.is_active);
        let folded = name.folded();
        let may_rest = match record {
            Some(record) => may_rest(record, is_active) || record.turn_error().is_some(),
            None => is_active == Some(false),
        };
        let mail = may_rest.then(|| untaken(self.team, name)).flatten();
        let is_empty = mail.is_some_and(|mail| mail.count == 0);
        let is_inside = self.roster.member(name).is_some_and(|m| m.pane_id == IN_PROCESS);
        let has_dead_lead = || {
            let lead = lead::find_lead(self.team).ok().flatten();
            lead.is_some_and(|lead| lead.alive == Liveness::Dead)
        };
        let found = assessment::assess(&Evidence {
            record,
            is_dead: is_dead || (is_inside && record.is_none() && has_dead_lead()),
            is_led: self.is_led,
            is_inside,
            is_active,
            // The lead has yet to record the end of the turn.
            rested_at: record
                .filter(|record| may_rest && record.state == MemberState::Working)
                .and_then(|_| changed_at(self.team, &self.team.team_file())),
            mail,
            mail_changed_at: is_empty
                .then(|| changed_at(self.team, &self.team.inbox_file(name)))
                .flatten(),
            request: self.requests.get(&folded),
            task: self.task_of(name),
            next_task: self.next.get(&folded).copied(),
            given: self.given_to(name),
            screen,
            now: now(),
        });
        match record.and_then(|record| record.limit()) {
            Some(limit) if found.doing == Doing::Waiting(Need::Limit) => {
                let end = limit.describe(&clock::local_zone());
                Assessment { reason: Some(format!("{end}: {}", limit.said)), ..found }
            }
            _ => found,
        }
    }
}

/// Returns true for a run that rests unless its mailbox says otherwise.
fn may_rest(record: &MemberRecord, is_active: Option<bool>) -> bool {
    let is_up = record.state.is_up() && record.exit.is_none() && record.reads_mail();
    let is_active = if record.is_native() { is_active } else { None };
    let says_idle = is_active.map_or(record.state == MemberState::Idle, |is_active| !is_active);
    is_up && says_idle
}

fn open_request(question: &Question) -> OpenRequest {
    OpenRequest {
        need: question.need(),
        id: question.id.to_string(),
        // The need names the dialog.
        summary: question
            .dialog()
            .and_then(|asked| asked.description)
            .unwrap_or_else(|| question.summary()),
        since: question.asked_at,
    }
}

/// Returns the mail that a member has not taken; `None` if its mailbox cannot be read, which is not
/// to hide the other members.
fn untaken(team: &TeamStore, name: &MemberName) -> Option<UntakenMail> {
    let unread = team.mailbox(name).unread().ok()?;
    let oldest = unread.iter().filter_map(|envelope| Timestamp::parse(&envelope.timestamp)).min();
    Some(UntakenMail { count: unread.len(), since: oldest })
}

/// Returns the time of the last write to a file of the team.
fn changed_at(team: &TeamStore, file: &Path) -> Option<Timestamp> {
    if team.is_shared() {
        return None;
    }
    let about = fs::about(file).ok().flatten()?;
    Some(now().minus_ms(about.age.as_millis().try_into().unwrap_or(u64::MAX)))
}

/// Reads the screen of a program that is up; `None` if it cannot be read or no rule fits it.
pub(crate) fn read_screen(
    ctx: &Context,
    team: &TeamStore,
    record: &MemberRecord,
) -> Option<ScreenSign> {
    if !record.state.is_up() || record.exit.is_some() {
        return None;
    }
    let profile = profiles::find(ctx, &record.request.profile).ok();
    let profile = profile.filter(|profile| !profile.rules.is_empty())?;
    let screen = output::peek(ctx, team, &record.name, SCREEN_LINES).ok()?;
    screen_sign(&judge(&profile, &Screenshot::of_text(&screen)))
}

/// Returns what a screen says about the activity of its program; `None` if no rule fits.
pub(crate) fn screen_sign(finding: &ScreenFinding) -> Option<ScreenSign> {
    let what = finding.state.to_string();
    match finding.state {
        ScreenState::Working => Some(ScreenSign::Working),
        ScreenState::Retrying => {
            let next = finding.until.as_ref().map(|until| format!(" (next try {until})"));
            Some(ScreenSign::Retrying(finding.evidence.clone() + &next.unwrap_or_default()))
        }
        // The turn of a program at its usage limit has ended.
        ScreenState::Ready | ScreenState::Idle | ScreenState::Limited => Some(ScreenSign::Idle),
        ScreenState::Failed { needs_login } => {
            let need = if needs_login { Need::Login } else { Need::Error };
            Some(ScreenSign::Waits(need, finding.evidence.clone()))
        }
        ScreenState::Blocked(_) | ScreenState::Dialog(_) | ScreenState::NeedsLogin => {
            let need = Need::of_screen(what.strip_prefix("blocked:").unwrap_or(&what));
            Some(ScreenSign::Waits(need, finding.evidence.clone()))
        }
        ScreenState::Unknown => None,
    }
}

#[cfg(test)]
mod tests;
