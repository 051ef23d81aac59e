//! The user's hooks: which ones a team has, their input, and the effect of their result. A hook may
//! use its whole timeout, so callers that must not block run it on a separate thread.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::mail::post::Post;
use crate::members::presence;
use crate::{Context, OpsError};
use config::hooks::{ConfiguredHook, HookFiles, find_hooks};
use hooks::{self, Call, End, Ran};
use model::board::task::Task;
use model::id::{MemberName, TaskId, agent_id};
use model::mail::protocol::Message;
use model::members::environ;
use model::members::record::MemberRecord;
use model::team::Team;
use model::team::event::{Event, EventKind, Note};
use model::team::hook::{HookEvent, HookVerdict};
use model::text;
use store::TeamStore;
use sys::{fs, rand};

/// Set for hooks. A phalanx command inside a hook runs no hooks, which would recurse without end.
const INSIDE: &str = "PHALANX_HOOK";
/// Type of an agent without a role.
const NO_ROLE: &str = "general-purpose";
/// The program that runs the hooks of its settings itself.
const CLAUDE: &str = "claude";
/// Characters of a hook's output that the journal keeps.
const LONGEST_OUTPUT: usize = 500;

/// The hooks of a team as they were read; later changes of the files have no effect.
#[derive(Debug, Clone)]
pub struct TeamHooks {
    known: Vec<ConfiguredHook>,
    /// Hooks and files that could not be read or may not run.
    pub warnings: Vec<String>,
    /// The working directory of hooks: that of the lead.
    project: PathBuf,
    /// Marks the processes of these hooks, so that they can be ended.
    owner: String,
    /// Set once the hooks were ended: no other hook starts, and no completion is approved.
    stopped: Arc<AtomicBool>,
}

/// An event of a member for which hooks run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occasion {
    pub event: HookEvent,
    pub member: MemberName,
    /// Id of the journal event.
    pub cause: String,
}

/// The input of a hook and the member that it is about.
struct HookSubject<'a> {
    event: HookEvent,
    member: &'a MemberName,
    agent_type: &'a str,
    task: Option<TaskId>,
    cause: Option<&'a str>,
    /// True if the member's program runs the hooks of Claude's settings itself.
    runs_its_own: bool,
    input: Value,
}

/// Reads the hooks of the manifest, the user and the project. Unreadable files become warnings.
pub fn load_hooks(ctx: &Context, team: &TeamStore) -> TeamHooks {
    let roster = team.team().ok();
    let files = roster.map_or_else(|| user_hook_files(ctx), |roster| hook_files(ctx, &roster));
    let here = files.project.clone().unwrap_or_else(|| ctx.caller.cwd.clone());
    let none = TeamHooks {
        known: Vec::new(),
        warnings: Vec::new(),
        project: here,
        owner: rand::uuid(),
        stopped: Arc::default(),
    };
    if ctx.caller.var(INSIDE).is_some() {
        return none;
    }
    let found = find_hooks(&files);
    let mut warnings = found.warnings;
    let settings = team.settings().unwrap_or_else(|e| {
        warnings.push(format!("hooks of the manifest do not run: {e}"));
        None
    });
    let manifest = settings.map(|settings| settings.hooks).unwrap_or_default().into_iter();
    let manifest = manifest.map(|hook| ConfiguredHook {
        hook,
        source: "the manifest".to_owned(),
        of_claude: false,
    });
    TeamHooks { known: manifest.chain(found.hooks).collect(), warnings, ..none }
}

/// Returns the settings files of the user and of the project, which is the directory in which the
/// lead works.
pub fn hook_files(ctx: &Context, roster: &Team) -> HookFiles {
    let lead = roster.member(&MemberName::lead()).map(|lead| PathBuf::from(&lead.cwd));
    HookFiles { project: lead.filter(|dir| fs::is_dir(dir)), ..user_hook_files(ctx) }
}

fn user_hook_files(ctx: &Context) -> HookFiles {
    let [own, user] = ctx.store.hook_files();
    HookFiles { own, user, project: None }
}

impl TeamHooks {
    /// Returns true if no hooks are configured.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns a description and the source of each hook.
    pub fn listed(&self) -> impl Iterator<Item = (String, &str)> {
        let words = |known: &ConfiguredHook| {
            format!("{} runs `{}`", known.hook.event.as_str(), known.hook.run.shown())
        };
        self.known.iter().map(move |known| (words(known), known.source.as_str()))
    }

    /// Ends the running hooks before the process that started them exits.
    pub fn end_all(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        hooks::end_all(&self.owner);
    }

    fn are_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Returns true if a hook must approve the completion of tasks.
    pub fn guard_tasks(&self) -> bool {
        self.known.iter().any(|known| known.hook.event == HookEvent::TaskCompleted)
    }
}

