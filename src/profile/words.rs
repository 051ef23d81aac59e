//! Command line templates: groups of words with placeholders. A group with a placeholder that has
//! no value is omitted as a whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use strum::VariantNames;

use model::value::{ParsedText, parse_text};

/// A placeholder of a template, spelled in snake case between braces.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    strum::Display,
    strum::EnumIter,
    strum::EnumString,
    strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum Placeholder {
    Model,
    Mode,
    Plan,
    Prompt,
    Brief,
    AgentId,
    AgentName,
    Team,
    Color,
    /// Id of the lead's session.
    Session,
    /// Id for the program's own session, generated at each start.
    NewSession,
    Role,
    /// The role as JSON for Claude Code's `--agents`, if no agent file defines it.
    Agents,
    /// Comma-separated names of tools.
    AllowedTools,
    /// Comma-separated rules.
    DisallowedTools,
    /// Id of the session to continue.
    Resume,
    /// The config root; absent for `~/.claude`, unless the caller's `CLAUDE_CONFIG_DIR` names it.
    ConfigDir,
    /// A directory besides the working directory that the member may access. Its group is repeated
    /// for each directory.
    AddDir,
    /// Path of the phalanx executable.
    Phalanx,
    /// Command line given by the caller.
    Command,
}

impl Placeholder {
    /// Returns true if the value is any number of words. Such a placeholder must be a word of its
    /// own.
    fn is_list(self) -> bool {
        matches!(self, Placeholder::Mode | Placeholder::Plan | Placeholder::Command)
    }
}

/// Values of the placeholders for one launch.
pub type Values = BTreeMap<Placeholder, Vec<String>>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Place(Placeholder),
}

/// A word of a template, as its text is written in a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TemplateWord(Vec<Piece>);

impl TemplateWord {
    /// Parses a word: `{name}` is a placeholder, `{{` a literal brace.
    ///
    /// # Errors
    /// A description, if a brace is not closed, a placeholder is unknown, or one that expands to
    /// any number of words is not a word of its own.
    pub(super) fn parse(text: &str) -> Result<TemplateWord, String> {
        pieces(&parse_text(text)?).map(TemplateWord)
    }
}

impl<'de> Deserialize<'de> for TemplateWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TemplateWord, D::Error> {
        deserializer.deserialize_string(ParsedText(TemplateWord::parse))
    }
}

impl Serialize for TemplateWord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.iter().map(written).collect::<String>())
    }
}

/// Words that are included or omitted together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group(pub(super) Vec<TemplateWord>);

impl Group {
    /// Returns the placeholders of the group.
    pub fn names(&self) -> impl Iterator<Item = Placeholder> {
        self.0.iter().flat_map(|word| &word.0).filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Place(name) => Some(*name),
        })
    }

    /// Returns the words with their values, or `None` if a value is absent.
    pub fn fill(&self, values: &Values) -> Option<Vec<String>> {
        let mut words = Vec::new();
        for word in &self.0 {
            match word.0.as_slice() {
                [Piece::Place(name)] => words.extend(values.get(name)?.iter().cloned()),
                pieces => words.push(
                    pieces.iter().map(|piece| filled(piece, values)).collect::<Option<String>>()?,
                ),
            }
        }
        Some(words)
    }

    /// Returns the words with their values, once per directory if the group contains `{add_dir}`.
    /// Empty if a value is absent.
    fn repeat(&self, values: &Values) -> Vec<String> {
        if self.names().all(|name| name != Placeholder::AddDir) {
            return self.fill(values).unwrap_or_default();
        }
        let dirs = values.get(&Placeholder::AddDir).into_iter().flatten();
        let one = |dir: &String| {
            let mut values = values.clone();
            values.insert(Placeholder::AddDir, vec![dir.clone()]);
            self.fill(&values).unwrap_or_default()
        };
        dirs.flat_map(one).collect()
    }
}

