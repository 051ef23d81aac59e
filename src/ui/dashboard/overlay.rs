//! Draws the dialogs over the panels.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Widget};
use strum::VariantArray;

use super::dialog::{Confirmation, OpenDialog, PromptKind, TeamPicker, TextPage, TextPrompt};
use super::effect::PaletteCandidate;
use super::form::ActionForm;
use super::keys::{BINDINGS, KeyGroup};
use super::members::first_of;
use super::scroll::bounded;
use super::state::Dashboard;
use super::theme::{Theme, Tone};
use super::words::{cut, fit, painted, position, wrap};
use model::decisions::user_question::UserQuestion;
use model::text;

/// Largest number of candidates that the palette shows at once.
const OFFERED: usize = 8;

/// A dialog that was drawn.
#[derive(Debug, Default)]
pub(super) struct DrawnDialog {
    /// The place of the cursor in a field.
    pub(super) cursor: Option<Position>,
    /// Number of lines above the visible part of a text.
    pub(super) scrolled: Option<usize>,
}

/// Draws the open dialog, if any.
pub(super) fn draw(dashboard: &Dashboard, area: Rect, buffer: &mut Buffer) -> DrawnDialog {
    let theme = dashboard.theme;
    let (mut cursor, mut scrolled) = (None, None);
    match &dashboard.dialog {
        None => {}
        Some(OpenDialog::Help { scroll }) => {
            let inner =
                window("Keys: Down scrolls, Esc closes", (76, area.height), area, buffer, theme);
            let help = help(dashboard);
            let first = bounded(*scroll, inner.height.into(), help.len());
            lines(&help[first..], inner, buffer);
            scrolled = Some(first);
        }
        Some(OpenDialog::Page(page)) => scrolled = Some(draw_page(page, area, buffer, theme)),
        Some(OpenDialog::Confirmation(question)) => draw_question(question, area, buffer, theme),
        Some(OpenDialog::Teams(picker)) => draw_teams(dashboard, picker, area, buffer),
        Some(OpenDialog::TextPrompt(prompt)) => {
            cursor = draw_prompt(dashboard, prompt, area, buffer);
        }
        Some(OpenDialog::Form(form)) => cursor = draw_form(form, area, buffer, theme),
    }
    DrawnDialog { cursor, scrolled }
}

/// Draws an empty window of this size in the middle and returns the area within its border.
fn window(
    title: &str,
    (width, height): (u16, u16),
    area: Rect,
    buffer: &mut Buffer,
    theme: Theme,
) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    Clear.render(place, buffer);
    let style = theme.style(Tone::Focus);
    let title = format!(" {} ", cut(title, usize::from(width.saturating_sub(4))));
    let block = Block::bordered()
        .border_set(theme.border())
        .border_style(style)
        .title(Line::styled(title, style));
    let inner = block.inner(place);
    block.render(place, buffer);
    inner
}

fn lines(all: &[Line<'static>], area: Rect, buffer: &mut Buffer) {
    for (y, line) in (area.y..area.bottom()).zip(all) {
        buffer.set_line(area.x, y, line, area.width);
    }
}

/// Returns the help, made of the table that binds the keys.
fn help(dashboard: &Dashboard) -> Vec<Line<'static>> {
    let theme = dashboard.theme;
    let mut found = Vec::new();
    for group in KeyGroup::VARIANTS {
        if !found.is_empty() {
            found.push(Line::default());
        }
        let title: &str = group.into();
        found.push(Line::styled(title, theme.style(Tone::Strong)));
        for binding in BINDINGS.iter().filter(|binding| binding.group == *group) {
            let keys = dashboard.keymap.labels(binding.command);
            found.push(Line::from(vec![
                Span::styled(format!("  {}", fit(&keys.join(", "), 14)), theme.style(Tone::Focus)),
                Span::raw(binding.help),
            ]));
        }
    }
    found
}

/// Draws a page of text. Returns the number of rows above its visible part.
fn draw_page(page: &TextPage, area: Rect, buffer: &mut Buffer, theme: Theme) -> usize {
    let width = area.width.saturating_sub(4);
    let room = usize::from(width.saturating_sub(2));
    let rows: Vec<Line<'static>> =
        page.lines.iter().flat_map(|line| wrap(painted(line, theme), room)).collect();
    let height = u16::try_from(rows.len()).unwrap_or(u16::MAX).saturating_add(2);
    let height = height.min(area.height.saturating_sub(2));
    let visible = usize::from(height.saturating_sub(2));
    let first = bounded(page.scroll, visible, rows.len());
    let position = position(first, visible, rows.len());
    let position = position.map(|position| format!("  {position}")).unwrap_or_default();
    let title = format!("{}{position}  Esc closes", page.title);
    let inner = window(&title, (width, height), area, buffer, theme);
    lines(&rows[first..], inner, buffer);
    first
}

