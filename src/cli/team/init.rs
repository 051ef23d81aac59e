//! `init`: writes a manifest for the repository in the current directory, after three questions on
//! a terminal.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::fail::{Failure, VerbResult, chain};
use crate::interrupt::run_interruptible;
use crate::out::Out;
use crate::read::{MAX_MANIFEST, read_text};
use crate::setup::Setup;
use crate::team::compose::{checks_manifest, choose_agents, fill_template, team_name};
use crate::team::up_plan::{ManifestText, PlanOptions, UpPlan};
use config::manifest::ManifestTemplate;
use config::process_file::{self, ProcessHome, ProcessList};
use model::id::allowed_name;
use model::name::nearest;
use model::team::project::Project;
use model::text;
use ops::Kind;
use ops::starting::agents::{self, AgentProgram};
use ops::starting::templates;
use ops::team::project;
use sys::{env, fs};

/// Write a manifest for the repository in this directory.
///
/// On a terminal and without options, shows what it finds (languages, checks, agent programs) and
/// asks what the team is for. Otherwise the team runs the checks of the repository, or the template
/// that is named. An existing file is never overwritten: exit code 4.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx init && phalanx up team.toml\n  \
    phalanx init --template feature --agent claude --task \"Add a --json option to every command\"\n  \
    phalanx init --from Procfile")]
pub(crate) struct InitArgs {
    /// File to create.
    #[arg(default_value = "team.toml")]
    pub(crate) file: PathBuf,
    /// Template of the team, or `checks` for workers that run the checks of the repository.
    #[arg(long, value_name = "NAME")]
    pub(crate) template: Option<String>,
    /// Profile of an agent for the members of the template [default: the first one on PATH that is
    /// logged in]. Given several times, the members get them in turn.
    #[arg(long = "agent", value_name = "NAME", requires = "template")]
    pub(crate) agents: Vec<String>,
    /// Task for the team of the template.
    #[arg(long, value_name = "TEXT", requires = "template")]
    pub(crate) task: Option<String>,
    /// Procfile, or file of mprocs, process-compose, tmuxinator or tmuxp, whose processes become
    /// members.
    #[arg(long, value_name = "FILE", conflicts_with = "template")]
    pub(crate) from: Option<PathBuf>,
}

/// The name for a team of workers that run the checks of the repository.
const CHECKS: &str = "checks";
/// The answer that leaves.
const LEAVE: &str = "q";
/// Maximum length of an answer, in bytes.
const LONGEST_ANSWER: u64 = 64 * 1024;

/// The team that a person chose.
enum InitChoice {
    Checks,
    Processes {
        /// As it was given.
        file: String,
        list: Box<ProcessList>,
    },
    Template {
        name: String,
        template: Box<ManifestTemplate>,
        agents: Vec<String>,
        task: String,
    },
}

/// The findings in the directory.
struct Findings {
    project: Project,
    missing_programs: Vec<&'static str>,
    worktrees: bool,
    agents: Vec<AgentProgram>,
}

