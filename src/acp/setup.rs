//! The start of a session: initialize, load or make it, choose model and mode. The mode comes last,
//! so that nothing changes it after it is confirmed.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::report::{AgentFailure, AgentInfo, SessionReport};
use crate::session::{Session, SessionPhase};
use crate::settings::SettingRequest;
use crate::wire::{InitializeReply, RpcResult, SessionReply, parse_or_default};
use crate::writer::AwaitedReply;

/// The version of the protocol.
const VERSION: u64 = 1;

impl Session {
    pub(crate) fn initialize(&mut self) {
        // Agents use their own files and terminals: the files of gemini fail if they go through the
        // client, and no agent uses its terminals.
        let params = json!({
            "protocolVersion": VERSION,
            "clientInfo": {"name": "phalanx", "version": self.start.version},
            "clientCapabilities": {
                "fs": {"readTextFile": false, "writeTextFile": false},
                "terminal": false,
            },
        });
        self.writer.request(AwaitedReply::Initialize, "initialize", params);
    }

    pub(crate) fn initialized(&mut self, reply: RpcResult<'_>) {
        let reply: InitializeReply = match reply {
            Ok(result) => parse_or_default(result),
            Err(error) => return self.refuse(AgentFailure::from_reply(error)),
        };
        let version = reply.protocol_version.unwrap_or(VERSION);
        if version != VERSION {
            let why = format!("the agent needs version {version} of the protocol, not {VERSION}");
            return self.refuse(AgentFailure::other(&why));
        }
        self.agent = AgentInfo::from(reply);
        self.reports.push(SessionReport::Initialized(self.agent.clone()));
        match self.start.load.clone() {
            Some(session) => self.load(&session),
            None => self.create(),
        }
    }

    fn load(&mut self, session: &str) {
        let method = if self.agent.can_load {
            "session/load"
        } else if self.agent.can_resume {
            "session/resume"
        } else {
            return self.not_loaded("the agent cannot continue sessions".to_owned());
        };
        let mut params = self.session_params();
        params["sessionId"] = json!(session);
        self.writer.request(AwaitedReply::Load, method, params);
        self.open(session);
    }

    fn create(&mut self) {
        let params = self.session_params();
        self.writer.request(AwaitedReply::New, "session/new", params);
    }

    fn session_params(&self) -> Value {
        let servers = self.start.mcp.iter().map(|server| {
            let env = server.env.iter().map(|(name, value)| json!({"name": name, "value": value}));
            json!({
                "name": server.name,
                "command": server.command,
                "args": server.args,
                "env": env.collect::<Vec<_>>(),
            })
        });
        json!({"cwd": self.start.cwd, "mcpServers": servers.collect::<Vec<_>>()})
    }

    /// Takes the id of the session, and its updates that have arrived before.
    fn open(&mut self, session: &str) {
        self.id = Some(session.to_owned());
        for update in self.early.take(session) {
            self.handle_update(&update);
        }
    }

    pub(crate) fn loaded(&mut self, reply: RpcResult<'_>) {
        match reply {
            Ok(result) => {
                self.end_user_message();
                self.is_loaded = true;
                self.settings.replace(parse_or_default(result));
                self.choose_model();
            }
            Err(error) => self.not_loaded(AgentFailure::from_reply(error).said),
        }
    }

    /// Makes a session in place of the one that was to be continued.
    fn not_loaded(&mut self, why: String) {
        self.id = None;
        let session = self.start.load.clone().unwrap_or_default();
        let words = format!("its session {session} cannot be continued: {why}");
        self.refuse(AgentFailure::other(&words));
    }

    pub(crate) fn created(&mut self, reply: RpcResult<'_>) {
        let reply: SessionReply = match reply {
            Ok(result) => parse_or_default(result),
            Err(error) => return self.refuse(AgentFailure::from_reply(error)),
        };
        let Some(session) = reply.session_id.clone() else {
            return self.refuse(AgentFailure::other("the agent's new session has no id"));
        };
        // The reply is older than the updates that were kept: they have their effect after it.
        self.settings.replace(reply);
        self.open(&session);
        self.choose_model();
    }

    fn choose_model(&mut self) {
        self.report_settings();
        match &self.start.model {
            Some(model) => {
                let change = self.settings.change_for_model(model);
                self.send_setting(change, AwaitedReply::StartSetting);
            }
            None => self.choose_modes(),
        }
    }

