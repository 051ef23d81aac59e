//! What `doctor` found, the worst first. Pure.

use super::paint::{Paint, Tint};
use crate::model::text;
use crate::ops::doctor::{Checked, Finding, Severity};

/// The words and their look.
const SEVERITIES: [(Severity, &str, Tint); 3] = [
    (Severity::Problem, "problem", Tint::Bad),
    (Severity::Warning, "warning", Tint::Warn),
    (Severity::Note, "note", Tint::Dim),
];
/// Everything behind the word of severity begins here.
const INDENT: &str = "         ";

/// One paragraph for each finding, and a line that sums up.
pub(crate) fn doctor(checked: &Checked, paint: Paint) -> String {
    let mut parts: Vec<String> = checked.findings.iter().map(|finding| paragraph(finding, paint)).collect();
    parts.push(summary(checked));
    parts.join("\n")
}

fn paragraph(finding: &Finding, paint: Paint) -> String {
    let (word, tint) = match SEVERITIES.iter().find(|(severity, ..)| *severity == finding.severity) {
        Some(_) if finding.fixed => ("fixed", Tint::Good),
        Some((_, word, tint)) => (*word, *tint),
        None => ("", Tint::Plain),
    };
    let mut lines = vec![
        format!("{}{} {}", paint.put(tint, word), &INDENT[word.len() + 1..], text::line(&finding.what)),
        format!(
            "{INDENT}{}",
            paint.put(Tint::Dim, &format!("at {} ({})", text::line(&finding.place), finding.id))
        ),
    ];
    if let Some(failure) = &finding.failure {
        lines.push(format!("{INDENT}not put right: {}", text::line(failure)));
    }
    if let Some(fix) = finding.fix.as_ref().filter(|_| !finding.fixed) {
        lines.push(format!("{INDENT}do: {}", text::line(fix)));
    }
    lines.join("\n")
}

fn summary(checked: &Checked) -> String {
    let some = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let looked =
        format!("{} and {} looked at", some(checked.teams, "team"), some(checked.servers, "tmux server"));
    let open = |severity| checked.findings.iter().filter(|f| f.severity == severity && !f.fixed).count();
    let mut counts: Vec<String> = SEVERITIES
        .iter()
        .map(|(severity, word, _)| (open(*severity), word))
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| some(n, word))
        .collect();
    let fixed = checked.findings.iter().filter(|f| f.fixed).count();
    if fixed > 0 {
        counts.push(format!("{fixed} put right"));
    }
    if counts.is_empty() {
        format!("{looked}: all is well")
    } else {
        format!("{looked}: {}", counts.join(", "))
    }
}
