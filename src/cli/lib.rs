//! The command line: parses arguments, builds the context, calls an operation and reports its
//! result. Only this module reads environment variables and options.

mod acp;
mod args;
mod board;
mod complete;
mod crash;
mod decisions;
mod docs;
mod doctor;
mod ending;
mod fail;
mod groups;
mod hosts;
mod interrupt;
mod json;
mod locale;
mod mail;
mod manual;
mod mcp;
mod members;
mod missing;
mod notice;
mod out;
mod pager;
mod read;
#[cfg(test)]
mod reference;
mod review;
mod setup;
mod team;
mod terminal;
#[cfg(test)]
mod tests;
mod usage;
mod verbs;
mod views;
mod watch;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use args::Global;
use board::task::{TaskActionVerb, TaskVerb};
use ending::shutdown::ShutdownArgs;
use fail::{Exit, Failure, VerbResult};
use out::Out;
use setup::Setup;
use team::TeamVerb;
use verbs::{InternalVerb, Verb};

use sys::{env, lock, selftest, signal};

/// Runs the program with the arguments of this process and returns its exit code.
#[must_use]
pub fn run() -> ExitCode {
    let args = env::args();
    if complete::complete_for_shell(&args) {
        return ExitCode::SUCCESS;
    }
    let json = wants_json(&args);
    crash::install_panic_hook();
    signal::survive_file_size_limit();
    // The process exits after a panic, so no broken state is used.
    let exit = match catch_unwind(AssertUnwindSafe(|| start(&args, json))) {
        Ok(exit) => exit,
        Err(_) => {
            let error = crash::last_panic();
            let _ = json.then(|| {
                Out::new(true, true, false, out::Color::Never).print_document(&error.document())
            });
            Exit::of(error.kind)
        }
    };
    ExitCode::from(exit.0)
}

/// Returns whether `--json` is given, even if the command line cannot be parsed.
fn wants_json(args: &[OsString]) -> bool {
    args.iter().take_while(|word| *word != "--").any(|word| word == "--json")
}

fn start(args: &[OsString], json: bool) -> Exit {
    if let Some(parsed) = InternalVerb::parse(args) {
        return parsed.map_or_else(|error| not_parsed(args, &error, json), run_internal);
    }
    let cli = match verbs::parse(args) {
        Ok(cli) => cli,
        Err(error) => return not_parsed(args, &error, json),
    };
    let global = &cli.global;
    let out = Out::new(global.json, global.quiet, global.verbose, global.color);
    if !cli.verb.as_ref().is_some_and(has_other_terminal) {
        let messages = out.clone();
        lock::observe_waits(move |wait| messages.print_message(&notice::lock_wait_text(wait)));
    }
    let setup = || Setup::new(global, out.clone());
    let done = match cli.verb {
        None => views::home::start(setup().ok(), global, &out),
        Some(Verb::Hook(args)) => return members::worker::hook(global, args),
        Some(Verb::Init(args)) => team::init::init(setup(), &out, &args),
        Some(Verb::Doctor(args)) if args.self_test => doctor::self_test(&out),
        Some(Verb::Completions { shell }) => complete::register(&out, &shell),
        Some(Verb::Docs(args)) => docs::docs(&out, &args),
        Some(Verb::Help { words, all }) => manual::help(&out, &words, all),
        Some(Verb::Man { dir: Some(dir), .. }) => manual::write_pages(&out, &dir),
        Some(Verb::Man { words, dir: None }) => manual::man(&out, &words),
        Some(Verb::Version) => manual::version(&out),
        Some(Verb::Manifest(verb)) => team::manifest::manifest(&out, &verb),
        // Each call of a tool has a setup of its own.
        Some(Verb::Mcp(args)) => mcp::mcp(global, &out, &args, verbs::definition),
        Some(Verb::Watch(args)) => setup().and_then(|setup| watch::watch(setup, global, &args)),
        Some(verb) => setup().and_then(|setup| {
            perform(&setup, verb).map_err(|failure| setup.explain_deleted_team(failure))
        }),
    };
    done.unwrap_or_else(|failure| fail(&out, &failure))
}

/// Prints the requested help, or reports a command line that is not valid.
fn not_parsed(args: &[OsString], error: &clap::Error, json: bool) -> Exit {
    if usage::is_help_request(error) {
        let _ = error.print();
        return Exit::DONE;
    }
    fail(&Out::new(json, false, false, out::Color::Auto), &usage::failure(args, error))
}

fn fail(out: &Out, failure: &Failure) -> Exit {
    out.report_failure(failure);
    failure.exit()
}

