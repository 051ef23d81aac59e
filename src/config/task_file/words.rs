//! Subjects and parts of keys from the texts of tasks.

/// Maximum length of a subject, in characters.
const LONGEST_SUBJECT: usize = 100;

/// Returns the first line of a text as a subject; a long one is cut between words.
pub(super) fn subject(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.chars().count() <= LONGEST_SUBJECT {
        return line.to_owned();
    }
    let head: String = line.chars().take(LONGEST_SUBJECT - 1).collect();
    let words = head.rfind(char::is_whitespace).filter(|end| *end > head.len() / 2);
    format!("{}…", head[..words.unwrap_or(head.len())].trim_end())
}

/// Returns the words of a text as a part of a key: `Write the docs!` becomes `Write-the-docs`.
pub(crate) fn slug(text: &str, longest: usize) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '_'));
    let joined = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    let short: String = joined.chars().take(longest).collect();
    short.trim_matches(['-', '.']).to_owned()
}
