//! The table of hosts, and the report of `host check`.

use crate::paint::{Paint, Tint};
use crate::table::{Table, cell, maybe, tinted};
use model::text;
use ops::hosts::{ConfiguredHost, HostReport};

/// Indentation of the lines below the name of a host.
const INDENT: &str = "  ";

/// Formats one line for each configured host.
pub fn host_table(hosts: &[ConfiguredHost], paint: Paint) -> String {
    let mut table =
        Table::new(&["host", "ssh", "directory", "labels", "capacity", "configured in"]);
    for host in hosts {
        let config = &host.config;
        table.row(vec![
            tinted(Tint::Bold, config.name.as_str()),
            cell(&config.ssh),
            cell(&config.dir),
            cell(config.labels.join(", ")),
            maybe(config.capacity.map(|most| most.to_string())),
            tinted(Tint::Dim, &host.source),
        ]);
    }
    table.render(paint)
}

/// Formats one paragraph for each host.
pub fn host_reports(reports: &[HostReport], paint: Paint) -> String {
    reports.iter().map(|report| host_report(report, paint)).collect::<Vec<_>>().join("\n\n")
}

fn host_report(report: &HostReport, paint: Paint) -> String {
    let (tint, verdict) = match report.problems.len() {
        0 => (Tint::Good, "ok".to_owned()),
        1 => (Tint::Bad, "1 problem".to_owned()),
        some => (Tint::Bad, format!("{some} problems")),
    };
    let name = paint.put(Tint::Bold, &text::line(&report.name));
    let mut lines = vec![format!("{name}: {}", paint.put(tint, &verdict))];
    let clock = report.clock_offset_ms.zip(report.clock_error_ms);
    let phalanx = report.phalanx.as_ref().zip(report.phalanx_path.as_ref());
    let store = report.store.map(|reached| if reached { "reached" } else { "not reached" });
    let facts = [
        ("ssh", Some(report.ssh.clone())),
        ("connected", report.connect_ms.map(|ms| format!("in {ms} ms"))),
        ("system", report.system.clone()),
        ("directory", report.reachable.then(|| report.dir.clone())),
        ("phalanx", phalanx.map(|(version, path)| format!("{version}, {path}"))),
        ("tmux", report.tmux.clone()),
        ("git", report.git.clone()),
        ("store", store.map(str::to_owned)),
        ("clock", clock.map(|(offset, error)| format!("{offset:+} ms, give or take {error} ms"))),
    ];
    let facts = facts.into_iter().filter_map(|(name, value)| Some((name, value?)));
    lines.extend(facts.map(|(name, value)| {
        format!("{INDENT}{}{}", paint.put(Tint::Dim, &format!("{name:<11}")), text::line(&value))
    }));
    for found in &report.problems {
        lines.push(format!(
            "{INDENT}{} {}",
            paint.put(Tint::Bad, "problem:"),
            text::line(&found.problem)
        ));
        lines.extend(found.fix.as_ref().map(|fix| format!("{INDENT}fix: {}", text::line(fix))));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_shows_facts_then_problems() {
        let report = HostReport {
            name: "build".to_owned(),
            ssh: "b".to_owned(),
            dir: "/w".to_owned(),
            reachable: true,
            connect_ms: Some(120),
            tmux: Some("tmux 3\u{1b}".to_owned()),
            clock_offset_ms: Some(-3),
            clock_error_ms: Some(40),
            ..HostReport::default()
        };
        let expected = "build: ok\n  ssh        b\n  connected  in 120 ms\n  directory  /w\n  \
                        tmux       tmux 3\u{241b}\n  clock      -3 ms, give or take 40 ms";
        assert_eq!(host_reports(&[report], Paint { on: false }), expected);
    }
}
