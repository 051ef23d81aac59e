//! Recognizes the lines with which programs ask a person for input.

use serde::{Deserialize, Serialize};

use crate::text;
use crate::time::Timestamp;

/// Maximum length of a recorded prompt, in characters.
const LONGEST: usize = 120;

/// A prompt at which a plain program waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptSeen {
    /// The line on its screen.
    pub line: String,
    pub since: Timestamp,
    /// The lead has announced it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_announced: bool,
}

/// Returns the line, shortened, if it ends as a prompt. `takes_line` is true if the terminal
/// collects a line for the program. Otherwise the program reads single keys, as shells with line
/// editing, debuggers, pagers and editors do, and only a question counts.
///
/// The prompts of shells and interpreters end with `$`, `#`, `%` or `>`, and are never prompts in
/// this sense: such a program waits for work, not for an answer.
pub fn prompt_in(line: &str, takes_line: bool) -> Option<String> {
    let line = line.trim();
    let asks = line.ends_with('?') || offers_yes_or_no(line) || asks_for_a_key(line);
    let takes_answer = takes_line && line.ends_with([':', ']', ')']);
    let has_words = line.chars().any(char::is_alphanumeric);
    (has_words && (asks || takes_answer)).then(|| text::short(line, LONGEST))
}

/// Returns true for a line that ends with a choice in brackets, such as `[y/N]`, `(yes/no)?` or
/// `(y)`.
fn offers_yes_or_no(line: &str) -> bool {
    let line = line.trim_end_matches(['?', ':']).trim_end();
    let opening = match line.chars().last() {
        Some(']') => '[',
        Some(')') => '(',
        Some(_) | None => return false,
    };
    let choices = line[..line.len() - 1].rsplit_once(opening).map_or("", |(_, choices)| choices);
    let mut words = choices.split(|c: char| !c.is_alphanumeric());
    words.any(|word| ["y", "n", "yes", "no"].iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// Returns true for lines such as `Press any key to continue...`.
fn asks_for_a_key(line: &str) -> bool {
    let line = line.to_lowercase();
    let mut words = line.split(|c: char| !c.is_alphanumeric());
    words.any(|word| ["press", "hit"].contains(&word))
        && words.any(|word| ["key", "enter", "return"].contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_end_as_prompts_are_recognized() {
        // Line, whether it is a prompt for a line and for a key.
        let table = [
            ("Continue? [y/N] ", true, true),
            ("Do you want to continue? [Y/n]", true, true),
            ("Ok to proceed? (y) ", true, true),
            ("continue connecting (yes/no/[fingerprint])? ", true, true),
            ("Overwrite? [yes, no]:", true, true),
            ("Which one?", true, true),
            ("Press any key to continue . . .", true, true),
            ("Press [ENTER] to continue", true, true),
            ("Password: ", true, false),
            ("[sudo] password for ann:", true, false),
            ("Username for 'https://example.org': ", true, false),
            ("package name: (demo) ", true, false),
            ("Your choice [1-4]", true, false),
            ("(gdb)", true, false),
            ("$ ", false, false),
            ("ann@host:~/src# ", false, false),
            ("host% ", false, false),
            ("> ", false, false),
            (">>> ", false, false),
            ("mysql> ", false, false),
            (":", false, false),
            ("?", false, false),
            ("(END)", true, false),
            ("", false, false),
            ("Listening on port 80", false, false),
            ("100 files pressed, 3 keys", false, false),
            ("[no", false, false),
            ("no)", true, false),
        ];
        for (line, for_line, for_key) in table {
            let found = [true, false].map(|takes_line| prompt_in(line, takes_line).is_some());
            assert_eq!(found, [for_line, for_key], "{line:?}");
        }
    }

    #[test]
    fn prompt_is_trimmed_shortened_and_without_control_characters() {
        assert_eq!(prompt_in("  Name: ", true).as_deref(), Some("Name:"));
        let long = format!("{}?", "x".repeat(500));
        assert_eq!(prompt_in(&long, true).map(|line| line.chars().count()), Some(LONGEST));
        let hostile = prompt_in("\u{1b}[2JName:", true).expect("a prompt");
        assert!(!hostile.contains('\u{1b}'), "{hostile:?}");
    }
}
