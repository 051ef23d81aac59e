//! The number of code lines in `src`: lines of Rust outside of tests that are not blank and not a
//! comment. A page names the limit; what is above it has to be paid for by what goes.

use super::rules::File;

/// Returns the number of code lines of a file.
pub(crate) fn code_lines(file: &File) -> usize {
    if file.name.contains("/tests/") || file.name.ends_with("tests.rs") {
        return 0;
    }
    let mut lines = file.text.lines();
    let mut count = 0;
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        if code == "#[cfg(test)]" {
            skip_item(&line[..line.len() - code.len()], &mut lines);
        } else if !code.is_empty() && !code.starts_with("//") {
            count += 1;
        }
    }
    count
}

/// Skips the item that follows its attribute, as rustfmt lays it out.
fn skip_item<'l>(indent: &str, lines: &mut impl Iterator<Item = &'l str>) {
    let ends = ["}", "};", ");"].map(|end| format!("{indent}{end}"));
    let mut has_begun = false;
    let mut is_block = false;
    for line in lines {
        if !has_begun && !line.trim_start().starts_with("#[") {
            has_begun = true;
            is_block = line.ends_with('{');
        }
        let own = line.strip_prefix(indent).filter(|rest| !rest.starts_with(' '));
        // A block may have a text at the left margin.
        let is_whole = own.is_some_and(|own| own.ends_with(';') || own.ends_with("{}"));
        if has_begun && (is_whole && !is_block || ends.iter().any(|end| line == end)) {
            return;
        }
    }
}

/// Returns the limit that the page names: "at most 113,000 code lines".
pub(crate) fn limit(page: &str) -> Option<usize> {
    let before = page.split(" code lines").next().filter(|before| before.len() < page.len())?;
    before.rsplit(' ').next()?.replace(',', "").parse().ok()
}

#[test]
fn tests_blanks_and_comments_are_not_code() {
    let text = "//! Head.\n\nuse a::b;\n#[cfg(test)]\nuse c::{\n    d,\n};\n\n/// Doc.\n\
                fn f() {\n    g(); // why\n}\n\n#[cfg(test)]\n#[path = \"x.rs\"]\nmod x;\n\
                #[cfg(test)]\nmod tests {\n    const T: &str = \"\na;\n\";\n    fn h() {\n\
                \x20       i();\n    }\n}\nfn j() {}\n";
    assert_eq!(code_lines(&File::new("src/a/lib.rs", text)), 5, "use, f with two lines more, j");
    assert_eq!(code_lines(&File::new("src/a/tests.rs", text)), 0);
    assert_eq!(code_lines(&File::new("src/a/tests/b.rs", text)), 0);
    assert_eq!(limit("`src` has at most 113,000 code lines."), Some(113_000));
    assert_eq!(limit("no limit"), None);
}
