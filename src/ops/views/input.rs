//! `type` and `keys`: input for the terminal of any member, as if a person had typed it there. A
//! terminal must be proven to be the member's, and an open dialog takes only input that is meant
//! for it: the caller may not see the screen.

use std::path::Path;
use std::time::Duration;

use crate::authority::{self, Action};
use crate::decisions::decide;
use crate::members::{assess, backends};
use crate::views::focus::{placed, prove};
use crate::{Context, OpsError};
use backend::{Backend, BackendError, Mark, pty};
use model::id::MemberName;
use model::members::assessment::ScreenSign;
use model::members::input::{Input, Key, Text};
use model::members::need::Need;
use model::members::placement::{Placement, Verdict};
use model::members::record::MemberRecord;
use model::team::event::{EventKind, Note};
use store::TeamStore;
use sys::clock;

/// The pause between a text and Enter: some programs take an Enter that follows a burst of input
/// within 120 ms for a part of a paste (MSG-08).
const BEFORE_ENTER: Duration = Duration::from_millis(200);

/// Types a text, and then presses Enter if `enter` is set. Returns the length of the text in bytes.
///
/// # Errors
/// A refusal for a member that has ended or has no placement, or shows a dialog, unless `at_dialog`
/// is set; [`OpsError::NotProven`] if the placement is not proven ours; a refusal or
/// [`OpsError::CannotDo`] if the terminal takes no input.
pub fn type_text(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    text: Text,
    enter: bool,
    at_dialog: bool,
) -> Result<usize, OpsError> {
    let target = Target::find(team, name, at_dialog)?;
    let bytes = text.as_str().len();
    target.write(ctx, team, &Input::Text(text))?;
    team.record(target.event(ctx).with("bytes", bytes).with("enter", enter))?;
    if enter {
        clock::sleep(BEFORE_ENTER);
        target.write(ctx, team, &Input::enter())?;
    }
    Ok(bytes)
}

/// Writes input into the terminal of a run, which must be proven to be the member's.
///
/// # Errors
/// As [`type_text`].
pub(crate) fn write_into(
    ctx: &Context,
    team: &TeamStore,
    record: &MemberRecord,
    placement: &Placement,
    input: &Input,
) -> Result<(), OpsError> {
    let target = Target { record: record.clone(), placement: placement.clone(), at_dialog: true };
    target.write(ctx, team, input)
}

/// Presses keys, one after the other.
///
/// # Errors
/// As [`type_text`].
pub fn press(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    keys: Vec<Key>,
    at_dialog: bool,
) -> Result<(), OpsError> {
    let target = Target::find(team, name, at_dialog)?;
    let event = target.event(ctx).with("keys", keys.len());
    target.write(ctx, team, &Input::Keys(keys))?;
    team.record(event)?;
    Ok(())
}

/// A person who types into a member's terminal key by key. The terminal is proven once, at the
/// start, and by its backend at each write. One event records the whole session, on drop.
pub struct TypingSession {
    ctx: Context,
    team: TeamStore,
    target: Target,
    backend: Box<dyn Backend>,
    keys: usize,
    bytes: usize,
}

impl TypingSession {
    /// Starts to type into `name`.
    ///
    /// # Errors
    /// As [`type_text`], and a refusal if the speaker may not type into the member.
    pub fn open(
        ctx: &Context,
        team: &TeamStore,
        name: &MemberName,
    ) -> Result<TypingSession, OpsError> {
        authority::enter(ctx, team, Action::Type, std::slice::from_ref(name))?;
        let target = Target::find(team, name, true)?;
        let backend = target.proven_backend(ctx, team)?;
        let (ctx, team) = (ctx.clone(), team.clone());
        Ok(TypingSession { ctx, team, target, backend, keys: 0, bytes: 0 })
    }

    pub fn member(&self) -> &MemberName {
        &self.target.record.name
    }

    /// Writes input to the terminal.
    ///
    /// # Errors
    /// As [`type_text`].
    pub fn write(&mut self, input: &Input) -> Result<(), OpsError> {
        self.target.write_by(self.backend.as_ref(), input)?;
        match input {
            Input::Keys(keys) => self.keys += keys.len(),
            Input::Text(text) => self.bytes += text.as_str().len(),
        }
        Ok(())
    }
}

