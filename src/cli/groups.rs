//! The verbs by purpose, for `--help`, `help --all` and the pages of docs/cli.

use clap::{Arg, Command};

/// Verbs of one purpose.
pub(super) struct VerbGroup {
    pub(super) title: &'static str,
    /// In the order in which they are listed.
    verbs: &'static [&'static str],
}

/// The groups of `help --all`, and the pages of docs/cli. Each verb that is not hidden is in one of
/// them.
pub(super) const GROUPS: [VerbGroup; 8] = [
    VerbGroup {
        title: "Teams",
        verbs: &["init", "up", "down", "lead", "adopt", "team", "template", "manifest"],
    },
    VerbGroup {
        title: "Members",
        verbs: &["spawn", "resume", "shutdown", "restart", "rename", "type", "keys", "profile"],
    },
    VerbGroup { title: "Messages", verbs: &["send", "broadcast", "inbox", "handoff"] },
    VerbGroup { title: "Tasks", verbs: &["task", "review"] },
    VerbGroup { title: "Requests", verbs: &["requests", "answer", "rules", "mode", "plan", "ask"] },
    VerbGroup {
        title: "Watching",
        verbs: &[
            "watch", "popup", "status", "ps", "report", "explain", "wait", "events", "logs",
            "peek", "attach", "focus", "hide", "show",
        ],
    },
    VerbGroup { title: "Places", verbs: &["worktree", "workspace", "host", "store"] },
    VerbGroup {
        title: "Setup",
        verbs: &[
            "help",
            "docs",
            "doctor",
            "mcp",
            "acp",
            "brief",
            "hook",
            "completions",
            "man",
            "version",
        ],
    },
];

/// The groups of `--help`: the verbs of every day.
const EVERYDAY: [VerbGroup; 3] = [
    VerbGroup { title: "Run a team", verbs: &["up", "spawn", "down"] },
    VerbGroup { title: "Give it work", verbs: &["task", "send", "answer"] },
    VerbGroup { title: "See what it does", verbs: &["watch", "status", "logs", "attach"] },
];

/// The end of `--help`.
const FIRST_STEPS: &str = "\
Examples:
  phalanx init && phalanx up team.toml    write a manifest, then run its team
  phalanx up review --task \"Review HEAD\"  run a team from a template
";

/// Width of the names in a list of verbs.
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

    /// Returns the title, and a line for each verb.
    fn section(&self, root: &Command) -> String {
        let lines = self.commands(root).map(|verb| {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            format!("  {:NAME_WIDTH$}  {about}\n", verb.get_name())
        });
        format!("{}:\n{}", self.title, lines.collect::<String>())
    }
}

/// Returns the template of `phalanx --help`, which fits a terminal of 80x24.
pub(super) fn short_help(root: &Command) -> String {
    let verbs: String = EVERYDAY.iter().map(|group| group.section(root)).collect();
    let options = root.get_arguments().filter(|arg| arg.is_global_set());
    let options: Vec<String> = options.map(option_words).collect();
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}\n\
         More: `phalanx help --all`, `phalanx help VERB`, `phalanx docs`\n\
         Options: {}\n{FIRST_STEPS}",
        options.join(", ")
    )
}

/// Returns the template of `phalanx help --all`.
pub(super) fn full_help(root: &Command) -> String {
    let verbs: String = GROUPS.iter().map(|group| group.section(root) + "\n").collect();
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}\
         Options:\n{{options}}{{after-help}}"
    )
}

/// Returns the shortest form of an option: `-t NAME`, `--json`.
fn option_words(option: &Arg) -> String {
    let name = match (option.get_short(), option.get_long()) {
        (Some(short), _) => format!("-{short}"),
        (None, long) => format!("--{}", long.unwrap_or_default()),
    };
    let takes_value = option.get_action().takes_values();
    let value = option.get_value_names().and_then(<[_]>::first).filter(|_| takes_value);
    value.map_or(name.clone(), |value| format!("{name} {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::{definition, shown};

    fn rendered(template: fn(&Command) -> String) -> String {
        let root = definition();
        let template = template(&root);
        root.help_template(template).term_width(80).render_help().to_string()
    }

    #[test]
    fn short_help_fits_80x24_and_lists_the_everyday_verbs() {
        let help = rendered(short_help);
        assert!(help.lines().count() <= 23, "the last row is for the prompt:\n{help}");
        let long: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
        for verb in EVERYDAY.iter().flat_map(|group| group.verbs) {
            assert!(help.contains(&format!("\n  {verb} ")), "{verb}:\n{help}");
        }
    }

    #[test]
    fn full_help_has_each_verb_once_and_all_options_and_exit_codes() {
        let help = rendered(full_help);
        let (verbs, rest) = help.split_once("\nOptions:\n").expect("the options");
        let lines: Vec<&str> = verbs.lines().filter(|line| line.starts_with("  ")).collect();
        let long: Vec<&&str> = lines.iter().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
        let root = definition();
        let mut listed: Vec<&str> =
            lines.iter().filter_map(|line| line.split_whitespace().next()).collect();
        let mut all: Vec<&str> = shown(&root).map(Command::get_name).collect();
        listed.sort_unstable();
        all.sort_unstable();
        assert_eq!(listed, all);
        for part in ["--config-dir <DIR>", "Examples:\n", "Exit codes:\n"] {
            assert!(rest.contains(part), "{part}:\n{rest}");
        }
    }
}
