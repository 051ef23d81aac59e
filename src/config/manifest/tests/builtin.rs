//! Tests of the built-in templates.

use crate::manifest::{
    Manifest, ManifestTemplate, TemplateValues, builtin_template, builtin_templates,
};

/// Each one works with and without a test command and git, with one agent and with several.
#[test]
fn built_in_templates_become_manifests_whose_last_task_reports() {
    let agents = ["claude".to_owned(), "codex".to_owned()];
    let test = ["cargo", "test"];
    for name in builtin_templates() {
        let template = builtin_template(name).expect("built in");
        let template = ManifestTemplate::parse(template).expect("valid");
        assert!(template.has_agents(), "{name}");
        for (test, worktrees) in [(None, false), (Some(&test[..]), true)] {
            let task = "Do \"it\"\n{agent}";
            let values = TemplateValues { team: "demo", task, agents: &agents, test, worktrees };
            let text = template.render(&values);
            let manifest = Manifest::parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(manifest.description.as_deref(), Some(task), "{name}");
            let report = manifest.tasks.last().expect("a task");
            assert!(report.key == "report" && !report.after.is_empty(), "{name}");
            assert!(report.fields.command.is_empty(), "{name}: an agent reports");
            // A member is not notified of a task that it has unblocked itself.
            for task in &manifest.tasks {
                let before = manifest.tasks.iter().filter(|one| task.after.contains(&one.key));
                let mut owners = before.map(|one| &one.owner);
                assert!(owners.all(|owner| *owner != task.owner), "{name}: {}", task.key);
            }
            let has_worktree =
                manifest.members.iter().any(|member| member.launch.worktree.is_some());
            assert!(!has_worktree || worktrees, "{name}");
            let test_tasks =
                manifest.tasks.iter().filter(|task| !task.fields.command.is_empty()).count();
            assert!(test_tasks <= usize::from(test.is_some()), "{name}");
            // Text for people: no line is wider than 100 columns.
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{name}");
        }
    }
}
