//! The program in the lead's place (`lead -- CMD`): what it is started with, and what it is told that its mailbox does
//! not say. Knows no terminals.

use std::ffi::OsString;
use std::path::Path;

use super::brief;
use super::context::{Context, now};
use super::error::OpsError;
use super::{depth, inbox, lease, profiles};
use crate::model::envelope::Envelope;
use crate::model::environ;
use crate::model::id::{Incarnation, MemberName, agent_id};
use crate::model::protocol::AnsweredBy;
use crate::model::question::{Ask, Question};
use crate::model::text;
use crate::profile::{self, Brief, Names, Profile, Values};
use crate::store::{Lease, TeamStore};
use crate::sys::rand;

/// What the names of its briefings begin with, in the lead's mailbox.
const BRIEF: &str = "brief-";
/// So much of what is asked is repeated, characters.
const SUMMARY: usize = 500;

/// A program that is to have the lead's place.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) profile: Profile,
    /// The given command line, with what its profile adds to tell it of its team.
    pub(crate) argv: Vec<String>,
    /// Its whole environment: the caller's, and who it is.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) incarnation: Incarnation,
    /// What it is told of its team in its first turn.
    first: Option<String>,
}

impl Seat {
    /// Whether mail can be typed into it; else its screen is not understood, and it reads `phalanx inbox` by itself.
    pub(crate) fn is_told(&self) -> bool {
        self.profile.composer.is_some() && !self.profile.rules.is_empty()
    }
}

/// Takes the lease for this process with a program in its place.
///
/// # Errors
/// Somebody else leads; a teammate that may start nobody; a named profile that there is not.
pub(crate) fn take(
    ctx: &Context,
    team: &TeamStore,
    profile: Option<&str>,
    command: &[String],
) -> Result<(Lease, Seat), OpsError> {
    depth::must_allow(ctx)?;
    let profile = profiles::find(ctx, &profile_name(ctx, profile, command)?)?;
    let incarnation = Incarnation::parse(&rand::uuid()).expect("a fresh uuid has the form of one");
    let token = rand::token();
    lease::may_lead(ctx, team)?;
    let lease = lease::take_with(team, Some(token.clone()))?;
    if let Some(model) = profile.model_in(command) {
        team.change_roster(|roster| Ok(roster.set(&MemberName::lead(), "model", model.as_str())))?;
    }
    let text = brief::brief(ctx, Some(team), Some(&MemberName::lead()))?;
    let (argv, first) = told(&profile, command, text);
    let env = environment(ctx, team, incarnation.as_str(), &token);
    Ok((lease, Seat { profile, argv, env, incarnation, first }))
}

/// The profile that is named, else that of the program's name; one that nobody knows is any command line.
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

/// The command line and the first turn. Whoever reads its mailbox by itself is told of its team as a teammate; in the
/// lead's place nobody tells it but we.
fn told(profile: &Profile, command: &[String], brief: String) -> (Vec<String>, Option<String>) {
    let argv = command.to_vec();
    match profile.launch.brief {
        Brief::Argv => {
            let values = Values::from([(Names::Brief, vec![brief])]);
            let speaks = |group: &&profile::Group| group.names().any(|name| name == Names::Brief);
            let more =
                profile.launch.argv.iter().filter(speaks).filter_map(|group| group.fill(&values));
            (argv.into_iter().chain(more.flatten()).collect(), None)
        }
        Brief::FirstMessage => (argv, Some(brief)),
        Brief::None => {
            (argv, Some(brief).filter(|_| profile.reads_mail && profile.composer.is_some()))
        }
    }
}

/// It stands where the caller does, so that it has all that the caller has; what it speaks with is its own.
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

/// Puts what the program is told of its team into the lead's mailbox. What an earlier program was not told any more is
/// not for this one.
pub(crate) fn brief_program(team: &TeamStore, seat: &Seat) -> Result<(), OpsError> {
    let Some(text) = &seat.first else { return Ok(()) };
    let lead = MemberName::lead();
    let mailbox = team.mailbox(&lead);
    let stale = mailbox.unread()?.into_iter().map(|envelope| envelope.msg_id);
    let stale: Vec<String> = stale.filter(|id| id.starts_with(BRIEF)).collect();
    if !stale.is_empty() {
        inbox::acknowledge(team, &lead, &stale)?;
    }
    say(team, format!("{BRIEF}{}", seat.incarnation), "your team", text)
}

/// Tells the program in the lead's place of a question that waits for an answer; once, whoever leads meanwhile.
pub(crate) fn tell(team: &TeamStore, question: &Question) -> Result<(), OpsError> {
    let id = format!("asked-{}", question.msg_id);
    if team.mailbox(&MemberName::lead()).find(&id)?.is_some() {
        return Ok(());
    }
    say(team, id, "a question", &words(question))
}

fn say(team: &TeamStore, id: String, summary: &str, text: &str) -> Result<(), OpsError> {
    let envelope = Envelope::new("system", text, id, now()).with(Some(summary), None);
    team.mailbox(&MemberName::lead()).append(&envelope)?;
    Ok(())
}

/// What is asked, and how it is answered. On one line but for a plan: not every program takes several.
fn words(question: &Question) -> String {
    let (from, id) = (&question.from, &question.id);
    let answer = format!(
        "`phalanx answer {id} --approve` or `phalanx answer {id} --reject --reason \"why\"`"
    );
    if let Some(Ask::Plan(plan)) = question.ask() {
        let plan = plan.plan_content.unwrap_or_else(|| question.summary());
        return format!(
            "{from} asks for approval of this plan. Read it and answer with {answer}.\n\n{plan}"
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
    use super::*;

    /// The command line and the first turn of a program with this profile.
    fn told_by(profile: &Profile) -> (Vec<String>, Option<String>) {
        told(profile, &["agent".to_owned(), "-x".to_owned()], "BRIEF".to_owned())
    }

    fn builtin(name: &str) -> Profile {
        profile::builtin(name).expect("it is built in")
    }

    #[test]
    fn id_02_the_briefing_goes_in_as_the_profile_says() {
        let as_given = ["agent", "-x"];
        let sheet = "about = \"x\"\nruns = \"native\"\n[launch]\nargv = [[\"agent\"], [\"--system\", \"{brief}\"], [\"{mode}\"]]\n\
                     prompt = \"mailbox\"\nbrief = \"argv\"\n[ready]\nwhen = \"settled\"\n";
        let flag = Profile::parse("flag", sheet).expect("a profile");
        let (argv, first) = told_by(&flag);
        assert_eq!(
            (argv.as_slice(), first),
            (["agent", "-x", "--system", "BRIEF"].map(str::to_owned).as_slice(), None)
        );
        // Claude Code tells its teammates itself, and no lead.
        for name in ["codex", "gemini", "claude"] {
            let (argv, first) = told_by(&builtin(name));
            assert_eq!(
                (argv.as_slice(), first.as_deref()),
                (as_given.map(str::to_owned).as_slice(), Some("BRIEF")),
                "{name}"
            );
        }
        let (argv, first) = told_by(&builtin(profile::SHELL));
        assert_eq!(
            (argv.as_slice(), first),
            (as_given.map(str::to_owned).as_slice(), None),
            "nothing can be typed"
        );
    }
}
