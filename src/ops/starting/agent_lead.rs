//! The agent lead: a program that leads the team (`lead -- CMD`). Provides its command line and
//! environment, and the messages that brief it and pass on questions.

use std::ffi::OsString;
use std::path::Path;

use crate::mail::inbox;
use crate::members::{depth, profiles};
use crate::starting::brief;
use crate::team::lease;
use crate::{Context, OpsError, now};
use model::decisions::question::{Ask, Question};
use model::decisions::user_question::{self, UserQuestion};
use model::id::{Incarnation, MemberName, agent_id};
use model::mail::envelope::Envelope;
use model::mail::protocol::AnsweredBy;
use model::members::environ;
use model::text;
use profile::{self, Brief, Placeholder, Profile, Runs, Values};
use store::{Lease, TeamStore};
use sys::rand;

/// Prefix of the message ids of briefings in the lead's mailbox.
const BRIEF: &str = "brief-";
/// Characters of a request's summary that a message quotes.
const SUMMARY: usize = 500;
/// Characters of a program's questions that are quoted.
const QUESTIONS: usize = 1000;

/// A program that is to lead the team.
#[derive(Debug)]
pub struct AgentLead {
    pub profile: Profile,
    /// The given command line, with the arguments that pass the briefing if its profile has such.
    pub argv: Vec<String>,
    /// Its whole environment: the caller's, with the identity of the lead.
    pub env: Vec<(OsString, OsString)>,
    pub incarnation: Incarnation,
    /// The briefing for its first turn, if the command line does not pass it.
    first: Option<String>,
}

impl AgentLead {
    /// Returns true if mail can be typed into the program. Otherwise its profile does not describe
    /// its screen, and the program has to run `phalanx inbox`.
    pub fn takes_mail(&self) -> bool {
        let has_screen = self.profile.composer.is_some() && !self.profile.rules.is_empty();
        has_screen || self.profile.runs == Runs::Acp
    }
}

/// Takes the lease for this process, with an agent lead. Without a command line it is the one of
/// the profile.
///
/// # Errors
/// [`OpsError::Usage`] if the profile has no command line of its own; [`OpsError::Nested`] for a teammate that may not start members; [`OpsError::NoSuchProfile`] for
/// an unknown profile; [`OpsError::LedByAnother`], [`OpsError::LedByStranger`] or
/// [`OpsError::MayBeLed`] if the team is led, or may be.
pub fn take(
    ctx: &Context,
    team: &TeamStore,
    profile: Option<&str>,
    command: &[String],
) -> Result<(Lease, AgentLead), OpsError> {
    depth::must_allow(ctx)?;
    let profile = profiles::find(ctx, &profile_name(ctx, profile, command)?)?;
    let command = &match command {
        [] => own_command(&profile)?,
        given => given.to_vec(),
    };
    let incarnation = Incarnation::parse(&rand::uuid()).expect("a fresh uuid has the form of one");
    let token = rand::token();
    lease::may_lead(ctx, team)?;
    let lease = lease::take_with(team, Some(token.clone()))?;
    if let Some(model) = profile.model_in(command) {
        team.change_roster(|roster| Ok(roster.set(&MemberName::lead(), "model", model.as_str())))?;
    }
    let text = brief::brief(ctx, Some(team), Some(&MemberName::lead()))?;
    let exe = ctx.caller.exe.to_string_lossy().into_owned();
    let (argv, first) = command_line(&profile, command, exe, text);
    let mut env = environment(ctx, team, incarnation.as_str(), &token);
    environ::add_defaults(&mut env, &profile.launch.default_env);
    let mut lead = AgentLead { profile, argv, env, incarnation, first };
    if lead.takes_mail() {
        lead.env.push(("PHALANX_MAIL".into(), lead.profile.mail.as_str().into()));
    }
    Ok((lease, lead))
}

/// Returns the named profile, else the one named like the program, else that of a plain command.
fn profile_name(
    ctx: &Context,
    named: Option<&str>,
    command: &[String],
) -> Result<String, OpsError> {
    if let Some(name) = named {
        return Ok(name.to_owned());
    }
    let program = command.first().map(Path::new).and_then(Path::file_name);
    let program = program.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let known = profiles::list(ctx)?.into_iter().any(|listed| listed.name == program);
    Ok(if known { program } else { profile::SHELL.to_owned() })
}