/// Without a `setup`, as without a home directory, only the checks can be chosen.
pub(crate) fn init(setup: Result<Setup, Failure>, out: &Out, args: &InitArgs) -> VerbResult {
    let cwd = env::current_dir()?;
    let shown = args.file.display().to_string();
    let words = [shown.as_str()];
    let quoted = shlex::try_join(words).unwrap_or_else(|_| shown.clone());
    let next = format!("phalanx up {quoted}");
    let exists = || {
        let hint = format!("run it with `{next}`, or choose another name: `phalanx init FILE`");
        Failure::new(Kind::Refused, format!("{shown} exists already"), Some(hint))
    };
    if fs::exists(&cwd.join(&args.file)) {
        return Err(exists());
    }
    let mut found = Findings {
        project: project::look_at(&cwd),
        missing_programs: Vec::new(),
        worktrees: false,
        agents: Vec::new(),
    };
    if let Ok(setup) = &setup {
        found.missing_programs = project::missing_programs(&setup.ctx, &found.project);
        found.worktrees = project::has_worktrees(&setup.ctx);
        found.agents = agents::on_path(&setup.ctx)?;
        agents::find_versions(&setup.ctx, &mut found.agents);
    }
    let surroundings = ui::Surroundings {
        directory: cwd.to_string_lossy().into_owned(),
        project: &found.project,
        missing_programs: &found.missing_programs,
        worktrees: found.worktrees,
        agents: &found.agents,
    };
    if !out.json {
        out.print_message(&ui::surroundings(&surroundings, out.stderr_paint));
        out.print_message("");
    }
    let is_terminal = env::stdin_is_tty() && env::stderr_is_tty();
    let choice = match (&args.template, &args.from) {
        (Some(name), _) => named_choice(setup.as_ref(), args, name, &found)?,
        (None, Some(file)) => InitChoice::Processes {
            file: file.display().to_string(),
            list: Box::new(processes(&cwd.join(file))?),
        },
        (None, None) if is_terminal && !out.json && !out.quiet => {
            interview(setup.as_ref(), out, &found)?
        }
        (None, None) => InitChoice::Checks,
    };
    let named = match &choice {
        InitChoice::Processes { list, .. } => list.name.as_deref().and_then(allowed_name),
        InitChoice::Checks | InitChoice::Template { .. } => None,
    };
    let team = named.unwrap_or_else(|| team_name(&cwd, choice.template_name()));
    let manifest = match &choice {
        InitChoice::Checks => checks_manifest(&team, &next, &found.project),
        InitChoice::Processes { file, list } => process_file::manifest(list, file, &team, &next),
        InitChoice::Template { name, template, agents, task } => {
            let setup = setup.as_ref().map_err(Failure::clone)?;
            let text = fill_template(setup, template, (&team, task), agents, &found.project)?;
            format!(
                "# Made by `phalanx init` from the template `{name}`. Run it with:\n#\n#     {next}\n#\n{text}"
            )
        }
    };
    if let Ok(setup) = &setup {
        let text = ManifestText { shown: shown.clone(), text: manifest.clone() };
        UpPlan::new(setup, &text, PlanOptions::default())?;
    }
    let made = fs::create_new(&cwd.join(&args.file), manifest.as_bytes())
        .map_err(|e| Failure::new(Kind::Failed, chain(&e), None))?;
    if !made {
        return Err(exists());
    }
    let task = match &choice {
        InitChoice::Checks | InitChoice::Processes { .. } => None,
        InitChoice::Template { task, .. } => Some(task),
    };
    let document = json!({
        "file": shown,
        "team_name": team,
        "next": next,
        "template": match &choice {
            InitChoice::Processes { .. } => None,
            choice => Some(choice.template_name().unwrap_or(CHECKS)),
        },
        "from": match &choice {
            InitChoice::Processes { file, .. } => Some(file),
            InitChoice::Checks | InitChoice::Template { .. } => None,
        },
        "task": task,
        "languages": found.project.languages,
        "checks": found.project.checks,
        "missing_programs": found.missing_programs,
        "worktrees": found.worktrees,
        "agents": found.agents,
    });
    out.confirm(&document, || format!("created {shown}; run it with `{next}`"))
}

impl InitChoice {
    fn template_name(&self) -> Option<&str> {
        match self {
            InitChoice::Checks | InitChoice::Processes { .. } => None,
            InitChoice::Template { name, .. } => Some(name),
        }
    }
}

/// Reads the processes of a file.
fn processes(file: &Path) -> Result<ProcessList, Failure> {
    let home = env::home_dir();
    let read = read_text(file, MAX_MANIFEST)
        .and_then(|text| process_file::parse(file, &text, ProcessHome(home.as_deref())));
    read.map_err(|problem| {
        let hint = "the forms are described in `phalanx docs cli/teams init`";
        Failure::usage(format!("{}: {problem}", file.display()), hint)
    })
}

/// Returns the team that the options name.
fn named_choice(
    setup: Result<&Setup, &Failure>,
    args: &InitArgs,
    name: &str,
    found: &Findings,
) -> Result<InitChoice, Failure> {
    if name == CHECKS {
        if args.task.is_some() || !args.agents.is_empty() {
            let hint = "omit `--task` and `--agent`, or choose a template: `phalanx template list`";
            return Err(Failure::usage("`checks` is a team of workers without agents", hint));
        }
        return Ok(InitChoice::Checks);
    }
    let setup = setup.map_err(Failure::clone)?;
    let template = templates::listed(&setup.ctx, name)?.template?;
    let agents = choose_agents(setup, &template, &args.agents, &found.agents)?;
    let Some(task) = args.task.clone().or_else(|| template.task.clone()) else {
        let hint = format!("phalanx init --template {name} --task \"what the team is to do\"");
        return Err(Failure::usage(format!("the template `{name}` needs a task"), &hint));
    };
    Ok(InitChoice::Template { name: name.to_owned(), template: Box::new(template), agents, task })
}

