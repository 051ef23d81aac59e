//! The lines for the other side, and the requests whose replies are awaited.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::settings::SettingRequest;

/// A request of the client.
#[derive(Debug)]
pub(crate) enum AwaitedReply {
    Initialize,
    /// `session/load` or `session/resume`.
    Load,
    New,
    /// The model, or a mode of the start.
    StartSetting(SettingRequest),
    /// A mode that the owner has set while the session began.
    LaterMode(SettingRequest),
    Setting(SettingRequest),
    Prompt,
    Steer {
        tag: String,
    },
}

/// The lines for the other side, and the requests that it has not answered.
#[derive(Debug)]
pub(crate) struct RequestWriter<T> {
    lines: Vec<u8>,
    last_id: u64,
    pub(crate) awaited: BTreeMap<u64, T>,
}

impl<T> Default for RequestWriter<T> {
    fn default() -> Self {
        Self { lines: Vec::new(), last_id: 0, awaited: BTreeMap::new() }
    }
}

impl<T> RequestWriter<T> {
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.lines)
    }

    /// Writes a request and returns its id.
    pub(crate) fn request(&mut self, sent: T, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.awaited.insert(id, sent);
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub(crate) fn reply(&mut self, id: &Value, result: Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    pub(crate) fn reply_error(&mut self, id: &Value, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        self.write(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    fn write(&mut self, message: &Value) {
        self.lines.extend_from_slice(message.to_string().as_bytes());
        self.lines.push(b'\n');
    }

    /// Returns the request that a reply is for, once.
    pub(crate) fn answered(&mut self, id: u64) -> Option<T> {
        self.awaited.remove(&id)
    }

    /// Gives up all requests.
    pub(crate) fn abandon(&mut self) -> impl Iterator<Item = T> {
        std::mem::take(&mut self.awaited).into_values()
    }
}