/// Returns the starts of running members for which no hook ran, because there was no lead then.
pub fn starts_without_hooks(team: &TeamStore, events: &[Event]) -> Result<Vec<Occasion>, OpsError> {
    let mut starts = Vec::new();
    for record in team.member_records()?.into_iter().filter(|record| record.state.is_up()) {
        let is_its = |e: &&Event| e.member.as_ref() == Some(&record.name);
        let latest = events.iter().filter(is_its).rfind(|e| e.event == EventKind::MemberReady);
        let Some(ready) = latest else { continue };
        let has_run =
            |e: &Event| e.event == EventKind::HookRan && e.cause.as_ref() == Some(&ready.id);
        if !events.iter().any(has_run) {
            let (event, cause) = (HookEvent::SubagentStart, ready.id.clone());
            starts.push(Occasion { event, member: record.name, cause });
        }
    }
    Ok(starts)
}

/// Runs the hooks for an event of a member and applies their verdicts.
///
/// # Errors
/// A team that cannot be read or written. A failing hook is only a warning in the journal.
pub fn run_hooks(
    ctx: &Context,
    team: &TeamStore,
    hooks: &TeamHooks,
    occasion: &Occasion,
) -> Result<(), OpsError> {
    let Some(record) = team.member_record(&occasion.member)? else { return Ok(()) };
    let (event, member) = (occasion.event, &occasion.member);
    let subject = HookSubject {
        event,
        member,
        agent_type: record.request.role.as_deref().unwrap_or(NO_ROLE),
        task: None,
        cause: Some(&occasion.cause),
        runs_its_own: event == HookEvent::TeammateIdle && is_claude(&record),
        input: input(team, hooks, event, &record),
    };
    for (_, ran, verdict) in run_all(ctx, team, hooks, &subject)? {
        match verdict {
            HookVerdict::Show => send_output(team, member, event, &ran.stdout)?,
            HookVerdict::Hold => send_output(team, member, event, reason_or_default(&ran.stderr))?,
            HookVerdict::Nothing | HookVerdict::Complain => {}
        }
    }
    Ok(())
}

/// Runs the hooks that can reject the completion of a task. Returns warnings for the user.
///
/// # Errors
/// [`OpsError::HookRefused`], with the hook's stderr, if a hook rejects it or the hooks were ended.
pub(crate) fn before_completion(
    ctx: &Context,
    team: &TeamStore,
    hooks: &TeamHooks,
    task: &Task,
    who: &MemberName,
) -> Result<Vec<String>, OpsError> {
    let subject = HookSubject {
        event: HookEvent::TaskCompleted,
        member: who,
        agent_type: NO_ROLE,
        task: Some(task.id),
        cause: task.extra.event.as_deref(),
        runs_its_own: false,
        input: json!({
            "hook_event_name": HookEvent::TaskCompleted.as_str(), "cwd": path_text(&hooks.project),
            "task_id": task.id.to_string(), "task_subject": task.subject,
            "task_description": task.description, "teammate_name": who, "team_name": team.name(),
        }),
    };
    let mut complaints = hooks.warnings.clone();
    for (source, ran, verdict) in run_all(ctx, team, hooks, &subject)? {
        match verdict {
            HookVerdict::Hold => {
                let said = reason_or_default(&ran.stderr).to_owned();
                return Err(OpsError::HookRefused { task: task.id, said });
            }
            HookVerdict::Complain => complaints.push(complaint(subject.event, &source, &ran)),
            HookVerdict::Nothing | HookVerdict::Show => {}
        }
    }
    if hooks.are_stopped() {
        return Err(OpsError::HookRefused { task: task.id, said: "it was interrupted".to_owned() });
    }
    Ok(complaints)
}

/// Returns the input of a member's hooks, as docs/events.md defines it.
fn input(team: &TeamStore, hooks: &TeamHooks, event: HookEvent, record: &MemberRecord) -> Value {
    let agent_type = record.request.role.as_deref().unwrap_or(NO_ROLE);
    let mut input = match event {
        HookEvent::SubagentStart | HookEvent::SubagentStop => {
            json!({ "agent_id": agent_id(&record.name, team.name()), "agent_type": agent_type })
        }
        HookEvent::TeammateIdle | HookEvent::TaskCompleted => {
            json!({ "teammate_name": record.name, "team_name": team.name() })
        }
    };
    let log = team.log(&record.name);
    if event == HookEvent::SubagentStop && fs::exists(&log) {
        input["agent_transcript_path"] = path_text(&log).into();
    }
    input["hook_event_name"] = event.as_str().into();
    input["cwd"] = path_text(&hooks.project).into();
    input
}

/// Runs all matching hooks in sequence, up to the first that rejects a completion, and journals
/// each.
fn run_all(
    ctx: &Context,
    team: &TeamStore,
    hooks: &TeamHooks,
    subject: &HookSubject,
) -> Result<Vec<(String, Ran, HookVerdict)>, OpsError> {
    let env = environment(ctx, team, hooks, subject);
    let mut all = Vec::new();
    let meant =
        hooks.known.iter().filter(|known| known.hook.is_for(subject.event, subject.agent_type));
    for known in meant.filter(|known| !(known.of_claude && subject.runs_its_own)) {
        if hooks.are_stopped() {
            break;
        }
        let call =
            Call { input: &subject.input, env: &env, cwd: &hooks.project, owner: &hooks.owner };
        let ran = hooks::run(&known.hook, &call);
        let verdict = match ran.end {
            End::Code(code) => subject.event.verdict(code),
            End::Signal(_) | End::TimedOut | End::NotRun(_) => HookVerdict::Complain,
        };
        if !team.exists() {
            break;
        }
        team.record_all(journal_notes(subject, known, &ran, verdict))?;
        all.push((known.source.clone(), ran, verdict));
        if subject.event == HookEvent::TaskCompleted && verdict == HookVerdict::Hold {
            break;
        }
    }
    Ok(all)
}

