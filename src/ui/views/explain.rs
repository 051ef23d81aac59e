//! The page of `explain`: the facts behind a member's state, each with its source.

use serde_json::Value;

use crate::paint::{Paint, Tint};
use crate::views::life::state_tint;
use model::members::assessment::Doing;
use model::{text, time};
use ops::views::explain::{Delivery, Explained, Happened};

/// The column at which values begin.
const COLUMN: usize = 11;
/// Maximum width of a line; a longer entry takes two lines.
const WIDTH: usize = 80;

/// Formats three lines: what the member is doing, why, and what to type. Below them are the last
/// lines of an ended run. `all` adds the evidence.
pub fn explain(found: &Explained, all: bool, paint: Paint) -> String {
    let name = paint.put(Tint::Bold, &text::line(found.name.as_str()));
    let state = paint.put(state_tint(&found.state.doing), &text::line(&found.state.describe()));
    let since = found.state.state_ms.map(time::human).map(|span| match found.state.doing {
        Doing::Ended(_) => format!(", {span} ago"),
        _ => format!(", for {span}"),
    });
    let mut page = ExplainPage { lines: Vec::new(), dir: format!("{}/", found.dir), paint };
    page.lines.push(format!("{name}: {state}{}", since.unwrap_or_default()));
    page.entry("because", &found.state.because, "");
    page.entry("next", &found.advice, "");
    for (at, line) in found.last_lines.iter().enumerate() {
        page.entry(if at == 0 { "printed" } else { "" }, line, "");
    }
    if !all {
        return page.lines.join("\n");
    }
    for fact in &found.facts {
        page.entry(fact.what, &fact.value, &fact.source);
    }
    if let Some(task) = &found.task {
        page.entry("task", task, "");
    }
    if let Some(event) = &found.last_event {
        page.entry("last event", &event_text(event), &found.journal);
    }
    if let Some(delivery) = &found.last_delivery {
        page.entry("last mail", &mail(delivery), &delivery.source);
    }
    for verdict in &found.verdicts {
        page.entry("acted upon", &event_text(verdict), &found.journal);
    }
    for request in &found.requests {
        page.entry("open", request, "");
    }
    for (at, next) in found.next.iter().enumerate() {
        page.entry(if at == 0 { "changes" } else { "" }, next, "");
    }
    let dir = format!("files are those in {}", text::line(&found.dir));
    page.lines.push(paint.put(Tint::Dim, &dir));
    page.lines.join("\n")
}

struct ExplainPage {
    lines: Vec<String>,
    /// The team's directory, which is omitted from the paths of sources.
    dir: String,
    paint: Paint,
}

impl ExplainPage {
    /// Adds an entry, with the dimmed source behind the value or on the next line.
    fn entry(&mut self, what: &str, value: &str, source: &str) {
        let mut line = format!("{what:<COLUMN$} {}", text::line(value));
        let source = text::line(source.strip_prefix(&self.dir).unwrap_or(source));
        if source.is_empty() {
            self.lines.push(line);
            return;
        }
        let fits = line.chars().count() + 4 + source.chars().count() <= WIDTH;
        let dim = self.paint.put(Tint::Dim, &format!("← {source}"));
        if fits {
            line.push_str(&format!("  {dim}"));
            self.lines.push(line);
        } else {
            self.lines.extend([line, format!("{:COLUMN$} {dim}", "")]);
        }
    }
}

fn event_text(event: &Happened) -> String {
    let details = event.detail.as_object().into_iter().flatten();
    // The run's id is already among the facts.
    let shown = details.filter(|(key, _)| key.as_str() != "incarnation");
    let words: Vec<String> = shown
        .filter_map(|(key, value)| Some(format!("{key} {}", text::short(&plain(value)?, 60))))
        .collect();
    let details = if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) };
    format!("{} {}{details}", event.event.replace('_', " "), time::ago(event.age_ms))
}

/// Formats a detail without JSON syntax; returns `None` for an empty list.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(words) => Some(words.clone()),
        Value::Array(list) => {
            let words: Vec<String> = list.iter().filter_map(plain).collect();
            (!words.is_empty()).then(|| words.join(" "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Some(value.to_string())
        }
    }
}

fn mail(delivery: &Delivery) -> String {
    let taken = if delivery.handed_over { "was handed over" } else { "waits to be read" };
    let Delivery { kind, from, to, age_ms, .. } = delivery;
    format!("{} from {from} to {to}, {}, {taken}", kind.replace('_', " "), time::ago(*age_ms))
}
