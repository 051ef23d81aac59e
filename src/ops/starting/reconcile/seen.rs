//! A team as `up` finds it.

use std::collections::{BTreeMap, BTreeSet};

use super::wanted::WantedTeam;
use crate::OpsError;
use crate::members::status;
use model::board::task::Task;
use model::id::{MemberName, TaskId};
use model::members::launch::EntryDigests;
use model::members::record::MemberRecord;
use model::team::settings::Settings;
use store::TeamStore;

/// A team as `up` finds it.
pub(super) struct TeamSeen {
    pub(super) settings: Settings,
    pub(super) records: Vec<MemberRecord>,
    pub(super) live: Vec<MemberName>,
    pub(super) working: BTreeMap<String, TaskId>,
    pub(super) tasks: Vec<Task>,
}

impl TeamSeen {
    pub(super) fn read(team: &TeamStore) -> Result<TeamSeen, OpsError> {
        let settings = team.settings()?.ok_or_else(|| {
            OpsError::refused(
                format!(
                    "team `{}` was made by another program, so that no manifest describes it",
                    team.name()
                ),
                "choose another name in [team], or add members with `phalanx spawn`",
            )
        })?;
        let mut records = team.member_records()?;
        let live = status::live_of(&records);
        // A start that was cut off leaves a record of a run that never was.
        records.retain(|of| of.start.is_some() || of.state.is_over() || live.contains(&of.name));
        let board = team.board()?;
        let working = board.working();
        Ok(TeamSeen {
            settings,
            live,
            records,
            working,
            tasks: board.tasks.into_values().collect(),
        })
    }

    pub(super) fn is_live(&self, name: &MemberName) -> bool {
        self.live.iter().any(|other| other.clashes_with(name.as_str()))
    }

    pub(super) fn record(&self, name: &str) -> Option<&MemberRecord> {
        self.records.iter().find(|record| record.name.clashes_with(name))
    }

    /// The standing members that come from a manifest.
    pub(super) fn of_manifest(&self) -> impl Iterator<Item = (&MemberRecord, &EntryDigests)> {
        let standing = self.records.iter().filter(|record| record.request.task.is_none());
        standing.filter_map(|record| Some((record, record.request.entry.as_ref()?)))
    }

    /// Returns the names of its members that no entry of the manifest stands for.
    pub(super) fn gone(&self, wanted: &WantedTeam) -> BTreeSet<String> {
        let members =
            self.of_manifest().filter(|(record, _)| wanted.spec_of(&record.name).is_none());
        members.map(|(record, _)| record.name.to_string()).collect()
    }
}
