//! Source code as a reviewer reads it: its language, and the kinds of its words.

use serde::{Deserialize, Serialize};

/// Largest file that gets colours, in bytes.
pub const LARGEST_CODE: usize = 1 << 20;
/// Most lines of a file that gets colours.
pub const MOST_CODE_LINES: usize = 10_000;
/// Longest line that gets colours, in bytes. The other lines of its file do.
pub const LONGEST_CODE_LINE: usize = 2_000;

/// A language with a grammar. The words are the names of the grammars. C++ and SQL have none here:
/// theirs are larger than all others together.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "lowercase")]
pub enum CodeLanguage {
    Bash,
    C,
    Css,
    Go,
    Html,
    Java,
    JavaScript,
    Json,
    Markdown,
    Python,
    Rust,
    Toml,
    Tsx,
    TypeScript,
    Yaml,
}

impl CodeLanguage {
    /// Returns the language of a file by its name; `None` for one without a grammar.
    pub fn of_path(path: &[u8]) -> Option<CodeLanguage> {
        let name = path.rsplit(|byte| *byte == b'/').next()?;
        let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
        let language = match name.as_str() {
            "cargo.lock" | "poetry.lock" | "uv.lock" => CodeLanguage::Toml,
            ".bashrc" | ".bash_profile" | ".profile" | ".zshrc" | "pkgbuild" => CodeLanguage::Bash,
            ".clang-format" | ".clang-tidy" => CodeLanguage::Yaml,
            name => match name.rsplit_once('.')?.1 {
                "bash" | "sh" | "zsh" => CodeLanguage::Bash,
                "c" | "h" => CodeLanguage::C,
                "css" => CodeLanguage::Css,
                "go" => CodeLanguage::Go,
                "htm" | "html" => CodeLanguage::Html,
                "java" => CodeLanguage::Java,
                "cjs" | "js" | "jsx" | "mjs" => CodeLanguage::JavaScript,
                "json" | "jsonc" => CodeLanguage::Json,
                "markdown" | "md" => CodeLanguage::Markdown,
                "py" | "pyi" => CodeLanguage::Python,
                "rs" => CodeLanguage::Rust,
                "toml" => CodeLanguage::Toml,
                "tsx" => CodeLanguage::Tsx,
                "cts" | "mts" | "ts" => CodeLanguage::TypeScript,
                "yaml" | "yml" => CodeLanguage::Yaml,
                _ => return None,
            },
        };
        Some(language)
    }
}

/// The kind of a word in code. What has none is drawn plainly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenKind {
    Comment,
    String,
    Number,
    Constant,
    Keyword,
    Type,
    Function,
    /// An attribute, a tag, a key or a heading.
    Label,
}

/// The bytes of a word in its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32, TokenKind)", into = "(u32, u32, TokenKind)")]
pub struct TokenSpan {
    pub start: u32,
    pub end: u32,
    pub kind: TokenKind,
}

impl From<(u32, u32, TokenKind)> for TokenSpan {
    fn from((start, end, kind): (u32, u32, TokenKind)) -> TokenSpan {
        TokenSpan { start, end, kind }
    }
}

impl From<TokenSpan> for (u32, u32, TokenKind) {
    fn from(span: TokenSpan) -> (u32, u32, TokenKind) {
        (span.start, span.end, span.kind)
    }
}

/// The words of each line of a file.
pub type CodeTokens = Vec<Vec<TokenSpan>>;

/// Returns the text of a file that gets colours; `None` if it is too large, has too many lines or
/// is not UTF-8.
pub fn colorable(content: &[u8]) -> Option<&str> {
    let is_small = content.len() <= LARGEST_CODE && !content.contains(&0);
    let text = std::str::from_utf8(content).ok().filter(|_| is_small)?;
    (text.split('\n').count() <= MOST_CODE_LINES).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_is_chosen_by_the_name_of_the_file() {
        let language = |path: &str| CodeLanguage::of_path(path.as_bytes());
        assert_eq!(language("src/a.b/main.rs"), Some(CodeLanguage::Rust));
        assert_eq!(language("ui/App.TSX"), Some(CodeLanguage::Tsx));
        assert_eq!(language("types.d.ts"), Some(CodeLanguage::TypeScript));
        assert_eq!(language("Cargo.lock"), Some(CodeLanguage::Toml));
        assert_eq!(language(".bashrc"), Some(CodeLanguage::Bash));
        for plain in ["", "Makefile", "src.rs/", "a.bin", "rs", "x.sql", "x.cpp"] {
            assert_eq!(language(plain), None, "{plain}");
        }
        assert_eq!(CodeLanguage::of_path(b"\xff.rs"), None);
    }

    #[test]
    fn large_and_binary_files_are_not_colorable() {
        assert_eq!(colorable("fn é() {}".as_bytes()), Some("fn é() {}"));
        assert_eq!(colorable(&vec![b'a'; LARGEST_CODE]).map(str::len), Some(LARGEST_CODE));
        assert_eq!(colorable(&vec![b'a'; LARGEST_CODE + 1]), None);
        assert_eq!(colorable(&vec![b'\n'; MOST_CODE_LINES]), None);
        assert_eq!(colorable(b"a\0b"), None);
        assert_eq!(colorable(b"\xff"), None);
    }
}