/// Returns the caller's environment with the identity of the member that the hook is about (EN-04).
/// The token is left out: a hook acts as the user's command, not as the authenticated member
/// (SEC-04).
fn environment(
    ctx: &Context,
    team: &TeamStore,
    hooks: &TeamHooks,
    subject: &HookSubject,
) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> =
        ctx.caller.env.iter().filter(|(name, _)| !environ::is_identity(name)).cloned().collect();
    env.retain(|(name, _)| name != "CLAUDE_PROJECT_DIR");
    let agent = agent_id(subject.member, team.name());
    env.extend(
        [
            ("PHALANX_TEAM", team.name().as_str().into()),
            ("PHALANX_CONFIG_DIR", team.root().into()),
            ("PHALANX_AGENT_NAME", subject.member.as_str().into()),
            ("PHALANX_AGENT_ID", OsString::from(agent)),
            (INSIDE, subject.event.as_str().into()),
            ("CLAUDE_PROJECT_DIR", hooks.project.clone().into()),
        ]
        .map(|(name, value): (&str, OsString)| (name.into(), value)),
    );
    env
}

/// Returns the journal entries of a hook's run; a failure adds a warning, which every front end
/// shows.
fn journal_notes(
    subject: &HookSubject,
    known: &ConfiguredHook,
    ran: &Ran,
    verdict: HookVerdict,
) -> Vec<Note> {
    let about = |kind| Note {
        cause: subject.cause.map(str::to_owned),
        member: Some(subject.member.clone()),
        task: subject.task,
        ..Note::of(kind)
    };
    let mut note = about(EventKind::HookRan)
        .with("hook", subject.event.as_str())
        .with("source", known.source.as_str())
        .with("run", text::short(&known.hook.run.shown(), LONGEST_OUTPUT))
        .with("outcome", outcome(ran, verdict))
        .with("elapsed_ms", ran.elapsed_ms);
    match &ran.end {
        End::Code(code) => note = note.with("exit_code", *code),
        End::Signal(signal) => note = note.with("signal", *signal),
        End::TimedOut | End::NotRun(_) => {}
    }
    if verdict == HookVerdict::Hold {
        note = note.with("reason", text::short(reason_or_default(&ran.stderr), LONGEST_OUTPUT));
    }
    let warning = complaint(subject.event, &known.source, ran);
    let warning =
        (verdict == HookVerdict::Complain).then(|| about(EventKind::Warning).with("text", warning));
    [note].into_iter().chain(warning).collect()
}

fn outcome(ran: &Ran, verdict: HookVerdict) -> &'static str {
    match (&ran.end, verdict) {
        (End::TimedOut, _) => "timed_out",
        (End::NotRun(_), _) => "not_run",
        (End::Code(_) | End::Signal(_), HookVerdict::Complain) => "failed",
        (End::Code(_) | End::Signal(_), HookVerdict::Hold) => "held",
        (End::Code(_) | End::Signal(_), HookVerdict::Nothing | HookVerdict::Show) => "done",
    }
}

/// Describes a failed hook for the user.
fn complaint(event: HookEvent, source: &str, ran: &Ran) -> String {
    let how = match &ran.end {
        End::Code(code) => format!("exit code {code}"),
        End::Signal(signal) => format!("signal {signal}"),
        End::TimedOut => format!("not done after {} s, and ended", ran.elapsed_ms / 1000),
        End::NotRun(why) => why.clone(),
    };
    let said = if ran.stderr.is_empty() { String::new() } else { format!(": {}", ran.stderr) };
    text::short(&format!("hook {} of {source}: {how}{said}", event.as_str()), LONGEST_OUTPUT)
}

fn reason_or_default(said: &str) -> &str {
    if said.is_empty() { "it gave no reason" } else { said }
}

/// Sends a hook's output to the member's mailbox, if the member reads mail. The prefix keeps the
/// output from being parsed as a protocol message, so that text quoted by a hook controls no member
/// (SEC-05).
fn send_output(
    team: &TeamStore,
    member: &MemberName,
    event: HookEvent,
    said: &str,
) -> Result<(), OpsError> {
    if said.is_empty() || !presence::reads(team, member)? {
        return Ok(());
    }
    let words = Message::Text(format!("Hook {}: {said}", event.as_str()));
    Post::new(&MemberName::lead(), member, words).send(team).map(drop)
}

/// Returns true for Claude Code, which runs the hooks of its settings itself.
fn is_claude(record: &MemberRecord) -> bool {
    let program = record.request.argv.first().map(Path::new).and_then(Path::file_name);
    program.is_some_and(|program| program == CLAUDE)
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
