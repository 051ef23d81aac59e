//! `help` and `docs`: what a person reads who has only the program.

use crate::harness::{Stage, binary};

#[test]
fn help_starts_with_the_everyday_verbs_and_leads_to_the_others() {
    let stage = Stage::without_tmux();
    let short = stage.phalanx(&["--help"]).expect(0).stdout;
    for same in [&["-h"][..], &["help"]] {
        assert_eq!(stage.phalanx(same).expect(0).stdout, short, "{same:?}");
    }
    assert!(short.contains("More: `phalanx help --all`"), "{short}");
    assert!(!short.contains("\n  adopt "), "{short}");
    let all = stage.phalanx(&["help", "--all"]).expect(0).stdout;
    for part in ["\n  adopt ", "\n  send ", "--config-dir <DIR>", "Exit codes:"] {
        assert!(all.contains(part), "{part}: {all}");
    }
    let one = stage.phalanx(&["help", "task", "create"]).expect(0).stdout;
    assert_eq!(one, stage.phalanx(&["task", "create", "--help"]).expect(0).stdout);
    let wrong = stage.phalanx(&["help", "task", "creat"]).expect(2).stderr;
    assert_eq!(wrong, "error: unknown command `task creat`\nhint: did you mean `create`?\n");
}

#[test]
fn docs_prints_pages_and_sections_and_finds_the_nearest() {
    let stage = Stage::without_tmux();
    let list = stage.command(binary()).arg("docs").env("COLUMNS", "80").output().expect("it runs");
    let list = String::from_utf8(list.stdout).expect("text");
    assert!(list.lines().any(|line| line.starts_with("manifest ")), "{list}");
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    let page = stage.phalanx(&["docs", "manifest"]).expect(0).stdout;
    let section = stage.phalanx(&["docs", "manifest", "roles"]).expect(0).stdout;
    assert!(section.starts_with("## Roles") && page.contains(&section), "{section}");
    for (words, said) in [
        (
            &["docs", "manifst"][..],
            "error: there is no page or word `manifst`\nhint: did you mean `manifest`?\n",
        ),
        (
            &["docs", "\u{1b}[31m"],
            "error: there is no page or word `\u{241b}[31m`\nhint: see the pages with `phalanx docs`\n",
        ),
        (
            &["docs", "manifest", "role"],
            "error: there is no section `role` of `manifest`\nhint: did you mean `roles`?\n",
        ),
    ] {
        assert_eq!(stage.phalanx(words).expect(2).stderr, said);
    }
    let found = stage.phalanx(&["docs", "Grace"]).expect(0).stdout;
    assert!(found.contains("phalanx docs lifecycle how-members-end\n"), "{found}");
    let manifest = stage.at("new.toml");
    stage.phalanx(&["init", "--template", "checks", &manifest.to_string_lossy()]).expect(0);
    let written = std::fs::read_to_string(manifest).expect("a manifest");
    assert!(written.contains("`phalanx docs manifest`"), "{written}");
}
