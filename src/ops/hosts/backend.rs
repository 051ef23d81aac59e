//! The backend of placements on another host: each operation is a request to its server.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::link::{HostLink, QUICK};
use super::wire::{HostRequest, MarkedPlacement};
use crate::error::RemoteFailure;
use crate::{Context, Kind, OpsError};
use backend::{Backend, BackendError, BeforeClose, CloseOutcome, Label, Mark, PlacementRequest};
use model::id::{HostName, MemberName};
use model::members::input::Input;
use model::members::placement::{BackendKind, Placement, Verdict};
use model::members::spec::Terminal;
use store::TeamStore;

/// The backend of placements on another host. It creates none: `client::spawn` does.
pub(crate) struct RemoteBackend {
    kind: BackendKind,
    host: HostName,
    link: Arc<HostLink>,
}

impl RemoteBackend {
    pub(crate) fn open(
        ctx: &Context,
        team: &TeamStore,
        host: &HostName,
        kind: BackendKind,
    ) -> Result<RemoteBackend, OpsError> {
        Ok(RemoteBackend { kind, host: host.clone(), link: HostLink::to(ctx, team, host)? })
    }

    fn call<T: DeserializeOwned>(&self, request: HostRequest) -> Result<T, BackendError> {
        self.link.call(request, QUICK).map_err(|e| self.failed(&e))
    }
}

impl RemoteBackend {
    fn failed(&self, error: &OpsError) -> BackendError {
        // The other errors name the host themselves.
        let (text, hint) = match error {
            OpsError::OnHost { host, failure } => {
                (format!("on host {host}: {}", failure.text), failure.hint.clone())
            }
            other => (other.to_string(), other.hint()),
        };
        BackendError::OnHost { is_refusal: error.kind() == Kind::Refused, text, hint }
    }
}

fn marked(mark: Mark<'_>) -> MarkedPlacement {
    MarkedPlacement { placement: mark.placement.clone(), token: mark.token.to_owned() }
}

impl Backend for RemoteBackend {
    fn kind(&self) -> BackendKind {
        self.kind
    }

    fn terminal(&self, _: &MemberName) -> Terminal {
        Terminal::Pane
    }

    fn place(&self, launches: &[PlacementRequest]) -> Vec<Result<Placement, BackendError>> {
        let refused = || BackendError::CannotDo { backend: self.kind, verb: "start from afar" };
        launches.iter().map(|_| Err(refused())).collect()
    }

    fn verify_all(&self, marks: &[Mark<'_>]) -> Vec<Verdict> {
        let asked = marks.iter().copied().map(marked).collect();
        match self.call::<Vec<Verdict>>(HostRequest::Verify(asked)) {
            Ok(verdicts) if verdicts.len() == marks.len() => verdicts,
            Ok(_) => marks.iter().map(|_| unknown("the host gave an incomplete answer")).collect(),
            Err(e) => marks.iter().map(|_| unknown(&e.to_string())).collect(),
        }
    }

    fn close_all(&self, marks: &[Mark<'_>], before: &mut BeforeClose<'_>) -> Vec<CloseOutcome> {
        let verdicts = self.verify_all(marks);
        if !before(&verdicts) {
            return verdicts.into_iter().map(CloseOutcome::not_permitted).collect();
        }
        let close = |(mark, verdict): (&Mark<'_>, Verdict)| {
            if verdict != Verdict::Owned {
                return CloseOutcome::refused(verdict);
            }
            let asked = HostRequest::Close(vec![marked(*mark)]);
            let closed: Result<Vec<Result<(), RemoteFailure>>, BackendError> = self.call(asked);
            let failed = |problem: String| {
                let text = format!("on host {}: {problem}", self.host);
                CloseOutcome::Failed(BackendError::OnHost { is_refusal: false, text, hint: None })
            };
            match closed.map(|mut results| results.pop()) {
                Ok(Some(Ok(()))) => CloseOutcome::Closed,
                Ok(Some(Err(failure))) => failed(failure.text),
                Ok(None) => failed("it gave an incomplete answer".to_owned()),
                Err(e) => CloseOutcome::Failed(e),
            }
        };
        marks.iter().zip(verdicts).map(close).collect()
    }

    fn screen(&self, mark: Mark<'_>, lines: usize) -> Result<String, BackendError> {
        self.call(HostRequest::Screen { at: marked(mark), lines })
    }

    fn how_to_watch(&self, placement: &Placement) -> String {
        format!("{placement} on host {}", self.host)
    }

    fn focus(&self, mark: Mark<'_>) -> Result<(), BackendError> {
        self.call(HostRequest::Focus(marked(mark)))
    }

    fn hide(&self, mark: Mark<'_>) -> Result<Placement, BackendError> {
        self.call(HostRequest::Hide(marked(mark)))
    }

    fn show(&self, mark: Mark<'_>) -> Result<Placement, BackendError> {
        self.call(HostRequest::Show(marked(mark)))
    }

    fn write_input(&self, mark: Mark<'_>, input: &Input) -> Result<(), BackendError> {
        self.call(HostRequest::Input { at: marked(mark), input: input.clone() })
    }

    fn label(&self, labels: &[(Mark<'_>, Label)]) {
        let labels = labels.iter().map(|(mark, label)| (marked(*mark), label.clone())).collect();
        // Labels are for people, and nothing depends on them.
        let _ = self.call::<()>(HostRequest::Label(labels));
    }
}

fn unknown(reason: &str) -> Verdict {
    Verdict::Unknown { reason: reason.to_owned() }
}
