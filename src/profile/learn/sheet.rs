//! Writes a derived profile as TOML, with comments on what a person should check.

use std::fmt::Write;

use super::input_area::InputArea;
use super::lesson::{LearnedRule, Lesson, ScreenLabel, labelled};

/// Writes the profile.
pub(super) fn write(lesson: &Lesson, area: Option<&InputArea>, rules: &[LearnedRule]) -> String {
    let program = lesson.command.first().map_or("", String::as_str);
    let program = program.rsplit('/').next().unwrap_or(program);
    let argv: Vec<String> =
        lesson.command.iter().map(|word| literal(&word.replace('{', "{{"))).collect();
    let mut sheet = format!(
        "# Learned by `phalanx profile learn {}` from {} screens. After a change:\n#   {}\n\
         # `phalanx docs profiles` describes every key.\n\
         about = {}\nruns = \"wrapped\"\n\n\
         [launch]\nargv = [[{}]]\n\
         # The first prompt is typed. A program that takes it on its command line:\n\
         # `prompt = \"argv\"`, and [\"{{prompt}}\"] as a further group of `argv`.\n\
         prompt = \"typed\"\n\n\
         [ready]\nwhen = \"screen\"\n\n\
         [keys]\nsubmit = \"\\r\"\n\
         # Not learned: the key that interrupts a turn. Without it, urgent messages wait.\n\
         # interrupt = \"\\u001b\"\n",
        lesson.name,
        lesson.screens.len(),
        one_line(lesson.test),
        literal(&format!("{program}, learned from its screens")),
        argv.join(", "),
    );
    sheet.push_str(&quit(lesson.quit));
    sheet.push_str(
        "\n# Careful values: programs can take fast keys for a paste, and lose an early Enter.\n\
         [paste]\nbracketed = true\ngap_ms = 20\nsettle_ms = 300\n\n",
    );
    sheet.push_str(&composer(area));
    for rule in rules {
        sheet.push_str(&table(rule));
    }
    if labelled(lesson.screens, ScreenLabel::Asks).is_empty() {
        sheet.push_str(
            "\n# Check: no question was recorded. A question that looks idle would get messages typed\n\
             # into it. Add a rule with the state \"dialog:question\" before the others.\n",
        );
    } else {
        sheet.push_str(
            "\n# Not learned: the keys that answer a question. Without them, a person answers in the pane.\n\
             # [answers.RULE]\n# allow = \"y\"\n# deny = \"n\"\n",
        );
    }
    sheet
}

fn quit(keys: &[String]) -> String {
    let keys: Vec<String> = keys.iter().map(|keys| literal(keys)).collect();
    if keys.is_empty() {
        "# Not learned: the keys that end the program. Without them, it is ended by a signal.\n\
         # quit = [\"\\u0003\", \"\\u0003\"]\n"
            .to_owned()
    } else {
        format!("# Check: the keys typed before the program ended.\nquit = [{}]\n", keys.join(", "))
    }
}

fn composer(area: Option<&InputArea>) -> String {
    let Some(area) = area else {
        return "# Not learned: where text is typed. Without [composer], nothing is typed.\n\
                # [composer]\n# line = '^> ?(?<text>.*)$'\n"
            .to_owned();
    };
    let mut table = String::from(
        "# From the row of the cursor on the idle screens. Check: no typed text in `line`.\n[composer]\n",
    );
    let patterns = [
        ("above", area.above.clone()),
        ("line", Some(area.line())),
        ("until", area.until.clone()),
        ("placeholder", area.placeholder.clone()),
    ];
    for (key, pattern) in patterns {
        if let Some(pattern) = pattern {
            let _ = writeln!(table, "{key} = {}", literal(&pattern));
        }
    }
    for (key, set) in [("ghost", area.ghost), ("last", area.last)] {
        if set {
            let _ = writeln!(table, "{key} = true");
        }
    }
    table
}

fn table(rule: &LearnedRule) -> String {
    let area = rule.rows.map_or("cursor row".to_owned(), |rows| format!("last {rows}"));
    let mut table = format!(
        "\n[[rule]]\nname = {}\nstate = {}\narea = \"{area}\"\n",
        literal(&rule.name),
        literal(&rule.label.state().to_string()),
    );
    for (key, patterns) in [("match", &rule.patterns), ("not", &rule.absent)] {
        let patterns: Vec<String> = patterns.iter().map(|pattern| literal(pattern)).collect();
        if !patterns.is_empty() {
            let _ = writeln!(table, "{key} = [{}]", patterns.join(", "));
        }
    }
    if rule.label == ScreenLabel::Idle {
        table.push_str(
            "# Between two steps, a program may look idle for a moment.\nquiet_ms = 300\n",
        );
    }
    table
}

/// Quotes a text for TOML: as it is in `'…'` if possible.
fn literal(text: &str) -> String {
    let plain = !text.contains('\'') && !text.contains(char::is_control);
    if plain && (text.contains('\\') || text.contains('"')) {
        return format!("'{text}'");
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => drop(write!(quoted, "\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}