/// Runs a process that phalanx has started; the environment says what it belongs to.
fn run_internal(verb: InternalVerb) -> Exit {
    let out = Out::new(false, false, false, out::Color::Auto);
    let run = |member: fn(&Setup) -> VerbResult| {
        let setup = Setup::new(&Global::default(), out.clone())?;
        member(&setup).map_err(|failure| setup.explain_deleted_team(failure))
    };
    let done = match verb {
        // The launcher needs nothing but its spec.
        InternalVerb::Exec { spec } => {
            let code =
                launcher::exec(&spec, &setup::launcher_store(), &ops::starting::one_shot::END);
            Ok(Exit(u8::try_from(code).unwrap_or(1)))
        }
        InternalVerb::Highlight { language } => review::highlight(language),
        InternalVerb::SelfTestHelper { role, dir } => Ok(Exit(selftest::run_helper(role, &dir))),
        InternalVerb::Worker => run(members::worker::worker),
        InternalVerb::Wrap => run(members::worker::wrap),
    };
    done.unwrap_or_else(|failure| fail(&out, &failure))
}

/// Returns whether the terminal belongs to a program that the verb runs.
fn has_other_terminal(verb: &Verb) -> bool {
    match verb {
        Verb::Lead(args) => args.has_agent(),
        verb => matches!(verb, Verb::Watch(_) | Verb::Acp(_)),
    }
}

fn perform(setup: &Setup, verb: Verb) -> VerbResult {
    match verb {
        Verb::Up(args) => team::up::up(setup, &args),
        Verb::Down(args) => ending::shutdown::down(setup, &args),
        Verb::Lead(args) => team::lead::lead(setup, &args),
        Verb::Acp(args) => acp::acp(setup, &args),
        Verb::Adopt(args) => team::lead::adopt(setup, &args),
        Verb::Resume(args) => members::resume::resume(setup, &args),
        Verb::Team(verb) => team::team(setup, verb),
        Verb::Profile(verb) => members::profile::profile(setup, verb),
        Verb::Template(verb) => team::template::template(setup, &verb),
        Verb::Spawn(args) => members::spawn::spawn(setup, *args),
        Verb::Send(args) => mail::send(setup, &args),
        Verb::Broadcast(args) => mail::broadcast(setup, &args),
        Verb::Handoff(verb) => mail::handoff::handoff(setup, verb),
        Verb::Type(args) => members::input::type_text(setup, &args),
        Verb::Keys(args) => members::input::keys(setup, &args),
        Verb::Inbox(args) => mail::inbox::inbox(setup, &args),
        Verb::Task(verb) => board::task::task(setup, verb),
        Verb::Requests(args) => decisions::requests::requests(setup, &args),
        Verb::Mode(args) => decisions::requests::mode(setup, &args),
        Verb::Rules(args) => decisions::requests::rules(setup, &args),
        Verb::Shutdown(args) => ending::shutdown::shutdown(setup, &args),
        Verb::Rename(args) => members::rename::rename(setup, &args),
        Verb::Restart(args) => members::resume::restart(setup, &args),
        Verb::Review(args) => review::review(setup, &args),
        Verb::Worktree(verb) => board::worktree::worktree(setup, &verb),
        Verb::Host(verb) => hosts::host::host(setup, &verb),
        Verb::Store(verb) => hosts::store::store(setup, &verb),
        Verb::Workspace(verb) => board::workspace::workspace(setup, &verb),
        Verb::Answer(args) => decisions::answer::answer(setup, args),
        Verb::Plan(verb) => decisions::ask::plan(setup, verb),
        Verb::Ask(verb) => decisions::ask::ask(setup, verb),
        Verb::Status(args) => views::status::status(setup, &args),
        Verb::Ps => views::ps::ps(setup),
        Verb::Report(args) => team::closing::report(setup, &args),
        Verb::Doctor(args) => doctor::doctor(setup, &args),
        Verb::Explain(args) => views::explain::explain(setup, &args),
        Verb::Popup => views::popup::popup(setup),
        Verb::Focus(args) => views::focus::focus(setup, &args),
        Verb::Hide(args) => views::focus::hide(setup, &args),
        Verb::Show(args) => views::focus::show(setup, &args),
        Verb::Brief(args) => team::brief::brief(setup, &args),
        // Handled before the setup, which can fail.
        Verb::Init(_)
        | Verb::Hook(_)
        | Verb::Completions { .. }
        | Verb::Docs(_)
        | Verb::Help { .. }
        | Verb::Man { .. }
        | Verb::Mcp(_)
        | Verb::Watch(_)
        | Verb::Manifest(_)
        | Verb::Version => Ok(Exit::DONE),
        Verb::Wait(args) => views::wait::wait(setup, args),
        Verb::Events(args) => views::events::events(setup, &args),
        Verb::Attach(args) => views::attach::attach(setup, &args),
        Verb::Peek(args) => views::attach::peek(setup, &args),
        Verb::Logs(args) => views::logs::logs(setup, args),
        Verb::Ls => team::team(setup, TeamVerb::List),
        Verb::Rm { name, force } => team::delete(setup, Some(&name), force),
        Verb::Kill(args) => {
            ending::shutdown::shutdown(setup, &ShutdownArgs { force: true, ..args })
        }
        Verb::Retry { id } => {
            board::task::task(setup, TaskVerb::Action(TaskActionVerb::Retry { id }))
        }
    }
}