/// Asks what the team is for, which agents it has, and what the task is.
fn interview(
    setup: Result<&Setup, &Failure>,
    out: &Out,
    found: &Findings,
) -> Result<InitChoice, Failure> {
    let about = "run the checks of this repository; needs no agent".to_owned();
    let mut purposes = vec![(CHECKS.to_owned(), about)];
    let listed = setup.map(|setup| templates::list(&setup.ctx)).unwrap_or(Ok(Vec::new()))?;
    let mut usable = Vec::new();
    for one in listed.into_iter().filter(|one| one.name != CHECKS) {
        if let Ok(template) = one.template {
            purposes.push((one.name, template.about.clone()));
            usable.push(template);
        }
    }
    out.print_message("1. What is the team for? (q leaves)");
    out.print_message(&ui::purposes(&purposes, out.stderr_paint));
    let at = answer(out, "Number or name", Some(CHECKS), |said| chosen(&purposes, said))?;
    let (Some(template), Ok(setup)) = (at.checked_sub(1).map(|at| usable.swap_remove(at)), setup)
    else {
        return Ok(InitChoice::Checks);
    };
    let name = purposes.swap_remove(at).0;
    let mut agents = Vec::new();
    if template.has_agents() {
        let default = found.agents.first().map(|agent| agent.profile.as_str());
        out.print_message("2. Which agents? Several profiles are assigned to the members in turn.");
        if default.is_none() {
            out.print_message(
                "No agent program is on PATH. Name the profile of one that you will install \
                 (`phalanx profile list`), or leave with q.",
            );
        }
        agents = answer(out, "Profiles", default, |said| {
            let names = said.split([' ', ',']).filter(|word| !word.is_empty());
            let names: Vec<String> = names.map(str::to_owned).collect();
            if names.is_empty() {
                return Err("name a profile, or leave with q".to_owned());
            }
            choose_agents(setup, &template, &names, &[]).map_err(|failure| failure.words())
        })?;
    }
    out.print_message(if template.has_agents() {
        "3. What is the task?"
    } else {
        "2. What is the task?"
    });
    let task = answer(out, "Task", template.task.as_deref(), |said| {
        if said.is_empty() { Err("the team needs a task".to_owned()) } else { Ok(said.to_owned()) }
    })?;
    Ok(InitChoice::Template { name, template: Box::new(template), agents, task })
}

/// Returns the place of a purpose in the list, by its number or its name.
fn chosen(purposes: &[(String, String)], said: &str) -> Result<usize, String> {
    let by_number = said.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let by_name = || purposes.iter().position(|(name, _)| name == said);
    let found = by_number.filter(|at| *at < purposes.len()).or_else(by_name);
    found.ok_or_else(|| {
        let meant = nearest(said, purposes.iter().map(|(name, _)| name.as_str()));
        let meant = meant.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        format!("`{}` is not in the list{meant}", text::short(said, 40))
    })
}

/// Asks until `parse` accepts the answer. An empty answer means the default.
///
/// # Errors
/// The person left with `q`, interrupted the question, or closed the terminal.
fn answer<T>(
    out: &Out,
    question: &str,
    default: Option<&str>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<T, Failure> {
    let shown = default.map(|word| format!(" [{}]", text::line(word))).unwrap_or_default();
    loop {
        out.print_question(&format!("{question}{shown}: "))?;
        let line = read_line()?;
        let said = match line.trim() {
            "" => default.unwrap_or_default(),
            LEAVE => return Err(Failure::interrupted("nothing was written", None)),
            said => said,
        };
        match parse(said) {
            Ok(value) => {
                out.print_message("");
                return Ok(value);
            }
            Err(problem) => out.print_message(&text::line(&problem)),
        }
    }
}

/// Reads a line from the terminal.
fn read_line() -> Result<String, Failure> {
    let interrupted = || Failure::interrupted("interrupted; nothing was written", None);
    let line = run_interruptible(interrupted(), || {
        let mut line = Vec::new();
        std::io::stdin().lock().take(LONGEST_ANSWER).read_until(b'\n', &mut line)?;
        Ok(line)
    });
    match line {
        Ok(line) if !line.is_empty() => Ok(String::from_utf8_lossy(&line).into_owned()),
        // The cursor is behind the question.
        Ok(_) | Err(_) => {
            drop(std::io::Write::write_all(&mut std::io::stderr(), b"\n"));
            Err(line.err().unwrap_or_else(interrupted))
        }
    }
}
