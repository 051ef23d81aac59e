//! Resources: what a client can read without a tool, and watch.

use std::time::Duration;

use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};

use super::call::ToolCall;
use crate::decisions::requests::{self, RequestsArgs};
use crate::fail::{Exit, Failure};
use crate::views::attach::{self, PeekArgs};
use crate::views::status::{self, StatusArgs, without_time};
use model::mail::envelope::Envelope;
use ops::authority::Action;
use ops::mail::inbox::read_news;
use ops::{self, Kind};
use sys::clock::Deadline;

/// Interval at which a watch looks whether it has ended, and reads a screen again.
const SLICE: Duration = Duration::from_secs(1);
/// Interval of reads without a change: the state of a member may change with time alone.
const REREAD: Duration = Duration::from_secs(5);
/// Lines of a screen.
const LINES: usize = 50;

const STATUS: &str = "team://status";
const TASKS: &str = "team://tasks";
const INBOX: &str = "team://inbox";
const REQUESTS: &str = "team://requests";
const MEMBERS: &str = "team://members/";
const SCREEN: &str = "/screen";

/// A resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ResourceName {
    Status,
    Tasks,
    Inbox,
    Requests,
    Screen(String),
}

impl ResourceName {
    pub(super) fn parse(uri: &str) -> Option<ResourceName> {
        Some(match uri {
            STATUS => ResourceName::Status,
            TASKS => ResourceName::Tasks,
            INBOX => ResourceName::Inbox,
            REQUESTS => ResourceName::Requests,
            _ => {
                let name = uri.strip_prefix(MEMBERS)?.strip_suffix(SCREEN)?;
                (!name.is_empty()).then(|| ResourceName::Screen(name.to_owned()))?
            }
        })
    }
}

pub(super) fn list() -> Vec<Resource> {
    let json = |uri: &str, name: &str, about: &str| {
        Resource::new(uri, name).with_description(about).with_mime_type("application/json")
    };
    vec![
        json(STATUS, "status", "The lead, the members and their states"),
        json(TASKS, "tasks", "The tasks that have not ended, and what they wait for"),
        json(INBOX, "inbox", "Your unread messages; reading them here does not mark them"),
        json(REQUESTS, "requests", "Requests that wait for an answer"),
    ]
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    let uri = format!("{MEMBERS}{{name}}{SCREEN}");
    vec![
        ResourceTemplate::new(uri, "screen")
            .with_description("The last lines of the screen of a member")
            .with_mime_type("text/plain"),
    ]
}

/// Reads a resource: a JSON document, or a text.
pub(super) fn read(call: &ToolCall, name: &ResourceName) -> Result<Value, Failure> {
    let page = StatusArgs::default();
    match name {
        ResourceName::Status => Ok(call.run(|setup| status::status(setup, &page))?.document),
        ResourceName::Tasks => {
            let status = call.run(|setup| status::status(setup, &page))?.document;
            Ok(json!({ "counts": status["tasks"], "tasks": status["task_list"] }))
        }
        ResourceName::Inbox => call.with(|setup| {
            let speaker = setup.ctx.speaker.as_str().to_owned();
            let (team, owner) = setup.member(&speaker, Action::ReadMail)?;
            let messages = read_news(&team, &owner)?;
            Ok(json!({ "messages": messages.iter().map(Envelope::to_entry).collect::<Vec<_>>() }))
        }),
        ResourceName::Requests => {
            let args = RequestsArgs { all: false, verb: None };
            let requests = call.run(|setup| requests::requests(setup, &args))?.document;
            Ok(json!({ "requests": requests }))
        }
        ResourceName::Screen(name) => {
            let args = PeekArgs { names: vec![name.clone()], lines: LINES };
            let screen = call.run(|setup| attach::peek(setup, &args))?.document;
            let lines = screen["lines"].as_array().into_iter().flatten();
            Ok(lines.filter_map(Value::as_str).collect::<Vec<_>>().join("\n").into())
        }
    }
}

pub(super) fn contents(uri: &str, read: Value) -> ResourceContents {
    match read {
        Value::String(text) => ResourceContents::text(text, uri),
        document => {
            ResourceContents::text(document.to_string(), uri).with_mime_type("application/json")
        }
    }
}

/// Calls `watching` once changes are noticed, then `notify` whenever the resource has changed,
/// until the call is cancelled or a read is refused. A refusal is journaled, which changes the
/// team: a further read would follow at once.
pub(super) fn watch(
    call: &ToolCall,
    name: &ResourceName,
    uri: &str,
    watching: impl FnOnce(),
    notify: &dyn Fn(&str),
) {
    let changes = call.with(|setup| {
        let team = setup.team(Action::Look)?;
        Ok(team.changes().map_err(ops::OpsError::from)?)
    });
    // Without a team there is nothing to watch; the client learns that from a read.
    let Ok(changes) = changes else { return };
    let Ok(mut before) = snapshot(call, name) else { return };
    watching();
    let mut reread = Deadline::after(REREAD);
    while !call.cancel.is_cancelled() {
        let changed = changes.wait(SLICE);
        // A screen changes without a file.
        let is_screen = matches!(name, ResourceName::Screen(_));
        if changed.is_empty() && !is_screen && !reread.expired() {
            continue;
        }
        reread = Deadline::after(REREAD);
        let Ok(now) = snapshot(call, name) else { return notify(uri) };
        if now != before {
            notify(uri);
            before = now;
        }
    }
}

/// Reads a resource without the fields that only grow with time. `None` if it cannot be read, as
/// when the team is deleted.
///
/// # Errors
/// The read was refused.
fn snapshot(call: &ToolCall, name: &ResourceName) -> Result<Option<Value>, Failure> {
    let mut read = match read(call, name) {
        Ok(read) => read,
        Err(failure) if failure.exit() == Exit::of(Kind::Refused) => return Err(failure),
        Err(_) => return Ok(None),
    };
    match name {
        ResourceName::Status => without_time(&mut read),
        ResourceName::Tasks => {
            let mut status = json!({ "task_list": read["tasks"].take() });
            without_time(&mut status);
            read["tasks"] = status["task_list"].take();
        }
        ResourceName::Requests => {
            for request in read["requests"].as_array_mut().into_iter().flatten() {
                request["age_ms"].take();
                request["left_ms"].take();
            }
        }
        ResourceName::Inbox | ResourceName::Screen(_) => {}
    }
    Ok(Some(read))
}
