//! Templates: manifests with placeholders in their strings and a table `[template]`. A rendered
//! template is a manifest with the comments of the template. Values become strings, never TOML
//! syntax, and a value is not searched for placeholders.

use std::collections::BTreeSet;
use std::ops::Range;

use toml_edit::{Array, DocumentMut, Item, Table, Value};

use super::tables::{Form, ManifestTable};
use crate::{ConfigError, Faults, parse};
use model::value::KeyedTable;

/// Placeholders, and for each a name of the same length. A template in which they stand for the
/// placeholders is a manifest, and every fault in it has the position that it has in the template.
const PLACEHOLDERS: [(&str, &str); 4] =
    [("{task}", "task-x"), ("{team}", "team-x"), ("{test}", "test-x"), ("{agent}", "agent-x")];

/// A valid template.
#[derive(Debug, Clone)]
pub struct ManifestTemplate {
    /// One line of description.
    pub about: String,
    /// The task that `init` suggests.
    pub task: Option<String>,
    document: DocumentMut,
    has_agents: bool,
}

/// Values for the placeholders of a template.
#[derive(Debug, Clone, Copy)]
pub struct TemplateValues<'a> {
    /// Name of the team.
    pub team: &'a str,
    pub task: &'a str,
    /// Profiles, which the members get in turn; not empty if the template has agents.
    pub agents: &'a [String],
    /// The test command; without one, tasks that run it are dropped.
    pub test: Option<&'a [&'a str]>,
    /// False drops the worktrees of members.
    pub worktrees: bool,
}

impl ManifestTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// The first fault with its position, as [`super::Manifest::parse_with_hosts`].
    pub fn parse(text: &str) -> Result<ManifestTemplate, ConfigError> {
        let sample = PLACEHOLDERS
            .iter()
            .fold(text.to_owned(), |text, (place, name)| text.replace(place, name));
        let mut table: ManifestTable = parse(Form::Template.document(), &sample)?;
        let template = table.template.take();
        table.into_manifest(Form::Template, &sample)?.check(Form::Template, &sample)?;
        let invalid = |problem: &str| {
            let mut faults = Faults::new(text);
            faults.add(&Range::default(), problem);
            faults.into_result().expect_err("a fault was added")
        };
        let KeyedTable(template) =
            template.ok_or_else(|| invalid("the template has no [template]"))?;
        // The text itself was parsed above, by another parser of the same format.
        let document: DocumentMut =
            text.parse().map_err(|e: toml_edit::TomlError| invalid(e.message()))?;
        Ok(ManifestTemplate {
            about: template.about.0,
            task: template.task.map(|task| task.0),
            has_agents: text.contains("{agent}"),
            document,
        })
    }

    /// Returns true if members are agents that the caller chooses.
    pub fn has_agents(&self) -> bool {
        self.has_agents
    }

    /// Returns the manifest.
    pub fn render(&self, values: &TemplateValues) -> String {
        let mut document = self.document.clone();
        remove_header(&mut document);
        if !values.worktrees {
            for member in tables(&mut document, "member") {
                member.remove("worktree");
            }
        }
        if values.test.is_none() {
            remove_test_tasks(&mut document);
        }
        let mut filler = Filler { values, agents: values.agents.iter().cycle() };
        filler.fill_table(document.as_table_mut());
        document.to_string().trim_start_matches('\n').to_owned()
    }
}

/// Removes `[template]`. A comment above it is about the whole file and moves to `[team]`.
fn remove_header(document: &mut DocumentMut) {
    let Some(Item::Table(header)) = document.remove("template") else { return };
    let prefix = |table: &Table| {
        table.decor().prefix().and_then(|text| text.as_str()).unwrap_or_default().to_owned()
    };
    if let Some(Item::Table(team)) = document.get_mut("team")
        && header.position() < team.position()
    {
        let (above, own) = (prefix(&header), prefix(team));
        let gap = if above.trim_end().is_empty() { "" } else { "\n" };
        team.decor_mut().set_prefix(format!("{}{gap}{own}", above.trim_end()));
    }
}

/// Returns the tables of a list such as `[[task]]`.
fn tables<'d>(document: &'d mut DocumentMut, key: &str) -> impl Iterator<Item = &'d mut Table> {
    document
        .get_mut(key)
        .and_then(Item::as_array_of_tables_mut)
        .into_iter()
        .flat_map(|list| list.iter_mut())
}

