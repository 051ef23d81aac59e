//! What phalanx keeps of each run of a member in `phalanx/members/<name>.json` (protocol.md, section 8): the wish, the
//! placement, the start, the readiness and the end, each written by whoever knows it.

use serde::{Deserialize, Serialize};

use super::followup::Reminded;
use super::id::{Incarnation, MemberName, TaskId, TeamName, agent_id};
use super::lifecycle::MemberState;
use super::mode::Mode;
use super::placement::{BackendKind, Placement, ProcessId};
use super::role::Tools;
use super::team::Member;
use super::time::{self, Timestamp};

/// How a member was asked for: enough to start it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wish {
    pub(crate) profile: String,
    /// What the profile said at the start (MSG-16). Older records do not say; ask [`MemberRecord::reads_mail`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reads_mail: Option<bool>,
    /// The program is a member by itself: nothing of ours reads its mailbox for it or says what it does. Older records do
    /// not say; ask [`MemberRecord::is_native`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) native: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<Mode>,
    #[serde(default)]
    pub(crate) plan: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prompt: Option<String>,
    /// The one task that the run is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<TaskId>,
    /// Those of its role and its team among them.
    #[serde(default, skip_serializing_if = "Tools::is_empty")]
    pub(crate) tools: Tools,
    /// The program and its arguments.
    pub(crate) argv: Vec<String>,
    pub(crate) cwd: String,
    pub(crate) color: String,
    /// What was set for it alone. May hold secrets: the file is readable by its owner only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) env: Vec<(String, String)>,
}

/// Written by the launcher once the program runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StartRecord {
    pub(crate) launcher: ProcessId,
    pub(crate) program: ProcessId,
    /// Name of the program's terminal, e.g. `/dev/pts/3`.
    pub(crate) tty: Option<String>,
    /// Where the launcher listens for those who want to see and use a terminal that it holds itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) socket: Option<String>,
    /// What `getcwd` said in the launcher (EN-06).
    pub(crate) cwd: String,
    pub(crate) at: Timestamp,
}

/// Written by the launcher when the program has ended, or could not be started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ExitRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<i32>,
    /// Why the program never ran: its file, its directory, the kernel's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    /// That was because its terminal could not be made: in another place it might run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) no_terminal: bool,
    pub(crate) at: Timestamp,
}

impl ExitRecord {
    /// `exit code 7`, `signal 9`, or why it never ran.
    pub(crate) fn describe(&self) -> String {
        match (&self.problem, self.code, self.signal) {
            (Some(problem), _, _) => problem.clone(),
            (None, Some(code), _) => format!("exit code {code}"),
            (None, None, Some(signal)) => format!("signal {signal}"),
            (None, None, None) => "an unknown exit status".to_owned(),
        }
    }
}

/// The reason of a run whose pane was closed.
const CLOSED: &str = "pane closed from outside";
/// SIGHUP.
const HANGUP: i32 = 1;

/// Describes the end of a program: `exited with code 7 after 50 ms`.
pub(crate) fn ending(code: Option<i32>, signal: Option<i32>, ran_ms: u64) -> String {
    let how = match (code, signal) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    };
    let span = if ran_ms < 1000 { format!("{ran_ms} ms") } else { time::human(ran_ms) };
    format!("{how} after {span}")
}

/// One run of a member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct MemberRecord {
    /// Form of this file; a newer one is read and not written.
    pub(crate) format: u32,
    pub(crate) name: MemberName,
    pub(crate) incarnation: Incarnation,
    /// Random; its processes carry it as `PHALANX_TOKEN`. A process that has it acts as the member.
    pub(crate) token: String,
    /// Random; marks its pane or session, where others can read it (`@phalanx_token`). Empty in records of earlier
    /// versions, which marked it with `token`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) nonce: String,
    pub(crate) state: MemberState,
    /// Why it is in this state, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    pub(crate) state_since: Timestamp,
    pub(crate) backend: BackendKind,
    pub(crate) wish: Wish,
    /// Who starts it. Older records do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) spawner: Option<ProcessId>,
    pub(crate) asked_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) placement: Option<Placement>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<StartRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ready_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exit: Option<ExitRecord>,
    /// What it has owed an answer to for too long, and what its screen says meanwhile; none: it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unresponsive: Option<String>,
    /// How often it was reminded of its task since it last gave a sign of life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reminded: Option<Reminded>,
    /// The session of its program's own that it is in, as far as that is known: chosen for it, gone on with, or told by its
    /// hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// The boot of this machine that its processes belong to. Older records, and systems that have none, do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) boot_id: Option<String>,
}