fn draw_question(question: &Confirmation, area: Rect, buffer: &mut Buffer, theme: Theme) {
    let width = area.width.saturating_sub(4).min(80);
    let room = usize::from(width.saturating_sub(2));
    let details = question.details.lines().flat_map(|line| wrap(painted(line, theme), room));
    let mut shown: Vec<Line<'static>> = details.collect();
    let most = usize::from(area.height.saturating_sub(6));
    if shown.len() > most {
        let hidden = shown.len() - most.saturating_sub(1);
        shown.truncate(most.saturating_sub(1));
        shown.push(Line::styled(format!("{hidden} more lines"), theme.style(Tone::Dim)));
    }
    if !shown.is_empty() {
        shown.push(Line::default());
    }
    shown.extend(wrap(Line::styled(cut(&question.words, 400), theme.style(Tone::Strong)), room));
    let yes = if question.others.is_empty() { "yes" } else { "merge" };
    let others = question.others.iter().map(|other| format!("   {}: {}", other.key, other.word));
    let keys = format!("y: {yes}{}   n, Esc: no", others.collect::<String>());
    shown.push(Line::styled(keys, theme.style(Tone::Dim)));
    let height = u16::try_from(shown.len()).unwrap_or(u16::MAX).saturating_add(2);
    let inner = window("Please confirm", (width, height), area, buffer, theme);
    lines(&shown, inner, buffer);
}

fn draw_teams(dashboard: &Dashboard, picker: &TeamPicker, area: Rect, buffer: &mut Buffer) {
    let theme = dashboard.theme;
    let Some(choices) = &picker.choices else {
        let inner = window("Teams", (40, 3), area, buffer, theme);
        return lines(&[Line::from("looking for teams")], inner, buffer);
    };
    let height = u16::try_from(choices.len()).unwrap_or(u16::MAX).saturating_add(3);
    let rows = usize::from(height.min(area.height).saturating_sub(3));
    let title = match dashboard.team {
        Some(_) => "Teams of this machine",
        None => "Which team? Enter shows it, Esc quits",
    };
    let position = position(picker.at, rows, choices.len());
    let title = position.map_or(title.to_owned(), |position| format!("{title}  {position}"));
    let inner = window(&title, (90, height), area, buffer, theme);
    if inner.is_empty() {
        return;
    }
    let first = first_of(picker.at, rows, choices.len());
    for (nth, team) in choices.iter().enumerate().skip(first).take(rows) {
        let about = match &team.problem {
            Some(problem) => problem.clone(),
            None => format!(
                "{} members, {} working, {} requests, {}{}",
                team.members,
                team.working,
                team.requests,
                team.lead,
                if team.is_foreign { ", by another program" } else { "" },
            ),
        };
        let y = inner.y + u16::try_from(nth - first).unwrap_or(0);
        let about_width = usize::from(inner.width).saturating_sub(21);
        let line = Line::from(vec![
            Span::styled(fit(team.name.as_str(), 20), theme.style(Tone::Strong)),
            Span::raw(format!(" {}", cut(&about, about_width))),
        ]);
        buffer.set_line(inner.x, y, &line, inner.width);
        if nth == picker.at {
            buffer.set_style(Rect { y, height: 1, ..inner }, theme.selected(true));
        }
    }
    let root = choices.get(picker.at).map(|team| team.root.display().to_string());
    let line =
        Line::styled(cut(&root.unwrap_or_default(), inner.width.into()), theme.style(Tone::Dim));
    buffer.set_line(inner.x, inner.bottom() - 1, &line, inner.width);
}

