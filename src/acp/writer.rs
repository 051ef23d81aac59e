//! The lines for the agent, and the requests whose replies are awaited.

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

/// Lines for the other side.
#[derive(Debug, Default)]
pub(crate) struct LineWriter(Vec<u8>);

impl LineWriter {
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }

    pub(crate) fn request(&mut self, id: u64, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
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
        self.0.extend_from_slice(message.to_string().as_bytes());
        self.0.push(b'\n');
    }
}

#[derive(Debug, Default)]
pub(crate) struct RequestWriter {
    lines: LineWriter,
    last_id: u64,
    awaited: BTreeMap<u64, AwaitedReply>,
}

impl RequestWriter {
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.lines.take()
    }

    /// Writes a request and returns its id.
    pub(crate) fn request(&mut self, sent: AwaitedReply, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.lines.request(id, method, params);
        self.awaited.insert(id, sent);
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.lines.notify(method, params);
    }

    pub(crate) fn reply(&mut self, id: &Value, result: Value) {
        self.lines.reply(id, result);
    }

    pub(crate) fn reply_error(&mut self, id: &Value, code: i64, message: &str) {
        self.lines.reply_error(id, code, message);
    }

    /// Returns the request that a reply is for, once.
    pub(crate) fn answered(&mut self, id: u64) -> Option<AwaitedReply> {
        self.awaited.remove(&id)
    }

    /// Gives up all requests.
    pub(crate) fn abandon(&mut self) -> impl Iterator<Item = AwaitedReply> {
        std::mem::take(&mut self.awaited).into_values()
    }
}
