//! The team file's types, team and member, as Claude Code writes them.

pub mod brief;
pub mod check;
pub mod event;
pub mod followup;
pub mod hook;
pub mod host;
pub mod project;
pub mod role;
pub mod settings;
pub mod worktree;

use serde_json::{Value, json};

use crate::id::{LEAD, MemberName, TeamName, agent_id};
use crate::members::mode::Mode;
use crate::time::Timestamp;
use crate::wire::{self, Object};

/// Colours in the order in which members get them. Claude Code was observed to start with blue and
/// green.
pub const COLORS: [&str; 8] =
    ["blue", "green", "yellow", "purple", "orange", "pink", "cyan", "red"];

/// A team as read from its file, without the fields that phalanx does not use.
#[derive(Debug, Clone, PartialEq)]
pub struct Team {
    /// The name in the file, which may differ from the directory's.
    pub name: String,
    pub description: Option<String>,
    pub created_at: Timestamp,
    pub lead_agent_id: String,
    pub lead_session_id: Option<String>,
    pub lead_process: Option<LeadProcess>,
    pub members: Vec<Member>,
    /// Pane ids of hidden members.
    pub hidden_pane_ids: Vec<String>,
}

/// The process that claims to lead the team (`leadProcess`; observed with Claude Code 2.1.329 and
/// 2.1.330).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeadProcess {
    pub pid: i32,
    /// The host and pid namespace in which `pid` is valid.
    pub pid_space: String,
    pub claimed_at: Timestamp,
    /// Start time of the process. Linux: clock ticks since boot, in decimal. macOS: the output of
    /// `LC_ALL=C TZ=UTC ps -o lstart=`.
    pub proc_start: Option<String>,
}

/// A member's entry in the team file. The lead has one as well.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub name: MemberName,
    pub agent_id: String,
    pub agent_type: Option<String>,
    pub model: Option<String>,
    pub prompt: Option<String>,
    pub color: Option<String>,
    pub plan_mode_required: bool,
    pub mode: Option<Mode>,
    /// The only tools that it may use (`allowedTools`); `None` means all.
    pub allowed_tools: Option<Vec<String>>,
    /// Tools that it must not use (`disallowedTools`).
    pub disallowed_tools: Vec<String>,
    pub joined_at: Timestamp,
    /// tmux pane id (`%1`), iTerm2 session id, or empty.
    pub pane_id: String,
    pub cwd: String,
    /// The member's own git worktree, if it has one.
    pub worktree_path: Option<String>,
    /// `tmux`, `in-process`, `iterm2`.
    pub backend_type: Option<String>,
    pub is_active: Option<bool>,
}

impl Team {
    /// Reads the team file. Members whose names are unsafe as file names are skipped (SEC-08).
    pub fn read(file: &Object) -> Team {
        let entries =
            file.get("members").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Team {
            name: wire::text(file, "name").unwrap_or_default(),
            description: wire::text(file, "description"),
            created_at: Timestamp(wire::number(file, "createdAt").unwrap_or_default()),
            lead_agent_id: wire::text(file, "leadAgentId").unwrap_or_default(),
            lead_session_id: wire::text(file, "leadSessionId"),
            lead_process: wire::object(file, "leadProcess").and_then(LeadProcess::read),
            members: entries.iter().filter_map(Value::as_object).filter_map(Member::read).collect(),
            hidden_pane_ids: wire::texts(file, "hiddenPaneIds"),
        }
    }

    /// Returns the object of a new team with only its lead, with keys in the order that Claude Code
    /// writes.
    pub fn found(
        name: &TeamName,
        description: &str,
        agent_type: &str,
        session: &str,
        cwd: &str,
        now: Timestamp,
    ) -> Object {
        let lead = agent_id(&MemberName::lead(), name);
        let entry = json!({
            "agentId": lead, "name": LEAD, "agentType": agent_type, "model": "", "joinedAt": now.0,
            "tmuxPaneId": "", "cwd": cwd, "subscriptions": [],
        });
        let mut file = Object::new();
        wire::put(&mut file, "name", name.as_str());
        wire::put(&mut file, "description", description);
        wire::put(&mut file, "createdAt", now.0);
        wire::put(&mut file, "leadAgentId", lead);
        wire::put(&mut file, "leadSessionId", session);
        wire::put(&mut file, "members", vec![entry]);
        file
    }

    /// Finds a member by name, ignoring case.
    pub fn member(&self, name: &MemberName) -> Option<&Member> {
        self.members.iter().find(|m| m.name.clashes_with(name.as_str()))
    }

    pub fn teammates(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|m| !m.name.is_lead())
    }

    /// Returns the least used colour for the next teammate; ties are resolved in the order of
    /// [`COLORS`].
    pub fn next_color(&self) -> &'static str {
        let used =
            |color: &str| self.members.iter().filter(|m| m.color.as_deref() == Some(color)).count();
        COLORS.into_iter().min_by_key(|c| used(c)).unwrap_or(COLORS[0])
    }
}

impl LeadProcess {
    /// Reads the object; `None` if it does not identify a process.
    fn read(object: &Object) -> Option<LeadProcess> {
        Some(LeadProcess {
            pid: wire::number(object, "pid")
                .and_then(|pid| i32::try_from(pid).ok())
                .filter(|pid| *pid > 0)?,
            pid_space: wire::text(object, "pidSpace")?,
            claimed_at: Timestamp(wire::number(object, "claimedAt")?),
            proc_start: wire::text(object, "procStart"),
        })
    }

