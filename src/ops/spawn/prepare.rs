//! The first half of a spawn: everything that is written before a process runs.

use std::ffi::OsString;
use std::path::Path;

use super::super::context::{Context, now};
use super::super::error::OpsError;
use super::{Prepared, undo};
use crate::backend::{Backend, Launch};
use crate::model::envelope::Envelope;
use crate::model::environ::{self, EnvRules};
use crate::model::event::{EventKind, Note};
use crate::model::id::{Incarnation, MemberName, agent_id};
use crate::model::lifecycle::MemberState;
use crate::model::order::Order;
use crate::model::protocol::Message;
use crate::model::record::{FORMAT, MemberRecord, Wish};
use crate::model::spec::{Spec, Word};
use crate::model::team::{Member, Team};
use crate::profile::{self, Profile, Program};
use crate::store::{StoreError, TeamStore};
use crate::sys::rand;

/// How long a launcher holds the screen of a program that was never up.
const LINGER_MS: u64 = 3000;

/// An order whose words are all valid; names may still be taken.
pub(super) struct Draft<'a> {
    order: &'a Order,
    name: MemberName,
    profile: Profile,
    argv: Vec<OsString>,
    cwd: String,
}

/// Checks an order on its own.
pub(super) fn draft<'a>(ctx: &Context, order: &'a Order) -> Result<Draft<'a>, OpsError> {
    let name = MemberName::new(&order.name)?;
    let profile = profile_of(order)?;
    if let Some((bad, _)) = order.env.iter().find(|(name, _)| !environ::may_be_set(name)) {
        let problem = format!("{bad:?} cannot be set as an environment variable");
        return Err(OpsError::Usage { problem, hint: None });
    }
    let argv = match profile.program {
        Program::Own { subcommand } => vec![ctx.caller.exe.clone().into(), subcommand.into()],
        Program::Given => order.command.iter().map(OsString::from).collect(),
    };
    let cwd = ctx.caller.cwd.join(order.cwd.as_deref().unwrap_or("."));
    let cwd = cwd.components().collect::<std::path::PathBuf>().to_string_lossy().into_owned();
    Ok(Draft { order, name, profile, argv, cwd })
}

fn profile_of(order: &Order) -> Result<Profile, OpsError> {
    let given = order.profile.as_deref();
    let wanted =
        given.unwrap_or(if order.command.is_empty() { profile::WORKER.name } else { profile::SHELL.name });
    let found = profile::named(wanted).ok_or_else(|| {
        let nearest =
            profile::ALL.into_iter().map(|p| p.name).find(|known| strsim::jaro(known, wanted) > 0.7);
        OpsError::NoSuchProfile { name: wanted.to_owned(), nearest }
    })?;
    let usage = |problem: String, hint: &str| Err(OpsError::Usage { problem, hint: Some(hint.to_owned()) });
    match (found.program, order.command.is_empty()) {
        (Program::Given, true) => usage(
            format!("profile `{wanted}` needs a command line"),
            "put it after `--`: `phalanx spawn NAME -- CMD ARG`",
        ),
        (Program::Own { .. }, false) => usage(
            format!("profile `{wanted}` takes no command line"),
            "leave the command away, or use `--profile shell`",
        ),
        (Program::Own { .. }, true) | (Program::Given, false) => Ok(found),
    }
}

/// What all of a batch have in common, read once.
struct Common<'a> {
    ctx: &'a Context,
    team: &'a TeamStore,
    backend: &'a dyn Backend,
    rules: EnvRules,
    /// The lead's session.
    session: String,
}

