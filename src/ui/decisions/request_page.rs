//! The page of one request: the plan, the command, the edit as a diff, or the question.

use serde_json::{Map, Value};

use crate::paint::{Paint, Tint};
use crate::views::life::span;
use model::decisions::question::{Ask, Typed};
use model::decisions::user_question::{self, UserQuestion};
use model::mail::protocol::{Message, PermissionRequest};
use model::text;
use ops::decisions::requests::Shown;

/// Fields that are shown as text blocks even if they have one line.
const BODIES: [&str; 4] = ["command", "old_string", "new_string", "content"];

/// Formats the page. Control characters in the member's texts are made visible.
pub fn request_page(shown: &Shown, paint: Paint) -> String {
    let mut page = request_text(shown, paint);
    if let Some(next) = next(shown) {
        page.push_str("\n\n");
        page.push_str(&paint.put(Tint::Dim, &next));
    }
    page
}

/// Formats the page without the command that answers the request.
pub(crate) fn request_text(shown: &Shown, paint: Paint) -> String {
    let ask = Ask::of(Message::parse(&shown.body.to_string()));
    let mut page = RequestPage { lines: Vec::new(), paint };
    page.lines.push(paint.put(Tint::Bold, &text::line(shown.request_id.as_str())));
    page.fact("kind", Some(shown.kind));
    page.fact("from", Some(shown.from.as_str()));
    page.fact("state", Some(&state(shown)));
    page.fact("rule", shown.rule.as_deref());
    page.fact("reason", shown.reason.as_deref());
    page.fact("keys", shown.typed.map(Typed::describe));
    match ask {
        Some(Ask::Plan(plan)) => {
            page.fact("file", plan.plan_file_path.as_deref());
            page.body(plan.plan_content.as_deref().unwrap_or_default());
        }
        Some(Ask::Permission(tool)) => permission(&mut page, &tool),
        Some(Ask::Sandbox(asked)) => page.fact("host", Some(&asked.host)),
        None => page.body(shown.body.as_str().unwrap_or_default()),
    }
    if let Some(input @ Value::Object(_)) = &shown.updated_input {
        page.heading("answered with this input:");
        page.lines.extend(text::block(&pretty(input)).lines().map(str::to_owned));
    }
    page.lines.join("\n")
}

struct RequestPage {
    lines: Vec<String>,
    paint: Paint,
}

impl RequestPage {
    fn fact(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let name = self.paint.put(Tint::Dim, &format!("{:<10}", text::line(name)));
            self.lines.push(format!("  {name} {}", text::line(value)));
        }
    }

    fn heading(&mut self, words: &str) {
        self.lines.push(String::new());
        self.lines.push(self.paint.put(Tint::Bold, &text::line(words)));
    }

    /// Adds a text of the member, unindented so that it can be copied.
    fn body(&mut self, body: &str) {
        if !body.trim().is_empty() {
            self.lines.push(String::new());
            self.lines.extend(text::block(body.trim_end()).lines().map(str::to_owned));
        }
    }

    fn side(&mut self, sign: char, tint: Tint, lines: &[&str]) {
        let line = |line: &&str| self.paint.put(tint, &format!("{sign} {}", text::line(line)));
        let painted: Vec<String> = lines.iter().map(line).collect();
        self.lines.extend(painted);
    }

    /// Adds the removed and added lines of an edit, between the common lines at both ends.
    fn diff(&mut self, old: &str, new: &str) {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
        let rest = old.len().min(new.len()) - head;
        let tail =
            old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
        self.lines.push(String::new());
        self.side(' ', Tint::Plain, &old[..head]);
        self.side('-', Tint::Bad, &old[head..old.len() - tail]);
        self.side('+', Tint::Good, &new[head..new.len() - tail]);
        self.side(' ', Tint::Plain, &old[old.len() - tail..]);
    }
}

fn state(shown: &Shown) -> String {
    let word = shown.state.replace('_', " ");
    let by = shown.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let left =
        shown.left_ms.map(|left| format!(", {} left to answer", span(left))).unwrap_or_default();
    format!("{word}{by}, asked {} ago{left}", span(shown.age_ms))
}

