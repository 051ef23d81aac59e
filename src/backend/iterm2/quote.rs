//! Encodes the launcher's command line for iTerm2, which splits the text of `command` by a rule
//! that is not a shell's and differs between its versions. Uses only syntax that all versions parse
//! alike, according to iTerm2's sources (`componentsInShellCommand`, `computeArgvForCommand`).

use std::ffi::{OsStr, OsString};

/// Joins the words. Each is in double quotes, between which blanks, apostrophes and tildes are
/// literal; a double quote itself is in single quotes. `$$` would begin a variable that iTerm2
/// prompts for, so the double quotes are closed and reopened between the two dollar signs.
///
/// # Errors
/// A message for a word that cannot be encoded: not UTF-8, or with a NUL or a backslash. The
/// meaning of a backslash depends on the version, even in single quotes.
pub(super) fn command(argv: &[OsString]) -> Result<String, String> {
    let words: Result<Vec<String>, String> = argv.iter().map(|word| self::word(word)).collect();
    Ok(words?.join(" "))
}

fn word(word: &OsStr) -> Result<String, String> {
    let text = word.to_str().filter(|text| !text.contains(['\\', '\0']));
    let Some(text) = text else {
        return Err(format!("{word:?} cannot be passed to iTerm2: use a path without backslashes"));
    };
    let whole = text.replace('"', "\"'\"'\"").replace("$$", "$\"\"$").replace("$$", "$\"\"$");
    Ok(format!("\"{whole}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rule of iTerm2 versions that support single quotes. Escapes are omitted, because
    /// `command` never emits a backslash.
    fn split(text: &str) -> Vec<String> {
        assert!(!text.contains("$$"), "iTerm2 would ask for a variable: {text}");
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for c in text.chars() {
            match (quote, c) {
                (None, '"' | '\'') => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                (Some(open), c) if open == c => quote = None,
                (None, c) if c.is_whitespace() => words.extend(word.take()),
                (_, c) => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }

    /// The older rule, in which an apostrophe is an ordinary character.
    fn split_of_old(text: &str) -> Vec<String> {
        let apart: Vec<&str> = text.split('"').collect();
        let mut words = vec![String::new()];
        for (at, part) in apart.iter().enumerate() {
            let quoted = at % 2 == 1;
            for c in part.chars() {
                let last = words.last_mut().expect("never empty");
                if c.is_whitespace() && !quoted { words.push(String::new()) } else { last.push(c) }
            }
        }
        words
    }

    fn os(words: &[String]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn sec_09_special_characters_survive_quoting() {
        let words = [
            "/Users/it's me/a b/ü 한글 🙂/~x/$HOME/`id`/$(id);#{x}/phalanx",
            "exec",
            "~/a\tb\nc",
            "",
        ];
        let words: Vec<String> = words.map(str::to_owned).to_vec();
        let line = command(&os(&words)).expect("it can be encoded");
        assert_eq!(split(&line), words);
        assert_eq!(split_of_old(&line), words, "in every version");
        let odd = vec!["a\"b\"".to_owned(), "$$x$$ $$$$$".to_owned(), "\"".to_owned()];
        assert_eq!(split(&command(&os(&odd)).expect("it can be encoded")), odd);
    }

    #[test]
    fn sec_09_unencodable_words_are_refused_with_advice() {
        use std::os::unix::ffi::OsStringExt;
        for bad in
            [OsString::from("/a\\b"), OsString::from("\\(x)"), OsString::from_vec(vec![b'/', 0xff])]
        {
            let problem =
                command(&["exec".into(), bad]).expect_err("it would arrive as something else");
            assert!(problem.contains("without backslashes"), "{problem}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn sec_09_any_words_survive_quoting(words in proptest::collection::vec("[^\\\\\0]{0,24}|[\"'$ ]{0,8}", 1..4)) {
            let line = command(&os(&words)).expect("no backslash");
            prop_assert_eq!(split(&line), words);
            prop_assert!(!line.contains('\\'));
        }
    }
}