/// Writes roster entries, records, prompts and specs. If any of it fails, what was written is taken back.
pub(super) fn prepare(
    ctx: &Context,
    team: &TeamStore,
    drafts: &[Draft],
    backend: &dyn Backend,
    unique: bool,
) -> Result<Vec<Prepared>, OpsError> {
    let settings = team.settings()?;
    let max = settings.as_ref().map_or(usize::MAX, |s| s.max_members);
    let rules = settings.map(|s| s.env).unwrap_or_default();
    let (members, session) = join(team, drafts, backend, unique, max)?;
    let common = Common { ctx, team, backend, rules, session };
    let mut batch: Vec<Prepared> =
        drafts.iter().zip(members).map(|(draft, member)| plan(&common, draft, member)).collect();
    if let Err(e) = write(&common, drafts, &mut batch) {
        let all: Vec<undo::Failed> = batch.iter().map(|one| (one, &e)).collect();
        undo::undo(ctx, team, &all);
        return Err(e);
    }
    Ok(batch)
}

/// Puts all of the batch on the roster, in one change. Gives the entries and the lead's session.
fn join(
    team: &TeamStore,
    drafts: &[Draft],
    backend: &dyn Backend,
    unique: bool,
    max: usize,
) -> Result<(Vec<Member>, String), OpsError> {
    let joined = team.change_roster(|roster| {
        let mut known = roster.team();
        let mut joined = Vec::new();
        for draft in drafts {
            if known.teammates().count() >= max {
                return Err(StoreError::TeamFull { team: team.name().clone(), max });
            }
            let name = if unique { free_name(&known, &draft.name)? } else { draft.name.clone() };
            let member = entry(team, &known, draft, name, backend);
            roster.join(&member)?;
            known.members.push(member.clone());
            joined.push(member);
        }
        Ok((joined, known.lead_session_id.unwrap_or_default()))
    })?;
    Ok(joined)
}

fn free_name(team: &Team, wanted: &MemberName) -> Result<MemberName, StoreError> {
    let mut name = wanted.clone();
    let mut ending = 2;
    while team.member(&name).is_some() {
        name = MemberName::new(&format!("{wanted}-{ending}"))?;
        ending += 1;
    }
    Ok(name)
}

fn entry(team: &TeamStore, known: &Team, draft: &Draft, name: MemberName, backend: &dyn Backend) -> Member {
    Member {
        agent_id: agent_id(&name, team.name()),
        agent_type: Some(draft.order.role.clone().unwrap_or_else(|| "general-purpose".to_owned())),
        model: draft.order.model.clone(),
        prompt: draft.order.prompt.clone(),
        color: Some(known.next_color().to_owned()),
        plan_mode_required: draft.order.plan,
        mode: draft.order.mode,
        joined_at: now(),
        pane_id: String::new(),
        cwd: draft.cwd.clone(),
        backend_type: Some(backend.kind().wire().to_owned()),
        // Until it works it does not; one with a prompt begins at once.
        is_active: Some(draft.order.prompt.is_some()),
        name,
    }
}

/// A teammate as it shall be; nothing of it is written.
fn plan(common: &Common, draft: &Draft, member: Member) -> Prepared {
    let record = record(draft, &member, common.backend);
    let path = common.team.spec_path(&record.incarnation);
    let argv = vec![common.ctx.caller.exe.clone().into(), "exec".into(), path.into()];
    let launch = Launch { member: member.name.clone(), token: record.token.clone(), argv };
    Prepared { member, record, profile: draft.profile, launch, asked: rand::uuid(), new_mailbox: false }
}

/// The intent comes first.
fn write(common: &Common, drafts: &[Draft], batch: &mut [Prepared]) -> Result<(), OpsError> {
    let asked = |one: &Prepared| {
        let note = Note::of(EventKind::MemberAsked).member(&one.member.name);
        let note = note.with("incarnation", one.record.incarnation.as_str());
        Note { id: Some(one.asked.clone()), ..note.with("profile", one.profile.name) }
    };
    common.team.record_all(batch.iter().map(asked).collect())?;
    for (draft, one) in drafts.iter().zip(batch) {
        common.team.begin_record(&one.record)?;
        one.new_mailbox = mail(common.team, &one.member, draft.order.prompt.as_deref())?;
        common.team.keep_spec(&spec(common, draft, &one.member, &one.record))?;
    }
    Ok(())
}

