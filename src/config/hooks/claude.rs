//! Parses hooks in the format of Claude Code's `settings.json`. Unsupported hooks are reported;
//! other settings are ignored.

use serde_json::Value;
use strum::IntoEnumIterator;

use model::team::hook::{HookCommand, HookEvent, Invocation, LONGEST_S, Matcher, TIMEOUT_S};
use model::wire::Object;

/// Hooks from a settings file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ClaudeHooks {
    pub hooks: Vec<HookCommand>,
    /// Reasons for each part that was skipped.
    pub problems: Vec<String>,
    /// `disableAllHooks`: hooks of all settings files are disabled.
    pub disabled: bool,
}

/// Parses `{"hooks": {EVENT: [{"matcher", "hooks": [{"type": "command", "command",
/// "timeout"}]}]}}`.
///
/// # Errors
/// Fails if the text is not a JSON object.
pub(crate) fn parse_claude_hooks(text: &str) -> Result<ClaudeHooks, String> {
    let settings: Object =
        serde_json::from_str(text).map_err(|e| format!("not a JSON object: {e}"))?;
    let mut read = ClaudeHooks {
        disabled: settings.get("disableAllHooks").and_then(Value::as_bool).unwrap_or(false),
        ..ClaudeHooks::default()
    };
    let Some(hooks) = settings.get("hooks") else { return Ok(read) };
    let Some(hooks) = hooks.as_object() else {
        read.problems.push("`hooks` is not an object".to_owned());
        return Ok(read);
    };
    for event in HookEvent::iter() {
        match hooks.get(event.as_str()) {
            None => {}
            Some(Value::Array(groups)) => {
                groups.iter().for_each(|group| read_group(event, group, &mut read))
            }
            Some(_) => read.problems.push(format!("`{}` is not a list", event.as_str())),
        }
    }
    Ok(read)
}

fn read_group(event: HookEvent, group: &Value, read: &mut ClaudeHooks) {
    let word = event.as_str();
    let Some(hooks) = group.get("hooks").and_then(Value::as_array) else {
        return read.problems.push(format!("an entry of `{word}` has no list `hooks`"));
    };
    // Claude Code ignores a `matcher` on these events as well.
    let given = group.get("matcher").and_then(Value::as_str).filter(|_| event.has_matcher());
    let matcher = match Matcher::parse(given.unwrap_or_default()) {
        Ok(matcher) => matcher,
        Err(problem) => return read.problems.push(format!("a `matcher` of `{word}` {problem}")),
    };
    for hook in hooks {
        match read_hook(event, matcher.clone(), hook) {
            Ok(hook) => read.hooks.push(hook),
            Err(problem) => read.problems.push(format!("a hook of `{word}` {problem}")),
        }
    }
}

fn read_hook(
    event: HookEvent,
    matcher: Option<Matcher>,
    hook: &Value,
) -> Result<HookCommand, String> {
    let text = |key: &str| hook.get(key).and_then(Value::as_str);
    match text("type") {
        Some("command") => {}
        Some(other) => {
            return Err(format!(
                "is of the type `{}`, which phalanx does not run",
                other.escape_debug()
            ));
        }
        None => return Err("has no `type`".to_owned()),
    }
    let command =
        text("command").filter(|command| !command.trim().is_empty() && !command.contains('\0'));
    let command = command.ok_or("has no `command`")?;
    let timeout_s = match hook.get("timeout") {
        None => TIMEOUT_S,
        // Fractional seconds occur in practice.
        Some(given) => match given.as_f64() {
            Some(seconds) if seconds > 0.0 => whole_seconds(seconds),
            Some(_) | None => return Err("has a `timeout` that is no number of seconds".to_owned()),
        },
    };
    Ok(HookCommand { event, matcher, run: Invocation::Line(command.to_owned()), timeout_s })
}

/// Rounds up to whole seconds, at most [`LONGEST_S`].
fn whole_seconds(seconds: f64) -> u64 {
    (1..LONGEST_S).find(|whole| *whole as f64 >= seconds).unwrap_or(LONGEST_S)
}
