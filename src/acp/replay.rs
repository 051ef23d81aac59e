//! The user's messages of a replayed conversation, joined from their pieces, and the search for
//! texts in them.

/// A longer message is reported in parts.
const LONGEST_MESSAGE: usize = 8 << 20;

#[derive(Debug, Default)]
pub(crate) struct UserMessages {
    id: Option<String>,
    text: String,
    /// The texts to find, each with whether it was found.
    sought: Vec<(String, bool)>,
}

impl UserMessages {
    pub(crate) fn new(seek: &[String]) -> Self {
        let sought = seek.iter().map(|text| (text.clone(), false)).collect();
        Self { sought, ..Self::default() }
    }

    /// Adds a piece. Returns the message before it, if a new one begins.
    pub(crate) fn add(&mut self, id: Option<String>, piece: &str) -> Option<String> {
        let is_full = self.text.len() + piece.len() > LONGEST_MESSAGE;
        let ended = if self.id != id || is_full { self.end() } else { None };
        self.id = id;
        self.text.push_str(piece);
        ended
    }

    /// Ends the current message and returns it.
    pub(crate) fn end(&mut self) -> Option<String> {
        self.id = None;
        if self.text.is_empty() {
            return None;
        }
        let text = std::mem::take(&mut self.text);
        for (sought, is_found) in &mut self.sought {
            *is_found |= text.contains(sought.as_str());
        }
        Some(text)
    }

    /// Ends the search and returns the texts that were found.
    pub(crate) fn take_found(&mut self) -> Vec<String> {
        let sought = std::mem::take(&mut self.sought).into_iter();
        sought.filter(|(_, is_found)| *is_found).map(|(text, _)| text).collect()
    }
}
