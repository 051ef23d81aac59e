//! What clap says about a wrong command line, in the house's form.

use clap::error::ErrorKind;

use super::fail::{Class, Failure};

/// Whether this is no mistake but a wish to read something.
pub(super) fn is_wish(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
}

/// The mistake as a failure: clap's first paragraph is the message, its tip or the usage line the hint.
pub(super) fn failure(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand || text.starts_with("error: ") {
        return from_text(&text);
    }
    Failure::new(Class::Usage, text.trim(), Some("see `phalanx --help`".to_owned()))
}

fn from_text(text: &str) -> Failure {
    let mut paragraphs = text.split("\n\n").map(str::trim_end);
    let first = paragraphs.next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or("a verb is missing");
    let rest: Vec<&str> = paragraphs.flat_map(str::lines).map(str::trim).collect();
    let after =
        |start: &str| rest.iter().find_map(|line| line.strip_prefix(start)).map(|l| l.trim().to_owned());
    let hint = after("tip: ").or_else(|| after("Usage: ").map(|usage| format!("usage: {usage}")));
    let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let (head, list) = lines.split_first().map_or(("", &[][..]), |(head, list)| (*head, list));
    let message = if list.is_empty() { head.to_owned() } else { format!("{head} {}", list.join(", ")) };
    Failure::new(Class::Usage, message, Some(hint.unwrap_or_else(|| "see `phalanx --help`".to_owned())))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::args::Cli;
    use super::super::fail::Told;
    use super::*;

    fn told(line: &[&str]) -> Told {
        let error = Cli::try_parse_from(line).expect_err("a mistake");
        match failure(&error) {
            Failure::Told(told) => told,
            Failure::StreamEnded | Failure::OutputClosed => panic!("nothing was told"),
        }
    }

    #[test]
    fn mistakes_are_told_in_one_line_with_a_way_on() {
        let table = [
            (
                &["phalanx", "spawn"][..],
                "the following required arguments were not provided: <NAME>",
                "usage: phalanx spawn",
            ),
            (
                &["phalanx", "statsu"],
                "unrecognized subcommand 'statsu'",
                "a similar subcommand exists: 'status'",
            ),
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
                "invalid value 'screen' for '--backend <BACKEND>': possible: auto, tmux, iterm2, pty, exec:PROGRAM",
                "see ",
            ),
            (
                &["phalanx", "task", "get", "x"],
                "invalid value 'x' for '<ID>': task id \"x\" is not a number",
                "see ",
            ),
        ];
        for (line, message, hint) in table {
            let told = told(line);
            assert_eq!(told.message, message, "{line:?}");
            assert!(told.hint.as_deref().is_some_and(|h| h.starts_with(hint)), "{line:?}: {:?}", told.hint);
        }
    }

    #[test]
    fn a_bare_call_is_a_mistake_too() {
        let told = told(&["phalanx"]);
        assert_eq!((told.message.as_str(), told.class), ("a verb is missing", Class::Usage));
    }
}