/// Draws a line to fill in at the bottom, above it the candidates for the palette, or the question.
fn draw_prompt(
    dashboard: &Dashboard,
    prompt: &TextPrompt,
    area: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    let theme = dashboard.theme;
    let is_palette = prompt.kind == PromptKind::Palette;
    let width = usize::from(area.width.saturating_sub(2));
    let offered = match &prompt.kind {
        PromptKind::Palette => candidates(dashboard, width),
        PromptKind::UserAnswer { question, .. } => question_lines(question, width),
        _ => Vec::new(),
    };
    let height = u16::try_from(offered.len()).unwrap_or(0) + 3;
    let place = Rect {
        y: area.bottom().saturating_sub(height.min(area.height)),
        height: height.min(area.height),
        ..area
    };
    let completion = &dashboard.completion;
    let count = completion.candidates.len();
    let position = is_palette.then(|| match completion.chosen {
        Some(at) => position(at, offered.len(), count),
        None => (count > offered.len()).then(|| format!("Tab: {} of {count}", offered.len())),
    });
    let position = position.flatten().map(|position| format!("  {position}")).unwrap_or_default();
    let title = format!("{}{position}", prompt.kind.title());
    let inner = window(&title, (place.width, place.height), place, buffer, theme);
    if inner.is_empty() {
        return None;
    }
    lines(&offered, Rect { height: inner.height - 1, ..inner }, buffer);
    let (text, column) = prompt.editor.window(inner.width.into());
    let row = inner.bottom() - 1;
    buffer.set_line(inner.x, row, &Line::from(text), inner.width);
    Some(Position::new(inner.x + u16::try_from(column).unwrap_or(0), row))
}

/// Returns a question of a program, and the answers that it suggests.
fn question_lines(question: &UserQuestion, width: usize) -> Vec<Line<'static>> {
    let several = if question.takes_several { " (several, separated by commas)" } else { "" };
    let text = format!("{}{several}", question.text);
    let mut shown = wrap(Line::from(text::line(&text)), width);
    for (nth, option) in question.options.iter().enumerate() {
        let more = option.description.as_ref().map(|more| format!(": {more}")).unwrap_or_default();
        let text = format!("  {}  {}{more}", nth + 1, option.label);
        shown.push(Line::from(cut(&text, width)));
    }
    shown
}

/// Returns the candidates on display, the chosen one among them.
fn candidates(dashboard: &Dashboard, width: usize) -> Vec<Line<'static>> {
    let theme = dashboard.theme;
    let completion = &dashboard.completion;
    let all = &completion.candidates;
    let values = all.iter().map(|one| Span::raw(one.value.as_str()).width());
    let value_width = values.max().unwrap_or(0).clamp(12, width.max(24) / 2);
    let first = first_of(completion.chosen.unwrap_or(0), OFFERED, all.len());
    let line = |(nth, one): (usize, &PaletteCandidate)| {
        let about = cut(&text::line(&one.about), width.saturating_sub(value_width + 1));
        let line = Line::from(vec![
            Span::styled(fit(&text::line(&one.value), value_width), theme.style(Tone::Focus)),
            Span::raw(format!(" {about}")),
        ]);
        if completion.chosen == Some(nth) { line.patch_style(theme.selected(true)) } else { line }
    };
    all.iter().enumerate().skip(first).take(OFFERED).map(line).collect()
}

fn draw_form(form: &ActionForm, area: Rect, buffer: &mut Buffer, theme: Theme) -> Option<Position> {
    let height = u16::try_from(form.fields.len()).unwrap_or(8) + 4;
    let inner = window(&form.title(), (72, height), area, buffer, theme);
    let mut cursor = None;
    for (nth, (field, y)) in form.fields.iter().zip(inner.y..inner.bottom()).enumerate() {
        let is_focused = nth == form.at;
        let tone = if is_focused { Tone::Focus } else { Tone::Dim };
        let arrows = if field.choices.is_empty() { "" } else { theme.either(" ◂ ▸", " < >") };
        let width = usize::from(inner.width).saturating_sub(11 + 4);
        let (text, column) = field.editor.window(width);
        let line = Line::from(vec![
            Span::styled(fit(field.label, 11), theme.style(tone)),
            Span::raw(fit(&text, width)),
            Span::styled(arrows, theme.style(Tone::Dim)),
        ]);
        buffer.set_line(inner.x, y, &line, inner.width);
        if is_focused {
            let x = inner.x + 11 + u16::try_from(column).unwrap_or(0);
            cursor = (x < inner.right()).then_some(Position::new(x, y));
        }
    }
    if inner.height > 0 {
        let verb = form.verb();
        let help = format!("Tab: next field   arrows: choices   Enter: {verb}   Esc: cancel");
        let (words, tone) = match &form.problem {
            Some(problem) => (problem, Tone::Bad),
            None => (&help, Tone::Dim),
        };
        let line = Line::styled(cut(words, inner.width.into()), theme.style(tone));
        buffer.set_line(inner.x, inner.bottom() - 1, &line, inner.width);
    }
    cursor
}
