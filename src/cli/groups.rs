//! The verbs by purpose, for `--help` and the pages of docs/cli.

use clap::Command;

/// Verbs of one purpose: a group of `--help` and a page of docs/cli.
pub(super) struct VerbGroup {
    pub(super) title: &'static str,
    /// In the order of the page.
    verbs: &'static [&'static str],
}

/// The groups in the order of `--help` and of the index of docs/cli. Each verb that is not hidden
/// is in one of them.
pub(super) const GROUPS: [VerbGroup; 8] = [
    VerbGroup {
        title: "Teams",
        verbs: &["init", "up", "down", "lead", "adopt", "team", "template", "manifest"],
    },
    VerbGroup {
        title: "Members",
        verbs: &["spawn", "resume", "shutdown", "restart", "type", "keys", "profile"],
    },
    VerbGroup { title: "Messages", verbs: &["send", "broadcast", "inbox", "handoff"] },
    VerbGroup { title: "Tasks", verbs: &["task"] },
    VerbGroup { title: "Requests", verbs: &["requests", "answer", "rules", "mode", "plan", "ask"] },
    VerbGroup {
        title: "Watching",
        verbs: &[
            "watch", "popup", "status", "ps", "explain", "wait", "events", "logs", "peek",
            "attach", "focus", "hide", "show",
        ],
    },
    VerbGroup { title: "Places", verbs: &["worktree", "workspace", "host", "store"] },
    VerbGroup {
        title: "Setup",
        verbs: &["doctor", "mcp", "brief", "hook", "completions", "man", "version"],
    },
];

/// The verbs that `--help` lists first.
const EVERYDAY: [&str; 10] =
    ["init", "up", "watch", "status", "spawn", "send", "inbox", "task", "answer", "down"];

/// Width of the names in `--help`.
const NAME_WIDTH: usize = 11;

impl VerbGroup {
    /// Returns the file name of its page.
    #[cfg(test)]
    pub(super) fn page(&self) -> String {
        format!("{}.md", self.title.to_lowercase())
    }

    pub(super) fn commands<'r>(&self, root: &'r Command) -> impl Iterator<Item = &'r Command> {
        self.verbs.iter().filter_map(|verb| root.find_subcommand(verb))
    }
}

/// Returns the template of `phalanx --help`, with the verbs in groups, which clap does not offer.
pub(super) fn help_template(root: &Command) -> String {
    let everyday = EVERYDAY.iter().filter_map(|verb| root.find_subcommand(verb));
    let mut text = section("Everyday", everyday);
    for group in &GROUPS {
        let verbs = group.commands(root).filter(|verb| !EVERYDAY.contains(&verb.get_name()));
        text.push_str(&section(group.title, verbs));
    }
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}Options:\n{{options}}{{after-help}}"
    )
}

fn section<'r>(title: &str, verbs: impl Iterator<Item = &'r Command>) -> String {
    let lines: String = verbs
        .map(|verb| {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            format!("  {:NAME_WIDTH$}  {about}\n", verb.get_name())
        })
        .collect();
    if lines.is_empty() { lines } else { format!("{title}:\n{lines}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::{definition, shown};

    /// Checks that these are the verbs that are not hidden, each once.
    fn assert_each_verb_once(root: &Command, mut listed: Vec<&str>) {
        let mut verbs: Vec<&str> = shown(root).map(Command::get_name).collect();
        listed.sort_unstable();
        verbs.sort_unstable();
        assert_eq!(listed, verbs);
    }

    #[test]
    fn help_lists_each_verb_once_in_80_columns() {
        let root = definition();
        let help = help_template(&root);
        let lines: Vec<&str> = help.lines().filter(|line| line.starts_with("  ")).collect();
        let listed = lines.iter().filter_map(|line| line.split_whitespace().next());
        assert_each_verb_once(&root, listed.collect());
        let long: Vec<&&str> = lines.iter().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
    }

    #[test]
    fn each_verb_is_in_one_group() {
        let in_groups = GROUPS.iter().flat_map(|group| group.verbs).copied();
        assert_each_verb_once(&definition(), in_groups.collect());
    }
}
