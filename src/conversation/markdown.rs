//! Draws a complete piece of Markdown as rows of a width.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::grid::Grid;
use crate::line::{Breaks, Hue, Look, Span, StyledLine, wrap};

/// Begins each row of code.
const BAR: &str = "│ ";

/// Draws `source` in `room` columns. Text that Markdown would hide is drawn as it is.
pub(crate) fn draw(source: &str, room: usize) -> Vec<StyledLine> {
    let mut drawing = Drawing { room, ..Drawing::default() };
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(source, options) {
        drawing.take(event);
    }
    drawing.end_row();
    if drawing.rows.iter().all(StyledLine::is_empty) && !source.trim().is_empty() {
        return plain(source, room);
    }
    drawing.rows
}

/// Draws a text without markup, wrapped at words.
pub(crate) fn plain(text: &str, room: usize) -> Vec<StyledLine> {
    let none = StyledLine::default();
    let lines = text.trim_end().split('\n');
    lines
        .flat_map(|line| {
            wrap(&StyledLine::new(Look::PLAIN, line), &none, &none, room, Breaks::Words)
        })
        .collect()
}

/// Draws a line of code after its bar.
pub(crate) fn code_line(line: &str, room: usize) -> Vec<StyledLine> {
    let bar = StyledLine::new(Look::DIM, BAR);
    wrap(&StyledLine::new(Look::PLAIN, line), &bar, &bar, room, Breaks::Anywhere)
}

/// The beginning of the rows inside a quote or a list item.
struct Prefix {
    /// Begins the first row, for example with the number of the item.
    first: Option<StyledLine>,
    rest: StyledLine,
}

#[derive(Default)]
struct Drawing {
    room: usize,
    rows: Vec<StyledLine>,
    /// The text of the block so far.
    inline: StyledLine,
    prefixes: Vec<Prefix>,
    /// The next number of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    bold: usize,
    struck: usize,
    /// The addresses of open links, each with the text before it.
    links: Vec<(String, String)>,
    code: Option<String>,
    grid: Option<Grid>,
    /// A block has ended; a row separates it from the next one.
    needs_gap: bool,
}