/// Returns the words of all groups whose values are present.
pub fn fill(groups: &[Group], values: &Values) -> Vec<String> {
    groups.iter().flat_map(|group| group.repeat(values)).collect()
}

fn written(piece: &Piece) -> String {
    match piece {
        Piece::Text(text) => text.replace('{', "{{"),
        Piece::Place(name) => format!("{{{name}}}"),
    }
}

fn filled(piece: &Piece, values: &Values) -> Option<String> {
    match piece {
        Piece::Text(text) => Some(text.clone()),
        Piece::Place(name) => values.get(name).map(|words| words.join(" ")),
    }
}

fn pieces(word: &str) -> Result<Vec<Piece>, String> {
    let (mut pieces, mut text, mut rest) = (Vec::new(), String::new(), word);
    while let Some(at) = rest.find('{') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('{') {
            text.push('{');
            rest = after;
            continue;
        }
        let (name, after) =
            rest.split_once('}').ok_or("`{` without `}`; a brace is written `{{`")?;
        let found = name.parse().map_err(|_| {
            let known = Placeholder::VARIANTS.join(", ");
            format!("no value `{}`; known: {known}", name.escape_debug())
        })?;
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(Piece::Place(found));
        rest = after;
    }
    text.push_str(rest);
    if !text.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(text));
    }
    match pieces.as_slice() {
        [_] => Ok(pieces),
        several if several.iter().any(|p| matches!(p, Piece::Place(name) if name.is_list())) => {
            Err(format!("`{word}`: {{mode}}, {{plan}} and {{command}} are words by themselves"))
        }
        _ => Ok(pieces),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(words: &[&str]) -> Group {
        Group(words.iter().map(|word| TemplateWord::parse(word).expect("a word")).collect())
    }

    fn values(list: &[(Placeholder, &[&str])]) -> Values {
        list.iter()
            .map(|(name, words)| (*name, words.iter().map(|w| (*w).to_owned()).collect()))
            .collect()
    }

    #[test]
    fn id_01_group_without_a_value_is_omitted() {
        let groups = [
            group(&["claude"]),
            group(&["--model", "{model}"]),
            group(&["--x={agent_name}@{team}"]),
        ];
        let with = values(&[
            (Placeholder::Model, &["opus"]),
            (Placeholder::AgentName, &["a"]),
            (Placeholder::Team, &["t"]),
        ]);
        assert_eq!(fill(&groups, &with), ["claude", "--model", "opus", "--x=a@t"]);
        assert_eq!(fill(&groups, &values(&[(Placeholder::AgentName, &["a"])])), ["claude"]);
    }

    #[test]
    fn sp_02_value_stays_one_word_whatever_it_contains() {
        let got = fill(
            &[group(&["-i", "{prompt}"])],
            &values(&[(Placeholder::Prompt, &["a b; {team} $(x)\n'"])]),
        );
        assert_eq!(got, ["-i", "a b; {team} $(x)\n'"]);
    }

    #[test]
    fn list_values_expand_to_any_number_of_words() {
        let groups = [group(&["x"]), group(&["{mode}"]), group(&["{command}"])];
        let got = fill(
            &groups,
            &values(&[(Placeholder::Mode, &[]), (Placeholder::Command, &["a", "b c"])]),
        );
        assert_eq!(got, ["x", "a", "b c"]);
    }

    #[test]
    fn invalid_templates_are_rejected_and_escaped_braces_are_literal() {
        let bad = |word: &str| TemplateWord::parse(word).expect_err("a fault");
        assert!(bad("{modle}").starts_with("no value `modle`; known: model, "));
        assert!(bad("a{team").contains("without `}`"));
        assert!(bad("--{mode}").contains("words by themselves"));
        assert_eq!(group(&["{{x}"]).fill(&Values::new()), Some(vec!["{x}".to_owned()]));
        assert_eq!(group(&[""]).fill(&Values::new()), Some(vec![String::new()]));
    }
}
