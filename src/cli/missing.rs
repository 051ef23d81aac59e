//! Asks for what a command line lacks, in one sentence with the possible names, and shows the line
//! to type. The names are those that completion offers.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command};

use crate::complete::{Offer, offer, value_noun};
use crate::fail::Failure;
use crate::verbs::{definition, shown};
use ops::Kind;

/// Maximum number of names in a sentence.
const NAMES: usize = 10;

/// Asks for the command after a group of verbs, such as `phalanx team`.
pub(super) fn command(path: &str) -> Failure {
    let words: Vec<&str> = path.split(' ').skip(1).collect();
    let root = definition();
    let group = words.iter().try_fold(&root, |group, word| group.find_subcommand(word));
    let verbs: Vec<&str> = group.into_iter().flat_map(shown).map(Command::get_name).collect();
    let problem = format!("`{}` needs a command after it: {}", words.join(" "), verbs.join(", "));
    Failure::usage(problem, &format!("see `phalanx help {}`", words.join(" ")))
}

/// Asks for the required arguments that a command line does not have; `None` for an internal verb.
pub(super) fn arguments(args: &[OsString], error: &clap::Error) -> Option<Failure> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let text = error.render().to_string();
    let usage = text.lines().find_map(|line| line.trim().strip_prefix("Usage: phalanx "))?;
    let path: Vec<&str> =
        usage.split(' ').take_while(|word| !word.starts_with(['<', '[', '-'])).collect();
    let root = definition();
    let verb = path.iter().try_fold(&root, |group, word| group.find_subcommand(word))?;
    let missing: Option<Vec<MissingPart>> =
        missing.iter().map(|shown| MissingPart::find(args, &path, verb, shown)).collect();
    let mut missing = missing?;
    // As they are typed: options come last.
    missing.sort_by_key(|part| part.arg.get_index().unwrap_or(usize::MAX));

    let names: Vec<&str> = missing.iter().map(|part| part.name.as_str()).collect();
    let mut message = format!("`{}` needs {}", path.join(" "), listed(&names, "and"));
    let mut hint = None;
    for offer in missing.iter().filter_map(|part| part.offer.as_ref()) {
        let noun = &offer.noun;
        let (words, remedy) = match &offer.names {
            Ok(names) if names.is_empty() => {
                let add = offer.added_by.map(|command| format!("add one with `{command}`"));
                (format!("there are no {noun}s"), add)
            }
            Ok(names) => (format!("{noun}s: {}", some_of(names)), None),
            Err(Failure::Message(error)) => (error.message.clone(), error.hint.clone()),
            Err(_) => continue,
        };
        // Two names of one team are missing for the same reason.
        if !message.contains(&words) {
            message = format!("{message}; {words}");
        }
        hint = hint.or(remedy);
    }
    let hint = hint.unwrap_or_else(|| line_to_type(args, verb, &missing));
    Some(Failure::new(Kind::Usage, message, Some(hint)))
}

/// An argument that is missing, or the first of several of which one is.
struct MissingPart<'v> {
    arg: &'v Arg,
    /// The words for it in a sentence: `a member`.
    name: String,
    offer: Option<Offer>,
}

impl<'v> MissingPart<'v> {
    /// Finds the argument that clap's error shows as `<NAME>`, `--until <STATE>` or `<--a|--b>`.
    fn find(args: &[OsString], path: &[&str], verb: &'v Command, shown: &str) -> Option<Self> {
        // The definition shows an argument that an option can replace as `[NAME]`, the error as
        // `<NAME>`.
        let plain = |shown: &str| shown.replace(['<', '>', '[', ']'], "");
        let shown = plain(shown);
        let found: Vec<&Arg> = shown
            .split('|')
            .filter_map(|shown| verb.get_arguments().find(|arg| plain(&arg.to_string()) == shown))
            .collect();
        let arg = *found.first()?;
        let offer = offer(args, path, arg);
        let name = if arg.is_positional() {
            let noun = offer.as_ref().map_or_else(|| value_noun(arg), |offer| offer.noun.clone());
            let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
            format!("{article} {noun}")
        } else {
            let options: Vec<String> = found
                .iter()
                .map(|arg| format!("`{}`", option_with(arg, value_name(arg))))
                .collect();
            listed(&options.iter().map(String::as_str).collect::<Vec<_>>(), "or")
        };
        Some(MissingPart { arg, name, offer })
    }

    /// Returns the words to type for it, with the first possible name.
    fn example(&self) -> String {
        let names = self.offer.as_ref().and_then(|offer| offer.names.as_ref().ok());
        let value = names.and_then(|names| names.first()).map(String::as_str);
        let value = value.unwrap_or(value_name(self.arg));
        match self.arg {
            arg if arg.is_last_set() => format!("-- {value}"),
            arg if arg.is_positional() => value.to_owned(),
            arg => option_with(arg, value),
        }
    }
}

fn value_name(arg: &Arg) -> &str {
    arg.get_value_names().and_then(<[_]>::first).map_or("", |name| name.as_str())
}

/// Returns an option with its value, if it needs one.
fn option_with(arg: &Arg, value: &str) -> String {
    let name = format!("--{}", arg.get_long().unwrap_or_default());
    let needs_value = arg.get_num_args().is_some_and(|count| count.min_values() > 0);
    if needs_value { format!("{name} {value}") } else { name }
}

