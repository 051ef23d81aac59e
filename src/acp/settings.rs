//! The modes, models and options of a session, and the requests that choose among them.

use serde_json::{Value, json};

use crate::report::{SessionMode, SessionReport};
use crate::start::ModeChoice;
use crate::wire::{ChoiceReply, ChoicesReply, GroupReply, OptionReply, SessionReply};

/// The id and the category of the option that is the mode, and of the one that is the model.
const MODE: &str = "mode";
const MODEL: &str = "model";

/// The choices that a session offers.
#[derive(Debug, Default)]
pub(crate) struct SessionSettings {
    modes: Option<ChoiceList>,
    models: Option<ChoiceList>,
    options: Vec<SessionOption>,
    /// The mode and the model that were reported last.
    reported_mode: Option<String>,
    reported_model: Option<String>,
}

#[derive(Debug)]
struct ChoiceList {
    current: String,
    available: Vec<SessionMode>,
}

#[derive(Debug)]
struct SessionOption {
    id: String,
    category: String,
    is_boolean: bool,
    selection: ChoiceList,
}

/// A change that was sent, to be applied when the agent has confirmed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SettingRequest {
    Mode(String),
    Model(String),
    Option { id: String, value: String, is_boolean: bool },
}

impl SettingRequest {
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Mode(_) => "session/set_mode",
            Self::Model(_) => "session/set_model",
            Self::Option { .. } => "session/set_config_option",
        }
    }

    pub(crate) fn params(&self, session: &str) -> Value {
        match self {
            Self::Mode(id) => json!({"sessionId": session, "modeId": id}),
            Self::Model(id) => json!({"sessionId": session, "modelId": id}),
            Self::Option { id, value, is_boolean: false } => {
                json!({"sessionId": session, "configId": id, "value": value})
            }
            Self::Option { id, value, is_boolean: true } => json!({
                "sessionId": session,
                "configId": id,
                "type": "boolean",
                "value": is_true(value),
            }),
        }
    }

    /// For messages: `mode plan`.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Mode(id) => format!("mode {id}"),
            Self::Model(id) => format!("model {id}"),
            Self::Option { id, value, .. } => format!("{id} {value}"),
        }
    }
}

impl SessionSettings {
    /// Takes over what the reply that made or loaded the session has.
    pub(crate) fn replace(&mut self, reply: SessionReply) {
        self.modes = reply.modes.map(ChoiceList::from);
        self.models = reply.models.map(ChoiceList::from);
        self.options = reply.config_options.into_iter().map(SessionOption::from).collect();
    }

    /// Takes over all options. Their mode and model are also those of the lists, where these exist.
    pub(crate) fn set_options(&mut self, options: Vec<OptionReply>) {
        if options.is_empty() {
            return;
        }
        self.options = options.into_iter().map(SessionOption::from).collect();
        self.sync_lists();
    }

    fn sync_lists(&mut self) {
        for (list, name) in [(&mut self.modes, MODE), (&mut self.models, MODEL)] {
            if let (Some(list), Some(option)) = (list, find_option(&self.options, name))
                && list.has(&option.selection.current)
            {
                list.current.clone_from(&option.selection.current);
            }
        }
    }

    pub(crate) fn set_current_mode(&mut self, mode: String) {
        self.set_current(MODE, mode);
    }

    /// Returns whether the agent offers a mode of this id.
    pub(crate) fn has_mode(&self, id: &str) -> bool {
        self.choices(MODE).is_some_and(|modes| modes.has(id))
    }

    /// Returns the request for a mode. An agent that lists no modes is asked all the same.
    ///
    /// # Errors
    ///
    /// A message, if the agent does not offer it.
    pub(crate) fn change_for_mode(&self, mode: &ModeChoice) -> Result<SettingRequest, String> {
        match mode {
            ModeChoice::Mode(id) => self.change_for_mode_id(id),
            ModeChoice::Option { id, value } => self.change_for_option(id, value),
        }
    }