fn next(shown: &Shown) -> Option<String> {
    let id = text::line(shown.request_id.as_str());
    match (shown.state, shown.kind, shown.answered_by) {
        ("pending", "shutdown", _) => None,
        ("pending", _, Some("pane")) => Some(format!(
            "answer it in its pane: phalanx attach {}",
            text::line(shown.from.as_str())
        )),
        ("pending", _, _) => {
            let yes = user_question::option_for(&shown.user_questions());
            Some(format!("phalanx answer {id} {yes}, or --reject --reason TEXT"))
        }
        _ => None,
    }
}

/// Adds the use of a tool: its command verbatim, its changes as a diff, all other fields by name.
fn permission(page: &mut RequestPage, asked: &PermissionRequest) {
    page.fact("tool", Some(&asked.tool_name));
    // A wrapper knows only the text on the screen.
    let on_screen = asked.answered_by.is_some();
    page.fact("purpose", asked.description.as_deref().filter(|_| !on_screen));
    if on_screen {
        page.body(asked.description.as_deref().unwrap_or_default());
    }
    let Value::Object(input) = &asked.input else {
        return page.body(&pretty(&asked.input));
    };
    let mut rest = input.clone();
    if rest.get("description").and_then(Value::as_str) == asked.description.as_deref() {
        rest.shift_remove("description");
    }
    facts(page, &mut rest);
    if let Some(Value::String(command)) = rest.get("command").cloned() {
        rest.shift_remove("command");
        page.body(&command);
    }
    edit(page, &mut rest);
    if let Some(edits) = rest.get("edits").and_then(edits) {
        rest.shift_remove("edits");
        for mut one in edits {
            edit(page, &mut one);
            fields(page, one);
        }
    }
    if let (true, Some(Value::String(content))) =
        (input.contains_key("file_path"), rest.get("content").cloned())
    {
        rest.shift_remove("content");
        page.diff("", &content);
    }
    let asked = user_question::questions_in(&asked.input);
    if !asked.is_empty() {
        rest.shift_remove("questions");
        page.body(&questions(&asked));
    }
    fields(page, rest);
}

/// Moves one-line fields from `input` to the top of the page. A command is shown as a block.
fn facts(page: &mut RequestPage, input: &mut Map<String, Value>) {
    input.retain(|key, value| {
        let word = match value {
            Value::String(words) if !words.contains('\n') && !BODIES.contains(&key.as_str()) => {
                words.clone()
            }
            Value::Bool(_) | Value::Number(_) | Value::Null => value.to_string(),
            Value::String(_) | Value::Array(_) | Value::Object(_) => return true,
        };
        let name = match key.as_str() {
            "file_path" | "notebook_path" => "file",
            other => other,
        };
        page.fact(name, Some(&word));
        false
    });
}

/// Shows the edit of a file and removes its two texts from `input`.
fn edit(page: &mut RequestPage, input: &mut Map<String, Value>) {
    let word = |key: &str| input.get(key).and_then(Value::as_str).map(str::to_owned);
    if let (Some(old), Some(new)) = (word("old_string"), word("new_string")) {
        input.shift_remove("old_string");
        input.shift_remove("new_string");
        page.diff(&old, &new);
    }
}

/// Parses the edits of a tool that makes several at once.
fn edits(value: &Value) -> Option<Vec<Map<String, Value>>> {
    value.as_array()?.iter().map(|one| one.as_object().cloned()).collect()
}

/// Formats a program's questions to its user, each with its options.
fn questions(asked: &[UserQuestion]) -> String {
    let mut lines = Vec::new();
    for (at, question) in asked.iter().enumerate() {
        let number = if asked.len() > 1 { format!("{}. ", at + 1) } else { String::new() };
        let several = if question.takes_several { " (several)" } else { "" };
        lines.push(format!("{number}{}{several}", question.text));
        for (nth, option) in question.options.iter().enumerate() {
            let more = option.description.as_ref().map(|more| format!(": {more}"));
            lines.push(format!("  {}  {}{}", nth + 1, option.label, more.unwrap_or_default()));
        }
    }
    lines.join("\n")
}

