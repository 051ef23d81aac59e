//! Records the circuit breaker of the restarts of a member, and tells the lead when it opens.

use crate::{OpsError, Post, now};
use model::id::MemberName;
use model::members::record::PlannedRestart;
use model::team::event::{EventKind, Note};
use model::text;
use store::TeamStore;
use sys::rand;

/// Characters of the reason of the last end that the message quotes.
const LONGEST: usize = 200;

/// Records the failures in a row of a member, and the pause before its next start; without a pause
/// after a failure it is not started again, and the lead gets one message about that run.
pub fn record_breaker(
    team: &TeamStore,
    name: &MemberName,
    failures: u32,
    delay_ms: Option<u64>,
) -> Result<(), OpsError> {
    let event = rand::uuid();
    let note = Note { id: Some(event.clone()), ..Note::of(EventKind::RestartDelayed) };
    let note = note.member(name).with("failures", failures);
    team.record(note.with_some("delay_ms", delay_ms))?;
    let gave_up_after = Some(failures).filter(|failures| *failures > 0 && delay_ms.is_none());
    let restart = delay_ms.map(|delay| PlannedRestart { failures, at: now().plus_ms(delay) });
    let record = team.member_record(name)?;
    let is_known = match &record {
        Some(record) => team.change_record(name, &record.incarnation, |record| {
            record.restart = restart;
            std::mem::replace(&mut record.gave_up_after, gave_up_after).is_some()
        })?,
        // No start of it has succeeded.
        None => None,
    };
    if gave_up_after.is_some() && is_known != Some(true) {
        let reason = record.and_then(|record| record.reason.clone().or_else(|| record.ending()));
        let words = describe(name, failures, reason.as_deref());
        Post::notice(&MemberName::lead(), words).because(Some(event)).send(team)?;
    }
    Ok(())
}

fn describe(name: &MemberName, failures: u32, reason: Option<&str>) -> String {
    let reason = reason.map(|why| format!(" ({})", text::short(why, LONGEST))).unwrap_or_default();
    format!(
        "{name} is not started again: {failures} failures in a row{reason}. See its last output with \
         `phalanx logs {name}`, and start it again with `phalanx resume {name}`."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::status;
    use fixture::sample;
    use model::id::TeamName;
    use model::mail::protocol::news::is_news;
    use model::members::lifecycle::MemberState;
    use model::team::Team;
    use model::team::settings::Settings;
    use model::time::Timestamp;
    use store::Store;

    #[test]
    fn msg_17_lead_gets_one_message_when_a_member_is_not_started_again() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (store, name) = (Store::at(dir.path()), TeamName::new("demo").expect("name"));
        let file = Team::found(&name, "", "team-lead", "session", "/", Timestamp(1));
        let team = store.create(&name, &file, &Settings::by_hand(8)).expect("a team");
        let mut record = sample::record("ann", sample::run(1), "worker", Timestamp(1));
        (record.state, record.reason) = (MemberState::Failed, Some("exit code 3".to_owned()));
        team.begin_record(&record).expect("a record");
        let mail = || team.mailbox(&MemberName::lead()).entries().expect("readable");
        record_breaker(&team, &record.name, 4, Some(8000)).expect("recorded");
        assert_eq!(mail(), [], "it is started again");
        record_breaker(&team, &record.name, 5, None).expect("recorded");
        record_breaker(&team, &record.name, 6, None).expect("recorded");
        let told = mail();
        let texts: Vec<&str> = told.iter().map(|envelope| envelope.text.as_str()).collect();
        let expected = "ann is not started again: 5 failures in a row (exit code 3). See its last output with \
             `phalanx logs ann`, and start it again with `phalanx resume ann`.";
        assert_eq!(texts, [expected]);
        assert!(is_news(&told[0]) && !told[0].read);
        let left = status::status(&team).expect("readable").left;
        assert_eq!((left[0].gave_up_after, left[0].resumable), (Some(6), true));
        let reason = left[0].state.reason.as_deref();
        assert_eq!(reason, Some("exit code 3; not started again after 6 failures in a row"));

        let ben = MemberName::new("ben").expect("name");
        record_breaker(&team, &ben, 5, None).expect("recorded");
        assert!(mail()[1].text.starts_with("ben is not started again"), "it never started");
        // It was started by hand.
        record_breaker(&team, &record.name, 0, None).expect("recorded");
        assert_eq!(status::status(&team).expect("readable").left[0].gave_up_after, None);
        assert_eq!(mail().len(), 2);
    }
}
