//! The template of a command line: groups of words with places for values. A group with a place whose value is absent
//! is left out as a whole. Knows no program.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

/// What can stand in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Names {
    Model,
    Mode,
    Plan,
    Prompt,
    Brief,
    AgentId,
    AgentName,
    Team,
    Color,
    Session,
    /// An id for its own session, made anew for each start.
    NewSession,
    Role,
    /// The role as JSON, in the form of Claude Code's `--agents`, where no agent file says it.
    Agents,
    AllowedTools,
    DisallowedTools,
    Resume,
    ConfigDir,
    /// A directory outside its own that it may work in. Its group is there once for each.
    AddDir,
    Phalanx,
    Command,
}

impl Names {
    /// As it is written between braces.
    pub(crate) const ALL: [(&'static str, Names); 20] = [
        ("model", Names::Model),
        ("mode", Names::Mode),
        ("plan", Names::Plan),
        ("prompt", Names::Prompt),
        ("brief", Names::Brief),
        ("agent_id", Names::AgentId),
        ("agent_name", Names::AgentName),
        ("team", Names::Team),
        ("color", Names::Color),
        ("session", Names::Session),
        ("new_session", Names::NewSession),
        ("role", Names::Role),
        ("agents", Names::Agents),
        ("allowed_tools", Names::AllowedTools),
        ("disallowed_tools", Names::DisallowedTools),
        ("resume", Names::Resume),
        ("config_dir", Names::ConfigDir),
        ("add_dir", Names::AddDir),
        ("phalanx", Names::Phalanx),
        ("command", Names::Command),
    ];

    /// Values of several words, or of none: such a place is a word by itself.
    fn is_list(self) -> bool {
        matches!(self, Names::Mode | Names::Plan | Names::Command)
    }
}

/// The values of a launch. One that is not there is absent.
pub(crate) type Values = BTreeMap<Names, Vec<String>>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Place(Names),
}

/// Words that stand or fall together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group(Vec<Vec<Piece>>);

impl Group {
    /// Reads the words of a group: `{name}` is a place, `{{` a brace.
    ///
    /// # Errors
    /// What is wrong, and with which word (counted from 0).
    pub(crate) fn parse<'w>(
        words: impl Iterator<Item = &'w str>,
    ) -> Result<Group, (usize, String)> {
        words
            .enumerate()
            .map(|(at, word)| pieces(word).map_err(|said| (at, said)))
            .collect::<Result<_, _>>()
            .map(Group)
    }

    /// The places in it.
    pub(crate) fn names(&self) -> impl Iterator<Item = Names> {
        self.0.iter().flatten().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Place(name) => Some(*name),
        })
    }

    /// The words with their values; none when one is absent.
    pub(crate) fn fill(&self, values: &Values) -> Option<Vec<String>> {
        let mut words = Vec::new();
        for word in &self.0 {
            match word.as_slice() {
                [Piece::Place(name)] => words.extend(values.get(name)?.iter().cloned()),
                pieces => words.push(
                    pieces.iter().map(|piece| filled(piece, values)).collect::<Option<String>>()?,
                ),
            }
        }
        Some(words)
    }

    /// The words once for each directory, if the group has a place for one.
    fn repeat(&self, values: &Values) -> Vec<String> {
        if self.names().all(|name| name != Names::AddDir) {
            return self.fill(values).unwrap_or_default();
        }
        let dirs = values.get(&Names::AddDir).into_iter().flatten();
        let one = |dir: &String| {
            let mut values = values.clone();
            values.insert(Names::AddDir, vec![dir.clone()]);
            self.fill(&values).unwrap_or_default()
        };
        dirs.flat_map(one).collect()
    }
}

/// The words of all groups that have their values.
pub(crate) fn fill(groups: &[Group], values: &Values) -> Vec<String> {
    groups.iter().flat_map(|group| group.repeat(values)).collect()
}

impl Serialize for Group {
    /// As it is written in a profile.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer
            .collect_seq(self.0.iter().map(|word| word.iter().map(written).collect::<String>()))
    }
}

fn written(piece: &Piece) -> String {
    match piece {
        Piece::Text(text) => text.replace('{', "{{"),
        Piece::Place(name) => {
            let word =
                Names::ALL.iter().find(|(_, known)| known == name).map_or("", |(word, _)| word);
            format!("{{{word}}}")
        }
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
        let found = Names::ALL.iter().find(|(known, _)| *known == name).map(|(_, found)| *found);
        let known = || Names::ALL.map(|(known, _)| known).join(", ");
        let found = found
            .ok_or_else(|| format!("no value `{}`; known: {}", name.escape_debug(), known()))?;
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
        Group::parse(words.iter().copied()).expect("a group")
    }

    fn values(list: &[(Names, &[&str])]) -> Values {
        list.iter()
            .map(|(name, words)| (*name, words.iter().map(|w| (*w).to_owned()).collect()))
            .collect()
    }

    #[test]
    fn id_01_a_group_without_its_value_is_left_out_and_one_with_it_stands_once() {
        let groups = [
            group(&["claude"]),
            group(&["--model", "{model}"]),
            group(&["--x={agent_name}@{team}"]),
        ];
        let with =
            values(&[(Names::Model, &["opus"]), (Names::AgentName, &["a"]), (Names::Team, &["t"])]);
        assert_eq!(fill(&groups, &with), ["claude", "--model", "opus", "--x=a@t"]);
        assert_eq!(fill(&groups, &values(&[(Names::AgentName, &["a"])])), ["claude"]);
    }

    #[test]
    fn sp_02_a_value_is_one_word_whatever_is_in_it() {
        let got = fill(
            &[group(&["-i", "{prompt}"])],
            &values(&[(Names::Prompt, &["a b; {team} $(x)\n'"])]),
        );
        assert_eq!(got, ["-i", "a b; {team} $(x)\n'"]);
    }

    #[test]
    fn lists_become_several_words_or_none() {
        let groups = [group(&["x"]), group(&["{mode}"]), group(&["{command}"])];
        let got = fill(&groups, &values(&[(Names::Mode, &[]), (Names::Command, &["a", "b c"])]));
        assert_eq!(got, ["x", "a", "b c"]);
    }

    #[test]
    fn what_is_not_a_template() {
        let bad = |word: &str| Group::parse(std::iter::once(word)).expect_err("a fault").1;
        assert!(bad("{modle}").starts_with("no value `modle`; known: model, "));
        assert!(bad("a{team").contains("without `}`"));
        assert!(bad("--{mode}").contains("words by themselves"));
        assert_eq!(group(&["{{x}"]).fill(&Values::new()), Some(vec!["{x}".to_owned()]));
        assert_eq!(group(&[""]).fill(&Values::new()), Some(vec![String::new()]));
    }
}
