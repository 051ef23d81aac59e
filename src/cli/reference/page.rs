//! Pages of `docs` with blocks that are generated from the program. A block is between
//! `<!-- generated: NAME -->` and `<!-- end -->`.

use std::fmt::Write as _;
use std::path::PathBuf;

use sys::{env, fs};

/// A generated part of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PageBlock {
    /// The name in the comment above the block.
    pub(super) name: String,
    /// Markdown that ends with a line break.
    pub(super) text: String,
}

const BEGIN: &str = "<!-- generated: ";
const END: &str = "<!-- end -->\n";

fn path_of(page: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("docs").join(page)
}

/// Returns the text of a page.
pub(super) fn read(page: &str) -> String {
    let bytes = fs::read(&path_of(page), 1 << 24).expect("a page").expect("the page exists");
    String::from_utf8(bytes).expect("UTF-8")
}

/// Compares the blocks of a page, or replaces them if `PHALANX_UPDATE_DOCS` is set.
#[track_caller]
pub(super) fn check(page: &str, blocks: &[PageBlock]) {
    let text = read(page);
    let updated = match replaced(&text, blocks) {
        Ok(updated) => updated,
        Err(problem) => panic!("docs/{page}: {problem}"),
    };
    if updated == text {
        return;
    }
    if env::var("PHALANX_UPDATE_DOCS").is_some() {
        fs::write_foreign(&path_of(page), updated.as_bytes()).expect("write the page");
        return;
    }
    panic!(
        "docs/{page} differs from the program:\n{}update it with \
         `PHALANX_UPDATE_DOCS=1 cargo test -p cli reference`",
        difference(&text, &updated)
    );
}

/// Returns the page with the contents of its blocks replaced.
///
/// # Errors
/// The first block that the page lacks, has in another place, or has without a definition.
fn replaced(page: &str, blocks: &[PageBlock]) -> Result<String, String> {
    let mut parts = page.split(BEGIN);
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut expected = blocks.iter();
    for part in parts {
        let (name, rest) = part.split_once(" -->\n").ok_or("a comment is not closed")?;
        let Some(block) = expected.next().filter(|block| block.name == name) else {
            let missing = missing(page, blocks);
            return Err(missing
                .unwrap_or_else(|| format!("`{name}` is defined nowhere, or in another order")));
        };
        let (_, after) = rest.split_once(END).ok_or_else(|| format!("`{name}` has no end"))?;
        write!(text, "{}{}{END}{after}", begin(name), block.text).expect("write to a string");
    }
    missing(page, blocks).map_or(Ok(text), Err)
}

/// Returns a message with the lines to add for the first block that the page does not have.
fn missing(page: &str, blocks: &[PageBlock]) -> Option<String> {
    let at = blocks.iter().position(|block| !page.contains(&begin(&block.name)))?;
    let name = &blocks[at].name;
    let before = at.checked_sub(1).map(|at| format!(" after `{}`", blocks[at].name));
    let before = before.unwrap_or_default();
    Some(format!("`{name}` is missing{before}; add the lines\n\n{}{END}", begin(name)))
}

fn begin(name: &str) -> String {
    format!("{BEGIN}{name} -->\n")
}

/// Returns the first line that differs, in both versions.
fn difference(page: &str, updated: &str) -> String {
    let lines = page.lines().zip(updated.lines()).enumerate();
    let first = lines.into_iter().find(|(_, (ours, theirs))| ours != theirs);
    let (at, (ours, theirs)) = first.unwrap_or((page.lines().count(), ("", "")));
    format!("line {}\n- {ours}\n+ {theirs}\n", at + 1)
}

#[test]
fn missing_unknown_and_misplaced_blocks_are_reported() {
    let block = |name: &str| PageBlock { name: name.to_owned(), text: format!("of {name}\n") };
    let blocks = [block("a"), block("b")];
    let shown = |name: &str| format!("{}old\n{END}", begin(name));
    let page = format!("head\n{}between\n{}tail\n", shown("a"), shown("b"));
    let updated = replaced(&page, &blocks).expect("a page");
    assert_eq!(updated, page.replacen("old", "of a", 1).replacen("old", "of b", 1));
    for (page, problem) in [
        (shown("a"), "`b` is missing after `a`; add the lines"),
        (shown("b"), "`a` is missing; add the lines"),
        (shown("b") + &shown("a"), "`b` is defined nowhere, or in another order"),
        (page + &shown("c"), "`c` is defined nowhere"),
        (begin("a"), "`a` has no end"),
    ] {
        let found = replaced(&page, &blocks).expect_err(&page);
        assert!(found.starts_with(problem), "{found}");
    }
    assert_eq!(difference("x\ny\n", "x\nz\n"), "line 2\n- y\n+ z\n");
}