    /// Returns the object with keys in the order that Claude Code writes.
    pub fn to_object(&self) -> Object {
        let mut object = Object::new();
        wire::put(&mut object, "pid", self.pid);
        wire::put(&mut object, "pidSpace", self.pid_space.as_str());
        wire::put(&mut object, "claimedAt", self.claimed_at.0);
        wire::put_or_remove(&mut object, "procStart", self.proc_start.as_deref());
        object
    }
}

impl Member {
    /// Reads one entry; `None` if it has no safe name.
    pub fn read(entry: &Object) -> Option<Member> {
        let name = MemberName::existing(&wire::text(entry, "name")?).ok()?;
        Some(Member {
            agent_id: wire::text(entry, "agentId").unwrap_or_default(),
            agent_type: wire::text(entry, "agentType"),
            model: wire::text(entry, "model"),
            prompt: wire::text(entry, "prompt"),
            color: wire::text(entry, "color"),
            plan_mode_required: wire::flag(entry, "planModeRequired").unwrap_or(false),
            // An unknown mode grants no more than the one that asks.
            mode: wire::text(entry, "mode").map(|m| Mode::parse(&m).unwrap_or(Mode::Default)),
            allowed_tools: entry
                .contains_key("allowedTools")
                .then(|| wire::texts(entry, "allowedTools")),
            disallowed_tools: wire::texts(entry, "disallowedTools"),
            joined_at: Timestamp(wire::number(entry, "joinedAt").unwrap_or_default()),
            pane_id: wire::text(entry, "tmuxPaneId").unwrap_or_default(),
            cwd: wire::text(entry, "cwd").unwrap_or_default(),
            worktree_path: wire::text(entry, "worktreePath"),
            backend_type: wire::text(entry, "backendType"),
            is_active: wire::flag(entry, "isActive"),
            name,
        })
    }

    /// Returns the entry of a new teammate with keys in the order that Claude Code writes.
    pub fn to_entry(&self) -> Object {
        let mut entry = Object::new();
        wire::put(&mut entry, "agentId", self.agent_id.as_str());
        wire::put(&mut entry, "name", self.name.as_str());
        wire::put(&mut entry, "agentType", self.agent_type.as_deref().unwrap_or("general-purpose"));
        wire::put(&mut entry, "model", self.model.as_deref().unwrap_or_default());
        wire::put_or_remove(&mut entry, "prompt", self.prompt.as_deref());
        wire::put_or_remove(&mut entry, "color", self.color.as_deref());
        wire::put(&mut entry, "planModeRequired", self.plan_mode_required);
        wire::put(&mut entry, "joinedAt", self.joined_at.0);
        wire::put(&mut entry, "tmuxPaneId", self.pane_id.as_str());
        wire::put(&mut entry, "cwd", self.cwd.as_str());
        wire::put_or_remove(&mut entry, "worktreePath", self.worktree_path.as_deref());
        wire::put(&mut entry, "subscriptions", Vec::<Value>::new());
        wire::put_or_remove(&mut entry, "backendType", self.backend_type.as_deref());
        wire::put_or_remove(&mut entry, "mode", self.mode.map(Mode::as_str));
        wire::put_or_remove(&mut entry, "allowedTools", self.allowed_tools.clone());
        let disallowed = Some(&self.disallowed_tools).filter(|tools| !tools.is_empty());
        wire::put_or_remove(&mut entry, "disallowedTools", disallowed.cloned());
        wire::put_or_remove(&mut entry, "isActive", self.is_active);
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn team() -> Object {
        let name = TeamName::new("demo").expect("name");
        Team::found(&name, "what for", LEAD, "s", "/w", Timestamp(1))
    }

    #[test]
    fn new_team_has_claude_codes_keys_in_order() {
        let file = team();
        let keys: Vec<&str> = file.keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            ["name", "description", "createdAt", "leadAgentId", "leadSessionId", "members"]
        );
        let read = Team::read(&file);
        assert_eq!(read.lead_agent_id, "team-lead@demo");
        assert_eq!(read.teammates().count(), 0);
    }

    #[test]
    fn lead_process_round_trips_and_malformed_ones_are_ignored() {
        let lead = LeadProcess {
            pid: 7,
            pid_space: "host#pid:[1]".to_owned(),
            claimed_at: Timestamp(9),
            proc_start: Some("123".to_owned()),
        };
        let mut file = team();
        file.insert("leadProcess".to_owned(), Value::Object(lead.to_object()));
        assert_eq!(Team::read(&file).lead_process, Some(lead));
        for half in [
            json!({}),
            json!({"pid": "7", "pidSpace": "x", "claimedAt": 1}),
            json!(7),
            json!({"pid": -1, "pidSpace": "x", "claimedAt": 1}),
        ] {
            file.insert("leadProcess".to_owned(), half);
            assert_eq!(Team::read(&file).lead_process, None);
        }
    }

    #[test]
    fn next_colour_is_the_least_used() {
        let mut read = Team::read(&team());
        let mut given = Vec::new();
        for i in 0..9 {
            let color = read.next_color();
            given.push(color);
            let name = MemberName::new(&format!("m{i}")).expect("name");
            let mut member = read.members[0].clone();
            member.name = name;
            member.color = Some(color.to_owned());
            read.members.push(member);
        }
        assert_eq!(given[..8], COLORS);
        assert_eq!(given[8], "blue");
        read.members.remove(2);
        assert_eq!(read.next_color(), "green");
    }

    #[test]
    fn sec_08_entries_with_unsafe_names_are_skipped() {
        let mut file = team();
        let hostile = json!([{"name": "../x"}, {"name": 7}, {"agentId": "no name"}, "text", {"name": "ok", "joinedAt": "soon"}]);
        file.insert("members".to_owned(), hostile);
        let names: Vec<String> =
            Team::read(&file).members.iter().map(|m| m.name.to_string()).collect();
        assert_eq!(names, ["ok"]);
    }
}
