//! Backend that delegates placements to an external program (docs/backends.md), for terminals that
//! phalanx does not support itself. The program is not trusted: its ids are opaque, its messages
//! are truncated and sanitised, and a member is terminated by its launcher's own pid and start
//! time.

mod call;
mod contract;

use std::collections::HashSet;
use std::ffi::OsString;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::proof::{IdentityPart, NO_ANSWER, Observation, Proven, close_proven, judge};
use super::{Backend, BackendError, BeforeClose, CloseOutcome, Label, Mark, PlacementRequest};
use crate::model::id::MemberName;
use crate::model::input::{Input, Modes};
use crate::model::placement::{BackendKind, ExecPlace, Layout, Placement, Verdict};
use crate::model::spec::Terminal;
use crate::model::text;
use crate::sys::clock::{self, Deadline};
use call::{CallFault, call};
use contract::{
    ContractVerb, EmptyAnswer, LabelEntry, LabelsRequest, LaunchEntry, LaunchesRequest,
    PlaceAnswer, PlaceKey, PlaceOptions, PlaceRequest, PlacedEntry, PlacesRequest, ScreenAnswer,
    VerdictWord, VerdictsAnswer,
};

/// Length limit of an id, in bytes; a longer one is refused.
const LONGEST_ID: usize = 256;
/// Length limit of the program's messages, in characters; the rest is cut off.
const LONGEST_WORDS: usize = 200;
/// Time that a closed placement may take to disappear.
const CLOSED_WITHIN: Duration = Duration::from_secs(3);
/// The first pause between two checks; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, Clone)]
pub(crate) struct External {
    /// The full path.
    pub(crate) program: String,
    /// The caller's environment, which the program inherits.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) team: String,
    pub(crate) layout: Layout,
}

impl External {
    /// Checks that the program answers and supports our version of the contract, by a `verify`
    /// request without places.
    ///
    /// # Errors
    /// [`BackendError::External`] with the program's failure, [`BackendError::CannotDo`] if it does
    /// not support `verify`.
    pub(crate) fn probe(&self) -> Result<(), BackendError> {
        self.ask_verdicts(Vec::new())
            .map(drop)
            .map_err(|fault| self.failed(ContractVerb::Verify, fault))
    }

    fn ask<T: DeserializeOwned>(
        &self,
        verb: ContractVerb,
        request: &impl Serialize,
    ) -> Result<T, CallFault> {
        call(&self.program, &self.env, verb, request)
    }

    fn ask_places(&self, launches: &[PlacementRequest]) -> Result<Vec<PlacedEntry>, CallFault> {
        let launch =
            |launch| one_launch(launch).ok_or_else(|| CallFault::Failed(NOT_TEXT.to_owned()));
        let launches = launches.iter().map(launch).collect::<Result<Vec<_>, _>>()?;
        let asked = launches.len();
        let request = LaunchesRequest { team: &self.team, layout: self.layout, launches };
        let PlaceAnswer { places } = self.ask(ContractVerb::Place, &request)?;
        all_answered(asked, places, "places")
    }

    fn ask_verdicts(&self, places: Vec<PlaceKey<'_>>) -> Result<Vec<VerdictWord>, CallFault> {
        let asked = places.len();
        let VerdictsAnswer { verdicts } =
            self.ask(ContractVerb::Verify, &PlacesRequest { places })?;
        all_answered(asked, verdicts, "verdicts")
    }

    /// Sends a verb for one placement, after verifying that it is ours.
    fn ask_for_place<T: DeserializeOwned>(
        &self,
        verb: ContractVerb,
        placement: &Placement,
        token: &str,
        more: PlaceOptions<'_>,
    ) -> Result<T, BackendError> {
        let not_ours = |verdict| BackendError::NotOurs { place: placement.to_string(), verdict };
        match self.verify(placement, token) {
            Verdict::Owned => (),
            other => return Err(not_ours(other)),
        }
        let place = self.place_key(Mark { placement, token }).map_err(not_ours)?;
        self.ask(verb, &PlaceRequest { place, more }).map_err(|fault| match fault {
            CallFault::NotThere => not_ours(judge(Observation::Absent)),
            fault => self.failed(verb, fault),
        })
    }