    fn change_for_mode_id(&self, id: &str) -> Result<SettingRequest, String> {
        let option = find_option(&self.options, MODE);
        if self.modes.as_ref().is_some_and(|modes| modes.has(id)) {
            return Ok(SettingRequest::Mode(id.to_owned()));
        }
        if let Some(option) = option
            && option.selection.has(id)
        {
            return Ok(option.change(id));
        }
        match self.choices(MODE) {
            Some(modes) if !modes.available.is_empty() => {
                Err(format!("the agent has no mode {id}; it offers {}", names(&modes.available)))
            }
            _ => Ok(SettingRequest::Mode(id.to_owned())),
        }
    }

    fn change_for_option(&self, id: &str, value: &str) -> Result<SettingRequest, String> {
        let Some(option) = self.options.iter().find(|option| option.id == id) else {
            if self.options.is_empty() {
                let (id, value) = (id.to_owned(), value.to_owned());
                return Ok(SettingRequest::Option { id, value, is_boolean: false });
            }
            let offered: Vec<&str> = self.options.iter().map(|option| &*option.id).collect();
            return Err(format!("the agent has no option {id}; it offers {}", offered.join(", ")));
        };
        let selection = &option.selection;
        if !selection.available.is_empty() && !selection.has(value) {
            let offered = names(&selection.available);
            return Err(format!("the option {id} has no value {value}; it offers {offered}"));
        }
        Ok(option.change(value))
    }

    /// Returns the request for a model, by its id or its name. An unknown model is sent as it is:
    /// agents accept short names that they do not list.
    pub(crate) fn change_for_model(&self, model: &str) -> SettingRequest {
        let option = find_option(&self.options, MODEL);
        if let Some(option) = option
            && let Some(id) = option.selection.id_of(model)
        {
            return option.change(id);
        }
        // codex lists `name[effort]` only here.
        if let Some(id) = self.models.as_ref().and_then(|models| models.id_of(model)) {
            return SettingRequest::Model(id.to_owned());
        }
        match option {
            Some(option) => option.change(model),
            None => SettingRequest::Model(model.to_owned()),
        }
    }

    /// Returns what the agent offers instead, for the message of a refusal.
    pub(crate) fn offered(&self, change: &SettingRequest) -> Option<String> {
        let selection = match change {
            SettingRequest::Mode(_) => self.choices(MODE),
            SettingRequest::Model(_) => self.choices(MODEL),
            SettingRequest::Option { id, .. } => {
                self.options.iter().find(|option| option.id == *id).map(|option| &option.selection)
            }
        };
        let available = &selection?.available;
        (!available.is_empty()).then(|| names(available))
    }

    /// Applies a change that the agent has accepted. The reply may have all options.
    ///
    /// # Errors
    ///
    /// A message, if these show another value.
    pub(crate) fn confirm(
        &mut self,
        change: SettingRequest,
        reply: SessionReply,
    ) -> Result<(), String> {
        let has_options = !reply.config_options.is_empty();
        self.set_options(reply.config_options);
        let (id, value) = match change {
            SettingRequest::Mode(id) => {
                self.set_current(MODE, id);
                return Ok(());
            }
            SettingRequest::Model(id) => {
                self.set_current(MODEL, id);
                return Ok(());
            }
            SettingRequest::Option { id, value, is_boolean: false } => (id, value),
            SettingRequest::Option { id, value, .. } => (id, is_true(&value).to_string()),
        };
        let Some(option) = self.options.iter_mut().find(|option| option.id == id) else {
            return Ok(());
        };
        let selection = &mut option.selection;
        if !has_options {
            selection.current = value;
            self.sync_lists();
        } else if selection.current != value && (option.is_boolean || selection.has(&value)) {
            return Err(format!("the option {id} is still {}", selection.current));
        }
        Ok(())
    }

    /// Returns reports of a mode and a model that were not reported yet.
    pub(crate) fn changes(&mut self) -> Vec<SessionReport> {
        let mut reports = Vec::new();
        let mode = self.choices(MODE).map(|modes| modes.current.clone());
        if mode.is_some() && mode != self.reported_mode {
            reports.extend(self.mode_report());
            self.reported_mode = mode;
        }
        let model = self.choices(MODEL).map(|models| models.current.clone());
        if let Some(current) = &model
            && !current.is_empty()
            && model != self.reported_model
        {
            reports.push(SessionReport::Model(current.clone()));
            self.reported_model = model;
        }
        reports
    }