/// Adds fields that have no format of their own.
fn fields(page: &mut RequestPage, input: Map<String, Value>) {
    for (key, value) in input {
        page.heading(&format!("{key}:"));
        let body = value.as_str().map_or_else(|| pretty(&value), str::to_owned);
        page.lines.extend(text::block(body.trim_end()).lines().map(str::to_owned));
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::{MemberName, RequestId};
    use serde_json::json;

    fn page(body: Value) -> String {
        let shown = Shown {
            request_id: RequestId::parse("perm-1").expect("an id"),
            kind: "permission",
            from: MemberName::new("ada").expect("a name"),
            state: "pending",
            age_ms: 3_000,
            summary: String::new(),
            body,
            incarnation: None,
            updated_input: None,
            left_ms: Some(60_000),
            by: None,
            rule: None,
            reason: None,
            answered_by: None,
            typed: None,
            preview: None,
        };
        let page = request_page(&shown, Paint { on: false });
        let (head, rest) = page.split_once("left to answer\n").expect("a state");
        assert!(head.starts_with("perm-1\n  kind       permission\n  from       ada\n"), "{head}");
        let yes = user_question::option_for(&shown.user_questions());
        let end = format!("\n\nphalanx answer perm-1 {yes}, or --reject --reason TEXT");
        rest.strip_suffix(&end).unwrap_or_else(|| panic!("{rest}")).to_owned()
    }

    fn tool(name: &str, input: Value) -> String {
        page(json!({"type": "permission_request", "request_id": "perm-1", "tool_name": name,
            "description": "why", "input": input}))
    }

    #[test]
    fn command_is_shown_verbatim_with_visible_escapes() {
        let shown = tool(
            "Bash",
            json!({"command": "cd /x &&\n  make \u{1b}[2J", "timeout": 5, "description": "why"}),
        );
        let expected =
            "  tool       Bash\n  purpose    why\n  timeout    5\n\ncd /x &&\n  make \u{241b}[2J";
        assert_eq!(shown, expected);
    }

    #[test]
    fn edit_is_shown_as_a_diff_with_common_lines() {
        let edit = json!({"file_path": "/w/a.rs", "old_string": "fn a() {\n  1\n}", "new_string": "fn a() {\n  2\n  3\n}",
            "replace_all": false});
        let diff = "\n\n  fn a() {\n-   1\n+   2\n+   3\n  }";
        let head = "  tool       Edit\n  purpose    why\n  file       /w/a.rs";
        assert_eq!(tool("Edit", edit.clone()), format!("{head}\n  replace_all false{diff}"));
        let many = json!({"file_path": "/w/a.rs", "edits": [{"old_string": "a", "new_string": "b"}, {"old_string": "", "new_string": "c"}]});
        assert_eq!(
            tool("MultiEdit", many),
            format!("{}\n\n- a\n+ b\n\n+ c", head.replace("Edit", "MultiEdit"))
        );
        let write = json!({"file_path": "/w/a.rs", "content": "x\ny\n"});
        assert_eq!(tool("Write", write), format!("{}\n\n+ x\n+ y", head.replace("Edit", "Write")));
    }

    #[test]
    fn unknown_input_is_shown_completely() {
        let input = json!({"old_string": "half", "edits": "odd", "deep": {"a": [1]}, "text": "one\ntwo", "none": null});
        let shown = tool("Odd", input);
        for part in [
            "old_string:\nhalf",
            "edits      odd",
            "deep:\n{\n",
            "text:\none\ntwo",
            "none       null",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }

    #[test]
    fn question_to_the_user_lists_its_options() {
        let input = json!({"questions": [{"question": "Which?", "header": "h", "multiSelect": false,
            "options": [{"label": "One", "description": "the first"}, {"label": "Two"}]}]});
        let shown = tool("AskUserQuestion", input);
        assert!(shown.ends_with("\n\nWhich?\n  1  One: the first\n  2  Two"), "{shown}");
    }

    #[test]
    fn plan_and_host_are_shown_completely() {
        let plan = json!({"type": "plan_approval_request", "from": "ada", "planFilePath": "/w/plan.md",
            "planContent": "# Move\n\n1. a\n2. b\n", "requestId": "perm-1"});
        assert_eq!(page(plan), "  file       /w/plan.md\n\n# Move\n\n1. a\n2. b");
        let host =
            json!({"type": "sandbox_permission_request", "requestId": "perm-1", "host": "docs.rs"});
        assert_eq!(page(host), "  host       docs.rs");
    }
}
