//! The permission table against docs/security.md, and every action with every kind of token.

use std::path::PathBuf;

use strum::VariantArray;

use super::*;
use crate::Caller;
use crate::team;
use crate::views::overview;
use fixture::sample;
use model::members::lifecycle::MemberState;
use model::members::placement::ProcessId;
use model::members::record::{ExitRecord, MemberRecord};
use model::team::settings::Settings;
use model::time::Timestamp;
use store::{LeadRecord, Store};
use sys::fs;
use sys::proc::Process;

const PAGE: &str = include_str!("../../../docs/security.md");

fn name(name: &str) -> MemberName {
    MemberName::existing(name).expect("a name")
}

/// A row of docs/security.md: the lead, a teammate on itself, a teammate on another or on the
/// team.
fn row(action: Action) -> String {
    let yes = |speaker: &str, targets: &[&str], privacy| {
        let targets: Vec<MemberName> = targets.iter().map(|target| name(target)).collect();
        may(&name(speaker), action, &targets, privacy)
    };
    let word = |speaker, targets: &[&str]| match (
        yes(speaker, targets, Privacy::Own),
        yes(speaker, targets, Privacy::Open),
    ) {
        (true, true) => "yes",
        (false, true) => "unless `privacy` is `own`",
        _ => "no",
    };
    format!(
        "| {} | {} | {} | {} |",
        action.commands(),
        word("team-lead", &["bob"]),
        word("ann", &["ann"]),
        word("ann", &["bob"])
    )
}

#[test]
fn security_page_shows_the_permission_table() {
    let rows: Vec<String> = Action::VARIANTS.iter().copied().map(row).collect();
    assert!(PAGE.contains(&rows.join("\n")), "docs/security.md should have:\n{}", rows.join("\n"));
}

#[test]
fn action_on_several_members_is_own_only_if_all_are_the_speaker() {
    let ann = name("ann");
    let may = |targets: &[MemberName]| may(&ann, Action::Shutdown, targets, Privacy::Open);
    assert!(may(std::slice::from_ref(&ann)) && may(&[ann.clone(), ann.clone()]));
    assert!(!may(&[ann.clone(), name("bob")]) && !may(&[]), "nobody named is the whole team");
}

/// Teams under one config root.
struct Stage {
    dir: tempfile::TempDir,
}

impl Stage {
    fn store(&self) -> Store {
        Store::at(self.dir.path())
    }

    fn team(&self, team: &str) -> TeamStore {
        self.store().team(&TeamName::existing(team).expect("a name")).expect("a team")
    }

    /// The context of a caller with the token of `NAME@TEAM`, or of a person.
    fn ctx(&self, caller: Option<&str>, speaker: &str) -> Context {
        let identity = caller.and_then(|caller| caller.split_once('@'));
        let env = identity.into_iter().flat_map(|(name, team)| {
            [
                ("PHALANX_TOKEN".into(), token(name, team).into()),
                ("PHALANX_AGENT_NAME".into(), name.into()),
                ("PHALANX_TEAM".into(), team.into()),
                ("PHALANX_CONFIG_DIR".into(), self.dir.path().into()),
                ("PHALANX_DEPTH".into(), "1".into()),
            ]
        });
        let caller =
            Caller { env: env.collect(), cwd: "/".into(), exe: PathBuf::from("/bin/phalanx") };
        Context { store: self.store(), speaker: name(speaker), caller }
    }

    fn create(&self, team: &str, creator: Option<&str>) -> TeamStore {
        let settings = Settings { max_depth: 2, ..Settings::by_hand(8) };
        let ctx = self.ctx(creator, "team-lead");
        team::create(&ctx, team, "", None, &settings, false).expect("a team")
    }

    fn begin(&self, member: &str, team: &str, edit: impl FnOnce(&mut MemberRecord)) {
        let mut record = sample::record(member, sample::run(1), "worker", Timestamp(1));
        record.token = token(member, team);
        record.state = MemberState::Idle;
        edit(&mut record);
        self.team(team).begin_record(&record).expect("a record");
    }

    /// The number of warnings in the journals of these teams.
    fn warnings(&self, teams: &[&str]) -> Vec<usize> {
        let is_warning = |event: &model::team::event::Event| event.event == EventKind::Warning;
        let count = |team: &&str| {
            self.team(team).events().expect("a journal").into_iter().filter(is_warning).count()
        };
        teams.iter().map(count).collect()
    }
}

fn token(member: &str, team: &str) -> String {
    format!("token-of-{member}@{team}")
}

fn lead_record(team: &str) -> LeadRecord {
    let Process { pid, start } = Process::current();
    LeadRecord {
        format: 1,
        process: ProcessId { pid, start },
        boot_id: String::new(),
        host: String::new(),
        since: Timestamp(1),
        token: Some(token("team-lead", team)),
    }
}

