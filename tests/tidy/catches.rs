//! Tests of the rules: snippets that must be reported, and look-alikes that must not.

use crate::code::Source;
use crate::rules::{self, File, Problem};
use crate::{cycles, type_names};

type Rule = fn(&File) -> Vec<Problem>;

/// The number of violations in `text` as the file `name`.
fn breaks(rule: Rule, name: &str, text: &str) -> usize {
    rule(&File::new(name, text)).len()
}

#[track_caller]
fn caught(rule: Rule, name: &str, text: &str) {
    assert_eq!(breaks(rule, name, text), 1, "must be caught once in {name}: {text}");
}

#[track_caller]
fn passes(rule: Rule, name: &str, text: &str) {
    let problems = rule(&File::new(name, text));
    assert!(problems.is_empty(), "must pass in {name}: {text}\n{problems:?}");
}

#[test]
fn upward_import_is_caught_in_every_spelling() {
    for text in [
        "use crate::backend::x;",
        "use crate::{backend::x};",
        "use crate::{model::{team, member as m}, backend};",
        "use crate::{\n    model::{team::*, id},\n    backend::{\n        self,\n    },\n};",
        "use {std::fmt, crate::backend::x};",
        "pub(crate) use crate::backend::x;",
        "fn f() -> crate::backend::Pane { loop {} }",
        "fn f() { g::<crate::backend::Pane>(1) }",
        "fn f() { let x = 'a'; crate::backend::close(x) }",
        "macro_rules! m { () => { $crate::backend::x() } }",
        "use r#mod::a; use crate::backend::x;",
        "pub(in crate::backend) fn f() {}",
        "use super::super::backend::x;",
        "use super::{super::backend::x, tasks};",
        "use self::super::super::backend;",
        "mod a { mod b { use super::super::super::super::backend::x; } }",
    ] {
        caught(rules::imports, "src/store/mailbox.rs", text);
    }
    caught(rules::imports, "src/store/mod.rs", "use super::backend;");
    caught(rules::imports, "src/store/mod.rs", "mod tests { use super::super::backend::x; }");
    caught(rules::imports, "src/model/team.rs", "use crate::sys::clock;");
    caught(rules::imports, "src/sys/fs.rs", "use crate::model::id;");
    caught(rules::imports, "src/ops/send.rs", "use crate::cli::Args;");
    caught(rules::imports, "src/lead/react.rs", "use crate::store::mailbox;");
    assert_eq!(breaks(rules::imports, "src/ui/a.rs", "use crate::{lead::x,\nstore::y, cli};"), 3);
}

#[test]
fn bypass_of_the_import_table_is_caught() {
    for text in [
        "use crate::*;",
        "use crate as root;",
        "use crate::{self as root};",
        "use super::super::*;",
        "use crate::exported_at_the_root;",
        "#[path = \"../backend/mod.rs\"] mod b;",
    ] {
        caught(rules::imports, "src/store/mailbox.rs", text);
    }
    caught(rules::imports, "src/util/mod.rs", "//! A folder that nobody put into the table.");
    caught(rules::imports, "src/helper.rs", "//! A file that is no folder.");
}

#[test]
fn lookalike_of_an_import_passes() {
    for text in [
        "// use crate::lead::x;",
        "/* use crate::lead; /* nested crate::lead::x */ crate::lead::y */",
        "//! [`crate::lead`]\nfn f() {}",
        "const A: &str = \"crate::lead::x \\\" crate::lead::y\";",
        "const A: &str = r#\"\" crate::lead::x \"#; const B: &[u8] = br\"crate::lead\\\";",
        "const A: char = '\"'; const B: char = '\\''; const C: u8 = b'\"'; // \" crate::lead::x",
        "fn f<'a>(x: &'a str) -> &'a str { x } // crate::lead::x",
        "pub(crate) mod a; pub(super) mod b;",
        "pub(in crate::store) fn f() {} pub(in super::super) fn g() {}",
        "use crate::{model::id, store::{tasks, layout as l}, sys};",
        "use super::tasks; use self::inner::x;",
        "mod tests { use super::*; use super::super::tasks; }",
        "use other_crate::lead::x;",
        "fn f(lead: u8) { lead::<u8>() }",
        "fn f() -> impl Sized + use<> { 1 }",
    ] {
        passes(rules::imports, "src/store/mailbox.rs", text);
    }
    passes(rules::imports, "src/lib.rs", "use crate::cli::run;");
    passes(rules::imports, "src/cli/mod.rs", "use crate::{lead, store, backend, ui};");
    passes(rules::imports, "tests/any.rs", "use crate::lead::x;");
}

