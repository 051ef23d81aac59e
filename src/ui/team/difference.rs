//! The changes of `up`, one per line, grouped by members, tasks and settings.

use crate::paint::{Paint, Tint};
use model::text;
use ops::starting::reconcile::{
    Difference, MemberChange, MemberStep, SettingChange, TaskChange, TaskChangeStep,
};

/// Characters of a subject, a value, or a reason.
const LONGEST: usize = 40;
/// Width of names.
const NAMES: usize = 14;

/// Returns the changes as text without a line break at the end; empty if there are none.
pub fn difference(difference: &Difference, paint: Paint) -> String {
    let mut lines = Vec::new();
    let mut group = |title: &str, rows: Vec<String>| {
        if !rows.is_empty() {
            lines.push(title.to_owned());
            lines.extend(rows);
        }
    };
    group("members", difference.members.iter().map(|of| member(of, paint)).collect());
    group("tasks", difference.tasks.iter().map(|of| task(of, paint)).collect());
    group("settings", difference.settings.iter().map(|of| setting(of, paint)).collect());
    if !difference.ended.is_empty() {
        let names: Vec<&str> = difference.ended.iter().map(|name| name.as_str()).collect();
        let names = names.join(" ");
        lines.push(format!("ended, and left alone: {names} (`phalanx restart {names}`)"));
    }
    lines.join("\n")
}

fn row(sign: char, name: &str, what: &str, paint: Paint) -> String {
    let tint = match sign {
        '+' => Tint::Good,
        '-' => Tint::Bad,
        _ => Tint::Warn,
    };
    let sign = paint.put(tint, &sign.to_string());
    format!("  {sign} {:NAMES$} {what}", text::line(name))
}

fn member(of: &MemberChange, paint: Paint) -> String {
    let keys = of.keys.join(", ");
    let task = of.task.map(|id| format!("; task #{id} goes back to the board"));
    let task = task.unwrap_or_default();
    let changed = if keys.is_empty() { String::new() } else { format!(": {keys}") };
    let (sign, what) = match of.step {
        MemberStep::Start => ('+', format!("is started{changed}")),
        MemberStep::Offer => ('+', "is started when it is needed".to_owned()),
        MemberStep::Resume => ('+', format!("is started again: {}", text::short(&keys, LONGEST))),
        MemberStep::Restart => ('~', format!("is asked to end and started again{changed}{task}")),
        MemberStep::Change => ('~', format!("changes for its next starts{changed}")),
        MemberStep::End => ('-', format!("is asked to end{task}")),
    };
    row(sign, &of.name, &what, paint)
}

fn task(of: &TaskChange, paint: Paint) -> String {
    let id = of.id.map(|id| format!("#{id} ")).unwrap_or_default();
    let subject = text::short(&of.subject, LONGEST);
    let (sign, what) = match of.step {
        TaskChangeStep::Create => ('+', subject),
        TaskChangeStep::Edit if of.is_running => {
            ('~', format!("{id}{}, for its next run", of.fields.join(", ")))
        }
        TaskChangeStep::Edit => ('~', format!("{id}{}", of.fields.join(", "))),
        TaskChangeStep::Cancel => ('-', format!("{id}is cancelled: {subject}")),
    };
    row(sign, &of.key, &what, paint)
}

fn setting(of: &SettingChange, paint: Paint) -> String {
    let shown = |value: &Option<String>| {
        let value = value.as_deref().unwrap_or("default");
        text::short(value, LONGEST)
    };
    row('~', &of.key, &format!("{} → {}", shown(&of.now), shown(&of.then)), paint)
}
