//! Converts errors of the argument parser to failures.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::fail::Failure;
use crate::missing;
use model::text;
use ops::Kind;

/// Returns whether help or the version was requested.
pub(super) fn is_help_request(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
}

/// Converts an error: clap's first paragraph becomes the message, its tip or usage line the hint.
/// A verb that lacks something asks for it.
pub(super) fn failure(args: &[OsString], error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) => {
            no_such_verb(error, word)
        }
        (ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, _) => missing::command(group(&text)),
        (ErrorKind::MissingRequiredArgument, _) => {
            missing::arguments(args, error).unwrap_or_else(|| from_text(&text))
        }
        _ => from_text(&text),
    }
}

/// The commands that others call by these words, or give this argument.
const OTHER_WORDS: [(&str, &str); 9] = [
    ("phalanx start", "`phalanx spawn NAME` starts a member, `phalanx up` a team"),
    ("phalanx new", "`phalanx team create NAME` makes a team, `phalanx init` a manifest"),
    ("phalanx task done", "`phalanx task complete ID` completes it"),
    ("phalanx task wait", "`phalanx wait --until task=ID` waits for it"),
    (
        "phalanx status …",
        "`phalanx explain NAME` is about a member, `phalanx status -t TEAM` about a team",
    ),
    ("phalanx watch …", "`phalanx attach NAME` shows a member, `phalanx watch -t TEAM` a team"),
    ("phalanx down …", "name the team: `phalanx down -t TEAM`"),
    ("phalanx team show …", "name the team: `phalanx team show -t TEAM`"),
    ("phalanx requests …", "`phalanx requests show ID` shows one"),
];

fn meant(words: &str) -> Option<String> {
    let found = OTHER_WORDS.iter().find(|(other, _)| *other == words);
    found.map(|(_, meant)| (*meant).to_owned())
}

/// Reports an unknown verb with the verbs that resemble it.
fn no_such_verb(error: &clap::Error, word: &str) -> Failure {
    let similar = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::String(one)) => vec![one.as_str()],
        Some(ContextValue::Strings(some)) => some.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    let quoted: Vec<String> = similar.iter().rev().map(|word| format!("`{word}`")).collect();
    let rendered = error.render().to_string();
    let hint = if let Some(meant) = meant(&format!("{} {word}", group(&rendered))) {
        meant
    } else if quoted.is_empty() {
        match group(&rendered) {
            "phalanx" => "see all verbs with `phalanx help --all`".to_owned(),
            group => format!("see all verbs with `{group} --help`"),
        }
    } else {
        format!("did you mean {}?", quoted.join(" or "))
    };
    Failure::new(Kind::Usage, format!("unknown command `{}`", text::line(word)), Some(hint))
}

/// Returns the verb whose subcommands the usage line of a help text or error is about.
fn group(text: &str) -> &str {
    let usage = text.lines().find_map(|line| line.trim().strip_prefix("Usage: "));
    usage.unwrap_or("phalanx").split(" [").next().unwrap_or_default().trim_end_matches(" <COMMAND>")
}

fn from_text(text: &str) -> Failure {
    let mut paragraphs = text.split("\n\n").map(str::trim_end);
    let first = paragraphs.next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(first);
    let rest: Vec<&str> = paragraphs.flat_map(str::lines).map(str::trim).collect();
    let after = |start: &str| {
        rest.iter().find_map(|line| line.strip_prefix(start)).map(|l| l.trim().to_owned())
    };
    let hint = after("tip: ").or_else(|| after("Usage: ").map(|usage| format!("usage: {usage}")));
    let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let (head, list) = lines.split_first().map_or(("", &[][..]), |(head, list)| (*head, list));
    let message =
        if list.is_empty() { head.to_owned() } else { format!("{head} {}", list.join(", ")) };
    // An argument that is no option, of a verb that has none.
    let is_word = message.starts_with("unexpected argument '") && !message.contains(" '-");
    let other = is_word.then(|| meant(&format!("{} …", group(text)))).flatten();
    let hint = other.or(hint).unwrap_or_else(|| "see `phalanx --help`".to_owned());
    Failure::new(Kind::Usage, message, Some(hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fail::ErrorMessage;
    use crate::verbs::parse;

    fn parse_error(line: &[&str]) -> ErrorMessage {
        let words: Vec<OsString> = line.iter().map(OsString::from).collect();
        let error = parse(&words).expect_err("a mistake");
        match failure(&words, &error) {
            Failure::Message(message) => message,
            Failure::StreamEnded | Failure::OutputClosed => panic!("no message"),
        }
    }

    #[test]
    fn parse_errors_are_one_line_with_a_hint() {
        let table = [
            (&["phalanx", "statsu"][..], "unknown command `statsu`", "did you mean `status`?"),
            (
                &["phalanx", "up", "x", "--kep"],
                "unexpected argument '--kep' found",
                "a similar argument exists: '--keep'",
            ),
            (
                &["phalanx", "spawn", "x", "--env", "A"],
                "invalid value 'A' for '--env <NAME=VALUE>': write it as NAME=VALUE",
                "see ",
            ),
            (
                &["phalanx", "up", "x", "--backend", "screen"],
                "invalid value 'screen' for '--backend <BACKEND>': possible: auto, tmux, iterm2, pty",
                "see ",
            ),
            (
                &["phalanx", "task", "list", "--page", "x"],
                "invalid value 'x' for '--page <N>': not a number from 1",
                "see ",
            ),
        ];
        for (line, message, hint) in table {
            let error = parse_error(line);
            assert_eq!(error.message, message, "{line:?}");
            assert!(
                error.hint.as_deref().is_some_and(|h| h.starts_with(hint)),
                "{line:?}: {:?}",
                error.hint
            );
        }
    }

    #[test]
    fn unknown_verb_suggests_the_nearest_ones() {
        for (words, hint) in [
            (&["statsu"][..], "did you mean `status`?"),
            (&["spwan"], "did you mean `spawn` or `plan`?"),
            (&["xyzzy"], "see all verbs with `phalanx help --all`"),
            (&["task", "xyzzy"], "see all verbs with `phalanx task --help`"),
            (&["task", "done"], "`phalanx task complete ID` completes it"),
        ] {
            let error = parse_error(&[&["phalanx"], words].concat());
            let word = words[words.len() - 1];
            assert_eq!(
                (error.message, error.kind),
                (format!("unknown command `{word}`"), Kind::Usage)
            );
            assert_eq!(error.hint.as_deref(), Some(hint));
        }
    }
}
