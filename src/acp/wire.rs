//! The messages of an agent as types. Fields that are missing or of another type get their default,
//! so that one odd field does not lose a message.

use std::borrow::Cow;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// The result of a request, or its error.
pub(crate) type RpcResult<'a> = Result<Option<&'a RawValue>, &'a RawValue>;

/// A request, notification or reply.
#[derive(Debug, Deserialize)]
pub(crate) struct RpcMessage<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct RpcError {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) code: i64,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) message: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) data: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeReply {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) protocol_version: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) agent_info: Implementation,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) agent_capabilities: Capabilities,
    #[serde(default, deserialize_with = "lenient_list")]
    pub(crate) auth_methods: Vec<LoginMethod>,
    #[serde(default, rename = "_meta", deserialize_with = "lenient")]
    pub(crate) meta: VendorMeta,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Implementation {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) name: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Capabilities {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) load_session: bool,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) session_capabilities: SessionCapabilities,
    #[serde(default, rename = "_meta", deserialize_with = "lenient")]
    pub(crate) meta: VendorMeta,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct SessionCapabilities {
    #[serde(default, deserialize_with = "is_advertised")]
    pub(crate) resume: bool,
    #[serde(default, deserialize_with = "is_advertised")]
    pub(crate) list: bool,
}

/// The additions of all agents. Each is sent with messages of one kind.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct VendorMeta {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) steering: Steering,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) quota: Quota,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) usage: Option<UsageReply>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) codex: CodexMeta,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Steering {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) supported: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct LoginMethod {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) name: String,
}

/// The reply that makes, loads or resumes a session, or sets one of its options.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionReply {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) session_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) modes: Option<ChoicesReply>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) models: Option<ChoicesReply>,
    #[serde(default, deserialize_with = "lenient_list")]
    pub(crate) config_options: Vec<OptionReply>,
}

/// The modes or the models. Models are not in the specification; codex, gemini and qwen send them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChoicesReply {
    #[serde(default, alias = "currentModelId", deserialize_with = "lenient")]
    pub(crate) current_mode_id: String,
    #[serde(default, alias = "availableModels", deserialize_with = "lenient_list")]
    pub(crate) available_modes: Vec<ChoiceReply>,
}

/// A mode, a model, or a value of an option. Each has its id in a field of its own.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChoiceReply {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) model_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) value: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OptionReply {
    pub(crate) id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) category: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) current_value: Value,
    /// Values, or groups of values.
    #[serde(default, deserialize_with = "lenient_list")]
    pub(crate) options: Vec<Box<RawValue>>,
}

/// Values of an option under a heading.
#[derive(Debug, Deserialize)]
pub(crate) struct GroupReply {
    #[serde(deserialize_with = "lenient_list")]
    pub(crate) options: Vec<ChoiceReply>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptReply {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) stop_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) usage: Option<UsageReply>,
    #[serde(default, rename = "_meta", deserialize_with = "lenient")]
    pub(crate) meta: VendorMeta,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Quota {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) token_count: Option<UsageReply>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UsageReply {
    #[serde(default, alias = "input_tokens", deserialize_with = "count")]
    pub(crate) input_tokens: u64,
    #[serde(default, alias = "output_tokens", deserialize_with = "count")]
    pub(crate) output_tokens: u64,
    #[serde(default, deserialize_with = "count")]
    pub(crate) cached_read_tokens: u64,
    #[serde(default, deserialize_with = "count")]
    pub(crate) cached_write_tokens: u64,
    #[serde(default, deserialize_with = "count")]
    pub(crate) thought_tokens: u64,
    #[serde(default, deserialize_with = "count")]
    pub(crate) total_tokens: u64,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct SteerReply {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) outcome: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionNotification<'a> {
    pub(crate) session_id: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) update: &'a RawValue,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UpdateKind<'a> {
    pub(crate) session_update: Cow<'a, str>,
}

/// A piece of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContentChunk {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) content: ContentBlock,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) message_id: Option<String>,
    #[serde(default, rename = "_meta", deserialize_with = "lenient")]
    pub(crate) meta: VendorMeta,
}

/// A text, or something with a name.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ContentBlock {
    #[serde(default, deserialize_with = "lenient")]
    text: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    uri: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    resource: ResourcePart,
}

#[derive(Debug, Default, Deserialize)]
struct ResourcePart {
    #[serde(default, deserialize_with = "lenient")]
    uri: Option<String>,
}

