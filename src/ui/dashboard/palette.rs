//! The command palette, whose line is completed. The driver finds the candidates, with the engine
//! that completes command lines in a shell.

use crossterm::event::{KeyCode, KeyEvent};

use super::completion::{Completion, CycleStep, cycled, word_at_end};
use super::dialog::{OpenDialog, PromptKind, TextPrompt};
use super::editor::LineEditor;
use super::effect::{CompletionRequest, Effect, PaletteCandidate};
use super::state::Dashboard;

impl Dashboard {
    /// Opens the palette.
    pub(super) fn open_palette(&mut self) -> Vec<Effect> {
        self.completion = Completion::default();
        self.open_prompt(PromptKind::Palette, "");
        self.request_candidates()
    }

    /// Handles a key of the palette; `None` if it is not open, or for a key that closes it.
    pub(super) fn palette_key(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let editor = self.palette_line()?;
        match key.code {
            KeyCode::Tab | KeyCode::Down => Some(self.cycle(CycleStep::Next)),
            KeyCode::BackTab | KeyCode::Up => Some(self.cycle(CycleStep::Previous)),
            _ if editor.handle(key) => Some(self.request_candidates()),
            _ => None,
        }
    }

    fn palette_line(&mut self) -> Option<&mut LineEditor> {
        match &mut self.dialog {
            Some(OpenDialog::TextPrompt(TextPrompt { kind: PromptKind::Palette, editor })) => {
                Some(editor)
            }
            _ => None,
        }
    }

    /// Requests the candidates for the word at the cursor of the palette.
    pub(super) fn request_candidates(&mut self) -> Vec<Effect> {
        let Some(editor) = self.palette_line() else { return Vec::new() };
        let (before, after) = editor.split();
        let (start, request) = word_at_end(&before);
        let candidates = std::mem::take(&mut self.completion.candidates);
        let around = (before[..start].to_owned(), after);
        self.completion =
            Completion { request: request.clone(), around, candidates, ..Completion::default() };
        vec![Effect::Complete(request)]
    }

    /// Takes the answer to a request; one about an earlier line is dropped.
    pub fn set_candidates(
        &mut self,
        request: &CompletionRequest,
        candidates: Vec<PaletteCandidate>,
    ) -> Vec<Effect> {
        let completion = &mut self.completion;
        if completion.is_answered || completion.request != *request {
            return Vec::new();
        }
        completion.candidates = candidates;
        completion.is_answered = true;
        let pending = completion.pending.take();
        pending.map(|step| self.cycle(step)).unwrap_or_default()
    }

    /// Completes the word as far as it is unique; after that, puts one candidate after the other
    /// into the line.
    fn cycle(&mut self, step: CycleStep) -> Vec<Effect> {
        let completion = &mut self.completion;
        if !completion.is_answered {
            completion.pending = Some(step);
            return Vec::new();
        }
        let line = match completion.candidates.as_slice() {
            [] => return Vec::new(),
            [only] => {
                let is_whole = !only.value.ends_with(['=', '/']);
                completion.line(&only.value, if is_whole { " " } else { "" })
            }
            several => match completion.shared().filter(|_| completion.chosen.is_none()) {
                Some(shared) => {
                    let line = completion.line(&shared, "");
                    completion.request.current = shared;
                    line
                }
                None => {
                    let at = cycled(completion.chosen, step, several.len());
                    let line = completion.line(&several[at].value, "");
                    completion.chosen = Some(at);
                    line
                }
            },
        };
        let is_done = completion.candidates.len() == 1;
        if let Some(editor) = self.palette_line() {
            *editor = line;
        }
        if is_done { self.request_candidates() } else { Vec::new() }
    }
}