    fn choose_modes(&mut self) {
        match self.start_modes.pop_front() {
            Some(mode) => match self.settings.change_for_mode(&mode) {
                Ok(change) => self.send_setting(change, AwaitedReply::StartSetting),
                Err(why) => self.refuse(AgentFailure::other(&why)),
            },
            None => self.choose_later_mode(),
        }
    }

    /// Asks for the mode that was set meanwhile. Without one, the session is ready.
    fn choose_later_mode(&mut self) {
        let Some(mode) = self.later_mode.take() else { return self.become_ready() };
        match self.settings.change_for_mode(&mode) {
            Ok(change) => self.send_setting(change, AwaitedReply::LaterMode),
            Err(why) => {
                self.reports.push(SessionReport::Notice(why));
                self.become_ready();
            }
        }
    }

    /// Sends a change; `sent` says what follows the reply.
    pub(crate) fn send_setting(
        &mut self,
        change: SettingRequest,
        sent: fn(SettingRequest) -> AwaitedReply,
    ) {
        let Some(session) = &self.id else { return };
        let (method, params) = (change.method(), change.params(session));
        self.writer.request(sent(change), method, params);
    }

    /// Takes the reply to the model or to a mode of the start.
    pub(crate) fn start_setting_chosen(&mut self, change: SettingRequest, reply: RpcResult<'_>) {
        match self.confirm_setting(change, reply) {
            Ok(()) => self.choose_modes(),
            Err(failure) => self.refuse(failure),
        }
    }

    /// Takes the reply to a mode that was set before the session was ready. A refusal leaves the
    /// mode of the start.
    pub(crate) fn later_mode_chosen(&mut self, change: SettingRequest, reply: RpcResult<'_>) {
        self.mode_changed(change, reply);
        self.choose_later_mode();
    }

    /// Takes the reply to [`Session::set_mode`].
    pub(crate) fn mode_changed(&mut self, change: SettingRequest, reply: RpcResult<'_>) {
        let before = self.reports.len();
        if let Err(failure) = self.confirm_setting(change, reply) {
            return self.reports.push(SessionReport::Notice(failure.said));
        }
        // The agent may have reported the mode in an update already.
        let is_mode = |report: &SessionReport| matches!(report, SessionReport::Mode { .. });
        if !self.reports[before..].iter().any(is_mode) {
            self.reports.extend(self.settings.mode_report());
        }
    }

    fn confirm_setting(
        &mut self,
        change: SettingRequest,
        reply: RpcResult<'_>,
    ) -> Result<(), AgentFailure> {
        match reply {
            Ok(result) => {
                let confirmed = self.settings.confirm(change, parse_or_default(result));
                confirmed.map_err(|why| AgentFailure::other(&why))?;
                self.report_settings();
                Ok(())
            }
            Err(error) => Err(self.setting_failure(&change, error)),
        }
    }

    fn setting_failure(&self, change: &SettingRequest, error: &RawValue) -> AgentFailure {
        let AgentFailure { kind, said } = AgentFailure::from_reply(error);
        let offered = self.settings.offered(change);
        let offered = offered.map(|names| format!("; it offers {names}")).unwrap_or_default();
        let text = format!("the agent refuses the {}: {said}{offered}", change.name());
        AgentFailure { kind, ..AgentFailure::other(&text) }
    }

    pub(crate) fn report_settings(&mut self) {
        self.reports.extend(self.settings.changes());
    }

    fn become_ready(&mut self) {
        let Some(session) = self.id.clone() else { return };
        self.phase = SessionPhase::Ready;
        self.end_user_message();
        self.calls.clear();
        let (is_loaded, found) = (self.is_loaded, self.user.take_found());
        self.reports.push(SessionReport::Ready { session, is_loaded, found });
    }
}

impl From<InitializeReply> for AgentInfo {
    fn from(reply: InitializeReply) -> Self {
        let capabilities = reply.agent_capabilities;
        let logins = reply.auth_methods.into_iter();
        let logins = logins.map(|login| if login.name.is_empty() { login.id } else { login.name });
        Self {
            name: reply.agent_info.name,
            version: reply.agent_info.version,
            can_load: capabilities.load_session,
            can_resume: capabilities.session_capabilities.resume,
            can_list: capabilities.session_capabilities.list,
            can_steer: reply.meta.steering.supported || capabilities.meta.steering.supported,
            logins: logins.collect(),
        }
    }
}
