//! Rules for the names in configuration files, and suggestions for misspelt ones. Uniqueness is
//! checked elsewhere.

/// Maximum length of a name, in characters.
const MAX: usize = 64;

/// Reserved names, in any case.
const RESERVED: [&str; 4] = ["team-lead", "lead", "system", "user"];

/// Checks a name that phalanx creates: `^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`.
///
/// # Errors
/// A message that continues a sentence starting with the name, if the name breaks the rule.
pub fn check_name(name: &str) -> Result<(), String> {
    let rule =
        "use letters, digits, `-` and `_`, starting with a letter or digit, at most 64 characters";
    let inside = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let start = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if inside && start && name.len() <= MAX {
        Ok(())
    } else {
        Err(format!("is not a name: {rule}"))
    }
}

/// Checks the name of a member: a valid name that is not reserved.
///
/// # Errors
/// As [`check_name`].
pub(crate) fn check_member_name(name: &str) -> Result<(), String> {
    check_name(name)?;
    if RESERVED.iter().any(|word| word.eq_ignore_ascii_case(name)) {
        return Err("is a reserved name".to_owned());
    }
    Ok(())
}

/// Checks the name of an environment variable.
///
/// # Errors
/// As [`check_name`].
pub fn check_variable(name: &str) -> Result<(), String> {
    let inside = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if inside && name.starts_with(|c: char| !c.is_ascii_digit()) {
        return Ok(());
    }
    Err("is not a variable name: use letters, digits and `_`, not starting with a digit".to_owned())
}

/// Checks the name of a variable, or a prefix followed by `*`; `*` alone matches every variable.
///
/// # Errors
/// As [`check_name`].
pub(crate) fn check_pattern(pattern: &str) -> Result<(), String> {
    let name = pattern.strip_suffix('*').unwrap_or(pattern);
    if pattern == "*" || check_variable(name).is_ok() {
        return Ok(());
    }
    Err("is not a variable name or a prefix followed by `*`".to_owned())
}

/// Returns the known word that was most likely meant. Two swapped letters count as one mistake. At
/// most a third of the letters may be wrong, so that `cwd` is never suggested for `run`.
pub fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let word = word.to_lowercase();
    let allowed = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(&word, &known.to_lowercase()), known))
        // A word of one or two letters is within one mistake of too many others.
        .filter(|(distance, known)| {
            *distance <= allowed && *distance < known.chars().count().min(word.len())
        })
        // Prefer the same length: letters are swapped more often than lost.
        .min_by_key(|(distance, known)| (*distance, known.len().abs_diff(word.len())))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_word_is_within_a_few_mistakes() {
        let known = ["name", "prompt", "prompt_file", "run", "cwd", "mode", "model"];
        let near = |word: &str| nearest(word, known);
        assert_eq!(near("naem"), Some("name"));
        assert_eq!(near("Name"), Some("name"));
        assert_eq!(near("prompt-file"), Some("prompt_file"));
        assert_eq!(near("modle"), Some("model"));
        assert_eq!(near("moed"), Some("mode"));
        assert_eq!(near("colour"), None);
        assert_eq!(near("x"), None);
        assert_eq!(near(""), None);
    }

    #[test]
    fn names() {
        for good in ["a", "Ada", "7", "a-b_c", "x".repeat(64).as_str()] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in
            ["", "-a", "_a", "a b", "a/b", "..", "a@b", "é", "a\0", "a\n", "x".repeat(65).as_str()]
        {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn reserved_names_are_refused() {
        for bad in ["team-lead", "lead", "system", "user", "Lead"] {
            assert_eq!(check_member_name(bad), Err("is a reserved name".to_owned()));
        }
        assert_eq!(check_member_name("leader"), Ok(()));
    }

    #[test]
    fn variables_and_their_patterns() {
        for good in ["PATH", "_x", "*", "LC_*", "A1"] {
            assert_eq!(check_pattern(good), Ok(()), "{good}");
        }
        for bad in ["", "1A", "A=B", "*_TOKEN", "A**", "A B"] {
            assert!(check_pattern(bad).is_err(), "{bad:?}");
        }
        assert!(check_variable("LC_*").is_err());
        assert!(check_variable("").is_err());
    }
}
