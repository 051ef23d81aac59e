//! Tests of whole manifests: valid ones, and each fault with its position and message.

mod access;
mod budget;
mod builtin;
mod routing;
mod schema;
mod types;

use proptest::prelude::*;

use super::tables::TeamTable;
use super::*;
use crate::settings::SECTIONS;
use model::board::limits::Limits;
use model::board::task::ShowOutput;
use model::decisions::rules::Rule;
use model::members::environ::EnvRules;
use model::members::launch::{Demand, Scale};
use model::members::mode::Mode;
use model::members::placement::Layout;
use model::team::followup::{Escalation, ReminderPolicy};
use model::team::hook::{HookEvent, Invocation};
use model::team::settings::{BackendChoice, Finish, OnHang, Privacy, Settings};
use model::team::worktree::WorktreeRequest;

const CHECKS: &str = include_str!("../../../fixtures/teams/checks.toml");

fn good(text: &str) -> Manifest {
    match Manifest::parse(text) {
        Ok(manifest) => manifest,
        Err(error) => panic!("refused: {error}"),
    }
}

fn fault(text: &str) -> String {
    match Manifest::parse(text) {
        Ok(manifest) => panic!("accepted: {manifest:?}"),
        Err(error) => error.to_string(),
    }
}

/// Returns the fault of a manifest that begins with a valid `[team]` on lines 1 and 2.
fn fault_in(rest: &str) -> String {
    fault(&format!("[team]\nname = \"t\"\n{rest}"))
}

#[test]
fn smallest_manifest_has_the_defaults() {
    let manifest = good("team.name = \"t\"");
    assert_eq!(
        (manifest.name.as_str(), manifest.description, manifest.mode),
        ("t", None, TeamMode::Teammate)
    );
    let expected = Settings {
        backend: BackendChoice::Auto,
        layout: Layout::Panes,
        finish: Finish::TasksDone,
        answer_within_s: 3600,
        unresponsive_after_s: 60,
        on_hang: OnHang::Report,
        hang_after_s: 900,
        followup: None,
        notify: Vec::new(),
        max_depth: 1,
        privacy: Privacy::Open,
        limits: Limits { max_per_link: 3, max_per_member: 5 },
        env: EnvRules::default(),
        ..Settings::by_hand(8)
    };
    assert_eq!(manifest.settings, expected);
    assert_eq!((manifest.members.len(), manifest.tasks.len()), (0, 0));
    let manifest = good("team.name = \"t\"\n[[member]]\nname = \"a\"\n");
    let member = &manifest.members[0];
    assert_eq!(
        (member.launch.profile.as_deref(), member.launch.cwd.as_deref()),
        (Some("worker"), None)
    );
}

#[test]
fn manifest_of_the_repository_checks_is_valid() {
    let manifest = good(CHECKS);
    let names: Vec<&str> =
        manifest.members.iter().map(|member| member.launch.name.as_str()).collect();
    assert_eq!(names, ["ada", "ben", "cleo"]);
    assert!(manifest.members.iter().all(|member| {
        (member.launch.profile.as_deref(), member.launch.cwd.as_deref())
            == (Some("worker"), Some("."))
    }));
    let graph: Vec<(&str, Vec<&str>)> = manifest
        .tasks
        .iter()
        .map(|task| (task.key.as_str(), task.after.iter().map(String::as_str).collect()))
        .collect();
    let expected =
        [("fmt", vec![]), ("clippy", vec!["fmt"]), ("docs", vec!["fmt"]), ("unit", vec!["clippy"])];
    assert_eq!(graph, expected);
    let env = ("RUSTDOCFLAGS".to_owned(), "-D warnings".to_owned());
    assert_eq!(manifest.tasks[2].fields.env, Some(vec![env]));
    assert!(manifest.tasks.iter().all(|task| task.fields.command[0] == "cargo"));
}

