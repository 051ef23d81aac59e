//! Tests of the rules: snippets that must be reported, and look-alikes that must not.

use crate::code::Source;
use crate::rules::{self, File, Problem};
use crate::{cycles, exports, type_names};

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
        "fn f() { jiff::Timestamp::now(); }",
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
        ("use rmcp::RoleServer;", "src/cli/mcp/server.rs"),
        ("use rmcp as protocol;", "src/cli/mcp/tools.rs"),
        ("extern crate ratatui;", "src/ui/dashboard/frame.rs"),
    ] {
        caught(rules::fences, "src/worktree/mod.rs", text);
        passes(rules::fences, home, text);
    }
    caught(rules::fences, "src/backend/choose.rs", "use tmux_interface::Tmux;");
}

#[test]
fn lookalike_of_an_os_call_passes() {
    for text in [
        "use sys::{fs, env};\nfn f() { fs::read(p); env::var(n); }",
        "use std::process::ExitCode; use std::time::{Duration, Instant};",
        "// std::fs::read\nconst A: &str = \"std::fs unsafe\";",
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
fn violation_names_line_rule_and_remedy() {
    let file = File::new("src/ops/send.rs", "//! x\n\nuse std::{\n    io,\n    fs,\n};\n");
    let message = rules::fences(&file).iter().map(ToString::to_string).collect::<String>();
    assert!(message.starts_with("src/ops/send.rs:5: fence: `std::fs` belongs in src/sys/ only"));
    assert!(message.contains("\n    do: use sys::fs"), "{message}");
}

fn sources(files: &[(&str, &str)]) -> Vec<Source> {
    files.iter().map(|(name, text)| Source::new(name, text)).collect()
}

#[test]
fn import_cycle_is_caught_in_every_spelling() {
    for (one, other) in [
        ("use super::b::f;", "use super::a::g;"),
        ("use crate::b::{self, f as h};", "use super::{a::g, c};"),
        ("use super::b; fn g() { b::f() }", "fn f() { super::a::g() }"),
        ("use super::T;", "use super::U;"),
        ("use crate::{T};", "use crate::a; fn f() -> a::U { loop {} }"),
        ("use super::home;", "use super::a::g;"),
    ] {
        let parent = "mod a; mod b; mod home; pub(crate) use a::U; pub(crate) use b::{T, home};";
        let files = [("src/x/lib.rs", parent), ("src/x/a.rs", one), ("src/x/b.rs", other)];
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
    let defining = sources(&[("src/x/lib.rs", parent), ("src/x/a.rs", "use super::T;")]);
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
        let files = [("src/x/lib.rs", parent), ("src/x/a.rs", one), ("src/x/b.rs", other)];
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

#[test]
fn item_that_no_other_crate_uses_is_caught() {
    let unused = |one: &str, other: &str| {
        let files = sources(&[("src/ui/a.rs", one), ("src/ui/b.rs", "fn g() { f(); }")]);
        exports::problems(
            &files,
            &[("ui".to_owned(), "fn f()".to_owned()), ("cli".to_owned(), other.to_owned())],
        )
    };
    for text in ["pub fn f() {}", "pub const fn f() {}", "pub struct f;", "pub use b::f;"] {
        assert_eq!(unused(text, "fn h() { g() }").len(), 1, "{text}");
        assert_eq!(unused(text, "use ui::a::f;").len(), 0, "{text}");
    }
    for text in ["pub struct T { t: Box<T> }", "pub struct T; pub fn g() { T }", "pub enum T { A }"]
    {
        let g = "g()";
        assert_eq!(unused(text, g).len(), 1, "{text}");
    }
    for text in [
        "pub(crate) fn f() {}",
        "fn f() {}",
        "#[cfg(any(test, feature = \"x\"))] pub fn f() {}",
        "pub struct T; pub fn g(a: u8) -> T { a }",
        "pub struct T; pub struct U(Vec<T>);",
        "pub struct T; impl U { pub field: Option<T> }",
        "pub struct T; pub trait U { fn h() -> T; }",
    ] {
        assert_eq!(unused(text, "g(U)").len(), 0, "{text}");
    }
}