    pub(crate) fn mode_report(&self) -> Option<SessionReport> {
        let modes = self.choices(MODE)?;
        let (current, available) = (modes.current.clone(), modes.available.clone());
        Some(SessionReport::Mode { current, available })
    }

    /// Returns the modes or the models, by the name of their option.
    fn choices(&self, name: &str) -> Option<&ChoiceList> {
        let list = if name == MODE { &self.modes } else { &self.models };
        let option = || find_option(&self.options, name).map(|option| &option.selection);
        list.as_ref().or_else(option)
    }

    fn set_current(&mut self, name: &str, id: String) {
        let list = if name == MODE { &mut self.modes } else { &mut self.models };
        let option = find_option(&self.options, name).map(|option| option.id.clone());
        match list {
            Some(list) => list.current.clone_from(&id),
            // Agents without a list confirm a mode too.
            None if option.is_none() => {
                *list = Some(ChoiceList { current: id.clone(), available: Vec::new() });
            }
            None => {}
        }
        let options = self.options.iter_mut().filter(|other| Some(&other.id) == option.as_ref());
        for option in options.filter(|option| option.selection.has(&id)) {
            option.selection.current.clone_from(&id);
        }
    }
}

impl ChoiceList {
    fn has(&self, id: &str) -> bool {
        self.available.iter().any(|choice| choice.id == id)
    }

    fn id_of(&self, id_or_name: &str) -> Option<&str> {
        let by_id = self.available.iter().find(|choice| choice.id == id_or_name);
        let by_name = || self.available.iter().find(|choice| choice.name == id_or_name);
        by_id.or_else(by_name).map(|choice| &*choice.id)
    }
}

impl SessionOption {
    fn change(&self, value: &str) -> SettingRequest {
        let (id, value) = (self.id.clone(), value.to_owned());
        SettingRequest::Option { id, value, is_boolean: self.is_boolean }
    }
}

/// Finds an option by its id, or else by its category.
fn find_option<'a>(options: &'a [SessionOption], name: &str) -> Option<&'a SessionOption> {
    let by_id = options.iter().find(|option| option.id == name);
    by_id.or_else(|| options.iter().find(|option| option.category == name))
}

fn is_true(value: &str) -> bool {
    matches!(value, "true" | "on")
}

fn names(choices: &[SessionMode]) -> String {
    let ids: Vec<&str> = choices.iter().map(|choice| &*choice.id).collect();
    ids.join(", ")
}

impl SessionMode {
    fn from_reply(reply: ChoiceReply) -> Option<Self> {
        let id = reply.model_id.or(reply.value).or(reply.id)?;
        let name = if reply.name.is_empty() { id.clone() } else { reply.name };
        Some(Self { id, name })
    }
}

impl From<ChoicesReply> for ChoiceList {
    fn from(reply: ChoicesReply) -> Self {
        let available =
            reply.available_modes.into_iter().filter_map(SessionMode::from_reply).collect();
        Self { current: reply.current_mode_id, available }
    }
}

impl From<OptionReply> for SessionOption {
    fn from(reply: OptionReply) -> Self {
        let mut available = Vec::new();
        for item in &reply.options {
            let choice = serde_json::from_str(item.get()).ok().and_then(SessionMode::from_reply);
            if let Some(choice) = choice {
                available.push(choice);
            } else if let Ok(group) = serde_json::from_str::<GroupReply>(item.get()) {
                available.extend(group.options.into_iter().filter_map(SessionMode::from_reply));
            }
        }
        let is_boolean = reply.current_value.is_boolean();
        let current = match reply.current_value {
            Value::String(value) => value,
            Value::Null => String::new(),
            value => value.to_string(),
        };
        let selection = ChoiceList { current, available };
        Self { id: reply.id, category: reply.category, is_boolean, selection }
    }
}
