//! The kinds of words for the names that grammars give to their parts.

use model::code::TokenKind;

/// The effect of a part on its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaptureEffect {
    /// The bytes keep the kind of the part around them.
    Ignored,
    /// The bytes are plain, as code within a string.
    Plain,
    Token(TokenKind),
}

/// Returns the effect of a part with this name, such as `keyword.function`.
pub(crate) fn effect(capture: &str) -> CaptureEffect {
    let mut words = capture.split('.');
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let kind = match (first, second) {
        ("spell" | "nospell" | "conceal" | "error", _) | ("tag", "error") => {
            return CaptureEffect::Ignored;
        }
        ("comment", _) => TokenKind::Comment,
        ("string", "special") if capture.ends_with(".key") => TokenKind::Label,
        ("string" | "character" | "escape", _) | ("text", "literal" | "uri") => TokenKind::String,
        ("number" | "float", _) => TokenKind::Number,
        ("constant" | "boolean", _) => TokenKind::Constant,
        ("variable", "builtin") => TokenKind::Constant,
        (
            "keyword" | "conditional" | "repeat" | "include" | "import" | "exception"
            | "storageclass" | "supports" | "media" | "keyframes" | "charset",
            _,
        )
        | ("type", "qualifier") => TokenKind::Keyword,
        ("type" | "constructor" | "namespace" | "module", _) => TokenKind::Type,
        ("function" | "method", _) => TokenKind::Function,
        ("attribute" | "tag" | "label" | "property" | "field", _)
        | ("text", "title" | "reference") => TokenKind::Label,
        _ => return CaptureEffect::Plain,
    };
    CaptureEffect::Token(kind)
}
