//! Tests with a small text in each language, and with texts that hung other programs.

use strum::VariantArray;

use model::code::{CodeLanguage, LONGEST_CODE_LINE, TokenKind};

/// A text in a language, with some of its words.
fn sample(language: CodeLanguage) -> (&'static str, &'static [(&'static str, TokenKind)]) {
    use TokenKind::{Comment, Constant, Function, Keyword, Label, Number, String, Type};
    match language {
        CodeLanguage::Bash => {
            ("# a\nif true; then echo 'x'; fi\n", &[("# a", Comment), ("if", Keyword)])
        }
        CodeLanguage::C => (
            "/* a\n b */\nint f(void) { return 1; }\n",
            &[("/* a", Comment), ("b */", Comment), ("return", Keyword), ("1", Number)],
        ),
        CodeLanguage::Css => ("/* a */\na { color: \"x\"; }\n", &[("/* a */", Comment)]),
        CodeLanguage::Go => (
            "// a\nfunc f() string { return \"x\" }\n",
            &[("// a", Comment), ("func", Keyword), ("f", Function), ("\"x\"", String)],
        ),
        CodeLanguage::Html => ("<!-- a -->\n<p id=\"x\">y</p>\n", &[("<!-- a -->", Comment)]),
        CodeLanguage::Java => (
            "// a\nclass A { String s = \"x\"; }\n",
            &[("// a", Comment), ("class", Keyword), ("A", Type), ("\"x\"", String)],
        ),
        CodeLanguage::JavaScript => (
            "// a\nconst x = 'y' + 1;\n",
            &[("// a", Comment), ("const", Keyword), ("'y'", String), ("1", Number)],
        ),
        CodeLanguage::Json => ("{\"a\": 1, \"b\": true}\n", &[("1", Number), ("true", Constant)]),
        CodeLanguage::Markdown => ("# Title\n\ntext\n", &[("Title", Label)]),
        CodeLanguage::Python => (
            "# a\ndef f():\n    return 'x'\n",
            &[("# a", Comment), ("def", Keyword), ("f", Function), ("'x'", String)],
        ),
        CodeLanguage::Rust => (
            "// a\nfn f() -> u8 { 1 }\n",
            &[("// a", Comment), ("fn", Keyword), ("f", Function), ("u8", Type)],
        ),
        CodeLanguage::Toml => ("# a\nb = \"x\"\n", &[("# a", Comment), ("\"x\"", String)]),
        CodeLanguage::Tsx => (
            "const a: string = 'x'; <p>y</p>\n",
            &[("const", Keyword), ("string", Type), ("'x'", String)],
        ),
        CodeLanguage::TypeScript => (
            "// a\nconst a: string = 'x';\n",
            &[("// a", Comment), ("const", Keyword), ("string", Type), ("'x'", String)],
        ),
        CodeLanguage::Yaml => ("# a\nb: \"x\"\n", &[("# a", Comment), ("\"x\"", String)]),
    }
}

fn words(language: CodeLanguage, text: &str) -> Vec<(String, TokenKind)> {
    let lines = text.split('\n').zip(super::tokens(language, text));
    let words = lines.flat_map(|(line, tokens)| {
        let word = |start: u32, end: u32| line[start as usize..end as usize].to_owned();
        tokens.into_iter().map(move |token| (word(token.start, token.end), token.kind))
    });
    words.collect()
}

#[test]
fn words_of_every_language_are_found() {
    let mut problems = Vec::new();
    for language in CodeLanguage::VARIANTS {
        let (text, expected) = sample(*language);
        let found = words(*language, text);
        let missing = expected.iter().filter(|(word, kind)| {
            !found.iter().any(|(found, found_kind)| found == word && found_kind == kind)
        });
        let missing: Vec<_> = missing.collect();
        if !missing.is_empty() {
            problems.push(format!("{language:?} lacks {missing:?}, has {found:?}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_line_has_an_entry() {
    for text in ["", "\n", "fn f() {\r\n}\r\n", "let é = \"漢\u{1b}\";\n\n// x"] {
        let tokens = super::tokens(CodeLanguage::Rust, text);
        assert_eq!(tokens.len(), text.split('\n').count());
    }
}

#[test]
fn texts_that_hung_other_highlighters_end() {
    assert_eq!(super::tokens(CodeLanguage::JavaScript, "x /*").len(), 1);
    let text = "i < 0 ? (l) : ([i + 1]);";
    assert!(words(CodeLanguage::TypeScript, text).contains(&("0".to_owned(), TokenKind::Number)));
    assert_eq!(super::tokens(CodeLanguage::Tsx, text).len(), 1);
}

#[test]
fn long_line_is_plain_and_its_neighbours_are_not() {
    let text = format!("// a\n{}\n// b\n", "f(1);".repeat(40_000));
    assert!(text.len() > 200_000);
    let tokens = super::tokens(CodeLanguage::JavaScript, &text);
    let counts: Vec<usize> = tokens.iter().map(Vec::len).collect();
    assert_eq!(counts, [1, 0, 1, 0]);
    let fits = format!("// {}", "x".repeat(LONGEST_CODE_LINE - 3));
    assert_eq!(super::tokens(CodeLanguage::Rust, &fits)[0].len(), 1);
}
