//! Completion for shells and for the palette of the dashboard. A shell calls the program with
//! `$PHALANX_COMPLETE` and the words typed so far, and the program offers names from the store. It
//! takes no lock and prints no error; unreadable files yield no candidates.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{Arg, Command, ValueHint};
use clap_complete::engine::{
    self, ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, Shells};

use serde_json::json;
use strum::{VariantArray, VariantNames};

use crate::args::Global;
use crate::docs::topics;
use crate::fail::{Failure, VerbResult};
use crate::out::{Color, Out};
use crate::setup::Setup;
use crate::verbs::definition;
use config::manifest::TEAM_KEYS;
use model::board::task_ref::TaskRef;
use model::id::LEAD;
use model::mail::handoff::HandoffType;
use model::team::role::PLAIN;
use model::team::settings::BackendChoice;
use model::text;
use ops::{self, TeamStore};
use sys::env;
use ui::dashboard::{CompletionRequest, PaletteCandidate};

/// The variable that marks a call by a shell.
const VARIABLE: &str = "PHALANX_COMPLETE";
/// Maximum length of the description beside a candidate, in characters.
const HELP: usize = 60;

/// Answers a shell that requests completions; returns false if none does.
pub(super) fn complete_for_shell(args: &[OsString]) -> bool {
    if env::var(VARIABLE).is_none() {
        return false;
    }
    let words =
        typed(&env::args(), env::var("_CLAP_COMPLETE_INDEX").as_deref().and_then(|n| n.to_str()));
    let global = globals(Global::default(), &words);
    let completer = CompleteEnv::with_factory(|| command(&global))
        .var(VARIABLE)
        .bin("phalanx")
        .completer("phalanx");
    // An error message would clutter the prompt.
    completer.try_complete(args, env::current_dir().ok().as_deref()).unwrap_or(true)
}

/// Returns the candidates for a word of a command line of the dashboard, which runs with the
/// options `global`.
pub(super) fn candidates_for_line(
    global: &Global,
    request: &CompletionRequest,
    dir: &Path,
) -> Vec<PaletteCandidate> {
    let words = request.words.iter().map(OsString::from);
    let args: Vec<OsString> = [OsString::from("phalanx")]
        .into_iter()
        .chain(words)
        .chain([(&request.current).into()])
        .collect();
    let mut command = command(&globals(global.clone(), &request.words));
    let found = engine::complete(&mut command, args, 1 + request.words.len(), Some(dir));
    let shown = |one: &CompletionCandidate| {
        // A value that is not UTF-8 cannot be typed.
        let value = one.get_value().to_str()?.to_owned();
        let about = one.get_help().map(ToString::to_string).unwrap_or_default();
        Some(PaletteCandidate { value, about })
    };
    found.unwrap_or_default().iter().filter_map(shown).collect()
}

/// Prints the script that registers the completion with a shell.
pub(super) fn register(out: &Out, shell: &str) -> VerbResult {
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(shell) else {
        return Err(Failure::usage(
            "there is no completion for this shell",
            "see `phalanx completions --help`",
        ));
    };
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "phalanx", "phalanx", "phalanx", &mut script)?;
    let script = String::from_utf8_lossy(&script);
    out.print(&json!({ "shell": shell.name(), "script": script.trim() }), || {
        script.trim().to_owned()
    })
}

/// The kind of name that an argument takes, displayed as messages call one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
enum NameSource {
    Team,
    Member,
    Task,
    Request,
    Profile,
    Template,
    Role,
    Backend,
    Host,
    Setting,
    State,
    #[strum(serialize = "type")]
    HandoffType,
    Handoff,
    Comment,
    Page,
}

impl NameSource {
    /// Returns whether the names belong to a team.
    fn is_of_team(self) -> bool {
        use NameSource::{Handoff, Member, Request, Task};
        matches!(self, Member | Task | Request | Handoff)
    }

    /// Returns whether a message that asks for a name lists this one. Most verbs do not take the
    /// lead, and a task is listed once, by its id.
    fn is_asked_for(self, name: &str) -> bool {
        match self {
            NameSource::Member => name != LEAD,
            NameSource::Task => matches!(TaskRef::parse(name), Ok(TaskRef::Id(_))),
            _ => true,
        }
    }