/// Returns the line that was typed with what it lacks.
fn line_to_type(args: &[OsString], verb: &Command, missing: &[MissingPart]) -> String {
    let typed: Vec<String> = args.iter().skip(1).map(quoted).collect();
    let takes_more = |word: &String| {
        let options = verb.get_arguments().filter(|arg| !arg.is_positional());
        let mut many =
            options.filter(|arg| arg.get_num_args().is_some_and(|count| count.max_values() > 1));
        *word == "--" || many.any(|arg| word.strip_prefix("--") == arg.get_long())
    };
    // After `--` and after an option of several values, a word would belong to these.
    let at = typed.iter().position(takes_more).unwrap_or(typed.len());
    let mut line = vec!["phalanx".to_owned()];
    line.extend_from_slice(&typed[..at]);
    line.extend(missing.iter().map(MissingPart::example));
    let last = missing.iter().filter_map(|part| part.arg.get_index()).max();
    let further = verb.get_positionals().filter(|arg| !arg.is_last_set() && arg.get_index() > last);
    line.extend(further.filter(|_| last.is_some()).map(|arg| format!("[{}]", value_name(arg))));
    line.extend_from_slice(&typed[at..]);
    line.join(" ")
}

fn quoted(word: &OsString) -> String {
    let word = word.to_string_lossy();
    shlex::try_quote(&word).map(Into::into).unwrap_or_default()
}

/// Returns the first names, and the number of the others.
fn some_of(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMES)].join(", ");
    match names.len().saturating_sub(NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Joins words: `a, b and c`.
fn listed(words: &[&str], conjunction: &str) -> String {
    match words.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, first)) => format!("{} {conjunction} {last}", first.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fail::ErrorMessage;
    use crate::usage;
    use crate::verbs::parse;

    /// Returns the error of a command line, if it has one.
    fn error_of(words: &[&str]) -> Option<ErrorMessage> {
        let args: Vec<OsString> = ["phalanx"].iter().chain(words).map(OsString::from).collect();
        match usage::failure(&args, &parse(&args).err()?) {
            Failure::Message(error) => Some(error),
            Failure::StreamEnded | Failure::OutputClosed => panic!("no message"),
        }
    }

    /// Calls `check` for each verb and each group of verbs, hidden ones too.
    fn visit(command: &Command, path: &mut Vec<String>, check: &mut impl FnMut(&Command, &[&str])) {
        for inner in command.get_subcommands() {
            path.push(inner.get_name().to_owned());
            check(inner, &path.iter().map(String::as_str).collect::<Vec<_>>());
            visit(inner, path, check);
            path.pop();
        }
    }

    #[test]
    fn every_bare_verb_names_what_it_needs_in_our_words() {
        let mut asked = 0;
        visit(&definition(), &mut Vec::new(), &mut |verb, path| {
            let Some(error) = error_of(path) else { return };
            asked += 1;
            let (name, message) = (path.join(" "), error.message);
            assert!(message.starts_with(&format!("`{name}` needs ")), "{name}: {message}");
            assert!(!message.contains("required") && !message.contains('<'), "{name}: {message}");
            for inner in shown(verb).filter(|_| verb.is_subcommand_required_set()) {
                assert!(message.contains(inner.get_name()), "{name}: {message}");
            }
            for arg in verb.get_arguments().filter(|arg| arg.is_required_set()) {
                let noun = offer(&[], path, arg).map_or_else(|| value_noun(arg), |it| it.noun);
                let word = arg.get_long().map_or(noun, |long| format!("--{long}"));
                assert!(message.contains(&word), "{name}: no {word} in: {message}");
            }
            let hint = error.hint.expect("a hint");
            assert!(hint.contains("phalanx "), "{name}: {hint}");
        });
        assert!(asked > 50, "{asked}");
    }

    #[test]
    fn hint_is_the_typed_line_with_what_it_lacks() {
        for (words, message, hint) in [
            (&["spawn"][..], "`spawn` needs a name", "phalanx spawn NAME"),
            (
                &["spawn", "a b", "--base", "main"],
                "`spawn` needs `--worktree`",
                "phalanx spawn 'a b' --base main --worktree",
            ),
            (
                &["profile", "learn", "--", "x"],
                "`profile learn` needs a name",
                "phalanx profile learn NAME -- x",
            ),
            (
                &["profile", "learn"],
                "`profile learn` needs a name and a command line",
                "phalanx profile learn NAME -- CMD",
            ),
            (
                &["completions"],
                "`completions` needs a shell; shells: bash, elvish, fish, powershell, zsh",
                "phalanx completions bash",
            ),
            (
                &["workspace", "write"],
                "`workspace write` needs a path",
                "phalanx workspace write PATH [FILE]",
            ),
            (
                &["manifest"],
                "`manifest` needs a command after it: schema",
                "see `phalanx help manifest`",
            ),
        ] {
            let error = error_of(words).expect("an error");
            assert_eq!((error.message.as_str(), error.hint.as_deref()), (message, Some(hint)));
        }
    }

    #[test]
    fn at_most_ten_names_are_listed() {
        let names = |count: usize| (1..=count).map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(some_of(&names(10)), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10");
        assert_eq!(some_of(&names(12)), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more");
    }
}
