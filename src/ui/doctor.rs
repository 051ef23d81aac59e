//! The report of `doctor`, most severe findings first.

use super::paint::{Paint, Tint};
use crate::model::text;
use crate::ops::doctor::{Checked, Finding, Severity};

/// The label and colour of each severity.
const SEVERITIES: [(Severity, &str, Tint); 3] = [
    (Severity::Problem, "problem", Tint::Bad),
    (Severity::Warning, "warning", Tint::Warn),
    (Severity::Note, "note", Tint::Dim),
];
/// Indentation of everything after the severity.
const INDENT: &str = "         ";

/// Formats one paragraph for each finding, then a summary. Notes that require no action appear only
/// when `verbose`.
pub(crate) fn doctor(checked: &Checked, verbose: bool, paint: Paint) -> String {
    let shown =
        |finding: &&Finding| verbose || finding.severity != Severity::Note || finding.fix.is_some();
    let findings: Vec<&Finding> = checked.findings.iter().filter(shown).collect();
    let mut parts: Vec<String> = findings.iter().map(|finding| paragraph(finding, paint)).collect();
    parts.push(summary(checked, &findings));
    parts.join("\n")
}

fn paragraph(finding: &Finding, paint: Paint) -> String {
    let (word, tint) = match SEVERITIES.iter().find(|(severity, ..)| *severity == finding.severity)
    {
        Some(_) if finding.fixed => ("fixed", Tint::Good),
        Some((_, word, tint)) => (*word, *tint),
        None => ("", Tint::Plain),
    };
    let mut lines = vec![
        format!(
            "{}{} {}",
            paint.put(tint, word),
            &INDENT[word.len() + 1..],
            text::line(&finding.what)
        ),
        format!(
            "{INDENT}{}",
            paint.put(Tint::Dim, &format!("at {} ({})", text::line(&finding.place), finding.id))
        ),
    ];
    if let Some(failure) = &finding.failure {
        lines.push(format!("{INDENT}not fixed: {}", text::line(failure)));
    }
    if let Some(fix) = finding.fix.as_ref().filter(|_| !finding.fixed) {
        lines.push(format!("{INDENT}fix: {}", text::line(fix)));
    }
    lines.join("\n")
}

fn summary(checked: &Checked, findings: &[&Finding]) -> String {
    let some = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let checked_places = format!(
        "checked {} and {}",
        some(checked.teams, "team"),
        some(checked.servers, "tmux server")
    );
    let open = |severity| findings.iter().filter(|f| f.severity == severity && !f.fixed).count();
    let mut counts: Vec<String> = SEVERITIES
        .iter()
        .map(|(severity, word, _)| (open(*severity), word))
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| some(n, word))
        .collect();
    let fixed = findings.iter().filter(|f| f.fixed).count();
    if fixed > 0 {
        counts.push(format!("{fixed} fixed"));
    }
    if counts.is_empty() {
        format!("{checked_places}: no problems found")
    } else {
        format!("{checked_places}: {}", counts.join(", "))
    }
}