    /// Returns the command that adds a name.
    fn added_by(self) -> Option<&'static str> {
        match self {
            NameSource::Team => Some("phalanx init"),
            NameSource::Member => Some("phalanx spawn NAME"),
            NameSource::Task => Some("phalanx task create SUBJECT"),
            _ => None,
        }
    }
}

/// Returns the kind of names that an argument of a verb takes; `None` for free text and for new
/// names.
fn names(verb: &[&str], arg: &str) -> Option<NameSource> {
    match (verb, arg) {
        (_, "team") | (["rm"] | ["store", _], "name") => Some(NameSource::Team),
        (["spawn", ..] | ["team", "create"] | ["profile", "learn"] | ["man"], "name" | "names") => {
            None
        }
        (["host", ..], "name") | (["spawn"], "host") => Some(NameSource::Host),
        (["profile", _], "name") | (_, "profile" | "agents") => Some(NameSource::Profile),
        (["template", _], "name") | (["init"], "template") => Some(NameSource::Template),
        (["spawn"], "task") => Some(NameSource::Task),
        (["task", ..] | ["retry"], "id" | "by" | "blocked_by" | "unblock" | "blocks") => {
            Some(NameSource::Task)
        }
        (["review", _], "id" | "ids") => Some(NameSource::Comment),
        (["answer"] | ["requests", ..], "id") => Some(NameSource::Request),
        (["wait"], "until") => Some(NameSource::State),
        (["team", "set"], "pairs" | "unset") => Some(NameSource::Setting),
        (_, "to_team") | (["handoff", "list"], "from") => Some(NameSource::Team),
        (["handoff", _], "kind") => Some(NameSource::HandoffType),
        (["handoff", "get"], "handoff") => Some(NameSource::Handoff),
        (["docs"], "topic") => Some(NameSource::Page),
        (_, "role") => Some(NameSource::Role),
        (_, "backend") => Some(NameSource::Backend),
        (_, "name" | "names" | "to" | "owner" | "speaker") => Some(NameSource::Member),
        _ => None,
    }
}

/// Returns the command-line definition with completions attached, for the team that these options
/// select.
fn command(global: &Global) -> Command {
    complete_verb(definition(), &mut Vec::new(), global)
}

fn complete_verb(command: Command, verb: &mut Vec<String>, global: &Global) -> Command {
    let words: Vec<&str> = verb.iter().map(String::as_str).collect();
    let command = command.mut_args(|arg| complete_arg(&words, arg, global));
    command.mut_subcommands(|inner| {
        verb.push(inner.get_name().to_owned());
        let completed = complete_verb(inner, verb, global);
        verb.pop();
        completed
    })
}

/// Hides options, so that the shell offers them only after a dash; an empty word gets names.
fn complete_arg(verb: &[&str], arg: Arg, global: &Global) -> Arg {
    let is_option = !arg.is_positional();
    let arg = arg.hide(is_option);
    match (names(verb, arg.get_id().as_str()), arg.get_id().as_str()) {
        (Some(names), _) => {
            let global = global.clone();
            arg.add(ArgValueCandidates::new(move || candidates(names, &global)))
        }
        // The name of a template, or a file.
        (None, "manifest") => {
            let global = global.clone();
            arg.add(ArgValueCompleter::new(move |word: &OsStr| manifests(word, &global)))
        }
        (None, "config_dir" | "cwd") => arg.value_hint(ValueHint::DirPath),
        (
            None,
            "file" | "files" | "settings" | "prompt_file" | "screen" | "source" | "tmux_socket",
        ) => arg.value_hint(ValueHint::FilePath),
        (None, _) => arg,
    }
}