/// The form that this phalanx writes.
pub(crate) const FORMAT: u32 = 1;

impl MemberRecord {
    /// The word that marks its pane or session.
    pub(crate) fn mark(&self) -> &str {
        if self.nonce.is_empty() { &self.token } else { &self.nonce }
    }

    /// The process that leads all that the member runs, as far as it is known.
    pub(crate) fn launcher(&self) -> Option<ProcessId> {
        self.start.as_ref().map(|s| s.launcher).or_else(|| self.placement.as_ref()?.launcher())
    }

    /// Describes the end of its program; none while it runs.
    pub(crate) fn ending(&self) -> Option<String> {
        let exit = self.exit.as_ref()?;
        if self.was_hung_up() {
            return Some(CLOSED.to_owned());
        }
        let ran_ms = || exit.at.since(self.start.as_ref().map_or(exit.at, |start| start.at));
        Some(exit.problem.clone().unwrap_or_else(|| ending(exit.code, exit.signal, ran_ms())))
    }

    /// The reason, for the journal, of a run that ended without a request.
    pub(crate) fn end_reason(&self) -> String {
        match &self.exit {
            Some(_) if self.was_hung_up() => CLOSED.to_owned(),
            Some(exit) => exit.describe(),
            None => "its process is gone".to_owned(),
        }
    }

    /// Returns true if its pane was closed: the terminal hangs up on the program, which ends by that signal
    /// or with a shell's exit code for it.
    fn was_hung_up(&self) -> bool {
        let in_pane = matches!(self.placement, Some(Placement::Tmux(_) | Placement::Iterm2(_)));
        let hung_up =
            |exit: &ExitRecord| exit.signal == Some(HANGUP) || exit.code == Some(128 + HANGUP);
        in_pane && self.exit.as_ref().is_some_and(hung_up)
    }

    /// The record as it is to be taken in this boot: start times count from a boot on, so that after another one a process
    /// could have the pid and the start time that a member's had.
    pub(crate) fn seen_in(self, boot: &str) -> MemberRecord {
        if boot.is_empty() || self.boot_id.as_deref().is_none_or(|own| own == boot) {
            return self;
        }
        let start = self.start.map(|start| StartRecord {
            launcher: start.launcher.of_another_boot(),
            program: start.program.of_another_boot(),
            ..start
        });
        let spawner = self.spawner.map(ProcessId::of_another_boot);
        let placement = self.placement.map(Placement::of_another_boot);
        MemberRecord { start, spawner, placement, ..self }
    }

    /// Whether the member can be written to, and asked to end: its program reads the mailbox, or its wrapper does.
    pub(crate) fn reads_mail(&self) -> bool {
        // Before profiles were data there were two, and one of them read.
        self.wish.reads_mail.unwrap_or(self.wish.profile != "shell")
    }

    /// Whether its program speaks for itself in the team's files.
    pub(crate) fn is_native(&self) -> bool {
        self.wish.native.unwrap_or(self.wish.profile == "claude")
    }

    /// Its entry in the team file, as far as the record tells: not which pane it has, nor whether it is at work.
    pub(crate) fn to_member(&self, team: &TeamName) -> Member {
        let wish = &self.wish;
        let (allowed_tools, disallowed_tools) = wish.tools.words();
        Member {
            name: self.name.clone(),
            agent_id: agent_id(&self.name, team),
            agent_type: wish.role.clone(),
            model: wish.model.clone(),
            prompt: wish.prompt.clone(),
            color: Some(wish.color.clone()),
            plan_mode_required: wish.plan,
            mode: wish.mode,
            allowed_tools,
            disallowed_tools,
            joined_at: self.asked_at,
            pane_id: String::new(),
            cwd: wish.cwd.clone(),
            worktree_path: None,
            backend_type: Some(self.backend.wire().to_owned()),
            is_active: None,
        }
    }