#[test]
fn os_call_outside_sys_is_caught() {
    for text in [
        "use std::fs;",
        "use std::{io, fs::File};",
        "use ::std::fs;",
        "fn f() { std::fs::read(p); }",
        "use std::process::{Command, Stdio};",
        "use std::process::*;",
        "fn f() { process::Command::new(p); }",
        "fn f() { std::env::var(n); }",
        "use std::{env, io};",
        "fn f() { SystemTime::now(); }",
        "fn f() { std::time::Instant::now(); }",
        "const F: fn() -> Instant = tokio::time::Instant::now;",
        "fn f() { std::thread::sleep(d); }",
        "use tokio::process::Child;",
        "fn f() { tokio::fs::read(p); }",
        "use libc;",
        "extern crate libc;",
        "use nix as unix;",
        "use nix::sys::signal;",
        "fn f() { portable_pty::native_pty_system(); }",
        "use notify::Watcher;",
        "use fs4::FileExt;",
        "fn f() { jiff::Timestamp::now(); }",
        "fn f() { uuid::Uuid::new_v4(); }",
        "fn f() { which::which(p); }",
        "fn f() { unsafe { g() } }",
        "#[cfg(test)] mod tests { use std::fs; }",
    ] {
        caught(rules::fences, "src/ops/send.rs", text);
        passes(rules::fences, "src/sys/any.rs", text);
    }
    assert_eq!(
        breaks(rules::fences, "src/ops/send.rs", "use std::*;"),
        2,
        "fs and env both come in"
    );
    passes(rules::fences, "tests/any.rs", "use std::fs; fn f() { std::env::var(n); }");
}

#[test]
fn library_outside_its_folder_is_caught() {
    for (text, home) in [
        ("use tmux_interface::Tmux;", "src/backend/tmux/command.rs"),
        ("#[derive(clap::Parser)] struct A;", "src/cli/args.rs"),
        ("use crossterm::style;", "src/cli/paint.rs"),
        ("use anyhow::Result;", "src/cli/mod.rs"),
        ("#[derive(schemars::JsonSchema)] struct A;", "src/config/hosts.rs"),
        ("use rmcp::RoleServer;", "src/cli/mcp/server.rs"),
        ("use tokio::sync::mpsc;", "src/lead/driver.rs"),
    ] {
        caught(rules::fences, "src/worktree/mod.rs", text);
        passes(rules::fences, home, text);
    }
    caught(rules::fences, "src/backend/choose.rs", "use tmux_interface::Tmux;");
}

#[test]
fn lookalike_of_an_os_call_passes() {
    for text in [
        "use crate::sys::{fs, env};\nfn f() { fs::read(p); env::var(n); }",
        "use std::process::ExitCode; use std::time::{Duration, Instant};",
        "// std::fs::read\nconst A: &str = \"std::fs unsafe\";",
        "use crate::model::nix::x; fn f(libc: u8, notify: u8) {}",
        "#![forbid(unsafe_code)]",
        "const V: &str = env!(\"CARGO_PKG_VERSION\");",
    ] {
        passes(rules::fences, "src/ops/send.rs", text);
    }
}