/// Returns the candidates of one kind, for the team that these options select.
fn candidates(names: NameSource, global: &Global) -> Vec<CompletionCandidate> {
    let plain = |words: &[&str]| words.iter().filter_map(|word| candidate(word, "")).collect();
    let found = match names {
        NameSource::Backend => return plain(BackendChoice::VARIANTS),
        NameSource::State => return plain(&["ready", "idle", "gone", "task="]),
        NameSource::Setting => {
            return TEAM_KEYS.iter().filter_map(|key| candidate(&key.key, &key.meaning)).collect();
        }
        NameSource::HandoffType => {
            let kinds = HandoffType::VARIANTS.iter();
            return kinds.filter_map(|kind| candidate(kind.as_str(), &kind.purpose())).collect();
        }
        NameSource::Page => {
            return topics().filter_map(|(topic, about)| candidate(topic, about)).collect();
        }
        NameSource::Handoff => visible_team(global).and_then(|team| handoffs(&team)),
        NameSource::Comment => setup(global).and_then(|setup| comments(&setup, global)),
        NameSource::Team => setup(global).and_then(|setup| teams(&setup)),
        NameSource::Profile => setup(global).and_then(|setup| profiles(&setup)),
        NameSource::Template => setup(global).and_then(|setup| templates(&setup)),
        NameSource::Host => setup(global).and_then(|setup| hosts(&setup)),
        NameSource::Member => visible_team(global).and_then(|team| members(&team)),
        NameSource::Task => visible_team(global).and_then(|team| tasks(&team)),
        NameSource::Request => visible_team(global).and_then(|team| requests(&team)),
        NameSource::Role => return roles(global),
    };
    found.unwrap_or_default()
}

/// The names or words that an argument takes.
pub(super) struct Offer {
    /// The kind of name: `member`.
    pub(super) noun: String,
    /// The existing names; a failure if they belong to a team and none can be opened.
    pub(super) names: Result<Vec<String>, Failure>,
    /// The command that adds such a name.
    pub(super) added_by: Option<&'static str>,
}

/// Returns what completion offers for an argument of a verb; `None` for free text and new names.
/// `args` is the whole command line, whose options select the team.
pub(super) fn offer(args: &[OsString], verb: &[&str], arg: &Arg) -> Option<Offer> {
    let Some(names) = names(verb, arg.get_id().as_str()) else {
        let words = arg.get_possible_values();
        let words = words.iter().filter(|word| !word.is_hide_set());
        let words: Vec<String> = words.map(|word| word.get_name().to_owned()).collect();
        let offer = Offer { noun: value_noun(arg), names: Ok(words), added_by: None };
        return Some(offer).filter(|offer| offer.names.as_ref().is_ok_and(|n| !n.is_empty()));
    };
    let words: Vec<String> = args.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let global = globals(Global::default(), &words);
    let team = names.is_of_team().then(|| Setup::new(&global, quiet())?.selected_team());
    let found = match team.transpose() {
        Err(failure) => Err(failure),
        // The names are not for this caller.
        Ok(Some(_)) if visible_team(&global).is_none() => return None,
        Ok(_) => {
            let found = candidates(names, &global);
            let found = found.iter().map(|one| one.get_value().to_string_lossy().into_owned());
            Ok(found.filter(|name| names.is_asked_for(name)).collect())
        }
    };
    Some(Offer { noun: names.to_string(), names: found, added_by: names.added_by() })
}

/// Returns what the value of an argument is called: `FILE` is a file.
pub(super) fn value_noun(arg: &Arg) -> String {
    let name = arg.get_value_names().and_then(<[_]>::first).map_or("", |name| name.as_str());
    match name {
        "CMD" => "command line".to_owned(),
        "DIR" => "directory".to_owned(),
        "PERCENT" => "percentage".to_owned(),
        name => name.to_lowercase().replace('_', " "),
    }
}

/// Returns a candidate, or `None` for a name that a shell would not read as one word.
fn candidate(name: &str, help: &str) -> Option<CompletionCandidate> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@:=/".contains(c);
    let usable = !name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain);
    let help = (!help.trim().is_empty()).then(|| text::short(help, HELP).into());
    usable.then(|| CompletionCandidate::new(name).help(help))
}

fn teams(setup: &Setup) -> Option<Vec<CompletionCandidate>> {
    let teams = ops::authority::visible_teams(&setup.ctx).ok()?;
    let described = |name| setup.ctx.store.team(name).ok()?.team().ok()?.description;
    Some(
        teams
            .iter()
            .filter_map(|name| candidate(name.as_str(), &described(name).unwrap_or_default()))
            .collect(),
    )
}