impl Drop for TypingSession {
    fn drop(&mut self) {
        if self.keys + self.bytes > 0 {
            let event = self.target.event(&self.ctx).with("keys", self.keys);
            // A journal that cannot be written must not stop the person.
            let _ = self.team.record(event.with("bytes", self.bytes));
        }
    }
}

/// A running member and its placement.
struct Target {
    record: MemberRecord,
    placement: Placement,
    /// The input may answer a dialog.
    at_dialog: bool,
}

impl Target {
    fn find(team: &TeamStore, name: &MemberName, at_dialog: bool) -> Result<Target, OpsError> {
        let (record, placement) = placed(team, name, "type into")?;
        Ok(Target { record, placement, at_dialog })
    }

    /// Refuses input that could answer a dialog. Not every dialog becomes a request, and one that
    /// has just opened is not filed yet.
    fn check_dialog(&self, ctx: &Context, team: &TeamStore) -> Result<(), OpsError> {
        let name = &self.record.name;
        let open = decide::process_requests(ctx, team)?;
        let asked = open.iter().find(|question| question.from == *name);
        let no_dialog = [Need::Login, Need::Error];
        let (need, what) = match (asked, assess::read_screen(ctx, team, &self.record)) {
            (Some(asked), _) => {
                // Over MCP, a command is named without its arguments.
                let id = &asked.id;
                (asked.need(), format!("`phalanx answer {id}` answers request `{id}`"))
            }
            (_, Some(ScreenSign::Waits(need, said))) if !no_dialog.contains(&need) => (need, said),
            _ => return Ok(()),
        };
        Err(OpsError::refused(
            format!("`{name}` {}, and the input could answer it: {what}", need.words()),
            format!("see it with `phalanx peek {name}`; `--at-dialog` types into it"),
        ))
    }

    fn write(&self, ctx: &Context, team: &TeamStore, input: &Input) -> Result<(), OpsError> {
        if !self.at_dialog {
            self.check_dialog(ctx, team)?;
        }
        let backend = match self.record.socket() {
            // The launcher that listens there cannot tell whose terminal was meant.
            Some(_) => self.proven_backend(ctx, team)?,
            // The backend proves the terminal in the same step.
            None => backends::open_for(ctx, team, &self.record, &self.placement)?,
        };
        self.write_by(backend.as_ref(), input)
    }

    /// Returns the backend of the placement, which is proven to be the member's.
    fn proven_backend(
        &self,
        ctx: &Context,
        team: &TeamStore,
    ) -> Result<Box<dyn Backend>, OpsError> {
        let Target { record, placement, .. } = self;
        let backend = backends::open_for(ctx, team, record, placement)?;
        prove(record, placement, backend.as_ref()).map_err(|e| match e {
            OpsError::NotProven { verdict: Verdict::Gone, .. } => self.no_input("it has ended"),
            other => other,
        })?;
        Ok(backend)
    }

    /// Writes by a backend that is proven to be the member's.
    fn write_by(&self, backend: &dyn Backend, input: &Input) -> Result<(), OpsError> {
        let Target { record, placement, .. } = self;
        // The launcher knows the modes of the terminal that it holds.
        if let Some(socket) = record.socket() {
            return pty::write_input(Path::new(socket), input)
                .map_err(|e| self.no_input(&e.to_string()));
        }
        backend.write_input(Mark::new(placement, record.mark()), input).map_err(|e| match e {
            BackendError::NoInput { problem, .. } => self.no_input(problem),
            BackendError::CannotDo { .. } => OpsError::CannotDo(e),
            BackendError::NotOurs { verdict: Verdict::Gone, .. } => self.no_input("it has ended"),
            BackendError::NotOurs { place, verdict } => {
                OpsError::NotProven { name: record.name.clone(), place, verdict }
            }
            other => other.into(),
        })
    }

    fn no_input(&self, why: &str) -> OpsError {
        let name = &self.record.name;
        OpsError::refused(
            format!("cannot type into `{name}`: {why}"),
            format!("see what it shows with `phalanx peek {name}`"),
        )
    }

    /// Returns the event of the input, without the input itself: that may be a secret.
    fn event(&self, ctx: &Context) -> Note {
        Note::of(EventKind::Typed).member(&self.record.name).with("by", ctx.speaker.as_str())
    }
}