impl ContentBlock {
    /// Returns its text, or the name of the resource. Images and sounds have none.
    pub(crate) fn into_text(self) -> Option<String> {
        self.text.or(self.name).or(self.uri).or(self.resource.uri)
    }
}

/// A part of a tool call.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolPart {
    pub(crate) tool_call_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) title: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) kind: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) status: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) raw_input: Value,
    #[serde(default, deserialize_with = "lenient_list")]
    pub(crate) content: Vec<ContentPart>,
    #[serde(default, deserialize_with = "lenient_list")]
    pub(crate) locations: Vec<LocationPart>,
}

/// A content block, a diff, or a terminal.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContentPart {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) content: ContentBlock,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) path: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) old_text: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) new_text: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct LocationPart {
    pub(crate) path: String,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct PlanUpdate {
    #[serde(default, deserialize_with = "lenient_list")]
    pub(crate) entries: Vec<PlanPart>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PlanPart {
    pub(crate) content: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) status: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommandsUpdate {
    #[serde(default, deserialize_with = "lenient_list")]
    pub(crate) available_commands: Vec<CommandPart>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CommandPart {
    pub(crate) name: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) description: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModeUpdate {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) current_mode_id: String,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct InfoUpdate {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) title: Option<String>,
    #[serde(default, rename = "_meta", deserialize_with = "lenient")]
    pub(crate) meta: VendorMeta,
}

/// The only mark that codex gives to a failed turn.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CodexMeta {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) error: Option<CodexError>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) thread_status: CodexStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CodexError {
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) message: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) codex_error_info: Value,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) additional_details: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) will_retry: bool,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct CodexStatus {
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub(crate) kind: String,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct UsageUpdate {
    #[serde(default, deserialize_with = "count")]
    pub(crate) used: u64,
    #[serde(default, deserialize_with = "count")]
    pub(crate) size: u64,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) cost: Option<CostPart>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CostPart {
    pub(crate) amount: f64,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) currency: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionParams {
    pub(crate) session_id: String,
    pub(crate) tool_call: ToolPart,
    #[serde(default, deserialize_with = "lenient_list")]
    pub(crate) options: Vec<OptionPart>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OptionPart {
    pub(crate) option_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) name: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) kind: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestCancellation {
    pub(crate) request_id: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuthNotification {
    pub(crate) auth_status: AuthStatus,
}

#[derive(Debug, Deserialize)]
pub(crate) struct AuthStatus {
    pub(crate) kind: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) label: String,
}

/// Parses the body of a message. A missing one and one of another form give the default.
pub(crate) fn parse_or_default<T: DeserializeOwned + Default>(raw: Option<&RawValue>) -> T {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// Returns the variant of this name, or the default.
pub(crate) fn variant<T: FromStr + Default>(name: &str) -> T {
    name.parse().unwrap_or_default()
}

pub(crate) fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// Leaves out the items of another form.
pub(crate) fn lenient_list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    let items: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    Ok(items.into_iter().filter_map(|item| serde_json::from_str(item.get()).ok()).collect())
}

/// Accepts any number; JavaScript has no integers.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    let whole = serde_json::from_str::<u64>(raw).ok();
    // The cast saturates.
    let rounded = || serde_json::from_str::<f64>(raw).map_or(0, |number| number as u64);
    Ok(whole.unwrap_or_else(rounded))
}

/// A capability is advertised by an object, which may be empty.
fn is_advertised<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    Ok(!matches!(raw, "null" | "false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_fields_do_not_lose_the_others() {
        let part: ToolPart = serde_json::from_str(
            r#"{"toolCallId":"a","title":7,"kind":null,"status":[],"content":[1,
                {"type":"content","content":{"type":"text","text":"x"}},{}],"locations":{}}"#,
        )
        .unwrap();
        assert_eq!(part.tool_call_id, "a");
        assert_eq!(part.title, "");
        assert_eq!(part.content.len(), 1);
    }

    #[test]
    fn counts_accept_every_number() {
        let usage: UsageUpdate =
            serde_json::from_str(r#"{"used":1.5e3,"size":-4,"cost":{"amount":1}}"#).unwrap();
        assert_eq!((usage.used, usage.size), (1500, 0));
        assert!(usage.cost.is_some());
    }

    #[test]
    fn private_keys_of_the_parser_are_ordinary_keys() {
        let text = r#"{"toolCallId":"a","rawInput":{"$serde_json::private::Number":"x"}}"#;
        let part: ToolPart = serde_json::from_str(text).unwrap();
        assert_eq!(part.tool_call_id, "a");
    }
}