#[test]
fn every_key_is_read() {
    let manifest = good(include_str!("../../../fixtures/manifests/every_key.toml"));
    assert_eq!(manifest.settings.backend, BackendChoice::Pty);
    assert_eq!(manifest.settings.layout, Layout::Windows);
    assert_eq!(manifest.settings.finish, Finish::Manual);
    assert_eq!(manifest.settings.max_members, 6);
    assert_eq!((manifest.settings.answer_within_s, manifest.settings.notify.len()), (600, 2));
    assert_eq!(manifest.settings.unresponsive_after_s, 90);
    let followup =
        ReminderPolicy { interval_ms: 30_000, max_reminders: 2, escalation: Escalation::FailTask };
    assert_eq!(manifest.settings.followup, Some(followup));
    let routing = &manifest.settings.routing;
    assert_eq!((routing.allow.len(), routing.deny.len(), routing.escalate.len()), (3, 1, 2));
    let words = |rules: &[Rule]| rules.iter().cloned().map(String::from).collect::<Vec<_>>();
    assert_eq!(words(&manifest.settings.rules.team.deny), ["Bash(git push:*)", "Read(~/.ssh/**)"]);
    assert_eq!(words(&manifest.settings.rules.team.ask), ["WebFetch"]);
    assert_eq!(words(&manifest.settings.rules.team.allow), ["Bash(git:*)", "Edit"]);
    assert_eq!(words(&manifest.settings.rules.roles["tester"].allow), ["Bash(cargo test:*)"]);
    assert_eq!(words(&manifest.settings.rules.members["alice"].deny), ["Edit(/etc/**)"]);
    assert_eq!(manifest.settings.max_depth, 2);
    assert_eq!(manifest.settings.env.allow, ["PATH", "LC_*"]);
    assert_eq!(manifest.settings.env.deny, ["*"]);
    let [begin, done] = manifest.settings.hooks.as_slice() else { panic!("two hooks") };
    assert!(
        begin.is_for(HookEvent::SubagentStart, "tester")
            && !begin.is_for(HookEvent::SubagentStart, "dev")
    );
    assert_eq!((done.event, done.timeout_s), (HookEvent::TaskCompleted, 120));
    assert_eq!(
        done.run,
        Invocation::Program(["cargo", "test", "--quiet"].map(str::to_owned).to_vec())
    );
    let worktree = &manifest.settings.worktree;
    assert_eq!(
        (worktree.dir.as_deref(), worktree.copy.join(" ")),
        (Some("../trees"), ".env".to_owned())
    );
    assert_eq!(worktree.setup, ["npm", "ci"]);
    assert_eq!(manifest.members[0].launch.worktree, Some(WorktreeRequest::Own));
    let [alice, bob, dev, qa, asker, log, web] = manifest.members.as_slice() else {
        panic!("seven members")
    };
    assert_eq!(manifest.mode, TeamMode::Auto);
    assert_eq!(manifest.settings.limits, Limits { max_per_link: 2, max_per_member: 4 });
    assert!(asker.task_only && !bob.task_only && manifest.settings.roles.named["scout"].task_only);
    assert_eq!(alice.launch.profile.as_deref(), Some("claude"));
    assert_eq!(alice.launch.mode, Some(Mode::Plan));
    assert_eq!(alice.launch.model.as_deref(), Some("opus"));
    assert_eq!(alice.launch.role.as_deref(), Some("tester"));
    assert_eq!(alice.launch.cwd.as_deref(), Some("crates/core"));
    assert!(alice.launch.plan);
    let env =
        [("A", "own"), ("B", "default")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(alice.launch.env, env);
    assert_eq!(bob.launch.mode, Some(Mode::AcceptEdits));
    assert_eq!(
        (bob.launch.profile.as_deref(), bob.launch.model.as_deref()),
        (Some("codex"), Some("sonnet"))
    );
    assert_eq!(bob.prompt_file.as_deref(), Some("prompts/bob.md"));
    assert_eq!((bob.restart, qa.when_needed), (Some(Demand::Standing), true));
    assert_eq!(
        (web.restart, &*bob.launch.after),
        (Some(Demand::Always), &["member:log".to_owned()][..])
    );
    let ready = |member: &MemberSpec| member.launch.ready.clone().map(|check| check.condition());
    let conditions =
        ["`test -e up` succeeds", "it prints \"started\"", "port 80{index}0 accepts connections"];
    assert_eq!([ready(bob), ready(log), ready(web)], conditions.map(|text| Some(text.to_owned())));
    assert_eq!(dev.scale, Some(Scale { min: 1, max: 2 }));
    assert_eq!(manifest.settings.hosts[0].capacity, Some(4));
    let chosen = |member: &MemberSpec| {
        member.launch.host.as_ref().map(|choice| choice.accepts(&manifest.settings.hosts[0]))
    };
    assert_eq!((chosen(qa), chosen(asker), chosen(bob)), (Some(true), Some(true), None));
    assert!(log.restart.is_none() && !log.when_needed && log.scale.is_none());
    assert_eq!(log.launch.profile.as_deref(), Some("shell"));
    assert_eq!(log.launch.command, ["tail", "-f", "build.log", ""]);
    let [fmt, test] = manifest.tasks.as_slice() else { panic!("two tasks") };
    assert_eq!((fmt.fields.priority, fmt.owner.as_deref()), (Some(-16), Some("alice")));
    assert_eq!((fmt.fields.role.as_deref(), test.fields.role.as_deref()), (Some("tester"), None));
    assert_eq!(test.after, ["fmt"]);
    assert_eq!(test.fields.files.as_deref(), Some(&["src/**".to_owned()][..]));
    assert_eq!(test.fields.active_form.as_deref(), Some("Running the tests"));
    assert_eq!(
        (fmt.fields.show_output, test.fields.show_output),
        (Some(ShowOutput::Tail), Some(ShowOutput::All))
    );
    assert_eq!((test.fields.cwd.as_deref(), test.description.as_str()), (Some("sub"), ""));
}

/// Returns the keys of a table in the order of its type.
fn keys_of<T: serde::de::DeserializeOwned + std::fmt::Debug>() -> Vec<String> {
    let error = toml::from_str::<T>("'?' = 0").expect_err("an unknown key");
    error.message().split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

#[test]
fn keys_of_settings_are_those_of_the_manifest() {
    let fixed = ["name", "description", "store", "mode"];
    let mut settable = keys_of::<TeamTable>();
    settable.retain(|key| !fixed.contains(&key.as_str()));
    // A key of a table in [team] stands for that table.
    let mut listed: Vec<&str> =
        TEAM_KEYS.iter().filter_map(|known| known.key.split('.').next()).collect();
    listed.dedup();
    assert_eq!(listed, settable);
    assert!(TEAM_KEYS.iter().all(|known| !known.meaning.is_empty()), "{TEAM_KEYS:?}");
    let meaning = |key: &str| {
        TEAM_KEYS.iter().find(|known| known.key == key).map(|known| known.meaning.as_str())
    };
    assert_eq!(meaning("budget.tokens"), Some("Maximum number of tokens; unlimited by default"));
    assert_eq!(
        meaning("on_hang"),
        Some("Reaction to a member that hangs: report, restart or release")
    );
    let root = keys_of::<ManifestTable>();
    let others = ["team", "task", "template"];
    let mut sections: Vec<&str> = SECTIONS.iter().copied().chain(others).collect();
    sections.sort_by_key(|section| root.iter().position(|known| known == section));
    assert_eq!(sections, root);
}

#[test]
fn invalid_pattern_is_reported_at_its_position() {
    assert_eq!(
        fault_in("[rules]\nallow = [\"Bash(git:*)\", \"Bash(git\"]\n"),
        "4:25: the pattern `Bash(git` has no `)` at its end"
    );
    assert_eq!(
        fault_in("[rules]\nalow = []\n"),
        "4:1: unknown key `alow` in [rules]; did you mean `allow`?"
    );
    assert_eq!(
        fault_in("answer_within = 0\n"),
        "3:17: `answer_within` in [team] must be at least 1"
    );
}

#[test]
fn contradicting_start_keys_are_refused() {
    let member = |keys: &str| fault_in(&format!("[[member]]\nname = \"a\"\n{keys}"));
    assert_eq!(
        member("scale = { min = 3, max = 2 }\n"),
        "5:9: `max` in [member.scale] is 2, less than `min`, 3"
    );
    assert_eq!(member("scale = { max = 0 }\n"), "5:17: `max` in [member.scale] must be at least 1");
    assert_eq!(member("scale = { most = 3 }\n"), "5:11: unknown key `most` in [member.scale]");
    assert_eq!(
        member("start = \"later\"\n"),
        "5:9: unknown start `later`; known: `now`, `when-needed`"
    );
    assert_eq!(
        member("start = \"when-needed\"\nscale = {}\n"),
        "5:9: [[member]] has both `start` and `scale`; `scale.min` sets how many start at once"
    );
    assert_eq!(
        member("scale = {}\nrestart = \"on-failure\"\n"),
        "6:11: [[member]] combines `restart` with `start` or `scale`, which restart it anyway"
    );
    let many = format!("max_members = 2\n[[member]]\nname = \"a\"\nscale = {{ min = {} }}\n", 3);
    assert_eq!(fault_in(&many), "4:1: 3 members, but `max_members` is 2");
}

#[test]
fn invalid_toml_is_refused() {
    assert_eq!(fault("[team\n"), "1:6: unclosed table, expected `]`");
    assert_eq!(fault("[team]\nname = t\n"), "2:8: not a valid value; strings need quotes");
    assert_eq!(fault("[team]\nname = \"t\"\nname = \"u\"\n"), "3:1: duplicate key `name`");
    assert_eq!(fault("[team]\r\nname = \"t\r\n"), "2:10: invalid basic string, expected `\"`");
}

#[test]
fn unknown_key_suggests_the_nearest_known_one() {
    assert_eq!(
        fault_in("\n[[member]]\nnaem = \"a\"\n"),
        "5:1: unknown key `naem` in [[member]]; did you mean `name`?"
    );
    let error =
        Manifest::parse("[team]\nname = \"t\"\n\n[[member]]\nname = \"a\"\nprofil = \"x\"\n");
    let expected = ConfigError {
        line: 6,
        column: 1,
        message: "unknown key `profil` in [[member]]".to_owned(),
        nearest: Some("profile".to_owned()),
    };
    assert_eq!(error, Err(expected));
    assert_eq!(
        fault_in("[[members]]\nname = \"a\"\n"),
        "3:3: unknown key `members` in the manifest; did you mean `member`?"
    );
}

#[test]
fn unknown_key_may_get_another_hint() {
    assert_eq!(fault_in("colour = \"red\"\n"), "3:1: unknown key `colour` in [team]");
    assert_eq!(
        fault_in("[defaults]\nprofiles = \"x\"\n"),
        "4:1: unknown key `profiles` in [defaults]; did you mean `profile`?"
    );
    assert_eq!(
        fault_in("[env]\nFOO = \"1\"\n"),
        "4:1: unknown key `FOO` in [env]; variables are set in [defaults.env]"
    );
    assert_eq!(
        fault_in("[[task]]\nkey = \"a\"\nsubject = \"s\"\n  cmd = [\"x\"]\n"),
        "6:3: unknown key `cmd` in [[task]]; did you mean `run`?"
    );
    assert_eq!(
        fault("[taem]\nname = \"t\"\n"),
        "1:2: unknown key `taem` in the manifest; did you mean `team`?"
    );
    assert_eq!(
        fault("member = [{ name = \"a\", \"\\u001b\" = 1 }]\nteam.name = \"t\"\n"),
        "1:25: unknown key `\\u{1b}` in [[member]]"
    );
}

#[test]
fn missing_or_empty_required_key_is_refused() {
    assert_eq!(fault(""), "1:1: the manifest has no [team]");
    assert_eq!(fault("# hello\n\n[team]\n"), "3:1: [team] has no `name`");
    assert_eq!(fault_in("\n[[member]]\nrole = \"r\"\n"), "4:1: [[member]] has no `name`");
    assert_eq!(fault_in("[[task]]\nkey = \"a\"\n"), "3:1: [[task]] has no `subject`");
    assert_eq!(
        fault_in("[[task]]\nkey = \"a\"\nsubject = \" \"\n"),
        "5:11: `subject` in [[task]] is empty"
    );
    assert_eq!(
        fault_in("[[task]]\nkey = \"a\"\nsubject = \"s\"\nrun = []\n"),
        "6:7: `run` in [[task]] is empty"
    );
    assert_eq!(
        fault_in("[[task]]\nkey = \"a\"\nsubject = \"s\"\nrun = [\"\", \"x\"]\n"),
        "6:7: `run` in [[task]] does not name a program"
    );
}

/// The key of a task is made from its subject, which names it in `after`, too; two of the same are
/// refused.
#[test]
fn task_without_a_key_has_the_words_of_its_subject() {
    let task = |subject: &str| format!("[[task]]\nsubject = \"{subject}\"\nrun = [\"true\"]\n");
    let text = |tasks: String| format!("[team]\nname = \"t\"\n[[member]]\nname = \"w\"\n{tasks}");
    let tasks = task("Run the tests!") + &task("***") + "after = [\"Run the tests!\"]\n";
    let manifest = Manifest::parse(&text(tasks)).expect("valid");
    let keys: Vec<&str> = manifest.tasks.iter().map(|task| task.key.as_str()).collect();
    assert_eq!(keys, ["Run-the-tests", "task"]);
    assert_eq!(manifest.tasks[1].after, ["Run-the-tests"]);
    let twice =
        Manifest::parse(&text(task("Run it") + &task("Run it"))).expect_err("two of one key");
    assert!(twice.to_string().contains("two tasks have the key `Run-it`"), "{twice}");
}

#[test]
fn unknown_choice_lists_the_known_ones() {
    assert_eq!(
        fault_in("backend = \"tmx\"\n"),
        "3:11: unknown backend `tmx`; known: `auto`, `tmux`, `iterm2`, `pty`; did you mean `tmux`?"
    );
    assert_eq!(
        fault_in("layout = \"tiled\"\n"),
        "3:10: unknown layout `tiled`; known: `panes`, `windows`, `split`"
    );
    assert_eq!(
        fault_in("finish = \"task-done\"\n"),
        "3:10: unknown finish `task-done`; known: `tasks-done`, `manual`; did you mean `tasks-done`?"
    );
    assert_eq!(
        fault_in("[[member]]\nname = \"a\"\nmode = \"acceptedits\"\n"),
        "5:8: unknown mode `acceptedits`; known: `default`, `manual`, `acceptEdits`, `auto`, \
         `bypassPermissions`, `plan`, `delegate`, `dontAsk`; did you mean `acceptEdits`?"
    );
    assert_eq!(fault_in("max_members = 0\n"), "3:15: `max_members` in [team] must be at least 1");
    assert_eq!(fault_in("max_members = -1\n"), "3:15: `max_members` in [team] must be at least 1");
}

#[test]
fn worktree_is_requested_per_member() {
    let text = "[[member]]\nname = \"a\"\nworktree = true\n[[member]]\nname = \"b\"\nworktree = \"feat/x\"\n\
                [[member]]\nname = \"c\"\nworktree = false\n";
    let text = format!("[team]\nname = \"t\"\n{text}");
    let requests: Vec<_> =
        good(&text).members.into_iter().map(|member| member.launch.worktree).collect();
    assert_eq!(
        requests,
        [Some(WorktreeRequest::Own), Some(WorktreeRequest::Branch("feat/x".to_owned())), None]
    );
    let fault = |line: &str| fault_in(&format!("[[member]]\nname = \"a\"\n{line}\n"));
    assert!(
        fault("worktree = 1")
            .contains("must be true, false or the name of a branch, not an integer")
    );
    assert!(fault("worktree = \"-f\"").contains("is not a valid git branch name"));
    assert!(fault("scale = {}\nworktree = \"x\"").contains("a single branch"));
    assert!(
        fault("work_tree = true")
            .contains("unknown key `work_tree` in [[member]]; did you mean `worktree`?")
    );
    assert!(fault_in("[worktree]\ncopy = [\"../x\"]\n").contains("a file inside the repository"));
    assert!(fault_in("[worktree]\nsetup = \"make\"\n").contains("must be a list of strings"));
}

#[test]
fn invalid_name_is_refused() {
    let rule = "is not a name: use letters, digits, `-` and `_`, starting with a letter or digit, at most 64 characters";
    assert_eq!(
        fault("[team]\nname = \"My Demo!\"\n"),
        format!("2:8: `name` in [team]: `My Demo!` {rule}")
    );
    assert_eq!(
        fault_in("[[member]]\nname = \"../x\\n\"\n"),
        format!("4:8: `name` in [[member]]: `../x\\n` {rule}")
    );
    assert_eq!(
        fault_in("[[member]]\nname = \"Team-Lead\"\n"),
        "4:8: `name` in [[member]]: `Team-Lead` is a reserved name"
    );
    assert_eq!(
        fault_in("[defaults]\nprofile = \"a b\"\n"),
        format!("4:11: `profile` in [defaults]: `a b` {rule}")
    );
    assert_eq!(
        fault_in("[env]\ndeny = [\"A\", \"*_TOKEN\"]\n"),
        "4:14: `deny` in [env]: `*_TOKEN` is not a variable name or a prefix followed by `*`"
    );
    assert_eq!(
        fault_in("[defaults.env]\n\"A=B\" = \"\"\n"),
        "4:1: `A=B` in [defaults.env] is not a variable name: \
         use letters, digits and `_`, not starting with a digit"
    );
    assert_eq!(
        fault_in("[defaults]\ncwd = \"a\\u0000b\"\n"),
        "4:7: `cwd` in [defaults] must not contain a NUL character"
    );
    assert_eq!(
        fault_in("[[member]]\nname = \"a\"\nrun = [\"a\\u0000b\"]\n"),
        "5:8: `run` in [[member]] must not contain a NUL character"
    );
}

#[test]
fn contradicting_keys_are_refused() {
    assert_eq!(
        fault_in("[[member]]\nname = \"a\"\nprompt = \"p\"\nprompt_file = \"f\"\n"),
        "6:15: [[member]] has both `prompt` and `prompt_file`"
    );
    let member = "[[member]]\nname = \"a\"\nrun = [\"x\"]\n";
    assert_eq!(
        fault_in(&format!("{member}task_only = true\n")),
        "6:13: [[member]] has both `task_only` and `run`, which applies to standing members only"
    );
}

#[test]
fn member_with_run_has_its_own_profile_or_shell() {
    let team = "team.name = \"t\"\n[defaults]\nprofile = \"claude\"\n";
    for (profile, expected) in
        [("", "shell"), ("profile = \"shell\"", "shell"), ("profile = \"acp\"", "acp")]
    {
        let text = format!("{team}[[member]]\nname = \"a\"\nrun = [\"x\"]\n{profile}\n");
        let member = good(&text).members[0].launch.clone();
        assert_eq!(member.profile.as_deref(), Some(expected));
        assert_eq!(member.command, ["x"]);
    }
}

#[test]
fn clashing_names_are_refused() {
    let members = |names: &[&str]| -> String {
        names.iter().map(|name| format!("[[member]]\nname = \"{name}\"\n")).collect()
    };
    assert_eq!(fault_in(&members(&["a", "b", "a"])), "8:8: two members are named `a`");
    assert_eq!(
        fault_in(&members(&["Ada", "ada"])),
        "6:8: members `Ada` and `ada` differ only in case"
    );
    assert_eq!(
        fault(&format!("[team]\nname = \"t\"\nmax_members = 1\n{}", members(&["a", "b", "c"]))),
        "6:1: 3 members, but `max_members` is 1"
    );
    assert_eq!(
        fault_in(
            "[[task]]\nkey = \"a\"\nsubject = \"s\"\n[[task]]\nkey = \"a\"\nsubject = \"s\"\n"
        ),
        "7:7: two tasks have the key `a`"
    );
}

#[test]
fn unknown_reference_is_refused() {
    assert_eq!(
        fault(include_str!("../../../fixtures/manifests/unknown_after.toml")),
        "17:17: task `test` depends on unknown task `biuld`; did you mean `build`?"
    );
    assert_eq!(
        fault(include_str!("../../../fixtures/manifests/unknown_owner.toml")),
        "10:9: owner `Alice` of task `fmt` is not a member; did you mean `alice`?"
    );
}

#[test]
fn dependency_cycle_is_refused() {
    assert_eq!(
        fault(include_str!("../../../fixtures/manifests/cycle.toml")),
        "13:10: tasks form a dependency cycle: `b` after `d` after `c` after `b`"
    );
    assert_eq!(
        fault_in("[[task]]\nkey = \"a\"\nsubject = \"s\"\nafter = [\"a\"]\n"),
        "6:10: task `a` depends on itself"
    );
}

#[test]
fn first_fault_in_the_file_is_reported() {
    let task = "[[task]]\nkey = 2\nsubject = \"s\"\nzzz = 1\n";
    let member = "[[member]]\naaa = 1\n";
    assert_eq!(
        fault_in(&format!("{task}{member}")),
        "4:7: `key` in [[task]] must be a string, not an integer"
    );
    assert_eq!(fault_in(&format!("{member}{task}")), "4:1: unknown key `aaa` in [[member]]");
}

#[test]
fn misspelt_key_is_not_also_reported_as_missing() {
    assert_eq!(
        fault_in("[[task]]\nsubjct = \"s\"\nkey = \"a\"\n"),
        "4:1: unknown key `subjct` in [[task]]; did you mean `subject`?"
    );
}

#[test]
fn long_dependency_chain_does_not_overflow_the_stack() {
    let mut text = "team.name = \"t\"\n[[member]]\nname = \"ada\"\n".to_owned();
    for at in 0..20_000 {
        let after = if at == 0 { String::new() } else { format!("\"t{}\"", at - 1) };
        text.push_str(&format!(
            "[[task]]\nkey = \"t{at}\"\nsubject = \"s\"\nrun = [\"true\"]\nafter = [{after}]\n"
        ));
    }
    assert_eq!(good(&text).tasks.len(), 20_000);
}

/// Lines of a manifest, valid and invalid.
fn line() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        "(name|key|subject|run|after|files|owner|env|profile|prompt|plan|mode)",
        "(max_members|backend|priority|cwd)",
        "[a-z]{1,6}",
    ];
    let value = prop_oneof![
        "\"[a-z*é]{0,5}\"",
        "\\[(\"[a-c]\", ){0,3}\\]",
        "(true|0x1f|-7|1\\.5|1979-05-27|\\{\\}|\\{a = 1\\}|\\[\\[\\]\\])",
    ];
    prop_oneof![
        "(\\[team\\]|\\[\\[member\\]\\]|\\[\\[task\\]\\])",
        "(\\[defaults\\]|\\[env\\]|\\[member\\]|\\[task\\.env\\])",
        (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
        "\\PC{0,12}",
    ]
}

#[test]
fn deep_nesting_is_a_fault() {
    let text = format!("x = {}", "[".repeat(100_000));
    assert!(fault(&text).starts_with("1:"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parsing_never_panics_on_text(text in "\\PC*") {
        let _ = Manifest::parse(&text);
    }

    #[test]
    fn parsing_never_panics_on_lines(lines in prop::collection::vec(line(), 0..24)) {
        let text = lines.join("\n");
        if let Err(error) = Manifest::parse(&text) {
            prop_assert!(error.line >= 1 && error.line <= 1 + text.matches('\n').count());
            prop_assert!(error.column >= 1 && !error.message.contains('\n'));
        }
    }

    #[test]
    fn a_manifest_with_anything_cut_out_never_panics(from in 0..CHECKS.len(), length in 0..200_usize) {
        let bytes = CHECKS.as_bytes();
        let rest = &bytes[(from + length).min(bytes.len())..];
        let text = String::from_utf8_lossy(&[&bytes[..from], rest].concat()).into_owned();
        let _ = Manifest::parse(&text);
    }
}
