//! Tools for teams and their members.

use std::time::Duration;

use serde_json::{Value, json};

use super::arguments::ToolArguments;
use super::call::{PrintedOutput, Reply, ToolCall};
use super::inputs::{HandoffInput, ProfileInput, SetInput, StatusInput, TeamCreateInput};
use crate::args::MemberArg;
use crate::board::task::{self, TaskVerb};
use crate::decisions::requests::{self, ModeArgs, RulesArgs};
use crate::ending::shutdown::{self, ShutdownArgs};
use crate::fail::Failure;
use crate::members::input::{self, KeysArgs, TypeArgs};
use crate::members::profile::{self, ProfileVerb};
use crate::members::resume::{self, RestartArgs};
use crate::members::spawn::{self, SpawnArgs};
use crate::team::{self, CreateTeamArgs, SetTeamArgs, TeamVerb};
use crate::views::attach::{self, PeekArgs};
use crate::views::events::{self, EventsArgs};
use crate::views::explain;
use crate::views::logs::{self, LogsArgs};
use crate::views::status::{self, StatusArgs};
use crate::views::wait::{self, WaitArgs};
use model::board::task_ref::TaskRef;
use model::id::{MemberName, TaskId};
use ops::authority::Action;
use ops::views::wait::{Came, Until};
use ops::{Kind, NewTask};

/// Time limits of a wait for members or a task.
const DEFAULT_WAIT: Duration = Duration::from_secs(60);
const MAX_WAIT: Duration = Duration::from_secs(600);
/// Default time limit of a handoff.
const HANDOFF_WAIT: Duration = Duration::from_secs(300);
/// Number of events, and of lines of each member's output, if the call sets none.
const EVENTS: usize = 50;
const LOG_LINES: usize = 200;
/// Characters of a prompt that are the subject of its task.
const SUBJECT: usize = 80;

pub(super) fn create(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let input: TeamCreateInput = given.parse()?;
    let led = call.server.created().clone();
    let is_there = || call.with(|setup| Ok(setup.visible_team().is_some())).unwrap_or(false);
    if let Some(led) = led.filter(|_| is_there()) {
        let problem = format!("this session leads the team `{led}` already");
        let hint = Some("delete it with TeamDelete first".to_owned());
        return Err(Failure::new(Kind::Refused, problem, hint));
    }
    *call.server.created() = None;
    let args = CreateTeamArgs {
        name: input.team_name,
        description: input.description,
        agent_type: input.agent_type,
        tmux_socket: None,
        settings: None,
        unique: true,
    };
    let printed = call.run(|setup| team::team(setup, TeamVerb::Create(args)))?;
    *call.server.created() = printed.document["team_name"].as_str().map(str::to_owned);
    Ok(printed.into_reply())
}

pub(super) fn delete(call: &ToolCall) -> Result<Reply, Failure> {
    let printed = call.run(|setup| team::delete(setup, None, false))?;
    *call.server.created() = None;
    Ok(printed.into_reply())
}

pub(super) fn spawn(call: &ToolCall, args: SpawnArgs) -> Result<Reply, Failure> {
    let (prompt, is_dry_run) = (args.prompt.clone(), args.dry_run);
    let args = SpawnArgs { unique: true, ..args };
    let printed = call.run(|setup| spawn::spawn(setup, args))?;
    if is_dry_run {
        return Ok(printed.into_reply());
    }
    let mut document = json!({ "status": "teammate_spawned", "prompt": prompt });
    if let (Some(whole), Some(spawned)) = (document.as_object_mut(), printed.document.as_object()) {
        whole.extend(spawned.clone());
    }
    Ok(printed.reply_with(document))
}

pub(super) fn show(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let input: StatusInput = given.parse()?;
    let args = StatusArgs { all: input.all, ..StatusArgs::default() };
    let printed = call.run(|setup| match input.name {
        Some(name) => explain::explain(setup, &MemberArg { name }),
        None => status::status(setup, &args),
    })?;
    Ok(printed.into_reply())
}

pub(super) fn list_members(call: &ToolCall) -> Result<Reply, Failure> {
    let args = StatusArgs::default();
    let printed = call.run(|setup| status::status(setup, &args))?;
    let document = json!({
        "team": printed.document["team"], "members": printed.document["members"],
        "left": printed.document["left"],
    });
    Ok(printed.reply_with(document))
}

pub(super) fn shutdown(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let args: ShutdownArgs = given.parse()?;
    if args.all != args.names.is_empty() {
        return Err(Failure::usage("give `names`, or `all`", "`all` ends every member"));
    }
    Ok(call.run(|setup| shutdown::shutdown(setup, &args))?.into_list("members"))
}