/// Removes the tasks that run `{test}`, and their keys from `after` of other tasks.
fn remove_test_tasks(document: &mut DocumentMut) {
    let Some(list) = document.get_mut("task").and_then(Item::as_array_of_tables_mut) else {
        return;
    };
    let mut removed = BTreeSet::new();
    list.retain(|task| {
        let run = task.get("run").and_then(Item::as_array);
        let runs_test =
            run.is_some_and(|run| run.iter().any(|word| word.as_str() == Some("{test}")));
        if runs_test {
            removed.extend(task.get("key").and_then(Item::as_str).map(str::to_owned));
        }
        !runs_test
    });
    for task in list.iter_mut() {
        let Some(after) = task.get_mut("after").and_then(Item::as_array_mut) else { continue };
        after.retain(|key| key.as_str().is_none_or(|key| !removed.contains(key)));
        after.fmt();
        if after.is_empty() {
            task.remove("after");
        }
    }
    if list.is_empty() {
        document.remove("task");
    }
}

/// Replaces placeholders in the order of the file.
struct Filler<'a, A> {
    values: &'a TemplateValues<'a>,
    agents: A,
}

impl<'a, A: Iterator<Item = &'a String>> Filler<'a, A> {
    fn fill_table(&mut self, table: &mut Table) {
        for (_, item) in table.iter_mut() {
            match item {
                Item::Table(table) => self.fill_table(table),
                Item::ArrayOfTables(list) => {
                    list.iter_mut().for_each(|table| self.fill_table(table));
                }
                Item::Value(value) => self.fill_value(value),
                Item::None => {}
            }
        }
    }

    fn fill_value(&mut self, value: &mut Value) {
        match value {
            Value::Array(array) => self.fill_array(array),
            Value::InlineTable(table) => {
                table.iter_mut().for_each(|(_, value)| self.fill_value(value));
            }
            Value::String(text) => {
                if let Some(filled) = self.fill_text(text.value()) {
                    let decor = text.decor().clone();
                    *value = Value::from(filled);
                    *value.decor_mut() = decor;
                }
            }
            Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
        }
    }

    /// Fills a list; `{test}` as an element becomes the words of the test command.
    fn fill_array(&mut self, array: &mut Array) {
        let elements: Vec<Value> = array.iter().cloned().collect();
        array.clear();
        for mut element in elements {
            if element.as_str() != Some("{test}") {
                self.fill_value(&mut element);
                array.push_formatted(element);
                continue;
            }
            for word in self.values.test.unwrap_or_default() {
                let mut value = Value::from(*word);
                *value.decor_mut() = element.decor().clone();
                array.push_formatted(value);
                // The further words stay on the line of the first one.
                element.decor_mut().set_prefix(" ");
            }
        }
    }

    /// Returns the text with the values of its placeholders; `None` if it has none.
    fn fill_text(&mut self, text: &str) -> Option<String> {
        let (mut filled, mut rest, mut found) = (String::new(), text, false);
        while let Some(at) = rest.find('{') {
            let (before, tail) = rest.split_at(at);
            filled.push_str(before);
            if let Some(after) = tail.strip_prefix("{task}") {
                filled.push_str(self.values.task);
                rest = after;
            } else if let Some(after) = tail.strip_prefix("{team}") {
                filled.push_str(self.values.team);
                rest = after;
            } else if let Some(after) = tail.strip_prefix("{agent}") {
                filled.push_str(self.agents.next().map_or("", String::as_str));
                rest = after;
            } else {
                filled.push('{');
                rest = &tail[1..];
                continue;
            }
            found = true;
        }
        filled.push_str(rest);
        found.then_some(filled)
    }
}

/// Names and TOML texts of the built-in templates.
const BUILTIN: [(&str, &str); 5] = [
    ("review", include_str!("builtin/review.toml")),
    ("feature", include_str!("builtin/feature.toml")),
    ("bugs", include_str!("builtin/bugs.toml")),
    ("docs", include_str!("builtin/docs.toml")),
    ("research", include_str!("builtin/research.toml")),
];

/// Returns the names of the built-in templates, the most common first.
pub fn builtin_templates() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// Returns the TOML text of a built-in template.
pub fn builtin_template(name: &str) -> Option<&'static str> {
    BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::manifest::Manifest;

    const TEXT: &str = r#"# About the file.

[template]
about = "an example"

# About the team.
[team]
name = "{team}"
description = "{task}"