fn record(draft: &Draft, member: &Member, backend: &dyn Backend) -> MemberRecord {
    let asked_at = now();
    MemberRecord {
        format: FORMAT,
        name: member.name.clone(),
        incarnation: Incarnation::parse(&rand::uuid()).expect("a fresh uuid has the form of one"),
        token: rand::token(),
        state: MemberState::Pending,
        reason: None,
        state_since: asked_at,
        backend: backend.kind(),
        wish: Wish {
            profile: draft.profile.name.to_owned(),
            role: draft.order.role.clone(),
            model: draft.order.model.clone(),
            mode: draft.order.mode,
            plan: draft.order.plan,
            prompt: draft.order.prompt.clone(),
            argv: draft.argv.iter().map(|w| w.to_string_lossy().into_owned()).collect(),
            cwd: draft.cwd.clone(),
            color: member.color.clone().unwrap_or_default(),
        },
        asked_at,
        placement: None,
        start: None,
        ready_at: None,
        exit: None,
    }
}

/// Makes the mailbox, takes stale control messages out of the way (SD-10), and puts the prompt in, all before the
/// program starts. True: there was no mailbox before.
fn mail(team: &TeamStore, member: &Member, prompt: Option<&str>) -> Result<bool, OpsError> {
    let mailbox = team.mailbox(&member.name);
    let lead = MemberName::lead();
    let prompt = prompt.map(|text| Envelope::new(lead.as_str(), text, rand::uuid(), now()));
    if mailbox.found_with(prompt.as_ref())? {
        return Ok(true);
    }
    let stale: Vec<String> = mailbox.unread()?.into_iter().filter(is_control).map(|e| e.msg_id).collect();
    mailbox.mark_read(&stale)?;
    prompt.map_or(Ok(()), |prompt| mailbox.append(&prompt))?;
    Ok(false)
}

fn is_control(envelope: &Envelope) -> bool {
    matches!(
        Message::parse(&envelope.text),
        Message::ShutdownRequest(_) | Message::ModeSetRequest(_) | Message::PlanApprovalResponse(_)
    )
}

fn spec(common: &Common, draft: &Draft, member: &Member, record: &MemberRecord) -> Spec {
    let identity = identity(common, member, record);
    let caller = &common.ctx.caller;
    let mut env = environ::compose(&caller.env, &common.rules, &draft.order.env, &identity);
    env.push(("PWD".into(), draft.cwd.clone().into()));
    Spec {
        format: 1,
        config_root: Word::of(common.team.root().as_os_str()),
        team: common.team.name().clone(),
        member: member.name.clone(),
        incarnation: record.incarnation.clone(),
        token: record.token.clone(),
        argv: draft.argv.iter().map(|w| Word::of(w)).collect(),
        cwd: Word::of(Path::new(&draft.cwd).as_os_str()),
        env: env.iter().map(|(k, v)| (Word::of(k), Word::of(v))).collect(),
        terminal: common.backend.terminal(&member.name),
        linger_ms: LINGER_MS,
    }
}

/// What every teammate is told of itself (protocol.md, section 7).
fn identity(common: &Common, member: &Member, record: &MemberRecord) -> Vec<(String, String)> {
    let team = common.team;
    let pairs = [
        ("PHALANX_TEAM", team.name().to_string()),
        ("PHALANX_AGENT_ID", member.agent_id.clone()),
        ("PHALANX_AGENT_NAME", member.name.to_string()),
        ("PHALANX_AGENT_COLOR", member.color.clone().unwrap_or_default()),
        ("PHALANX_CONFIG_DIR", team.root().to_string_lossy().into_owned()),
        ("PHALANX_PARENT_SESSION_ID", common.session.clone()),
        ("PHALANX_INCARNATION", record.incarnation.to_string()),
        ("PHALANX_TOKEN", record.token.clone()),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