    fn place_key<'m>(&self, mark: Mark<'m>) -> Result<PlaceKey<'m>, Verdict> {
        match mark.placement {
            Placement::Exec(place) if place.program == self.program => {
                Ok(PlaceKey { id: &place.id, token: mark.token })
            }
            Placement::Exec(_) | Placement::Tmux(_) | Placement::Iterm2(_) | Placement::Pty(_) => {
                Err(judge(Observation::Unclear(format!(
                    "the placement does not belong to backend `{}`",
                    self.program
                ))))
            }
        }
    }

    fn label_entry<'l>(&self, (mark, label): &'l (Mark<'_>, Label)) -> Option<LabelEntry<'l>> {
        let place = self.place_key(*mark).ok()?;
        let Label { name, role, state, color } = label;
        Some(LabelEntry { place, name, role: role.as_deref(), state, color: color.as_deref() })
    }

    fn verdicts(&self, places: Vec<PlaceKey<'_>>) -> Vec<Verdict> {
        let asked = places.len();
        if asked == 0 {
            return Vec::new();
        }
        match self.ask_verdicts(places) {
            Ok(words) => words.into_iter().map(|word| verdict(word, &self.program)).collect(),
            Err(fault) => {
                let problem = self.failed(ContractVerb::Verify, fault).to_string();
                vec![judge(Observation::Unclear(problem)); asked]
            }
        }
    }

    fn close_by_program(&self, proven: &[Proven<'_>]) -> Vec<CloseOutcome> {
        let marks: Vec<Mark<'_>> = proven.iter().map(Proven::mark).collect();
        let places = marks.iter().filter_map(|mark| self.place_key(*mark).ok()).collect();
        // Only a new `verify` shows whether the placements are gone, whatever `close` returned.
        let fault = self.ask::<EmptyAnswer>(ContractVerb::Close, &PlacesRequest { places }).err();
        let verdicts = self.wait_gone(&marks);
        marks
            .iter()
            .zip(verdicts)
            .map(|(mark, verdict)| match (is_no_more(&verdict), &fault) {
                (true, _) => CloseOutcome::Closed,
                (false, Some(fault)) => {
                    CloseOutcome::Failed(self.failed(ContractVerb::Close, fault.clone()))
                }
                (false, None) => CloseOutcome::Failed(still_there(mark)),
            })
            .collect()
    }

    fn failed(&self, verb: ContractVerb, fault: CallFault) -> BackendError {
        let problem = match fault {
            CallFault::Unsupported => {
                let verb = if verb == ContractVerb::Input { "type into" } else { verb.as_str() };
                return BackendError::CannotDo { backend: BackendKind::Exec, verb };
            }
            CallFault::NotThere => "reports that the placement does not exist".to_owned(),
            CallFault::Failed(problem) => problem,
        };
        BackendError::External { call: format!("{} {}", self.program, verb.as_str()), problem }
    }

    fn placed(
        &self,
        answer: PlacedEntry,
        ids: &mut HashSet<String>,
    ) -> Result<Placement, BackendError> {
        let problem = match (answer.id, answer.error) {
            (_, Some(error)) => text::short(&error, LONGEST_WORDS),
            (None, None) => "answered with neither an id nor an error".to_owned(),
            (Some(id), None) if id.is_empty() || id.len() > LONGEST_ID => {
                format!("answered with an id of {} bytes; 1 to {LONGEST_ID} are possible", id.len())
            }
            // With two members in one placement, closing one would terminate the other.
            (Some(id), None) if !ids.insert(id.clone()) => {
                format!("answered with the id {id:?} for two places")
            }
            (Some(id), None) => {
                let watch = answer.watch.map(|words| text::short(&words, LONGEST_WORDS));
                return Ok(Placement::Exec(ExecPlace { program: self.program.clone(), id, watch }));
            }
        };
        Err(self.failed(ContractVerb::Place, CallFault::Failed(problem)))
    }

    /// Polls until no placement of `marks` can still exist or the deadline passes; returns the last
    /// verdicts.
    fn wait_gone(&self, marks: &[Mark<'_>]) -> Vec<Verdict> {
        let deadline = Deadline::after(CLOSED_WITHIN);
        let mut pause = FIRST_PAUSE;
        loop {
            let verdicts = self.verify_all(marks);
            if verdicts.iter().all(is_no_more) || deadline.expired() {
                return verdicts;
            }
            clock::sleep(pause.min(deadline.remaining()));
            pause *= 2;
        }
    }
}

const NOT_TEXT: &str = "cannot receive the launcher's command line: it is not UTF-8";

fn one_launch(launch: &PlacementRequest) -> Option<LaunchEntry<'_>> {
    let argv = launch.argv.iter().map(|word| word.to_str()).collect::<Option<Vec<_>>>()?;
    Some(LaunchEntry { member: launch.member.as_str(), token: &launch.token, argv })
}

/// Checks the number of answers. They are matched by position, so one too few or too many
/// invalidates all of them.
fn all_answered<T>(asked: usize, answers: Vec<T>, what: &str) -> Result<Vec<T>, CallFault> {
    match answers.len() {
        len if len == asked => Ok(answers),
        len => Err(CallFault::Failed(format!("answered with {len} {what}; expected {asked}"))),
    }
}

fn is_no_more(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Gone | Verdict::Foreign { .. } => true,
        Verdict::Owned | Verdict::Unknown { .. } => false,
    }
}

impl Backend for External {
    fn kind(&self) -> BackendKind {
        BackendKind::Exec
    }

    fn terminal(&self, _member: &MemberName) -> Terminal {
        Terminal::Pane
    }

