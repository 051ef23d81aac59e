//! The notifications and requests of an agent. All other messages are replies.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::failure::REQUEST_CANCELLED;
use crate::questions::{cancelled, plan_of};
use crate::report::{AgentCommand, AgentToolCall, PlanEntry, SessionReport};
use crate::session::{Session, SessionPhase};
use crate::wire::{
    AuthNotification, CommandsUpdate, ContentChunk, InfoUpdate, ModeUpdate, PermissionParams,
    PlanUpdate, RequestCancellation, SessionNotification, SessionReply, ToolPart, UpdateKind,
    UsageUpdate, parse_or_default, variant,
};

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// gemini says its mode in a text of its own.
const MODE_TEXT: &str = "[MODE_UPDATE] ";

impl Session {
    pub(crate) fn handle_notification(&mut self, method: &str, params: Option<&RawValue>) {
        match method {
            "session/update" => match parse::<SessionNotification<'_>>(params) {
                Some(SessionNotification { session_id, update }) => {
                    self.route_update(&session_id, update);
                }
                None => self.fault("an update is malformed", text_of(params)),
            },
            "$/cancel_request" => {
                let request = parse::<RequestCancellation>(params);
                let id = request.and_then(|request| self.questions.find(&request.request_id));
                if let Some(id) = id
                    && let Some(request) = self.questions.remove(id)
                {
                    self.writer.reply_error(&request, REQUEST_CANCELLED, "Request cancelled");
                    self.reports.push(SessionReport::Withdrawn { id });
                }
            }
            "_auth/status_update" => {
                let status = parse::<AuthNotification>(params).map(|update| update.auth_status);
                if let Some(status) = status.filter(|status| status.kind == "none") {
                    let is_named = !status.label.is_empty();
                    let label = if is_named { &status.label } else { "Not logged in" };
                    self.reports.push(SessionReport::Notice(label.to_owned()));
                }
            }
            // Vendors send notifications of their own.
            _ => {}
        }
    }

    pub(crate) fn handle_request(
        &mut self,
        method: &str,
        id: &RawValue,
        params: Option<&RawValue>,
    ) {
        let id: Value = parse_or_default(Some(id));
        if method == "session/request_permission" {
            self.ask(id, params);
        } else {
            self.writer.reply_error(&id, METHOD_NOT_FOUND, "Method not found");
        }
    }

    fn ask(&mut self, id: Value, params: Option<&RawValue>) {
        let request = parse::<PermissionParams>(params);
        let is_ours = |request: &PermissionParams| Some(&request.session_id) == self.id.as_ref();
        let Some(request) = request.filter(is_ours) else {
            self.fault("a permission request is malformed", text_of(params));
            return self.writer.reply_error(&id, INVALID_PARAMS, "Invalid params");
        };
        self.begin_other();
        let tool = self.merge_call(request.tool_call, text_of(params).len()).clone();
        // Nothing runs for a question of a cancelled turn, or of a conversation that is loaded.
        let is_loading = self.phase == SessionPhase::Starting;
        let is_over = is_loading || self.turn.as_ref().is_some_and(|turn| turn.is_cancelled);
        if request.options.is_empty() || self.questions.is_full() {
            self.fault("a permission request cannot be answered", text_of(params));
            self.writer.reply(&id, cancelled());
        } else if is_over {
            self.writer.reply(&id, cancelled());
        } else {
            let plan = plan_of(&tool, &self.calls);
            let question = self.questions.add(id, tool, plan, request.options);
            self.reports.push(SessionReport::Asked(question.clone()));
        }
    }

    fn route_update(&mut self, session: &str, update: &RawValue) {
        match &self.id {
            Some(id) if id == session => self.handle_update(update),
            // The agent has not answered with the id yet.
            None if self.phase == SessionPhase::Starting => {
                if !self.early.add(session, update) {
                    self.fault("an early update was dropped", update.get());
                }
            }
            _ => self.fault("an update is for another session", session),
        }
    }

    pub(crate) fn handle_update(&mut self, update: &RawValue) {
        let Ok(UpdateKind { session_update: kind }) = serde_json::from_str(update.get()) else {
            return self.fault("an update has no kind", update.get());
        };
        match &*kind {
            "user_message_chunk" => self.handle_user_chunk(parse_or_default(Some(update))),
            "agent_message_chunk" => self.handle_text_chunk(parse_or_default(Some(update))),
            "agent_thought_chunk" => {
                self.begin_other();
                let chunk: ContentChunk = parse_or_default(Some(update));
                let text = chunk.content.into_text().filter(|text| !text.is_empty());
                self.reports.extend(text.map(SessionReport::Thought));
            }
            "tool_call" | "tool_call_update" => match parse::<ToolPart>(Some(update)) {
                Some(part) => {
                    self.begin_other();
                    self.merge_call(part, update.get().len());
                }
                None => self.fault("a tool call has no id", update.get()),
            },
            "plan" => {
                self.begin_other();
                self.report_plan(parse_or_default(Some(update)));
            }
            "available_commands_update" => self.report_commands(parse_or_default(Some(update))),
            "current_mode_update" => {
                let update: ModeUpdate = parse_or_default(Some(update));
                self.change_mode(update.current_mode_id);
            }
            "config_option_update" => {
                let update: SessionReply = parse_or_default(Some(update));
                self.settings.set_options(update.config_options);
                self.report_settings();
            }
            "session_info_update" => self.handle_info(parse_or_default(Some(update))),
            "usage_update" => {
                let update: UsageUpdate = parse_or_default(Some(update));
                if let Some(cost) = &update.cost {
                    self.usage.set_cost(cost);
                }
                let UsageUpdate { used, size, .. } = update;
                self.reports.push(SessionReport::Context { used, size });
            }
            // Later versions have more.
            _ => {}
        }
    }

    /// Notes an update that is part of the conversation, and so of the turn.
    fn begin_content(&mut self) {
        self.end_user_message();
        self.mark_received();
    }

    /// Notes an update that interrupts the text of the answer, such as a tool call.
    fn begin_other(&mut self) {
        self.begin_content();
        if let Some(turn) = &mut self.turn {
            turn.end_text();
        }
    }

    fn handle_user_chunk(&mut self, chunk: ContentChunk) {
        self.mark_received();
        let text = chunk.content.into_text().unwrap_or_default();
        self.reports.extend(self.user.add(chunk.message_id, &text).map(SessionReport::User));
    }

    fn handle_text_chunk(&mut self, chunk: ContentChunk) {
        let ContentChunk { content, message_id: message, meta } = chunk;
        let text = content.into_text().unwrap_or_default();
        if let Some(mode) = text.strip_prefix(MODE_TEXT).map(str::trim)
            && self.settings.has_mode(mode)
        {
            return self.change_mode(mode.to_owned());
        }
        self.begin_content();
        if let Some(usage) = meta.usage {
            self.usage.add_piece(usage);
        }
        if text.is_empty() {
            return;
        }
        if let Some(turn) = &mut self.turn {
            turn.add_text(message.as_deref(), &text);
        }
        self.reports.push(SessionReport::Text { message, text });
    }

    /// Merges a part of a tool call, and reports the whole if it is new or has changed.
    fn merge_call(&mut self, part: ToolPart, size: usize) -> &AgentToolCall {
        let (call, has_changed) = self.calls.merge(part, size);
        if has_changed {
            self.reports.push(SessionReport::Tool(call.clone()));
        }
        call
    }

    fn report_plan(&mut self, update: PlanUpdate) {
        let entries = update
            .entries
            .into_iter()
            .map(|entry| PlanEntry { text: entry.content, state: variant(&entry.status) });
        self.reports.push(SessionReport::Plan(entries.collect()));
    }

    fn report_commands(&mut self, update: CommandsUpdate) {
        let commands = update
            .available_commands
            .into_iter()
            .map(|command| AgentCommand { name: command.name, about: command.description });
        self.reports.push(SessionReport::Commands(commands.collect()));
    }

    fn change_mode(&mut self, mode: String) {
        if !mode.is_empty() {
            self.settings.set_current_mode(mode);
            self.report_settings();
        }
    }

    fn handle_info(&mut self, update: InfoUpdate) {
        self.reports.extend(update.title.map(SessionReport::Title));
        if let Some(turn) = &mut self.turn {
            let retries = turn.add_codex_meta(update.meta.codex);
            self.reports.extend(retries.map(SessionReport::Retries));
        }
    }
}

fn parse<'a, T: serde::Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
}

fn text_of(raw: Option<&RawValue>) -> &str {
    raw.map_or("no parameters", RawValue::get)
}