    /// Whether this run belongs to `incarnation`.
    pub(crate) fn is(&self, incarnation: &Incarnation) -> bool {
        self.incarnation == *incarnation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::placement::TmuxPane;

    #[test]
    fn a_record_survives_the_round_trip() {
        let process = ProcessId { pid: 7, start: 99 };
        let record = MemberRecord {
            format: FORMAT,
            name: MemberName::new("alice").expect("name"),
            incarnation: Incarnation::parse("00000000-0000-4000-8000-000000000000").expect("uuid"),
            token: "t".to_owned(),
            nonce: String::new(),
            state: MemberState::Idle,
            reason: None,
            state_since: Timestamp(2),
            backend: BackendKind::Tmux,
            wish: Wish {
                profile: "worker".to_owned(),
                reads_mail: Some(true),
                native: Some(false),
                role: None,
                model: None,
                mode: Some(Mode::Plan),
                plan: false,
                prompt: None,
                task: None,
                tools: Tools::default(),
                argv: vec!["x".to_owned()],
                cwd: "/".to_owned(),
                color: "blue".to_owned(),
                env: vec![("A".to_owned(), "b".to_owned())],
            },
            spawner: Some(process),
            asked_at: Timestamp(1),
            placement: Some(Placement::Tmux(TmuxPane {
                socket: "/s".to_owned(),
                server: process,
                session_id: "$0".to_owned(),
                session_name: "phalanx-x".to_owned(),
                window_id: "@0".to_owned(),
                window_name: "x".to_owned(),
                pane_id: "%0".to_owned(),
                pane: process,
            })),
            start: Some(StartRecord {
                socket: None,
                launcher: process,
                program: process,
                tty: None,
                cwd: "/".to_owned(),
                at: Timestamp(2),
            }),
            ready_at: None,
            exit: Some(ExitRecord {
                code: Some(3),
                signal: None,
                problem: None,
                no_terminal: false,
                at: Timestamp(4),
            }),
            unresponsive: None,
            reminded: None,
            session: Some("s-1".to_owned()),
            boot_id: None,
        };
        let text = serde_json::to_string(&record).expect("json");
        let back: MemberRecord = serde_json::from_str(&text).expect("json");
        assert_eq!(back, record);
        assert!(back.reads_mail());
    }

    #[test]
    fn an_ending_names_code_or_signal_and_the_time_it_ran() {
        assert_eq!(ending(Some(7), None, 50), "exited with code 7 after 50 ms");
        assert_eq!(ending(Some(0), None, 12_300), "exited with code 0 after 12s");
        assert_eq!(ending(None, Some(9), 1_500), "was ended by signal 9 after 1.5s");
    }

    #[test]
    fn a_hangup_in_a_pane_is_a_pane_that_was_closed() {
        let record = |exit: serde_json::Value, backend: &str| -> MemberRecord {
            let process = serde_json::json!({"pid": 7, "start": 9});
            let placement = serde_json::json!({"tmux": {"socket": "/s", "server": process, "session_id": "$0",
                "session_name": "s", "window_id": "@0", "window_name": "w", "pane_id": "%0", "pane": process}});
            let mut record = serde_json::json!({
                "format": 1, "name": "a", "incarnation": "00000000-0000-4000-8000-000000000000", "token": "t",
                "state": "idle", "state_since": 1, "backend": backend, "asked_at": 1, "exit": exit,
                "wish": {"profile": "worker", "argv": ["x"], "cwd": "/", "color": "blue"},
            });
            if backend == "tmux" {
                record["placement"] = placement;
            }
            serde_json::from_value(record).expect("a record")
        };
        let hung_up = serde_json::json!({"signal": 1, "at": 5});
        let by_code = serde_json::json!({"code": 129, "at": 5});
        assert_eq!(record(hung_up.clone(), "tmux").end_reason(), "pane closed from outside");
        assert_eq!(record(by_code, "tmux").end_reason(), "pane closed from outside");
        assert_eq!(record(hung_up, "pty").end_reason(), "signal 1");
        assert_eq!(record(serde_json::json!(null), "tmux").end_reason(), "its process is gone");
    }

    #[test]
    fn msg_16_an_older_record_reads_mail_unless_it_is_a_shell() {
        for (profile, said, reads) in [
            ("worker", None, true),
            ("shell", None, false),
            ("shell", Some(true), true),
            ("x", Some(false), false),
        ] {
            let mut wish =
                serde_json::json!({"profile": profile, "argv": ["x"], "cwd": "/", "color": "blue"});
            if let Some(said) = said {
                wish["reads_mail"] = said.into();
            }
            let record = serde_json::json!({
                "format": 1, "name": "a", "incarnation": "00000000-0000-4000-8000-000000000000", "token": "t",
                "state": "idle", "state_since": 1, "backend": "pty", "wish": wish,
                "asked_at": 1,
            });
            let record: MemberRecord = serde_json::from_value(record).expect("a record");
            assert_eq!(record.reads_mail(), reads, "{profile} {said:?}");
        }
    }
}