#[test]
fn shell_command_is_caught() {
    for text in [
        "const A: &str = \"sh -c 'echo'\";",
        "const A: &str = r\"exec /bin/bash -lc x\";",
        "fn f() { run([\"bash\", \"-c\", line]); }",
        "fn f() { Program::new(\"/bin/sh\").arg(\"-c\").arg(line); }",
    ] {
        caught(rules::shells, "src/ops/send.rs", text);
        passes(rules::shells, "src/ops/send/tests.rs", text);
        passes(rules::shells, "src/hooks/run.rs", text);
        passes(
            rules::shells,
            "src/ops/send.rs",
            &format!("#[cfg(test)]\nmod tests {{\n{text}\n}}"),
        );
        caught(rules::shells, "src/ops/send.rs", &format!("#[cfg(test)]\nmod tests;\n{text}"));
        caught(
            rules::shells,
            "src/ops/send.rs",
            &format!("#[cfg(not(test))]\nmod run {{ {text} }}"),
        );
    }
    passes(
        rules::shells,
        "src/ops/send.rs",
        "// sh -c x\nconst A: &str = \"git push -c\"; const B: &str = \"sh\";",
    );
}

#[test]
fn file_without_module_doc_or_too_long_is_caught() {
    for text in ["", "//!", "// no", "\n//! late", "use a::b;"] {
        caught(rules::form, "tests/any.rs", text);
    }
    caught(rules::form, "src/a.rs", &format!("//! Long.\n{}", "\n".repeat(600)));
    passes(rules::form, "src/a.rs", &format!("//! Just short enough.\n{}", "\n".repeat(499)));
}

#[test]
fn unfinished_or_silenced_code_is_caught() {
    for text in [
        "fn f() { todo!() }",
        "fn f() { unimplemented!(\"x\") }",
        "fn f() { dbg!(x); }",
        "#[test]\n#[ignore]\nfn f() {}",
        "#[ignore = \"slow\"] fn f() {}",
        "#[ignore = \"not a helper process of anything\"] fn f() {}",
        "#[cfg_attr(miri, ignore)] fn f() {}",
        "#[allow(dead_code)] fn f() {}",
        "#![allow(dead_code)]",
        "#[expect(dead_code)] fn f() {}",
        "#[cfg_attr(test, allow(dead_code))] fn f() {}",
    ] {
        caught(rules::leftovers, "tests/any.rs", text);
    }
    for text in [
        "// todo!() dbg!(x) #[ignore]",
        "#[allow(dead_code, reason = \"the benches use it\")] fn f() {}",
        "fn f() { policy.allow(x); y.expect(\"why\"); let ignore = [ignore]; }",
        "#[should_panic(expected = \"x\")] fn f() {}",
        "#[test]\n#[ignore = \"helper process of another_test\"]\nfn f() {}",
        "#[arg(default = x.expect(\"why\"))] struct A;",
    ] {
        passes(rules::leftovers, "src/a.rs", text);
    }
}

#[test]
fn unknown_top_level_name_is_caught() {
    let names = |list: &str| list.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let fixed = "Cargo.lock Cargo.toml README.md docs fixtures scripts src tests";
    assert_eq!(rules::top_level(&names(fixed)), []);
    assert_eq!(rules::top_level(&names(&format!("LICENSE {fixed}"))).len(), 1);
    assert_eq!(
        rules::top_level(&names("Cargo.lock Cargo.toml README.md docs fixtures scripts src")).len(),
        1
    );
}

#[test]
fn architecture_page_with_another_table_is_caught() {
    let page = include_str!("../../docs/dev/architecture.md");
    assert_eq!(rules::table(page), []);
    let changed = page.replace("| `backend` | model, sys |", "| `backend` | model, sys, store |");
    assert_eq!(rules::table(&changed).len(), 2, "one row missing, one too many");
    assert_eq!(rules::table(&format!("{page}\n| `util` | nothing |\n")).len(), 1);
}