    fn place(&self, launches: &[PlacementRequest]) -> Vec<Result<Placement, BackendError>> {
        let mut ids = HashSet::new();
        let placed: Vec<_> = match self.ask_places(launches) {
            Ok(answers) => {
                answers.into_iter().map(|answer| self.placed(answer, &mut ids)).collect()
            }
            Err(fault) => launches
                .iter()
                .map(|_| Err(self.failed(ContractVerb::Place, fault.clone())))
                .collect(),
        };
        self.label_placed(launches, &placed);
        placed
    }

    fn verify_all(&self, marks: &[Mark<'_>]) -> Vec<Verdict> {
        let known: Vec<Result<PlaceKey<'_>, Verdict>> =
            marks.iter().map(|mark| self.place_key(*mark)).collect();
        let asked: Vec<PlaceKey<'_>> = known.iter().flatten().copied().collect();
        let mut verdicts = self.verdicts(asked).into_iter();
        known
            .into_iter()
            .map(|place| match place {
                Ok(_) => verdicts
                    .next()
                    .unwrap_or_else(|| judge(Observation::Unclear(NO_ANSWER.to_owned()))),
                Err(verdict) => verdict,
            })
            .collect()
    }

    fn close_all(&self, marks: &[Mark<'_>], before: &mut BeforeClose<'_>) -> Vec<CloseOutcome> {
        close_proven(marks, self.verify_all(marks), before, |proven| {
            // The placement of a process that has ended since then closes by itself, and its id may
            // belong to something else by now.
            let marks: Vec<Mark<'_>> = proven.iter().map(Proven::mark).collect();
            let verdicts = self.verify_all(&marks);
            close_proven(&marks, verdicts, &mut |_| true, |proven| self.close_by_program(proven))
        })
    }

    fn screen(
        &self,
        placement: &Placement,
        token: &str,
        lines: usize,
    ) -> Result<String, BackendError> {
        let screen: ScreenAnswer = self.ask_for_place(
            ContractVerb::Screen,
            placement,
            token,
            PlaceOptions { lines: Some(lines), ..PlaceOptions::default() },
        )?;
        Ok(text::last_lines(&text::plain(&screen.text), lines))
    }

    fn how_to_watch(&self, placement: &Placement) -> String {
        match placement {
            Placement::Exec(ExecPlace { watch: Some(words), .. }) => words.clone(),
            other => text::line(&other.to_string()),
        }
    }

    fn focus(&self, placement: &Placement, token: &str) -> Result<(), BackendError> {
        self.ask_for_place(ContractVerb::Focus, placement, token, PlaceOptions::default())
            .map(|EmptyAnswer {}| ())
    }

    fn hide(&self, placement: &Placement, token: &str) -> Result<Placement, BackendError> {
        self.ask_for_place(ContractVerb::Hide, placement, token, PlaceOptions::default())
            .map(|EmptyAnswer {}| placement.clone())
    }

    fn show(&self, placement: &Placement, token: &str) -> Result<Placement, BackendError> {
        self.ask_for_place(ContractVerb::Show, placement, token, PlaceOptions::default())
            .map(|EmptyAnswer {}| placement.clone())
    }

    /// Sends keys in their default encoding, because the modes of the program's terminal are
    /// unknown.
    fn write_input(
        &self,
        placement: &Placement,
        token: &str,
        input: &Input,
    ) -> Result<(), BackendError> {
        let bytes = input.bytes(Modes::default());
        let text = String::from_utf8_lossy(&bytes);
        let more = PlaceOptions { text: Some(&text), ..PlaceOptions::default() };
        self.ask_for_place(ContractVerb::Input, placement, token, more).map(|EmptyAnswer {}| ())
    }

    fn label(&self, labels: &[(Mark<'_>, Label)]) {
        let labels: Vec<LabelEntry<'_>> =
            labels.iter().filter_map(|one| self.label_entry(one)).collect();
        if !labels.is_empty() {
            // A failed label is ignored. The program recognises foreign places by their tokens.
            let _ = self.ask::<EmptyAnswer>(ContractVerb::Label, &LabelsRequest { labels });
        }
    }
}

fn verdict(word: VerdictWord, program: &str) -> Verdict {
    judge(match word {
        VerdictWord::Owned => Observation::Present(vec![IdentityPart::Same]),
        VerdictWord::Foreign => Observation::different(&format!("reported by `{program}`")),
        VerdictWord::Gone => Observation::Absent,
        VerdictWord::Unknown => Observation::Unclear(format!("`{program}` could not determine it")),
    })
}

fn still_there(mark: &Mark<'_>) -> BackendError {
    let waited_ms = u64::try_from(CLOSED_WITHIN.as_millis()).unwrap_or(u64::MAX);
    BackendError::StillThere { place: mark.placement.to_string(), waited_ms }
}

#[cfg(test)]
mod tests;
