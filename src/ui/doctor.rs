//! The report of `doctor`, most severe findings first.

use crate::paint::{Paint, Tint};
use crate::team::init::agent_lines;
use model::text;
use ops::doctor::{CheckReport, CheckVerdict, Checked, Finding, Severity};

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
pub fn doctor(checked: &Checked, verbose: bool, paint: Paint) -> String {
    let shown =
        |finding: &&Finding| verbose || finding.severity != Severity::Note || finding.fix.is_some();
    let findings: Vec<&Finding> = checked.findings.iter().filter(shown).collect();
    let mut parts: Vec<String> = findings.iter().map(|finding| paragraph(finding, paint)).collect();
    if !checked.agents.is_empty() {
        parts.push("agents:".to_owned());
        parts.extend(agent_lines(&checked.agents, paint).iter().map(|line| format!("  {line}")));
    }
    parts.push(summary(checked, &findings));
    parts.join("\n")
}

/// Formats one line for each check, then a summary.
pub fn self_test(reports: &[CheckReport], os: &str, paint: Paint) -> String {
    let width = reports.iter().map(|report| report.check.len()).max().unwrap_or(0);
    let mut lines: Vec<String> = reports.iter().map(|report| check(report, width, paint)).collect();
    let count = |result| reports.iter().filter(|report| report.result == result).count();
    let counts = [
        (count(CheckVerdict::Fail), "failed"),
        (count(CheckVerdict::Pass), "passed"),
        (count(CheckVerdict::Skip), "skipped"),
    ];
    let counts: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    lines.push(format!("{} checks on {os}: {}", reports.len(), counts.join(", ")));
    lines.join("\n")
}

fn check(report: &CheckReport, width: usize, paint: Paint) -> String {
    let tint = match report.result {
        CheckVerdict::Pass => Tint::Good,
        CheckVerdict::Fail => Tint::Bad,
        CheckVerdict::Skip => Tint::Dim,
    };
    let word: &'static str = report.result.into();
    let (result, detail) = (paint.put(tint, word), text::line(&report.detail));
    format!("{result}  {:width$}  {:>5} ms  {detail}", report.check, report.ms)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_has_a_line_and_the_results_are_counted() {
        let report = |check, result, detail: &str| CheckReport {
            check,
            result,
            detail: detail.to_owned(),
            ms: 12,
        };
        let reports = [
            report("boot-id", CheckVerdict::Pass, "4711"),
            report("pty", CheckVerdict::Fail, "no\u{1b}[2J"),
            report("tmux", CheckVerdict::Skip, "missing"),
        ];
        let expected = "pass  boot-id     12 ms  4711\n\
                        fail  pty         12 ms  no\u{241b}[2J\n\
                        skip  tmux        12 ms  missing\n\
                        3 checks on macos: 1 failed, 1 passed, 1 skipped";
        assert_eq!(self_test(&reports, "macos", Paint { on: false }), expected);
    }
}