pub(super) fn peek(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let args: PeekArgs = given.parse()?;
    Ok(into_results(call.run(|setup| attach::peek(setup, &args))?, "screens"))
}

/// Reads output of members. Without a limit of its own a result would be as long as the log.
pub(super) fn read_logs(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let mut args: LogsArgs = given.parse()?;
    args.lines = args.lines.or(Some(LOG_LINES));
    Ok(call.run_lines(|setup| logs::logs(setup, args))?.into_list("lines"))
}

pub(super) fn list_events(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let mut args: EventsArgs = given.parse()?;
    args.lines = args.lines.or(Some(EVENTS));
    Ok(call.run_lines(|setup| events::events(setup, &args))?.into_list("events"))
}

pub(super) fn type_or_press(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let printed = match (given.has("text"), given.has("keys")) {
        (true, false) => {
            let args: TypeArgs = given.parse()?;
            call.run(|setup| input::type_text(setup, &args))?
        }
        (false, true) => {
            let args: KeysArgs = given.parse()?;
            call.run(|setup| input::keys(setup, &args))?
        }
        _ => return Err(Failure::usage("give `text`, or `keys`", "`enter` follows a text")),
    };
    Ok(printed.into_reply())
}

pub(super) fn list_profiles(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let input: ProfileInput = given.parse()?;
    let (verb, is_list) = match input.name {
        Some(name) => (ProfileVerb::Show { name }, false),
        None => (ProfileVerb::List, true),
    };
    let printed = call.run(|setup| profile::profile(setup, verb))?;
    Ok(if is_list { printed.into_list("profiles") } else { printed.into_reply() })
}

pub(super) fn settings(call: &ToolCall) -> Result<Reply, Failure> {
    Ok(call.run(|setup| team::team(setup, TeamVerb::Show))?.into_reply())
}

pub(super) fn change_settings(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let input: SetInput = given.parse()?;
    if input.set.is_empty() && input.unset.is_empty() {
        return Err(Failure::usage("give `set` or `unset`", "the action show lists the settings"));
    }
    let pairs = input.set.iter().flat_map(|(key, value)| [key.clone(), setting(value)]).collect();
    let args = SetTeamArgs { pairs, unset: input.unset };
    Ok(call.run(|setup| team::team(setup, TeamVerb::Set(args)))?.into_reply())
}

/// Returns a value as `team set` takes it: TOML, or a text as it is.
fn setting(value: &Value) -> String {
    value.as_str().map_or_else(|| toml_text(value), str::to_owned)
}

