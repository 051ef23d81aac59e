//! Reactions of the dashboard to keys, and to what its driver reports.

use crossterm::event::{Event, KeyEvent, KeyEventKind};

use super::dialog::{OpenDialog, PageKind, PromptKind, TeamPicker, TextPage, TextPrompt};
use super::editor::LineEditor;
use super::effect::{AfterRun, ChosenCommand, Effect, FinishedCommand, FormChoices};
use super::form::{ActionForm, DialogStep};
use super::keys::{self, KeyCommand};
use super::layout::Panel;
use super::state::{Dashboard, MemberOrder};
use super::targets::AnswerTarget;
use super::team_action::TeamAction;
use super::theme::Tone;
use model::id::{MemberName, TaskId};
use model::members::input::Text;
use model::time::Timestamp;
use ops::views::screen::ScreenUpdate;
use ops::views::snapshot::{AttentionCause, TeamChoice, TeamSnapshot};
use strum::VariantArray;

impl Dashboard {
    /// Handles an event of the terminal.
    pub fn handle(&mut self, event: &Event, now: Timestamp) -> Vec<Effect> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(*key, now),
            Event::Mouse(mouse) => self.mouse(*mouse, now),
            Event::Paste(text) => self.paste(text, now),
            Event::Key(_) | Event::Resize(..) | Event::FocusGained | Event::FocusLost => Vec::new(),
        }
    }

    /// Takes a newer state of the team.
    pub fn set_snapshot(&mut self, snapshot: TeamSnapshot) -> Vec<Effect> {
        let (before, typing_to) = (self.request_id_in_focus(), self.member.clone());
        let was_typing = self.typing;
        self.take_snapshot(snapshot);
        let after = self.request_id_in_focus();
        if before.is_some() && after.is_some() && before != after {
            self.moved_at = Some(self.read_at());
        }
        let shows_request = matches!(
            self.dialog,
            Some(OpenDialog::Page(TextPage { kind: PageKind::Request(_), .. }))
        );
        if shows_request && before.is_some() && after.is_none() {
            self.dialog = None;
            if !before.is_some_and(|id| self.is_being_answered(&id)) {
                self.notify("the request is no longer open", Tone::Waiting, self.read_at());
            }
        }
        let effects = self.follow_selected();
        if let (true, false, Some(member)) = (was_typing, self.typing, typing_to) {
            // The page takes the keys that were meant for the member.
            let words = format!("The run of {member} has ended. What you typed since is lost.");
            self.show_page("Typing has ended", &words, PageKind::Text);
        }
        effects
    }

    /// Shows why the team cannot be read; the last state stays on display.
    pub fn set_problem(&mut self, problem: String) {
        self.problem = Some(problem);
    }

    /// Shows that the team was deleted; the last state stays on display.
    pub fn set_team_gone(&mut self) {
        (self.problem, self.is_deleted) = (Some(self.deleted_words()), true);
    }

    /// Shows another team, of which nothing is known yet and no screen is followed.
    pub fn set_team(&mut self, team: &str) {
        let (theme, split) = (self.theme, self.split);
        let keymap = std::mem::take(&mut self.keymap);
        *self = Dashboard::new(team, theme).with_keymap(keymap);
        self.split = split;
    }

    pub fn set_screen(&mut self, member: &MemberName, update: ScreenUpdate) {
        if self.screen.member.as_ref() == Some(member) {
            self.screen.update(update);
        }
    }

    pub fn set_history(&mut self, member: &MemberName, text: &str) {
        if self.screen.member.as_ref() == Some(member) {
            let page = self.page(Panel::Screen);
            self.screen.show_history(text, page);
        }
    }

    pub fn set_teams(&mut self, teams: Vec<TeamChoice>) {
        if let Some(OpenDialog::Teams(picker)) = &mut self.dialog {
            let own = self.team.as_deref();
            let at = teams.iter().position(|team| Some(team.name.as_str()) == own);
            picker.at = at.unwrap_or(0);
            picker.choices = Some(teams);
        }
    }

    pub fn set_form_choices(&mut self, choices: &FormChoices) {
        if let Some(OpenDialog::Form(form)) = &mut self.dialog {
            form.offer(choices);
        }
    }

    /// Fills the texts of a task into the form that edits them.
    pub fn set_task_texts(&mut self, task: TaskId, subject: &str, description: &str) {
        if let Some(OpenDialog::Form(form)) = &mut self.dialog {
            form.fill(task, subject, description);
        }
    }

    /// Shows a problem of the driver.
    pub fn report_problem(&mut self, words: &str, now: Timestamp) {
        self.notify(words, Tone::Bad, now);
    }

    /// Handles the end of a command.
    pub fn finish(&mut self, done: FinishedCommand, now: Timestamp) -> Vec<Effect> {
        let text = done.command.text();
        if let Some(at) = self.running.iter().position(|running| *running == done.command) {
            self.running.remove(at);
        }
        let output = done.output.trim_end().to_owned();
        match done.after {
            AfterRun::Then(effect) if done.success => return self.perform(*effect),
            AfterRun::Answered { words } if done.success => {
                // The first line repeats the answer; rules that were added follow.
                let more = output.lines().skip(1).map(|line| format!("; {line}"));
                self.show_answered(words + &more.collect::<String>(), now);
            }
            AfterRun::AskToMerge(member) if done.success => self.ask_to_merge(member, output),
            AfterRun::Page { title } if done.success => {
                self.show_page(&title, &output, PageKind::Text);
            }
            AfterRun::Report
            | AfterRun::Page { .. }
            | AfterRun::Answered { .. }
            | AfterRun::AskToMerge(_)
            | AfterRun::Then(_) => self.report(&text, &output, done.success, now),
        }
        Vec::new()
    }

    /// Shows the output of a command: a line at the bottom, or a page if it is longer.
    fn report(&mut self, command: &str, output: &str, success: bool, now: Timestamp) {
        let lines = output.lines().count();
        match (success, lines) {
            (true, 0) => self.notify(format!("done: {command}"), Tone::Good, now),
            (true, 1) => self.notify(output, Tone::Good, now),
            (false, 0) => self.notify(format!("failed: {command}"), Tone::Bad, now),
            (false, 1) => self.notify(output, Tone::Bad, now),
            _ => self.show_page(command, output, PageKind::Text),
        }
    }

    pub(super) fn show_page(&mut self, title: &str, text: &str, kind: PageKind) {
        let lines = match text {
            "" => vec!["nothing".to_owned()],
            text => text.lines().map(str::to_owned).collect(),
        };
        let title = title.to_owned();
        self.dialog = Some(OpenDialog::Page(TextPage { title, lines, kind, scroll: 0 }));
    }

    /// Returns the number of rows that a panel shows.
    pub(super) fn page(&self, panel: Panel) -> usize {
        let rows = self.places.place_of(panel).map_or(10, |place| place.height.saturating_sub(2));
        usize::from(rows).max(1)
    }

    fn paste(&mut self, text: &str, now: Timestamp) -> Vec<Effect> {
        if let Some(dialog) = &mut self.dialog {
            dialog.paste(text);
            return self.apply_typed();
        }
        let Some(member) = self.member.clone().filter(|_| self.typing) else { return Vec::new() };
        match Text::parse(text) {
            Ok(text) => vec![Effect::Paste { member, text }],
            Err(problem) => {
                self.notify(format!("the pasted text {problem}"), Tone::Bad, now);
                Vec::new()
            }
        }
    }

    fn key(&mut self, key: KeyEvent, now: Timestamp) -> Vec<Effect> {
        if self.dialog.is_some() {
            return self.dialog_key(key, now);
        }
        if self.typing {
            return self.typed_key(key);
        }
        let Some(command) = self.keymap.command(key) else { return Vec::new() };
        self.pressed_command(command, key, now)
    }

    fn pressed_command(
        &mut self,
        command: KeyCommand,
        key: KeyEvent,
        now: Timestamp,
    ) -> Vec<Effect> {
        self.notice = None;
        self.pressed = keys::name(key).map(|name| keys::label(&name)).unwrap_or_default();
        self.command(command, now)
    }

    /// Sends a key to the member; Escape leaves, and Ctrl-] sends Escape.
    fn typed_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let name = keys::name(key);
        if name.as_deref() == Some("Escape") {
            self.typing = false;
            return Vec::new();
        }
        let escape = "Escape".parse().ok().filter(|_| {
            // Terminals send the same byte for Ctrl-] and Ctrl-5.
            matches!(name.as_deref(), Some("C-]" | "C-5"))
        });
        match (escape.or_else(|| keys::typed(key)), self.member.clone()) {
            (Some(key), Some(member)) => vec![Effect::Press { member, keys: vec![key] }],
            _ => Vec::new(),
        }
    }

    fn dialog_key(&mut self, key: KeyEvent, now: Timestamp) -> Vec<Effect> {
        let page = usize::from(self.places.header.height + self.places.footer.height);
        let page = page.max(usize::from(self.places.panels.first().map_or(10, |(_, p)| p.height)));
        if let Some(effects) = self.palette_key(key) {
            return effects;
        }
        if let Some(OpenDialog::Page(TextPage { kind: PageKind::Request(_), .. })) = &self.dialog
            && let Some(command) =
                self.keymap.command(key).filter(|command| answers_request(*command))
        {
            return self.pressed_command(command, key, now);
        }
        let Some(dialog) = &mut self.dialog else { return Vec::new() };
        let step = dialog.handle(key, page);
        match step {
            DialogStep::Stay => self.apply_typed(),
            DialogStep::Close if self.team.is_none() => vec![Effect::Quit],
            DialogStep::Close => {
                if let Some(OpenDialog::TextPrompt(prompt)) = self.dialog.take() {
                    self.end_prompt(&prompt.kind);
                }
                self.follow_selected()
            }
            DialogStep::Yes(key) => match self.dialog.take() {
                Some(OpenDialog::Confirmation(question)) => self.perform(question.effect_of(key)),
                _ => Vec::new(),
            },
            DialogStep::Submit => match self.dialog.take() {
                Some(OpenDialog::TextPrompt(prompt)) => self.submit(prompt, now),
                Some(OpenDialog::Form(form)) => self.submit_form(&form),
                Some(OpenDialog::Teams(picker)) => {
                    let effects = self.open_team(&picker, now);
                    // It closes once the team is open.
                    self.dialog = Some(OpenDialog::Teams(picker));
                    effects
                }
                Some(
                    OpenDialog::Help { .. } | OpenDialog::Page(_) | OpenDialog::Confirmation(_),
                )
                | None => Vec::new(),
            },
        }
    }

    /// Applies the text of a prompt that has an effect while it is typed.
    fn apply_typed(&mut self) -> Vec<Effect> {
        let Some(OpenDialog::TextPrompt(prompt)) = &self.dialog else { return Vec::new() };
        let text = prompt.editor.text();
        match prompt.kind {
            PromptKind::Palette => self.request_candidates(),
            PromptKind::Filter => {
                self.filter = text;
                self.arrange();
                self.follow_selected()
            }
            PromptKind::Search => {
                self.screen.search(&text, self.page(Panel::Screen));
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn open_team(&mut self, picker: &TeamPicker, now: Timestamp) -> Vec<Effect> {
        let chosen = picker.choices.as_ref().and_then(|choices| choices.get(picker.at));
        let Some(team) = chosen else { return Vec::new() };
        if let Some(problem) = &team.problem {
            self.notify(format!("{} cannot be shown: {problem}", team.name), Tone::Bad, now);
            return Vec::new();
        }
        vec![Effect::OpenTeam { root: team.root.clone(), name: team.name.clone() }]
    }

    /// Returns an effect after noting what runs.
    pub(super) fn perform(&mut self, effect: Effect) -> Vec<Effect> {
        if let Effect::Run { command, .. } = &effect {
            self.running.push(command.clone());
        }
        vec![effect]
    }

    /// Handles the command of a key. Without an object it only shows the reason.
    pub(super) fn command(&mut self, command: KeyCommand, now: Timestamp) -> Vec<Effect> {
        if let Err(why) = self.offer(command) {
            self.notify(why, Tone::Waiting, now);
            return Vec::new();
        }
        if !answers_request(command) {
            self.moved_at = None;
        }
        match command {
            KeyCommand::Quit => return vec![Effect::Quit],
            KeyCommand::Suspend => return vec![Effect::Suspend],
            KeyCommand::Redraw => return vec![Effect::Redraw],
            KeyCommand::Help => self.dialog = Some(OpenDialog::Help { scroll: 0 }),
            KeyCommand::Palette => return self.open_palette(),
            KeyCommand::Filter if self.focus == Panel::Screen => return self.open_search(),
            KeyCommand::Filter => self.open_prompt(PromptKind::Filter, &self.filter.clone()),
            KeyCommand::Leave => return self.leave(),
            KeyCommand::NextPanel => self.show(self.focus.next(1)),
            KeyCommand::PreviousPanel => self.show(self.focus.next(-1)),
            KeyCommand::Show(panel) => self.show(panel),
            KeyCommand::Zoom => self.zoomed = !self.zoomed,
            KeyCommand::Reviews if self.team.is_none() => {}
            KeyCommand::Reviews => {
                let action = TeamAction::Review(None);
                return vec![Effect::RunHere(ChosenCommand::Action(action))];
            }
            KeyCommand::Teams => {
                self.dialog = Some(OpenDialog::Teams(TeamPicker { choices: None, at: 0 }));
                return vec![Effect::ReadTeams];
            }
            KeyCommand::NextAttention => return self.next_attention(now),
            KeyCommand::Snooze => self.snooze_selected(now),
            KeyCommand::Sort => self.sort(now),
            KeyCommand::Back => {
                if let Some(previous) = self.previous.clone() {
                    return self.select_member(previous);
                }
            }
            KeyCommand::Up
            | KeyCommand::Down
            | KeyCommand::Left
            | KeyCommand::Right
            | KeyCommand::First
            | KeyCommand::Last
            | KeyCommand::PageUp
            | KeyCommand::PageDown => return self.move_selection(command),
            KeyCommand::Open => return self.open(now),
            KeyCommand::Broadcast => self.open_prompt(PromptKind::Broadcast, ""),
            KeyCommand::NewTask => self.open_prompt(PromptKind::NewTask, ""),
            KeyCommand::Spawn => {
                self.dialog = Some(OpenDialog::Form(ActionForm::spawn()));
                return vec![Effect::ReadFormChoices];
            }
            KeyCommand::StartTeam => {
                self.dialog = Some(OpenDialog::Form(ActionForm::start_team()));
                return vec![Effect::ReadFormChoices];
            }
            KeyCommand::EndTeam => self.end_team(),
            KeyCommand::Graph => {
                self.as_graph = !self.as_graph;
                self.show(Panel::Board);
            }
            KeyCommand::AllMessages => {
                self.all_messages = !self.all_messages;
                self.show(Panel::Messages);
            }
            KeyCommand::Edit if self.focus == Panel::Board && self.dialog.is_none() => {
                return self.task_command(command);
            }
            KeyCommand::TaskPage
            | KeyCommand::Assign
            | KeyCommand::Retry
            | KeyCommand::Cancel
            | KeyCommand::Block
            | KeyCommand::Unblock
            | KeyCommand::Comment => return self.task_command(command),
            KeyCommand::Approve
            | KeyCommand::Reject
            | KeyCommand::Edit
            | KeyCommand::AlwaysAllow => return self.answer_command(command, now),
            KeyCommand::Type
            | KeyCommand::Message
            | KeyCommand::Shutdown
            | KeyCommand::Restart
            | KeyCommand::Focus
            | KeyCommand::HideOrShow
            | KeyCommand::Attach
            | KeyCommand::Shell
            | KeyCommand::Review
            | KeyCommand::DiffInPager
            | KeyCommand::Commit
            | KeyCommand::Merge
            | KeyCommand::Log
            | KeyCommand::Explain => return self.member_command(command),
        }
        Vec::new()
    }

    pub(super) fn open_prompt(&mut self, kind: PromptKind, text: &str) {
        self.dialog =
            Some(OpenDialog::TextPrompt(TextPrompt { kind, editor: LineEditor::with(text) }));
    }

    fn leave(&mut self) -> Vec<Effect> {
        if self.screen.is_scrolled() {
            self.screen.leave_history();
        } else if !self.filter.is_empty() {
            self.filter.clear();
            self.arrange();
        } else {
            self.zoomed = false;
        }
        self.follow_selected()
    }

    /// Returns the index of the selected member among those on display.
    pub(super) fn member_index(&self) -> Option<usize> {
        self.members.iter().position(|member| Some(member) == self.member.as_ref())
    }

    /// Moves the focus to a panel.
    pub(super) fn show(&mut self, panel: Panel) {
        if panel == Panel::Requests
            && let Some(index) = self.shown_request_index()
        {
            // The highlighted request stays the same.
            self.request = Some(self.requests()[index].request_id.to_string());
        }
        self.focus = panel;
        if matches!(panel, Panel::Board | Panel::Messages | Panel::Events) {
            self.lower = panel;
        }
    }

    fn sort(&mut self, now: Timestamp) {
        let all = MemberOrder::VARIANTS;
        let at = all.iter().position(|order| *order == self.order).unwrap_or(0);
        self.order = all[(at + 1) % all.len()];
        let word: &str = self.order.into();
        self.notify(format!("members by {word}"), Tone::Plain, now);
        self.arrange();
    }

    /// Selects what has waited longest, or what follows it if that is selected already.
    fn next_attention(&mut self, now: Timestamp) -> Vec<Effect> {
        if self.attention.is_empty() {
            self.notify("nothing waits for you", Tone::Good, now);
            return Vec::new();
        }
        let current = self.selected_cause();
        let at = current.and_then(|cause| self.attention.iter().position(|i| i.cause == cause));
        let item = self.attention[at.map_or(0, |at| (at + 1) % self.attention.len())].clone();
        match &item.cause {
            AttentionCause::Request(id) => {
                self.show(Panel::Requests);
                self.request = Some(id.clone());
            }
            AttentionCause::Task(id) => {
                self.task = Some(*id);
                self.show(Panel::Board);
            }
            AttentionCause::Member(_) | AttentionCause::Lead => self.show(Panel::Members),
        }
        match item.member {
            Some(member) if self.members.contains(&member) => self.select_member(member),
            _ => {
                self.notify(item.for_keys(), Tone::Waiting, now);
                Vec::new()
            }
        }
    }

    /// Returns what is selected in the panel with the focus, if it may need a person.
    fn selected_cause(&self) -> Option<AttentionCause> {
        match self.focus {
            Panel::Requests => self.request.clone().map(AttentionCause::Request),
            Panel::Board => self.task.map(AttentionCause::Task),
            Panel::Members | Panel::Screen | Panel::Messages | Panel::Events => {
                self.member.clone().map(AttentionCause::Member)
            }
        }
    }

    fn snooze_selected(&mut self, now: Timestamp) {
        let cause = self.selected_cause();
        let first = self.attention.first().map(|item| item.cause.clone());
        let known = cause.filter(|cause| self.attention.iter().any(|item| item.cause == *cause));
        match known.or(first).and_then(|cause| self.snooze(&cause)) {
            Some(why) => self.notify(format!("snoozed for 15 minutes: {why}"), Tone::Plain, now),
            None => self.notify("nothing waits for you", Tone::Good, now),
        }
    }

    /// Selects a member and follows its screen.
    pub(super) fn select_member(&mut self, name: MemberName) -> Vec<Effect> {
        if self.member.as_ref() != Some(&name) {
            self.previous = self.member.replace(name);
            self.scrolled.remove(&Panel::Messages);
        }
        self.follow_selected()
    }

    /// Follows the screen of the selected member, unless that is done already.
    pub(super) fn follow_selected(&mut self) -> Vec<Effect> {
        // Another run of the same member has another screen.
        let details = self.member.as_ref().and_then(|member| self.member_details(member));
        let run = details.and_then(|details| details.run.clone());
        if self.screen.is_of(self.member.as_ref(), run.as_ref()) {
            return Vec::new();
        }
        self.typing = false;
        self.screen.follow(self.member.clone(), run);
        vec![Effect::Follow(self.member.clone())]
    }

    fn open(&mut self, now: Timestamp) -> Vec<Effect> {
        match self.focus {
            Panel::Members => {
                self.show(Panel::Screen);
                Vec::new()
            }
            Panel::Screen => self.command(KeyCommand::Type, now),
            Panel::Board => {
                let owner = self.task.and_then(|id| self.task_card(id)?.owner.clone());
                let owner = owner.and_then(|owner| MemberName::existing(&owner).ok());
                match owner.filter(|owner| self.members.contains(owner)) {
                    Some(owner) => {
                        self.show(Panel::Screen);
                        self.select_member(owner)
                    }
                    None => self.command(KeyCommand::TaskPage, now),
                }
            }
            Panel::Requests => {
                if let Ok(AnswerTarget::Request(asked)) = self.target_answer() {
                    self.show_request(&asked);
                }
                Vec::new()
            }
            Panel::Messages => self.command(KeyCommand::Message, now),
            Panel::Events => Vec::new(),
        }
    }
}

/// Returns true for the keys that work on the page of a request.
fn answers_request(command: KeyCommand) -> bool {
    matches!(
        command,
        KeyCommand::Approve | KeyCommand::Reject | KeyCommand::Edit | KeyCommand::AlwaysAllow
    )
}