/// The result of an identity check, before the table of permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Acts as the speaker, as far as the table permits.
    Speaker,
    /// Is another member, or no longer one.
    NotTheSpeaker,
    Stranger,
}

fn known(entered: &Result<(), OpsError>) -> Known {
    match entered {
        Ok(()) | Err(OpsError::NotPermitted { .. }) => Known::Speaker,
        Err(OpsError::NotTheSpeaker { .. }) => Known::NotTheSpeaker,
        Err(OpsError::NotItsTeam { .. }) => Known::Stranger,
        Err(other) => panic!("{other}"),
    }
}

/// Teams: `alpha` with ann, the ended dan, eve whose program has exited; `beta` of a person; `led`
/// with an agent lead; `dead` whose agent lead has died; `of-ann`, `of-dan` and `of-led`, which
/// these have created.
fn stage() -> (Stage, store::Lease) {
    let stage = Stage { dir: tempfile::tempdir().expect("a temporary directory") };
    for team in ["alpha", "beta", "led", "dead"] {
        stage.create(team, None);
    }
    for member in ["ann", "bob", "dan"] {
        stage.begin(member, "alpha", |_| {});
    }
    let lease = stage.team("led").take_lease(&lead_record("led")).expect("readable");
    stage.create("of-ann", Some("ann@alpha"));
    stage.create("of-dan", Some("dan@alpha"));
    stage.create("of-led", Some("team-lead@led"));
    stage.begin("dan", "alpha", |dan| dan.state = MemberState::Completed);
    stage.begin("eve", "alpha", |eve| eve.exit = Some(ExitRecord::default()));
    drop(stage.team("dead").take_lease(&lead_record("dead")).expect("readable"));
    let text = serde_json::to_string(&lead_record("dead")).expect("json");
    let file = stage.dir.path().join("teams/dead/phalanx/lead.json");
    fs::write_atomic(&file, text.as_bytes()).expect("the record of a lead that was killed");
    (stage, lease.expect("a free lease"))
}

/// Caller, team, speaker, and what the caller is there.
const CASES: &[(Option<&str>, &str, &str, Known)] = &[
    (None, "alpha", "team-lead", Known::Speaker),
    (Some("ann@alpha"), "alpha", "ann", Known::Speaker),
    (Some("ann@alpha"), "alpha", "bob", Known::NotTheSpeaker),
    (Some("ann@alpha"), "alpha", "team-lead", Known::NotTheSpeaker),
    (Some("ann@alpha"), "beta", "ann", Known::Stranger),
    (Some("ann@alpha"), "beta", "team-lead", Known::Stranger),
    (Some("ann@alpha"), "of-ann", "ann", Known::NotTheSpeaker),
    (Some("ann@alpha"), "of-ann", "team-lead", Known::Speaker),
    (Some("ann@alpha"), "of-dan", "team-lead", Known::Stranger),
    (Some("bob@alpha"), "of-ann", "team-lead", Known::Stranger),
    (Some("dan@alpha"), "alpha", "dan", Known::NotTheSpeaker),
    (Some("dan@alpha"), "alpha", "team-lead", Known::NotTheSpeaker),
    (Some("dan@alpha"), "beta", "dan", Known::NotTheSpeaker),
    (Some("dan@alpha"), "beta", "team-lead", Known::NotTheSpeaker),
    (Some("dan@alpha"), "of-dan", "dan", Known::NotTheSpeaker),
    (Some("dan@alpha"), "of-dan", "team-lead", Known::NotTheSpeaker),
    (Some("eve@alpha"), "alpha", "eve", Known::NotTheSpeaker),
    (Some("eve@alpha"), "alpha", "team-lead", Known::NotTheSpeaker),
    (Some("team-lead@led"), "led", "team-lead", Known::Speaker),
    (Some("team-lead@led"), "led", "ann", Known::NotTheSpeaker),
    (Some("team-lead@led"), "beta", "team-lead", Known::Stranger),
    (Some("team-lead@led"), "of-led", "team-lead", Known::Speaker),
    (Some("team-lead@led"), "of-ann", "team-lead", Known::Stranger),
    (Some("team-lead@dead"), "dead", "team-lead", Known::NotTheSpeaker),
    (Some("team-lead@dead"), "beta", "team-lead", Known::NotTheSpeaker),
    (Some("ann@gone"), "beta", "team-lead", Known::NotTheSpeaker),
    (Some("ann@beta"), "beta", "ann", Known::NotTheSpeaker),
];