fn toml_text(value: &Value) -> String {
    match value {
        Value::String(text) => toml::Value::from(text.as_str()).to_string(),
        Value::Array(values) => {
            format!("[{}]", values.iter().map(toml_text).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| {
                format!("{} = {}", toml::Value::from(key.as_str()), toml_text(value))
            };
            format!("{{ {} }}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        // TOML has no null, so this one is refused.
        plain => plain.to_string(),
    }
}

pub(super) fn rules(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let (shows, remove) = (given.action() == "show", given.action() == "remove");
    let args = RulesArgs { remove, ..given.parse()? };
    let printed = call.run(|setup| requests::rules(setup, &args))?;
    Ok(if shows { printed.into_list("rules") } else { printed.into_reply() })
}

pub(super) fn set_mode(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let args: ModeArgs = given.parse()?;
    if args.all == args.name.is_some() {
        return Err(Failure::usage("give `name`, or `all`", "`all` changes every member"));
    }
    // With `--all` the only positional argument of the verb is the mode.
    let args = match args.mode {
        Some(mode) if args.all => {
            ModeArgs { name: Some(mode.as_str().to_owned()), mode: None, ..args }
        }
        _ => args,
    };
    Ok(call.run(|setup| requests::mode(setup, &args))?.into_list("members"))
}

pub(super) fn restart(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let args: RestartArgs = given.parse()?;
    Ok(into_results(call.run(|setup| resume::restart(setup, &args))?, "members"))
}

/// Returns the results of members as the field `name`. A verb prints one document for one member.
fn into_results(mut printed: PrintedOutput, name: &str) -> Reply {
    let results = match printed.document.take() {
        Value::Array(results) => results,
        Value::Null => Vec::new(),
        one => vec![one],
    };
    printed.reply_with(json!({ name: results }))
}

pub(super) fn wait_for(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let args: WaitArgs = given.parse()?;
    let _permit = call.begin_wait()?;
    let limit = args.timeout.unwrap_or(DEFAULT_WAIT).min(MAX_WAIT);
    match wait_until(call, limit, "waiting", args)? {
        // A failed task was waited for successfully.
        Some(came) => Ok(Reply::of(json!({ "reached": true, "states": came }))),
        None => Ok(Reply::of(json!({ "reached": false, "message": format!(
            "not within {} s; wait again, or see Status", limit.as_secs_f64()
        ) }))),
    }
}

/// Waits for what `wanted` names; `None` after `limit`.
fn wait_until(
    call: &ToolCall,
    limit: Duration,
    what: &str,
    wanted: WaitArgs,
) -> Result<Option<Vec<Came>>, Failure> {
    let wanted = WaitArgs { timeout: Some(limit), ..wanted };
    call.with(|setup| {
        let mut begun = wait::begin(setup, &wanted)?;
        call.wait(limit, what, |slice| Ok(begun.step(Some(slice))?))
    })
}

/// Gives a member a task of its own, waits until the task has ended, and returns its result.
pub(super) fn hand_off(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let input: HandoffInput = given.parse()?;
    let _permit = call.begin_wait()?;
    let limit = input.timeout.and_then(|s| Duration::try_from_secs_f64(s).ok());
    let limit = limit.unwrap_or(HANDOFF_WAIT).min(MAX_WAIT);
    let name = input.name.clone();
    let (id, is_member) = call.with(|setup| {
        let team = setup.team(Action::Task)?;
        let member = MemberName::existing(&name)
            .ok()
            .filter(|name| team.team().is_ok_and(|team| team.member(name).is_some()));
        let is_member = member.is_some();
        let subject: String =
            input.prompt.lines().next().unwrap_or_default().chars().take(SUBJECT).collect();
        // A task without an owner could be claimed by another member, and the team may demand one:
        // until the member has started, the caller owns it.
        let owner = member.or_else(|| Some(setup.ctx.speaker.clone()));
        let description = input.prompt.clone();
        let new = NewTask { subject, description, owner, ..NewTask::default() };
        let made = ops::board::task::create(&setup.ctx, &team, &[new])?;
        let made = made.first().map(|task| task.id);
        let id = made.ok_or_else(|| Failure::new(Kind::Internal, "no task was made", None))?;
        Ok((id, is_member))
    })?;
    let begun = match is_member {
        true => Ok(()),
        false => handoff_member(&input, id)
            .and_then(|args| call.run(|setup| spawn::spawn(setup, args)))
            .map(drop),
    };
    if let Err(failure) = begun {
        // The task has no member.
        let _ = call
            .run(|setup| task::task(setup, TaskVerb::Delete { id: TaskRef::Id(id), force: true }));
        return Err(failure);
    }
    let what = format!("waiting for {name} to end task {id}");
    let until = vec![Until::Tasks(vec![TaskRef::Id(id)])];
    let wanted = WaitArgs { names: Vec::new(), any: false, until, timeout: None };
    let ended = wait_until(call, limit, &what, wanted)?;
    let printed =
        call.run(|setup| task::task(setup, TaskVerb::Get { id: TaskRef::Id(id), full: false }))?;
    let task = &printed.document;
    let extra = &task["metadata"]["phalanx"];
    let result = [&extra["result"], &extra["reason"]].into_iter().find(|text| !text.is_null());
    let mut document =
        json!({ "name": name, "task_id": id, "state": task["state"], "result": result });
    if ended.is_none() {
        document["message"] = format!(
            "no result within {} s; the task goes on: WaitFor with until task={id}, then TaskGet",
            limit.as_secs_f64()
        )
        .into();
    }
    Ok(printed.reply_with(document))
}

/// Returns the arguments that start a member for a handoff.
///
/// # Errors
/// A usage error without a profile and a role: a worker runs commands and reads no prompt.
fn handoff_member(input: &HandoffInput, id: TaskId) -> Result<SpawnArgs, Failure> {
    let HandoffInput { name, prompt, profile, role, model, host, cwd, .. } = input;
    if profile.is_none() && role.is_none() {
        let problem = format!("`{name}` is not on the team");
        return Err(Failure::usage(problem, "give `profile` to start it, such as claude or codex"));
    }
    let prompt = format!(
        "{prompt}\n\nThis is task {id} of the team. When it is done, complete it with its result: \
         `phalanx task complete {id} --result TEXT`, or the tool TeamTasks with action complete."
    );
    let args = json!({
        "names": [name], "profile": profile, "role": role, "model": model, "host": host,
        "cwd": cwd, "prompt": prompt, "task": id,
    });
    serde_json::from_value(args).map_err(|e| Failure::new(Kind::Internal, e.to_string(), None))
}
