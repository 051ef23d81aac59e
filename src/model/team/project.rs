//! Recognizes what a repository is made of, and the commands that check it, from the names and the
//! contents of a few files at its top. The files are foreign input: every command consists of words
//! from this module, so that no text of a file becomes part of one.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

/// The top of a repository.
pub trait ProjectFiles {
    /// Returns the names at the top.
    fn names(&self) -> &BTreeSet<String>;

    /// Returns the text of a small file below the top; `None` if it is missing or not readable.
    fn text(&self, path: &str) -> Option<String>;
}

/// The languages and the checks of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Project {
    /// Names of languages, the one of the first test command first.
    pub languages: Vec<&'static str>,
    /// Commands that change nothing and that the repository itself is configured for, cheap ones
    /// first.
    pub checks: Vec<ProjectCheck>,
}

/// A command that checks the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProjectCheck {
    pub kind: CheckKind,
    /// Program and arguments.
    pub run: Vec<&'static str>,
}

impl ProjectCheck {
    /// Returns the program, also if `env` sets variables for it.
    pub fn program(&self) -> &'static str {
        let is_program = |word: &&&str| **word != "env" && !word.contains('=');
        self.run.iter().find(is_program).copied().unwrap_or_default()
    }
}

/// The purpose of a check, in the order in which checks are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum CheckKind {
    Format,
    Lint,
    Types,
    Test,
}

impl CheckKind {
    /// Returns the key of a task for the check.
    pub fn key(self) -> &'static str {
        self.into()
    }

    /// Returns the subject of a task for the check.
    pub fn subject(self) -> &'static str {
        match self {
            CheckKind::Format => "Check the format",
            CheckKind::Lint => "Lint the code",
            CheckKind::Types => "Check the types",
            CheckKind::Test => "Run the tests",
        }
    }
}

impl Project {
    /// Recognizes a repository.
    pub fn detect(files: &dyn ProjectFiles) -> Project {
        let mut found = Project::default();
        let languages: [fn(&mut Project, &dyn ProjectFiles); 9] =
            [rust, node, python, go, java, ruby, elixir, others, make];
        languages.iter().for_each(|detect| detect(&mut found, files));
        found.checks.sort_by_key(|check| check.kind);
        found
    }

    /// Returns the test command; of several, the one of the first language.
    pub fn test(&self) -> Option<&ProjectCheck> {
        self.checks.iter().find(|check| check.kind == CheckKind::Test)
    }

    fn language(&mut self, name: &'static str) {
        if !self.languages.contains(&name) {
            self.languages.push(name);
        }
    }

    fn check(&mut self, kind: CheckKind, run: &[&'static str]) {
        self.checks.push(ProjectCheck { kind, run: run.to_vec() });
    }
}

fn has(files: &dyn ProjectFiles, name: &str) -> bool {
    files.names().contains(name)
}

fn has_any(files: &dyn ProjectFiles, names: &[&str]) -> bool {
    names.iter().any(|name| has(files, name))
}

fn has_ending(files: &dyn ProjectFiles, endings: &[&str]) -> bool {
    files.names().iter().any(|name| endings.iter().any(|ending| name.ends_with(ending)))
}

/// Returns whether a file at the top contains one of these texts.
fn mentions(files: &dyn ProjectFiles, name: &str, texts: &[&str]) -> bool {
    let text = if has(files, name) { files.text(name) } else { None };
    text.is_some_and(|text| texts.iter().any(|wanted| text.contains(wanted)))
}

fn rust(found: &mut Project, files: &dyn ProjectFiles) {
    if !has(files, "Cargo.toml") {
        return;
    }
    found.language("Rust");
    if has_any(files, &["rustfmt.toml", ".rustfmt.toml"]) {
        found.check(CheckKind::Format, &["cargo", "fmt", "--check"]);
    }
    let configured = has_any(files, &["clippy.toml", ".clippy.toml"])
        || mentions(files, "Cargo.toml", &["lints.clippy]"]);
    if configured {
        found.check(CheckKind::Lint, &["cargo", "clippy", "--all-targets"]);
    }
    if mentions(files, "Cargo.toml", &["[workspace]"]) {
        found.check(CheckKind::Test, &["cargo", "test", "--workspace"]);
    } else {
        found.check(CheckKind::Test, &["cargo", "test"]);
    }
}

/// Scripts of a `package.json` that check something, by their usual names.
const SCRIPTS: [(CheckKind, &[&str]); 4] = [
    (CheckKind::Format, &["format:check", "check:format", "check-format", "prettier:check"]),
    (CheckKind::Lint, &["lint"]),
    (CheckKind::Types, &["typecheck", "type-check", "check:types", "check-types", "tsc"]),
    (CheckKind::Test, &["test"]),
];

fn node(found: &mut Project, files: &dyn ProjectFiles) {
    if !has(files, "package.json") {
        return;
    }
    let text = files.text("package.json").unwrap_or_default();
    let package: Value = serde_json::from_str(&text).unwrap_or_default();
    let typed = has(files, "tsconfig.json")
        || ["dependencies", "devDependencies"]
            .iter()
            .any(|key| package[key]["typescript"].is_string());
    found.language(if typed { "TypeScript" } else { "JavaScript" });
    let manager = package_manager(files, &package);
    for (kind, names) in SCRIPTS {
        let script = names.iter().find(|name| is_check(&package["scripts"][name]));
        let Some(script) = script else { continue };
        if kind == CheckKind::Test {
            // On a terminal, test runners watch the files and do not end unless `CI` is set.
            // `bun test` would be bun's own runner, not the script.
            found.check(kind, &["env", "CI=true", manager, "run", script]);
        } else {
            found.check(kind, &[manager, "run", script]);
        }
    }
}

/// Returns the package manager that the package names, else the one of its lock file, else npm.
fn package_manager(files: &dyn ProjectFiles, package: &Value) -> &'static str {
    let named = package["packageManager"].as_str().and_then(|named| named.split('@').next());
    let locks: [(&str, &[&str]); 4] = [
        ("npm", &["package-lock.json"]),
        ("pnpm", &["pnpm-lock.yaml"]),
        ("yarn", &["yarn.lock"]),
        ("bun", &["bun.lock", "bun.lockb"]),
    ];
    let by_name = locks.iter().find(|(manager, _)| Some(*manager) == named);
    let by_lock = || locks.iter().find(|(_, names)| has_any(files, names));
    by_name.or_else(by_lock).map_or("npm", |(manager, _)| manager)
}