fn members(team: &TeamStore) -> Option<Vec<CompletionCandidate>> {
    let roster = team.team().ok()?;
    let described = |member: &model::team::Member| {
        candidate(member.name.as_str(), member.agent_type.as_deref().unwrap_or_default())
    };
    Some(roster.members.iter().filter_map(described).collect())
}

fn tasks(team: &TeamStore) -> Option<Vec<CompletionCandidate>> {
    let board = team.board().ok()?;
    let ids = board.work().filter_map(|task| candidate(&task.id.to_string(), task.title()));
    let keys = board.work().filter_map(|task| candidate(task.extra.key.as_deref()?, task.title()));
    Some(ids.chain(keys).collect())
}

fn requests(team: &TeamStore) -> Option<Vec<CompletionCandidate>> {
    let questions = team.questions().ok()?.into_iter().filter(|question| question.is_open());
    let questions = questions.map(|question| (question.id.to_string(), question.summary()));
    let shutdowns = team.requests().ok()?.into_iter().filter(|request| request.is_open());
    let shutdowns = shutdowns
        .map(|request| (request.id.to_string(), format!("{} is stopping", request.member)));
    Some(questions.chain(shutdowns).filter_map(|(id, summary)| candidate(&id, &summary)).collect())
}

fn comments(setup: &Setup, global: &Global) -> Option<Vec<CompletionCandidate>> {
    let team = visible_team(global)?;
    let found = ops::review::comments::list(&setup.ctx, &team, None).ok()?;
    let open = found.iter().filter(|comment| comment.resolved.is_none());
    Some(open.filter_map(|comment| candidate(&comment.id.to_string(), &comment.text)).collect())
}

fn handoffs(team: &TeamStore) -> Option<Vec<CompletionCandidate>> {
    let found = team.received_handoffs().ok()?.handoffs;
    Some(found.iter().filter_map(|handoff| candidate(&handoff.id, &handoff.kind)).collect())
}

fn profiles(setup: &Setup) -> Option<Vec<CompletionCandidate>> {
    let listed = ops::members::profiles::list(&setup.ctx).ok()?;
    Some(listed.iter().filter_map(|profile| candidate(&profile.name, "")).collect())
}

fn templates(setup: &Setup) -> Option<Vec<CompletionCandidate>> {
    let listed = ops::starting::templates::list(&setup.ctx).ok()?;
    let described = |one: &ops::starting::templates::ListedTemplate| {
        let about = one.template.as_ref().map_or("", |template| template.about.as_str());
        candidate(&one.name, about)
    };
    Some(listed.iter().filter_map(described).collect())
}

/// Returns the candidates for a manifest: files, and templates.
fn manifests(current: &OsStr, global: &Global) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let templates = setup(global).and_then(|setup| templates(&setup)).unwrap_or_default();
    let fits =
        |one: &CompletionCandidate| one.get_value().to_string_lossy().starts_with(typed.as_ref());
    let mut found = PathCompleter::file().complete(current);
    found.extend(templates.into_iter().filter(fits));
    found
}

fn hosts(setup: &Setup) -> Option<Vec<CompletionCandidate>> {
    let team = setup.visible_team().and_then(|team| team.settings().ok().flatten());
    let of_team = team.map(|settings| settings.hosts).unwrap_or_default();
    let hosts = ops::hosts::configured(&setup.ctx, &of_team).ok()?;
    let described = |host: &ops::hosts::ConfiguredHost| {
        candidate(host.config.name.as_str(), &host.config.labels.join(", "))
    };
    Some(hosts.iter().filter_map(described).collect())
}

/// Built-in roles that have only a name are offered even without a team.
fn roles(global: &Global) -> Vec<CompletionCandidate> {
    let own = visible_team(global)
        .and_then(|team| ops::starting::roles::team_roles(&team).ok())
        .unwrap_or_default()
        .named;
    let of_team = own
        .iter()
        .map(|(name, role)| (name.as_str(), role.description.as_deref().unwrap_or_default()));
    of_team
        .chain(PLAIN.map(|name| (name, "")))
        .filter_map(|(name, help)| candidate(name, help))
        .collect()
}