/// SEC-12: every action, by every kind of caller, in its own team, in one that it created and in
/// another one, under its own name and as the lead. Each refusal is journaled where it was tried.
#[test]
fn sec_12_token_gives_rights_in_its_own_team_and_in_created_ones_only() {
    let (stage, _lease) = stage();
    let all = ["alpha", "beta", "led", "dead", "of-ann", "of-dan", "of-led"];
    for &(caller, team, speaker, expected) in CASES {
        let (ctx, store) = (stage.ctx(caller, speaker), stage.team(team));
        let (own, other) = ([name(speaker)], [name("zoe")]);
        let mut expected_warnings = stage.warnings(&all);
        for &action in Action::VARIANTS {
            for targets in [&[][..], &own, &other] {
                let entered = enter(&ctx, &store, action, targets);
                let case = format!("{caller:?} in {team} as {speaker}: {action:?} {targets:?}");
                assert_eq!(known(&entered), expected, "{case}: {entered:?}");
                let permitted = may(&ctx.speaker, action, targets, Privacy::Open);
                assert_eq!(entered.is_ok(), expected == Known::Speaker && permitted, "{case}");
                let here = all.iter().position(|one| *one == team).expect("a team");
                expected_warnings[here] += usize::from(entered.is_err());
            }
        }
        assert_eq!(stage.warnings(&all), expected_warnings, "{caller:?} in {team} as {speaker}");
    }
}

/// SEC-12: lists leave out the teams in which the caller has no rights, and journal nothing.
#[test]
fn sec_12_lists_show_a_token_its_own_and_created_teams_only() {
    let (stage, _lease) = stage();
    let all = ["alpha", "beta", "dead", "led", "of-ann", "of-dan", "of-led"];
    for (caller, shown) in [
        (None, &all[..]),
        (Some("ann@alpha"), &["alpha", "of-ann"]),
        (Some("bob@alpha"), &["alpha"]),
        (Some("team-lead@led"), &["led", "of-led"]),
        (Some("dan@alpha"), &[]),
        (Some("team-lead@dead"), &[]),
        (Some("ann@gone"), &[]),
    ] {
        let ctx = stage.ctx(caller, "team-lead");
        let listed = team::list(&ctx).expect("a list");
        let names: Vec<&str> = listed.iter().map(|team| team.name.as_str()).collect();
        assert_eq!(names, shown, "{caller:?}");
        assert_eq!(overview::overview(&ctx, 10).teams.len(), shown.len(), "{caller:?}");
    }
    assert_eq!(stage.warnings(&all), [0; 7]);
}

/// SEC-12: an action without a team is decided by the caller's own team, whatever it calls itself.
#[test]
fn sec_12_action_without_a_team_needs_a_living_run() {
    let (stage, _lease) = stage();
    let enter = |caller, speaker, action| enter_without_team(&stage.ctx(caller, speaker), action);
    for &action in Action::VARIANTS {
        let is_for_all = action.grant() == Grant::Everyone || action.grant() == Grant::ByPrivacy;
        for speaker in ["ann", "team-lead"] {
            assert!(enter(None, "team-lead", action).is_ok());
            assert_eq!(enter(Some("ann@alpha"), speaker, action).is_ok(), is_for_all, "{action:?}");
            assert!(enter(Some("team-lead@led"), speaker, action).is_ok(), "{action:?}");
            for ended in ["dan@alpha", "eve@alpha", "team-lead@dead", "ann@gone"] {
                let refused = enter(Some(ended), speaker, action);
                assert!(
                    matches!(refused, Err(OpsError::NotTheSpeaker { owner: None, .. })),
                    "{ended} {action:?}: {refused:?}"
                );
            }
        }
    }
    let settings = Settings::by_hand(8);
    for ended in ["dan@alpha", "team-lead@dead", "ann@gone"] {
        let made =
            team::create(&stage.ctx(Some(ended), "team-lead"), "x", "", None, &settings, false);
        assert!(matches!(made, Err(OpsError::NotTheSpeaker { .. })), "{ended}: {made:?}");
    }
}

/// SEC-12: a later team of the same name, and another member of the team, are not the creator.
#[test]
fn sec_12_creator_is_a_member_of_one_team() {
    let (stage, _lease) = stage();
    let of_ann = stage.team("of-ann");
    let lead = |caller| stage.ctx(Some(caller), "team-lead");
    assert!(enter(&lead("ann@alpha"), &of_ann, Action::Down, &[]).is_ok());
    // A later run of the creator may go on.
    stage.begin("ann", "alpha", |ann| ann.incarnation = sample::run(2));
    assert!(enter(&lead("ann@alpha"), &of_ann, Action::Down, &[]).is_ok());
    stage.team("alpha").delete().expect("deleted");
    let at = store::now();
    while store::now() == at {
        std::thread::yield_now();
    }
    stage.create("alpha", None);
    stage.begin("ann", "alpha", |_| {});
    let refused = enter(&lead("ann@alpha"), &of_ann, Action::Down, &[]);
    assert!(matches!(refused, Err(OpsError::NotItsTeam { .. })), "{refused:?}");
}