/// Returns whether a script checks something: it is not npm's placeholder, and changes no files.
fn is_check(script: &Value) -> bool {
    let Some(script) = script.as_str() else { return false };
    let changes = ["--fix", "--write", "--watch"].iter().any(|option| script.contains(option));
    !script.trim().is_empty() && !script.contains("no test specified") && !changes
}

fn python(found: &mut Project, files: &dyn ProjectFiles) {
    const MARKS: [&str; 7] = [
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "requirements.txt",
        "tox.ini",
        "pytest.ini",
        "Pipfile",
    ];
    if !has_any(files, &MARKS) {
        return;
    }
    found.language("Python");
    let runner: &[&'static str] = if has(files, "uv.lock") {
        &["uv", "run"]
    } else if has(files, "poetry.lock") {
        &["poetry", "run"]
    } else {
        &[]
    };
    let in_environment = |words: &[&'static str]| [runner, words].concat();
    let uses_ruff = has_any(files, &["ruff.toml", ".ruff.toml"])
        || mentions(files, "pyproject.toml", &["[tool.ruff"]);
    if uses_ruff {
        found.check(CheckKind::Lint, &in_environment(&["ruff", "check"]));
    }
    let uses_pytest = has_any(files, &["pytest.ini", "conftest.py"])
        || files.text("tests/conftest.py").is_some()
        || mentions(files, "pyproject.toml", &["pytest"])
        || mentions(files, "tox.ini", &["pytest"])
        || mentions(files, "setup.cfg", &["pytest"])
        || ["requirements.txt", "requirements-dev.txt", "dev-requirements.txt"]
            .iter()
            .any(|file| mentions(files, file, &["pytest"]));
    if uses_pytest && runner.is_empty() {
        // Unlike `pytest`, this finds the modules of the directory.
        found.check(CheckKind::Test, &["python3", "-m", "pytest"]);
    } else if uses_pytest {
        found.check(CheckKind::Test, &in_environment(&["pytest"]));
    }
}

fn go(found: &mut Project, files: &dyn ProjectFiles) {
    if has(files, "go.mod") {
        found.language("Go");
        found.check(CheckKind::Lint, &["go", "vet", "./..."]);
        found.check(CheckKind::Test, &["go", "test", "./..."]);
    }
}

fn java(found: &mut Project, files: &dyn ProjectFiles) {
    const GRADLE: [&str; 4] =
        ["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"];
    if has(files, "pom.xml") {
        found.language("Java (Maven)");
        let maven = if has(files, "mvnw") { "./mvnw" } else { "mvn" };
        found.check(CheckKind::Test, &[maven, "--batch-mode", "test"]);
    } else if has_any(files, &GRADLE) {
        found.language("Java (Gradle)");
        let gradle = if has(files, "gradlew") { "./gradlew" } else { "gradle" };
        found.check(CheckKind::Test, &[gradle, "test"]);
    }
}

fn ruby(found: &mut Project, files: &dyn ProjectFiles) {
    if !has(files, "Gemfile") && !has_ending(files, &[".gemspec"]) {
        return;
    }
    found.language("Ruby");
    if has(files, ".rubocop.yml") {
        found.check(CheckKind::Lint, &["bundle", "exec", "rubocop"]);
    }
    if has(files, ".rspec") || mentions(files, "Gemfile", &["rspec"]) {
        found.check(CheckKind::Test, &["bundle", "exec", "rspec"]);
    } else if files.text("bin/rails").is_some() {
        found.check(CheckKind::Test, &["bin/rails", "test"]);
    } else if mentions(files, "Rakefile", &["TestTask", "task :test", "task test:"]) {
        found.check(CheckKind::Test, &["bundle", "exec", "rake", "test"]);
    }
}

fn elixir(found: &mut Project, files: &dyn ProjectFiles) {
    if !has(files, "mix.exs") {
        return;
    }
    found.language("Elixir");
    if has(files, ".formatter.exs") {
        found.check(CheckKind::Format, &["mix", "format", "--check-formatted"]);
    }
    found.check(CheckKind::Test, &["mix", "test"]);
}

/// Languages whose build tool has one test command.
fn others(found: &mut Project, files: &dyn ProjectFiles) {
    if has(files, "Package.swift") {
        found.language("Swift");
        found.check(CheckKind::Test, &["swift", "test"]);
    }
    if has_ending(files, &[".sln", ".csproj", ".fsproj"]) {
        found.language(".NET");
        found.check(CheckKind::Test, &["dotnet", "test"]);
    }
    if has(files, "composer.json") {
        found.language("PHP");
        let text = files.text("composer.json").unwrap_or_default();
        let composer: Value = serde_json::from_str(&text).unwrap_or_default();
        if !composer["scripts"]["test"].is_null() {
            found.check(CheckKind::Test, &["composer", "test"]);
        } else if has_any(files, &["phpunit.xml", "phpunit.xml.dist"]) {
            found.check(CheckKind::Test, &["vendor/bin/phpunit"]);
        }
    }
}

/// C and C++, and the targets of a makefile for whatever has no test command by now.
fn make(found: &mut Project, files: &dyn ProjectFiles) {
    if has_ending(files, &[".cpp", ".cc", ".cxx", ".hpp"])
        || mentions(files, "CMakeLists.txt", &["CXX"])
    {
        found.language("C++");
    } else if has_ending(files, &[".c", ".h"])
        || has_any(files, &["CMakeLists.txt", "configure.ac", "meson.build"])
    {
        found.language("C");
    }
    if found.test().is_some() {
        return;
    }
    let names = ["GNUmakefile", "makefile", "Makefile"];
    let makefile = names.iter().find(|name| has(files, name));
    let text = makefile.and_then(|name| files.text(name)).unwrap_or_default();
    if has_target(&text, "test") {
        found.check(CheckKind::Test, &["make", "test"]);
    } else if has_target(&text, "check") {
        found.check(CheckKind::Test, &["make", "check"]);
    } else if has(files, "CMakeLists.txt") && files.text("build/CTestTestfile.cmake").is_some() {
        found.check(CheckKind::Test, &["ctest", "--test-dir", "build", "--output-on-failure"]);
    }
}

/// Returns whether a makefile has a rule for this target.
fn has_target(makefile: &str, wanted: &str) -> bool {
    makefile.lines().any(|line| {
        // `test:` or `test check:`, but not `test := value` or a recipe.
        let Some((targets, rest)) = line.split_once(':') else { return false };
        !line.starts_with(['\t', '#', '.'])
            && !rest.starts_with('=')
            && !rest.starts_with(":=")
            && !targets.contains('=')
            && targets.split_whitespace().any(|target| target == wanted)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    struct Made {
        names: BTreeSet<String>,
        texts: BTreeMap<String, String>,
    }

    impl Made {
        fn new(files: &[(&str, &str)]) -> Made {
            let top = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
            Made {
                names: files.iter().map(|(path, _)| top(path)).collect(),
                texts: files
                    .iter()
                    .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
                    .collect(),
            }
        }
    }

    impl ProjectFiles for Made {
        fn names(&self) -> &BTreeSet<String> {
            &self.names
        }

        fn text(&self, path: &str) -> Option<String> {
            self.texts.get(path).cloned()
        }
    }

    /// Files with their texts, languages, commands.
    type DetectionCase<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a [&'a str]);

    /// Languages, then the commands.
    fn detected(files: &[(&str, &str)]) -> (String, Vec<String>) {
        let found = Project::detect(&Made::new(files));
        let checks = found.checks.iter().map(|check| check.run.join(" ")).collect();
        (found.languages.join(", "), checks)
    }

    #[test]
    fn each_language_has_its_commands() {
        let package =
            r#"{"scripts": {"test": "vitest", "lint": "eslint .", "typecheck": "tsc --noEmit"}}"#;
        let table: &[DetectionCase] = &[
            (&[], "", &[]),
            (&[("README.md", "cargo test")], "", &[]),
            (&[("Cargo.toml", "[package]")], "Rust", &["cargo test"]),
            (
                &[("Cargo.toml", "[workspace]\n[workspace.lints.clippy]"), ("rustfmt.toml", "")],
                "Rust",
                &["cargo fmt --check", "cargo clippy --all-targets", "cargo test --workspace"],
            ),
            (
                &[("package.json", package)],
                "JavaScript",
                &["npm run lint", "npm run typecheck", "env CI=true npm run test"],
            ),
            (
                &[("package.json", package), ("tsconfig.json", ""), ("pnpm-lock.yaml", "")],
                "TypeScript",
                &["pnpm run lint", "pnpm run typecheck", "env CI=true pnpm run test"],
            ),
            (
                &[(
                    "package.json",
                    r#"{"packageManager": "yarn@4.1.0", "scripts": {"test": "jest"}}"#,
                )],
                "JavaScript",
                &["env CI=true yarn run test"],
            ),
            (
                &[("package.json", r#"{"scripts": {"test": "x"}}"#), ("bun.lock", "")],
                "JavaScript",
                &["env CI=true bun run test"],
            ),
            (
                &[(
                    "package.json",
                    r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1", "lint": "eslint --fix ."}}"#,
                )],
                "JavaScript",
                &[],
            ),
            (&[("requirements.txt", "flask")], "Python", &[]),
            (
                &[("pyproject.toml", "[tool.pytest.ini_options]\n[tool.ruff]")],
                "Python",
                &["ruff check", "python3 -m pytest"],
            ),
            (
                &[("pyproject.toml", "dev = [\"pytest\"]"), ("uv.lock", "")],
                "Python",
                &["uv run pytest"],
            ),
            (&[("setup.py", ""), ("tests/conftest.py", "")], "Python", &["python3 -m pytest"]),
            (&[("go.mod", "module x")], "Go", &["go vet ./...", "go test ./..."]),
            (&[("pom.xml", "")], "Java (Maven)", &["mvn --batch-mode test"]),
            (&[("build.gradle.kts", ""), ("gradlew", "")], "Java (Gradle)", &["./gradlew test"]),
            (&[("Gemfile", "gem \"rspec\"")], "Ruby", &["bundle exec rspec"]),
            (&[("x.gemspec", ""), ("Rakefile", "")], "Ruby", &[]),
            (
                &[("mix.exs", ""), (".formatter.exs", "")],
                "Elixir",
                &["mix format --check-formatted", "mix test"],
            ),
            (&[("App.sln", "")], ".NET", &["dotnet test"]),
            (&[("composer.json", "{}"), ("phpunit.xml", "")], "PHP", &["vendor/bin/phpunit"]),
            (&[("Makefile", "all: x\ntest: all\n\t./x\n"), ("x.c", "")], "C", &["make test"]),
            (&[("Makefile", ".PHONY: test\ntest := 1\n\ttest: x\n"), ("x.cc", "")], "C++", &[]),
            (
                &[("CMakeLists.txt", "project(x CXX)"), ("build/CTestTestfile.cmake", "")],
                "C++",
                &["ctest --test-dir build --output-on-failure"],
            ),
            (&[("Makefile", "check:\n")], "", &["make check"]),
            // Of two languages, both are checked; the first one has the test command.
            (
                &[("Cargo.toml", ""), ("go.mod", ""), ("Makefile", "test:\n")],
                "Rust, Go",
                &["go vet ./...", "cargo test", "go test ./..."],
            ),
        ];
        for (files, languages, commands) in table {
            let found = detected(files);
            assert_eq!(
                found,
                ((*languages).to_owned(), commands.iter().map(|c| (*c).to_owned()).collect()),
                "{files:?}"
            );
        }
    }

    proptest! {
        /// SEC-08: no text of a file becomes a word of a command, and none causes a panic.
        #[test]
        fn sec_08_hostile_files_give_only_known_commands(text in ".{0,200}", name in "[ -~]{1,20}") {
            let names = ["package.json", "composer.json", "pyproject.toml", "Makefile", "Gemfile"];
            let mut files: Vec<(&str, &str)> = names.iter().map(|name| (*name, text.as_str())).collect();
            files.push((&name, &text));
            let found = Project::detect(&Made::new(&files));
            let script = format!(r#"{{"packageManager": {0}, "scripts": {{"test": {0}, {1}: "x"}}}}"#, Value::from(text.as_str()), Value::from(name.as_str()));
            let node = Project::detect(&Made::new(&[("package.json", &script)]));
            for word in found.checks.iter().chain(&node.checks).flat_map(|check| &check.run) {
                prop_assert!(word.chars().all(|c| c.is_ascii_alphanumeric() || "-./:=".contains(c)), "{}", word);
            }
        }
    }
}