fn visible_team(global: &Global) -> Option<TeamStore> {
    setup(global)?.visible_team()
}

/// Returns the setup that the verb itself would use.
fn setup(global: &Global) -> Option<Setup> {
    Setup::new(global, quiet()).ok()
}

fn quiet() -> Out {
    Out::new(false, true, false, Color::Never)
}

/// Returns the words before the completed one; the shell passes them after `--`.
fn typed(args: &[OsString], index: Option<&str>) -> Vec<String> {
    let words: Vec<&OsString> = args.iter().skip_while(|word| *word != "--").skip(1).collect();
    let before = index.and_then(|n| n.parse().ok()).unwrap_or(words.len().saturating_sub(1));
    words.iter().take(before).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Parses the options that select the team; they count more than those in `global`. The rest of the
/// line may be incomplete.
fn globals(mut global: Global, words: &[String]) -> Global {
    // bash splits `--team=NAME` at the equals sign.
    let mut words = words.iter().filter(|word| *word != "=");
    while let Some(word) = words.next() {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        match option {
            "--" => break,
            "-t" | "--team" => global.team = value.or_else(|| words.next().cloned()),
            "--config-dir" => {
                global.config_dir = value.or_else(|| words.next().cloned()).map(Into::into)
            }
            short if short.starts_with("-t") => global.team = Some(short[2..].to_owned()),
            _ => {}
        }
    }
    global
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn team_and_config_dir_are_parsed_from_the_line() {
        for line in [
            "send -t demo",
            "-tdemo send",
            "send --team=demo",
            "send --team = demo",
            "--team x -t demo",
        ] {
            assert_eq!(
                globals(Global::default(), &words(line)).team.as_deref(),
                Some("demo"),
                "{line}"
            );
        }
        let global = globals(Global::default(), &words("--config-dir /c send -t"));
        assert_eq!((global.config_dir.as_deref(), global.team), (Some("/c".as_ref()), None));
        assert_eq!(globals(Global::default(), &words("spawn a -- x -t demo")).team, None);
    }

    #[test]
    fn only_words_before_the_cursor_are_used() {
        let args: Vec<OsString> =
            ["phalanx", "--", "phalanx", "send", "a", "-t", "x"].map(OsString::from).into();
        assert_eq!(typed(&args, Some("2")), ["phalanx", "send"]);
        assert_eq!(typed(&args, None), ["phalanx", "send", "a", "-t"]);
    }

    #[test]
    fn hostile_names_are_not_offered_and_help_is_printable() {
        for name in ["", "-rf", "a b", "a;b", "$(x)", "a\u{1b}", "ü"] {
            assert!(candidate(name, "").is_none(), "{name:?}");
        }
        let shown = candidate("3", "Say \u{1b}[31m").expect("a candidate");
        assert_eq!(shown.get_help().map(ToString::to_string).as_deref(), Some("Say \u{241b}[31m"));
    }

    /// A renamed or added argument that takes a name must be listed in `names`.
    #[test]
    fn every_argument_that_takes_a_name_is_completed() {
        fn visit(command: &Command, verb: &mut Vec<String>, missing: &mut Vec<String>) {
            let words: Vec<&str> = verb.iter().map(String::as_str).collect();
            for arg in command.get_arguments() {
                let wanted = arg.get_value_names().unwrap_or_default().iter();
                let is_name = wanted.clone().any(|name| {
                    ["NAME", "ID", "ROLE", "PROFILE", "BACKEND"].contains(&name.as_str())
                });
                if is_name && names(&words, arg.get_id().as_str()).is_none() {
                    missing.push(format!("{} {}", verb.join(" "), arg.get_id()));
                }
            }
            for inner in command.get_subcommands() {
                verb.push(inner.get_name().to_owned());
                visit(inner, verb, missing);
                verb.pop();
            }
        }
        let mut missing = Vec::new();
        visit(&definition(), &mut Vec::new(), &mut missing);
        assert_eq!(
            missing,
            ["resume session", "team create name", "spawn names", "profile learn name"]
        );
    }
}