[[member]]
name = "ann"
profile = "{agent}" # chosen
worktree = true
prompt = """
You are in {team}.
Do: {task}"""

[[member]]
name = "ben"
profile = "{agent}"

[[member]]
name = "runner"

[[task]]
key = "test"
subject = "Run the tests"
run = ["env", "{test}", "--quiet"]

[[task]]
key = "work"
subject = "Work"
description = "{not} {task}"
owner = "ann"
after = ["test"]
"#;

    fn values<'a>(agents: &'a [String], task: &'a str) -> TemplateValues<'a> {
        TemplateValues { team: "demo", task, agents, test: None, worktrees: false }
    }

    fn rendered(values: &TemplateValues) -> String {
        ManifestTemplate::parse(TEXT).expect("a template").render(values)
    }

    #[test]
    fn placeholders_are_filled_and_comments_stay() {
        let agents = ["claude".to_owned(), "codex".to_owned()];
        let test = ["cargo", "test"];
        let text = rendered(&TemplateValues {
            test: Some(&test),
            worktrees: true,
            ..values(&agents, "Build it")
        });
        assert!(text.starts_with("# About the file.\n\n# About the team.\n[team]"), "{text}");
        for part in [
            "# About the team.\n[team]\nname = \"demo\"",
            "profile = \"claude\" # chosen\nworktree = true",
            "profile = \"codex\"",
            "run = [\"env\", \"cargo\", \"test\", \"--quiet\"]",
            "description = \"{not} Build it\"",
            "after = [\"test\"]",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let manifest = Manifest::parse(&text).expect("a manifest");
        let prompt = manifest.members[0].launch.prompt.as_deref();
        assert_eq!(prompt, Some("You are in demo.\nDo: Build it"));
        // One agent is for all members.
        let text = rendered(&values(&agents[..1], "x"));
        assert_eq!(text.matches("profile = \"claude\"").count(), 2, "{text}");
    }

    #[test]
    fn tests_without_a_command_and_worktrees_without_git_are_dropped() {
        let agents = ["claude".to_owned()];
        let text = rendered(&values(&agents, "Build it"));
        for gone in ["{test}", "after", "worktree"] {
            assert!(!text.contains(gone), "{gone}: {text}");
        }
        let manifest = Manifest::parse(&text).expect("a manifest");
        assert_eq!(manifest.tasks.len(), 1);
    }

    #[test]
    fn faults_have_the_position_that_they_have_in_the_template() {
        let head = "[template]\nabout = \"x\"\n[team]\nname = \"{team}\"\n";
        let worker = "[[member]]\nname = \"ann\"\n";
        let task = "[[task]]\nkey = \"a\"\nsubject = \"{task}\"\n";
        for (text, fault) in [
            ("[team]\nname = \"x\"\n".to_owned(), "1:1: the template has no [template]"),
            (
                format!("{head}descripton = \"{{task}}\"\n"),
                "5:1: unknown key `descripton` in [team]",
            ),
            (format!("{head}[[member]]\nname = \"{{agent}}\" x"), "6:18: "),
            (format!("{head}{worker}{task}owner = \"anna\"\n"), "10:9: "),
            ("[template]\n[team]\nname = \"x\"\n".to_owned(), "1:1: [template] has no `about`"),
        ] {
            let found = ManifestTemplate::parse(&text).expect_err("a fault").to_string();
            assert!(found.starts_with(fault), "{found}");
        }
        let fault = Manifest::parse(TEXT).expect_err("no manifest").to_string();
        assert!(fault.starts_with("3:2: unknown key `template` in the manifest"), "{fault}");
    }

    proptest! {
        /// SEC-05: a task is text, whatever it contains.
        #[test]
        fn sec_05_task_text_stays_text(
            task in r#"([a-z "'\\#\n\r\t{}\[\]=]|\{agent\}|\{test\}|"""|'''|\PC){0,60}"#,
        ) {
            let agents = ["claude".to_owned()];
            let text = rendered(&values(&agents, &task));
            let manifest = Manifest::parse(&text).expect("a manifest");
            prop_assert_eq!(manifest.description.as_deref(), Some(task.as_str()));
            prop_assert_eq!(&manifest.tasks[0].description, &format!("{{not}} {task}"));
            let prompt = format!("You are in demo.\nDo: {task}");
            prop_assert_eq!(&manifest.members[0].launch.prompt, &Some(prompt));
            prop_assert_eq!(manifest.members.len(), 3);
        }
    }
}