/// Returns the command line of a profile without a value for any of its placeholders.
fn own_command(profile: &Profile) -> Result<Vec<String>, OpsError> {
    let command = profile::fill(&profile.launch.argv, &Values::default());
    if command.is_empty() {
        let problem = format!("the profile `{}` runs any program", profile.name);
        return Err(OpsError::usage(problem, "name the program after `--`"));
    }
    Ok(command)
}

/// Returns the command line and the first turn, which is the briefing unless the command line has
/// it. A program that reads its mailbox itself briefs its teammates, but not a lead.
fn command_line(
    profile: &Profile,
    command: &[String],
    exe: String,
    brief: String,
) -> (Vec<String>, Option<String>) {
    let launch = &profile.launch;
    let values = [(Placeholder::Phalanx, exe), (Placeholder::Brief, brief.clone())];
    let values = Values::from(values.map(|(name, text)| (name, vec![text])));
    let briefs = |group: &&profile::Group| group.names().any(|name| name == Placeholder::Brief);
    let own = launch.argv.iter().filter(|group| launch.brief() == Brief::Argv && briefs(group));
    let takes_turn =
        launch.brief() == Brief::FirstMessage || (profile.reads_mail && profile.composer.is_some());
    let (mut argv, mut first) = (command.to_vec(), Some(brief).filter(|_| takes_turn));
    for group in own.chain(&launch.lead) {
        let words = group.fill(&values).unwrap_or_default();
        match words.first() {
            // A second one would replace the text of the person who gave it.
            Some(option) if briefs(&group) && command.contains(option) => continue,
            Some(_) if briefs(&group) => first = None,
            _ => {}
        }
        argv.extend(words);
    }
    (argv, first)
}

/// Returns the caller's whole environment, with the identity and the token of the agent lead.
fn environment(
    ctx: &Context,
    team: &TeamStore,
    incarnation: &str,
    token: &str,
) -> Vec<(OsString, OsString)> {
    let lead = MemberName::lead();
    let own = [
        ("PHALANX_TEAM", team.name().as_str().into()),
        ("PHALANX_AGENT_ID", agent_id(&lead, team.name()).into()),
        ("PHALANX_AGENT_NAME", lead.as_str().into()),
        ("PHALANX_CONFIG_DIR", team.root().into()),
        ("PHALANX_INCARNATION", incarnation.into()),
        ("PHALANX_TOKEN", token.into()),
        ("PHALANX_DEPTH", depth::depth(ctx).to_string().into()),
    ];
    let asking = ctx.caller.env.iter().filter(|(name, _)| !environ::is_identity(name)).cloned();
    asking.chain(own.map(|(name, value): (&str, OsString)| (name.into(), value))).collect()
}

/// Sends the briefing to the lead's mailbox. Unread briefings of an earlier program are
/// acknowledged, because they are not meant for this one.
pub fn send_brief(team: &TeamStore, agent: &AgentLead) -> Result<(), OpsError> {
    let Some(text) = &agent.first else { return Ok(()) };
    let lead = MemberName::lead();
    let mailbox = team.mailbox(&lead);
    let stale = mailbox.unread()?.into_iter().map(|envelope| envelope.msg_id);
    let stale: Vec<String> = stale.filter(|id| id.starts_with(BRIEF)).collect();
    if !stale.is_empty() {
        inbox::acknowledge(team, &lead, &stale)?;
    }
    send(team, format!("{BRIEF}{}", agent.incarnation), "your team", text)
}

/// Sends an open question to the agent lead, once, also if another process takes over the lead. The
/// member's own message, which does not say how to answer it, then counts as read.
pub fn send_question(team: &TeamStore, question: &Question) -> Result<(), OpsError> {
    let id = format!("asked-{}", question.msg_id);
    if team.mailbox(&MemberName::lead()).find(&id)?.is_none() {
        send(team, id, "a question", &describe(question))?;
    }
    inbox::record_handled(team, std::slice::from_ref(&question.msg_id))
}

fn send(team: &TeamStore, id: String, summary: &str, text: &str) -> Result<(), OpsError> {
    let envelope = Envelope::new("system", text, id, now()).with(Some(summary), None);
    team.mailbox(&MemberName::lead()).append(&envelope)?;
    Ok(())
}

