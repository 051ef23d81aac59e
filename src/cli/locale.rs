//! The locale, as far as it decides which characters are printed.

use std::ffi::OsStr;

/// The variables that select the character set. The first one that is set decides (POSIX).
const VARIABLES: [&str; 3] = ["LC_ALL", "LC_CTYPE", "LANG"];

/// Returns whether the locale uses UTF-8. `var` returns a variable of the environment, and `None`
/// for one that is empty. Without any variable the locale is `C`, which is ASCII.
pub(super) fn uses_utf8<'v>(var: impl Fn(&str) -> Option<&'v OsStr>) -> bool {
    let locale = VARIABLES.into_iter().find_map(var);
    locale.is_some_and(|locale| {
        // `de_DE.UTF-8`, `C.utf8`, and on macOS also plain `UTF-8`.
        let name = locale.to_string_lossy().to_ascii_lowercase();
        name.contains("utf-8") || name.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(vars: &[(&str, &'static str)]) -> bool {
        uses_utf8(|name| {
            let found = vars.iter().find(|(n, value)| *n == name && !value.is_empty());
            found.map(|(_, value)| OsStr::new(*value))
        })
    }

    #[test]
    fn every_spelling_of_utf8_is_recognized() {
        for name in ["en_US.UTF-8", "C.utf8", "de_DE.UTF8@euro", "UTF-8", "de_DE.utf-8@euro"] {
            assert!(with(&[("LANG", name)]), "{name}");
        }
        for name in ["C", "POSIX", "en_US", "de_DE.ISO-8859-15", "ja_JP.eucJP", "utf"] {
            assert!(!with(&[("LANG", name)]), "{name}");
        }
        assert!(!with(&[]));
    }

    #[test]
    fn first_variable_that_is_set_decides() {
        let table = [
            (["C", "C.UTF-8", "C.UTF-8"], false),
            (["C.UTF-8", "C", "C"], true),
            (["", "C", "C.UTF-8"], false),
            (["", "UTF-8", "C"], true),
            (["", "", "C.UTF-8"], true),
        ];
        for (values, expected) in table {
            let vars: Vec<_> = VARIABLES.into_iter().zip(values).collect();
            assert_eq!(with(&vars), expected, "{values:?}");
        }
    }
}
