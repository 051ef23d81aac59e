//! Draws the words of code in colours.

use std::sync::Arc;

use model::code::{CodeLanguage, CodeTokens, TokenKind, TokenSpan};
use ratatui::style::{Modifier, Style};

use crate::colors::CodeBlob;
use crate::patch::{FilePatch, LineKind, PatchLine};
use crate::view::DiffView;

impl DiffView {
    /// Sets the styles of words. Comments are dim in any case.
    pub fn with_token_styles(mut self, style: fn(TokenKind) -> Style) -> DiffView {
        self.token_style = Some(style);
        self
    }

    /// Returns the contents whose words would have colours in the last frame, and those of the file
    /// after it.
    pub fn visible_code(&self) -> Vec<CodeBlob> {
        let end = (self.top + self.body_height()).min(self.index.total());
        // A comment on the whole belongs to no file.
        let first = (self.top..end).find_map(|row| self.file_of(row));
        let last = (self.top..end).rev().find_map(|row| self.file_of(row));
        let (Some(first), Some(last)) = (first, last) else { return Vec::new() };
        let ahead = (last + 1..self.patch.files.len()).find(|file| !self.folded[*file]);
        let files = (first..=last).filter(|file| !self.folded[*file]).chain(ahead);
        files.map(|file| self.file(file)).filter(has_code).flat_map(sides).flatten().collect()
    }

    /// Sets the words of a content, in each file that has it.
    pub fn set_colors(&mut self, code: &CodeBlob, tokens: &Arc<CodeTokens>) {
        for (file, colors) in self.patch.files.iter().zip(&mut self.colors) {
            let [old, new] = sides(file);
            for (side, known) in [(old, &mut colors.old), (new, &mut colors.new)] {
                if side.as_ref() == Some(code) {
                    *known = Some(Arc::clone(tokens));
                }
            }
        }
    }

    /// Returns the words of a line; none if they are not known.
    pub(crate) fn tokens(&self, file: usize, line: &PatchLine) -> &[TokenSpan] {
        let colors = &self.colors[file];
        let (tokens, number) = match line.kind {
            LineKind::Removed => (&colors.old, line.old),
            LineKind::Context | LineKind::Added => (&colors.new, line.new),
        };
        let at = number.and_then(|number| usize::try_from(number).ok()?.checked_sub(1));
        let found = tokens.as_ref().zip(at).and_then(|(tokens, at)| tokens.get(at));
        found.filter(|_| self.has_color).map_or(&[], Vec::as_slice)
    }

    /// Returns the style of a byte of a line whose style is `line`.
    pub(crate) fn token_style_at(&self, tokens: &[TokenSpan], byte: usize, line: Style) -> Style {
        let at = tokens.partition_point(|token| token.end as usize <= byte);
        match tokens.get(at).filter(|token| token.start as usize <= byte) {
            None => line,
            Some(token) if token.kind == TokenKind::Comment => line.add_modifier(Modifier::DIM),
            Some(token) => self.token_style.map_or(line, |style| line.patch(style(token.kind))),
        }
    }
}

fn has_code(file: &&FilePatch) -> bool {
    !file.hunks.is_empty() && !file.is_binary && !file.is_submodule()
}

/// Returns the content of a file before and after the change. A new or deleted file has only one.
fn sides(file: &FilePatch) -> [Option<CodeBlob>; 2] {
    [(&file.old, &file.old_blob), (&file.new, &file.new_blob)].map(|(path, id)| {
        let language = CodeLanguage::of_path(path.as_ref()?)?;
        Some(CodeBlob { id: id.clone()?, language })
    })
}