#[test]
fn violation_names_line_rule_and_remedy() {
    let file = File::new(
        "src/store/mailbox.rs",
        "//! x\n\nuse crate::{\n    model::id,\n    backend::x,\n};\n",
    );
    let message = rules::imports(&file).iter().map(ToString::to_string).collect::<String>();
    assert!(
        message.starts_with(
            "src/store/mailbox.rs:5: import direction: `store` must not know `backend`"
        )
    );
    assert!(message.contains("\n    do: "), "{message}");
}

fn sources(files: &[(&str, &str)]) -> Vec<Source> {
    files.iter().map(|(name, text)| Source::new(name, text)).collect()
}

#[test]
fn import_cycle_is_caught_in_every_spelling() {
    for (one, other) in [
        ("use super::b::f;", "use super::a::g;"),
        ("use crate::x::b::{self, f as h};", "use super::{a::g, c};"),
        ("use super::b; fn g() { b::f() }", "fn f() { super::a::g() }"),
        ("use super::T;", "use super::U;"),
        ("use crate::x::{T};", "use crate::x; fn f() -> x::U { loop {} }"),
        ("use super::home;", "use super::a::g;"),
    ] {
        let parent = "mod a; mod b; mod home; pub(crate) use a::U; pub(crate) use b::{T, home};";
        let files = [("src/x/mod.rs", parent), ("src/x/a.rs", one), ("src/x/b.rs", other)];
        let files = sources(&[&files[..], &[("src/x/home.rs", "")]].concat());
        let found = cycles::problems(&files, &[]);
        assert_eq!(
            found,
            ["import cycle: src/x/a.rs -> src/x/b.rs -> src/x/a.rs"],
            "{one} {other}"
        );
        assert_eq!(cycles::problems(&files, &["x"]), Vec::<String>::new());
    }
    let parent = "mod a; use a::f; pub(crate) struct T; fn g() { f() }";
    let defining = sources(&[("src/x/mod.rs", parent), ("src/x/a.rs", "use super::T;")]);
    assert_eq!(cycles::problems(&defining, &[]).len(), 1);
}

#[test]
fn lookalike_of_an_import_cycle_passes() {
    for (one, other) in [
        ("use super::b::f;", "// use super::a::g;\nconst A: &str = \"super::a::g\";"),
        ("use super::b::f;", "#[cfg(test)] mod tests { use super::super::a::g; }"),
        ("use super::b::f;", "use super::a;"),
        ("use super::b::f;", "fn f(a: u8) -> other::a::T { a }"),
        ("use super::U;", "use super::T;"),
    ] {
        let parent = "mod a; mod b; pub(crate) use a::U; pub(crate) use b::T;";
        let files = [("src/x/mod.rs", parent), ("src/x/a.rs", one), ("src/x/b.rs", other)];
        let files = sources(&files);
        assert_eq!(cycles::problems(&files, &[]), Vec::<String>::new(), "{one} {other}");
        assert_eq!(
            cycles::problems(&files, &["x"]).len(),
            1,
            "the list names a folder without a cycle"
        );
    }
}

#[test]
fn second_type_of_a_name_is_caught() {
    let found = |one: &str, other: &str| {
        let files = sources(&[("src/ui/a.rs", one), ("src/lead/b.rs", other)]);
        type_names::problems(&files, &[]).len()
    };
    for text in ["struct T;", "pub(crate) enum T { A }", "trait T {}", "type T<X> = Vec<X>;"] {
        assert_eq!(found("fn f() { struct T; }", text), 1, "{text}");
    }
    for text in [
        "impl X for Y { type T = u8; }",
        "trait X { type T; }",
        "fn f() -> impl Iterator<Item = T> { g() }",
        "#[cfg(test)] mod tests { struct T; }",
        "// struct T;",
        "struct State;",
    ] {
        assert_eq!(found("struct T; struct State;", text), 0, "{text}");
    }
    let unique = sources(&[("src/ui/a.rs", "struct T;")]);
    assert_eq!(type_names::problems(&unique, &["T"]), ["`T` is unique; take it off the list"]);
}
