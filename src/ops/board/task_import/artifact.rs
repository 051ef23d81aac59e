//! The artifacts that a plan depends on: files that must say that they are complete.

use std::path::{Component, Path};

use serde_json::Value;

/// Reads a text file; the error is the problem without the path.
pub(crate) type ReadFile<'r> = &'r dyn Fn(&Path) -> Result<String, String>;

/// Checks that an artifact exists and is complete. `named` is its path as the plan has it.
///
/// # Errors
/// A fault, with the name of the artifact.
pub(super) fn check(path: &Path, named: &str, read: ReadFile<'_>) -> Result<(), String> {
    let is_relative = |part: Component| {
        matches!(part, Component::Normal(_) | Component::CurDir | Component::ParentDir)
    };
    if !Path::new(named).components().all(is_relative) {
        return Err(format!("`xd`: {named:?} is not relative to the plan's directory"));
    }
    let text = read(path).map_err(|problem| format!("`xd`: {named:?}: {problem}"))?;
    if is_complete(&text) {
        return Ok(());
    }
    Err(format!("`xd`: {named:?} is not complete: no object in it has `\"s\":\"complete\"`"))
}

/// Returns true if an object of a JSON document, or of JSON lines, says that it is complete.
fn is_complete(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    values.map_while(Result::ok).any(|value| match &value {
        Value::Array(list) => list.iter().any(says_complete),
        value => says_complete(value),
    })
}

fn says_complete(value: &Value) -> bool {
    value.get("s").and_then(Value::as_str) == Some("complete")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifact_says_complete_in_a_line_a_document_or_a_list() {
        for good in [
            r#"{"p":"02","s":"complete"}"#,
            "{\"s\":\"partial\"}\n{\"s\":\"complete\"}\n",
            "{\n  \"s\": \"complete\"\n}",
            r#"[{"s":"complete"}]"#,
        ] {
            assert!(is_complete(good), "{good}");
        }
        for bad in
            ["", "not json", r#"{"s":"partial"}"#, r#"{"x":{"s":"complete"}}"#, "\"complete\""]
        {
            assert!(!is_complete(bad), "{bad}");
        }
    }

    #[test]
    fn artifact_outside_of_relative_paths_is_not_read() {
        let read = |_: &Path| -> Result<String, String> { unreachable!("it is not read") };
        let refused = check(Path::new("/etc/passwd"), "/etc/passwd", &read);
        assert!(refused.is_err_and(|why| why.contains("relative")));
    }
}
