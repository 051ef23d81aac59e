//! The work of the members as tool calls of the session. Each begins when a member begins to work,
//! and collects the member's events of the journal until it rests.

use std::collections::BTreeMap;

use acp::{AgentToolCall, ToolContent, ToolKind, ToolStatus};
use model::id::MemberName;
use model::team::event::{Event, EventKind};
use model::text;
use serde_json::Value;

/// Maximum length of a title, in characters.
const TITLE: usize = 120;
/// Lines of a tool call that are kept; the first ones are dropped.
const LINES: usize = 50;

/// The present activity of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MemberWork {
    pub(super) name: MemberName,
    pub(super) is_busy: bool,
    /// Its task.
    pub(super) about: Option<String>,
}

/// The tool calls of members that work.
#[derive(Debug, Default)]
pub(super) struct MemberCalls {
    open: BTreeMap<MemberName, OpenCall>,
    /// The number of tool calls so far.
    count: u64,
}

#[derive(Debug)]
struct OpenCall {
    id: String,
    about: Option<String>,
    lines: Vec<String>,
    has_failed: bool,
}

impl MemberCalls {
    /// Begins and ends tool calls by what the members do now. A member that is not among them has
    /// left.
    pub(super) fn observe(&mut self, members: &[MemberWork]) -> Vec<AgentToolCall> {
        let busy = || members.iter().filter(|member| member.is_busy);
        let rests = |name: &MemberName| busy().all(|member| member.name != *name);
        let ended: Vec<MemberName> = self.open.keys().filter(|name| rests(name)).cloned().collect();
        let mut changed: Vec<AgentToolCall> =
            ended.iter().filter_map(|name| self.end(name)).collect();
        for MemberWork { name, about, .. } in busy() {
            let is_new = !self.open.contains_key(name);
            let call = Self::open_call(&mut self.open, &mut self.count, name);
            let is_other = about.is_some() && call.about != *about;
            if is_other {
                call.about.clone_from(about);
            }
            if is_new || is_other {
                changed.push(call.shown(name, ToolStatus::InProgress));
            }
        }
        changed
    }

    /// Adds an event, in words. One of a member that does not work is a tool call of its own.
    pub(super) fn note(&mut self, event: &Event, words: &str) -> Option<AgentToolCall> {
        let name = event.member.clone()?;
        let has_failed = matches!(
            event.event,
            EventKind::MemberExited | EventKind::MemberStartFailed | EventKind::TaskFailed
        );
        let works = self.open.contains_key(&name);
        let call = Self::open_call(&mut self.open, &mut self.count, &name);
        call.has_failed |= has_failed;
        if !works {
            call.about = Some(words.to_owned());
            return self.end(&name);
        }
        call.lines.push(words.to_owned());
        let over = call.lines.len().saturating_sub(LINES);
        call.lines.drain(..over);
        Some(call.shown(&name, ToolStatus::InProgress))
    }

    fn open_call<'c>(
        open: &'c mut BTreeMap<MemberName, OpenCall>,
        count: &mut u64,
        name: &MemberName,
    ) -> &'c mut OpenCall {
        open.entry(name.clone()).or_insert_with(|| {
            *count += 1;
            let id = format!("member-{name}-{count}");
            OpenCall { id, about: None, lines: Vec::new(), has_failed: false }
        })
    }

    fn end(&mut self, name: &MemberName) -> Option<AgentToolCall> {
        let call = self.open.remove(name)?;
        let status = if call.has_failed { ToolStatus::Failed } else { ToolStatus::Completed };
        Some(call.shown(name, status))
    }
}

impl OpenCall {
    fn shown(&self, name: &MemberName, status: ToolStatus) -> AgentToolCall {
        let about = self.about.as_deref().unwrap_or("works");
        let lines = self.lines.join("\n");
        AgentToolCall {
            id: self.id.clone(),
            title: text::short(&format!("{name}: {about}"), TITLE),
            kind: ToolKind::Other,
            status,
            input: Value::Null,
            content: Some(lines)
                .filter(|lines| !lines.is_empty())
                .map(ToolContent::Text)
                .into_iter()
                .collect(),
            locations: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::TeamName;
    use model::time::Timestamp;
    use model::wire::Object;

    fn ann(is_busy: bool, about: Option<&str>) -> MemberWork {
        let name = MemberName::existing("ann").expect("a name");
        MemberWork { name, is_busy, about: about.map(str::to_owned) }
    }

    fn event(kind: EventKind) -> Event {
        Event {
            id: "e".to_owned(),
            cause: None,
            at: Timestamp(1),
            team: TeamName::new("demo").expect("a name"),
            event: kind,
            member: Some(MemberName::existing("ann").expect("a name")),
            task: None,
            detail: Object::default(),
        }
    }

    fn shown(calls: &[AgentToolCall]) -> Vec<(&str, &str, ToolStatus)> {
        calls.iter().map(|one| (one.id.as_str(), one.title.as_str(), one.status)).collect()
    }

    #[test]
    fn turn_of_a_member_is_one_tool_call() {
        let mut calls = MemberCalls::default();
        let begun = calls.observe(&[ann(true, None)]);
        assert_eq!(shown(&begun), [("member-ann-1", "ann: works", ToolStatus::InProgress)]);
        assert!(calls.observe(&[ann(true, None)]).is_empty(), "nothing has changed");
        let task = calls.observe(&[ann(true, Some("Add tests"))]);
        assert_eq!(shown(&task), [("member-ann-1", "ann: Add tests", ToolStatus::InProgress)]);
        let noted = calls.note(&event(EventKind::TaskCompleted), "completed #1 Add tests");
        let noted = noted.expect("a call");
        assert_eq!(noted.content, [ToolContent::Text("completed #1 Add tests".to_owned())]);
        let rests = calls.observe(&[ann(false, None)]);
        assert_eq!(shown(&rests), [("member-ann-1", "ann: Add tests", ToolStatus::Completed)]);
        assert_eq!(rests[0].content, noted.content);
    }

    #[test]
    fn event_of_a_member_at_rest_is_a_tool_call_of_its_own() {
        let mut calls = MemberCalls::default();
        let runs = calls.note(&event(EventKind::MemberReady), "runs").expect("a call");
        assert_eq!(shown(&[runs]), [("member-ann-1", "ann: runs", ToolStatus::Completed)]);
        let exited = calls.note(&event(EventKind::MemberExited), "exited with 3").expect("a call");
        assert_eq!(shown(&[exited]), [("member-ann-2", "ann: exited with 3", ToolStatus::Failed)]);
    }

    #[test]
    fn member_that_exits_in_its_turn_has_failed() {
        let mut calls = MemberCalls::default();
        calls.observe(&[ann(true, None)]);
        calls.note(&event(EventKind::MemberExited), "exited with 3");
        let gone = calls.observe(&[]);
        assert_eq!(shown(&gone), [("member-ann-1", "ann: works", ToolStatus::Failed)]);
    }

    #[test]
    fn tool_call_keeps_its_last_lines() {
        let mut calls = MemberCalls::default();
        calls.observe(&[ann(true, None)]);
        for nth in 0..60 {
            calls.note(&event(EventKind::TaskProgress), &format!("step {nth}"));
        }
        let last = calls.observe(&[ann(false, None)]);
        let ToolContent::Text(text) = &last[0].content[0] else { panic!("a text") };
        assert_eq!(text.lines().next(), Some("step 10"));
        assert_eq!(text.lines().count(), LINES);
    }
}