/// Describes a question and how to answer it. On one line except for a plan, since not every
/// program accepts several.
fn describe(question: &Question) -> String {
    let (from, id) = (&question.from, &question.id);
    let asked = question.user_questions();
    let yes = user_question::option_for(&asked);
    let answer =
        format!("`phalanx answer {id} {yes}` or `phalanx answer {id} --reject --reason \"why\"`");
    if let Some(Ask::Plan(plan)) = question.ask() {
        let plan = plan.plan_content.unwrap_or_else(|| question.summary());
        return format!(
            "{from} asks for approval of this plan. Read it and answer with {answer}.\n\n{plan}"
        );
    }
    if !asked.is_empty() {
        let questions: Vec<String> = asked.iter().map(UserQuestion::describe).collect();
        let questions = text::short(&text::line(&questions.join(" ")), QUESTIONS);
        return format!(
            "{from} asks: {questions} Answer what you know, and otherwise ask the person at this terminal first. \
             Answer with {answer}; TEXT is the number of an answer, or your own words."
        );
    }
    let asks = format!("{from} asks for permission: {}", text::short(&question.summary(), SUMMARY));
    match question.answered_by() {
        Some(AnsweredBy::Pane) => {
            format!("{asks}. Only a person can answer this, in {from}'s pane.")
        }
        Some(AnsweredBy::Keys) | None => format!(
            "{asks}. Unless you have instructions for such decisions, ask the person at this terminal first. Answer with {answer}."
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns the command line and the first turn of a program with this profile.
    fn command_line_of(profile: &Profile) -> (Vec<String>, Option<String>) {
        command_line_with(profile, &["agent", "-x"])
    }

    fn command_line_with(profile: &Profile, command: &[&str]) -> (Vec<String>, Option<String>) {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        command_line(profile, &command, "/bin/phalanx".to_owned(), "BRIEF".to_owned())
    }

    fn builtin(name: &str) -> Profile {
        profile::builtin(name).expect("it is built in")
    }

    #[test]
    fn id_02_briefing_is_passed_as_the_profile_says() {
        let as_given = ["agent", "-x"];
        let text = "about = \"x\"\nruns = \"native\"\n[launch]\nargv = [[\"agent\"], [\"--system\", \"{brief}\"], [\"{mode}\"]]\n\
                     prompt = \"mailbox\"\nbrief = \"argv\"\n[ready]\nwhen = \"settled\"\n";
        let flag = Profile::parse("flag", text).expect("a profile");
        let (argv, first) = command_line_of(&flag);
        assert_eq!(
            (argv.as_slice(), first),
            (["agent", "-x", "--system", "BRIEF"].map(str::to_owned).as_slice(), None)
        );
        let (argv, first) = command_line_of(&builtin("gemini"));
        assert_eq!(
            (argv.as_slice(), first.as_deref()),
            (as_given.map(str::to_owned).as_slice(), Some("BRIEF"))
        );
        let (argv, first) = command_line_of(&builtin(profile::SHELL));
        assert_eq!(
            (argv.as_slice(), first),
            (as_given.map(str::to_owned).as_slice(), None),
            "nothing can be typed"
        );
    }

    #[test]
    fn id_02_lead_has_the_tools_and_its_session_no_title_of_ours() {
        let claude = builtin("claude");
        let (argv, first) = command_line_of(&claude);
        let briefed = ["agent", "-x", "--append-system-prompt", "BRIEF", "--mcp-config"];
        assert_eq!((&argv[..5], first), (briefed.map(str::to_owned).as_slice(), None));
        let tools: Value = serde_json::from_str(&argv[5]).expect("JSON");
        let server = json!({"command": "/bin/phalanx", "args": ["mcp"]});
        assert_eq!(tools, json!({"mcpServers": {"phalanx": server}}));
        let given = ["claude", "--append-system-prompt", "Be short."];
        let (argv, first) = command_line_with(&claude, &given);
        assert_eq!((argv.len(), argv[3].as_str()), (5, "--mcp-config"));
        assert_eq!(argv[..3], given, "the text of a person stays");
        assert_eq!(first.as_deref(), Some("BRIEF"));
        let (argv, first) = command_line_of(&builtin("codex"));
        assert_eq!(first.as_deref(), Some("BRIEF"));
        assert_eq!(argv[2..4], ["-c", "mcp_servers.phalanx.command=\"/bin/phalanx\""]);
    }
}