impl Drawing {
    fn take(&mut self, event: Event) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(text) => {
                let look = Look { hue: Some(Hue::Cyan), ..self.look() };
                self.inline.push(Span::new(look, &text));
            }
            Event::SoftBreak | Event::HardBreak if self.grid.is_some() => self.text(" "),
            // Agents mean a line break in a paragraph as one.
            Event::SoftBreak | Event::HardBreak => self.end_row(),
            Event::Rule => {
                self.begin_block();
                self.inline.push(Span::new(Look::DIM, "───"));
                self.end_block();
            }
            Event::TaskListMarker(is_done) => {
                self.text(if is_done { "[x] " } else { "[ ] " });
            }
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(&text)
            }
        }
    }

    fn look(&self) -> Look {
        Look { is_bold: self.bold > 0, is_dim: self.struck > 0, hue: None }
    }

    fn text(&mut self, text: &str) {
        if let Some(code) = &mut self.code {
            code.push_str(text);
            return;
        }
        for (at, part) in text.split('\n').enumerate() {
            if at > 0 {
                self.end_row();
            }
            self.inline.push(Span::new(self.look(), part));
        }
    }

    fn start(&mut self, tag: Tag) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { .. } => {
                self.begin_block();
                self.bold += 1;
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.prefixes.push(Prefix { first: None, rest: StyledLine::new(Look::DIM, "> ") });
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                self.code = Some(String::new());
                if let CodeBlockKind::Fenced(_) = kind {
                    self.needs_gap = false;
                }
            }
            Tag::List(number) => {
                self.end_row();
                if self.lists.is_empty() {
                    self.begin_block();
                }
                self.lists.push(number);
            }
            Tag::Item => {
                self.end_row();
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let marker = format!("{number}. ");
                        *number = number.saturating_add(1);
                        marker
                    }
                    _ => "- ".to_owned(),
                };
                let rest = StyledLine::new(Look::PLAIN, &" ".repeat(marker.len()));
                let first = Some(StyledLine::new(Look::PLAIN, &marker));
                self.prefixes.push(Prefix { first, rest });
            }
            Tag::Table(_) => {
                self.begin_block();
                self.grid = Some(Grid::default());
            }
            Tag::TableHead => self.bold += 1,
            Tag::Strong | Tag::Emphasis => self.bold += 1,
            Tag::Strikethrough => self.struck += 1,
            Tag::Link { dest_url, .. } => {
                self.links.push((dest_url.into_string(), self.inline.text()));
            }
            Tag::Image { dest_url, .. } => {
                self.text("image: ");
                self.links.push((dest_url.into_string(), self.inline.text()));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(_) => {
                self.end_block();
                self.bold -= 1;
            }
            TagEnd::BlockQuote(_) => {
                self.end_block();
                self.prefixes.pop();
            }
            TagEnd::CodeBlock => {
                let code = self.code.take().unwrap_or_default();
                for line in code.trim_end_matches('\n').split('\n') {
                    self.wrap_row(&StyledLine::new(Look::PLAIN, line), BAR, Breaks::Anywhere);
                }
                self.needs_gap = true;
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.needs_gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.end_row();
                // An item without text still has its marker.
                if self.prefixes.last().is_some_and(|prefix| prefix.first.is_some()) {
                    self.wrap_row(&StyledLine::default(), "", Breaks::Words);
                }
                self.prefixes.pop();
            }
            TagEnd::Table => {
                let room = self.room.saturating_sub(self.indent());
                let rows = self.grid.take().map_or_else(Vec::new, |grid| grid.draw(room));
                for row in rows {
                    self.wrap_row(&row, "", Breaks::Anywhere);
                }
                self.needs_gap = true;
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(grid) = &mut self.grid {
                    grid.add_cell(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if tag == TagEnd::TableHead {
                    self.bold -= 1;
                }
                if let Some(grid) = &mut self.grid {
                    grid.end_row();
                }
            }
            TagEnd::Strong | TagEnd::Emphasis => self.bold -= 1,
            TagEnd::Strikethrough => self.struck -= 1,
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    /// Adds the address of a link unless it is the link's text.
    fn end_link(&mut self) {
        let Some((url, before)) = self.links.pop() else { return };
        let shown = self.inline.text();
        let label = shown.strip_prefix(&before).unwrap_or("");
        if label != url && url.strip_prefix("mailto:") != Some(label) {
            self.inline.push(Span::new(Look::DIM, &format!(" ({url})")));
        }
    }

    fn begin_block(&mut self) {
        self.end_row();
        if self.needs_gap {
            let mut gap = StyledLine::default();
            self.prefixes.iter().for_each(|prefix| gap.append(prefix.rest.clone()));
            self.rows.push(if gap.text().trim().is_empty() { StyledLine::default() } else { gap });
            self.needs_gap = false;
        }
    }

    fn end_block(&mut self) {
        self.end_row();
        self.needs_gap = true;
    }

    fn end_row(&mut self) {
        if !self.inline.is_empty() {
            let body = std::mem::take(&mut self.inline);
            self.wrap_row(&body, "", Breaks::Words);
        }
    }

    fn indent(&self) -> usize {
        self.prefixes.iter().map(|prefix| prefix.rest.width()).sum()
    }

    /// Adds rows of a text after the prefixes and `bar`.
    fn wrap_row(&mut self, body: &StyledLine, bar: &str, breaks: Breaks) {
        let (mut first, mut rest) = (StyledLine::default(), StyledLine::default());
        for prefix in &mut self.prefixes {
            first.append(prefix.first.take().unwrap_or_else(|| prefix.rest.clone()));
            rest.append(prefix.rest.clone());
        }
        first.push(Span::new(Look::DIM, bar));
        rest.push(Span::new(Look::DIM, bar));
        self.rows.extend(wrap(body, &first, &rest, self.room, breaks));
    }
}
