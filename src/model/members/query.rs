//! Queries of a program to its terminal, and our answers. A person's terminal must not see the
//! queries: each one that shows the program would answer as well.

use std::sync::LazyLock;

use regex::bytes::Regex;

/// A query of xterm or kitty. The group `cut` matches what may begin one at the end of the output.
static QUERY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x-u) \x1b (?: Z
        | \[ (?: [=>]?0?c | [0-9]{0,4}n | \?[0-9;]{0,9}[mnuS] | >0?q | \??[0-9]{1,5}\$p )
        | \[ (?: 1[1345689] | 2[01] ) t
        | \] (?: 1[0-9]; | (?:4|5|52);[0-9a-z;?]{0,80} ) \? (?: \x07 | \x1b\\ )
        | (?: P[$+]q | _G[^;\x1b]{0,80}a=q ) [^\x1b]{0,80} \x1b\\
        | (?P<cut> (?: \[[=>?]?[0-9;]{0,9}\$? | \][0-9a-z;?]{0,85}\x1b?
            | P(?:[$+](?:q[^\x1b]{0,80}\x1b?)?)? | _(?:G[^\x1b]{0,163}\x1b?)? )? \z ) )",
    )
    .expect("a constant pattern")
});

/// Takes the queries out of the output of a program, and answers them.
#[derive(Debug, Default)]
pub struct QueryFilter {
    /// The end of the output, if a query may begin there.
    held: Vec<u8>,
}

impl QueryFilter {
    /// Passes the output without its queries to `draw`, in parts, and returns the answers. `draw`
    /// returns the row and the column of the cursor, counted from 0.
    pub fn pass(&mut self, output: &[u8], mut draw: impl FnMut(&[u8]) -> (u16, u16)) -> Vec<u8> {
        let output = [self.held.as_slice(), output].concat();
        self.held.clear();
        let mut answers = Vec::new();
        let mut drawn = 0;
        for found in QUERY.captures_iter(&output) {
            let query = found.get_match();
            let cursor = draw(&output[drawn..query.start()]);
            drawn = query.end();
            if found.name("cut").is_some() {
                self.held = query.as_bytes().to_vec();
            } else {
                let query = String::from_utf8_lossy(query.as_bytes());
                answers.extend_from_slice(answer(&query, cursor).as_bytes());
            }
        }
        draw(&output[drawn..]);
        answers
    }
}

/// Returns the answer to a query; empty for a query to which a terminal without the feature does
/// not reply.
fn answer(query: &str, (row, col): (u16, u16)) -> String {
    let (row, col) = (row + 1, col + 1);
    match query {
        // A VT220 with colours.
        "\x1bZ" | "\x1b[c" | "\x1b[0c" => "\x1b[?62;22c".to_owned(),
        // Programs take the second number for the patch level of xterm. From 277 on, they expect
        // the encoding of the mouse that all terminals of today have.
        "\x1b[>c" | "\x1b[>0c" => "\x1b[>1;277;0c".to_owned(),
        "\x1b[5n" => "\x1b[0n".to_owned(),
        "\x1b[6n" => format!("\x1b[{row};{col}R"),
        "\x1b[?6n" => format!("\x1b[?{row};{col}R"),
        "\x1b[>q" | "\x1b[>0q" => {
            concat!("\x1bP>|phalanx(", env!("CARGO_PKG_VERSION"), ")\x1b\\").to_owned()
        }
        _ => match (query.strip_suffix("$p"), query.split_once(";?")) {
            // 0: the mode is not recognised.
            (Some(mode), _) => format!("{mode};0$y"),
            (None, Some((color @ ("\x1b]10" | "\x1b]12"), end))) => {
                format!("{color};rgb:ffff/ffff/ffff{end}")
            }
            (None, Some((color @ "\x1b]11", end))) => format!("{color};rgb:0000/0000/0000{end}"),
            (None, _) => String::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes each chunk. Returns what was drawn and answered, with the cursor always at row 2 and
    /// column 4, counted from 0.
    fn passed(chunks: &[&[u8]]) -> (String, String) {
        let mut filter = QueryFilter::default();
        let (mut drawn, mut answers) = (Vec::new(), Vec::new());
        for chunk in chunks {
            answers.extend(filter.pass(chunk, |part| {
                drawn.extend_from_slice(part);
                (2, 4)
            }));
        }
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (text(drawn), text(answers))
    }

    const ANSWERED: [(&str, &str); 17] = [
        ("\x1b[c", "\x1b[?62;22c"),
        ("\x1b[0c", "\x1b[?62;22c"),
        ("\x1bZ", "\x1b[?62;22c"),
        ("\x1b[>c", "\x1b[>1;277;0c"),
        ("\x1b[>0c", "\x1b[>1;277;0c"),
        ("\x1b[5n", "\x1b[0n"),
        ("\x1b[6n", "\x1b[3;5R"),
        ("\x1b[?6n", "\x1b[?3;5R"),
        ("\x1b[?2026$p", "\x1b[?2026;0$y"),
        ("\x1b[4$p", "\x1b[4;0$y"),
        ("\x1b]10;?\x07", "\x1b]10;rgb:ffff/ffff/ffff\x07"),
        ("\x1b]11;?\x07", "\x1b]11;rgb:0000/0000/0000\x07"),
        ("\x1b]11;?\x1b\\", "\x1b]11;rgb:0000/0000/0000\x1b\\"),
        ("\x1b]12;?\x1b\\", "\x1b]12;rgb:ffff/ffff/ffff\x1b\\"),
        ("\x1b[>q", concat!("\x1bP>|phalanx(", env!("CARGO_PKG_VERSION"), ")\x1b\\")),
        ("\x1b[>0q", concat!("\x1bP>|phalanx(", env!("CARGO_PKG_VERSION"), ")\x1b\\")),
        ("\x1b[31m\x1b[5n\x1b[5n", "\x1b[0n\x1b[0n"),
    ];
    const UNANSWERED: [&str; 14] = [
        "\x1b[=c",
        "\x1b[?u",
        "\x1b[?4m",
        "\x1b[?996n",
        "\x1b[?1;1;0S",
        "\x1b[14t",
        "\x1b[18t",
        "\x1b[21t",
        "\x1b]4;0;?\x07",
        "\x1b]52;c;?\x1b\\",
        "\x1bP+q544e\x1b\\",
        "\x1bP$q q\x1b\\",
        "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\",
        "\x1b]4;0;?;1;?;2;?;3;?;4;?;5;?;6;?;7;?;8;?;9;?;10;?;11;?;12;?;13;?;14;?\x1b\\",
    ];
    /// Modes, colours and strings that are not queries.
    const DRAWN: [&str; 18] = [
        "text [6n c",
        "\x1b[31mnc\x1b[0m",
        "\x1b[2J\x1b[1;1Hn",
        "\x1b[>4;1m",
        "\x1b[>4n",
        "\x1b[>1u\x1b[<u\x1b[=1;1u",
        "\x1b[?2026h",
        "\x1b[!p",
        "\x1b[2 q",
        "\x1b[22;2t\x1b[8;24;80t",
        "\x1b[4S",
        "\x1b]0;Continue?\x07",
        "\x1b]2;4;?\x1b\\",
        "\x1b]11;#123456\x07",
        "\x1b]52;c;aGk=\x07",
        "\x1b]8;;https://example.com/?\x1b\\",
        "\x1b_Ga=T,f=100;AAAA\x1b\\",
        "\x1b\x1b[H日本",
    ];

    #[test]
    fn pt_10_queries_are_answered_once_and_not_drawn() {
        for (query, answer) in ANSWERED {
            let kept = if query.starts_with("\x1b[31m") { "<\x1b[31m>" } else { "<>" };
            let seen = passed(&[b"<", query.as_bytes(), b">"]);
            assert_eq!(seen, (kept.to_owned(), answer.to_owned()), "{query:?}");
        }
        for query in UNANSWERED {
            let seen = passed(&[b"<", query.as_bytes(), b">"]);
            assert_eq!(seen, ("<>".to_owned(), String::new()), "{query:?}");
        }
    }

    #[test]
    fn other_output_is_drawn_unchanged() {
        for output in DRAWN {
            assert_eq!(passed(&[output.as_bytes(), b"."]), (format!("{output}."), String::new()));
        }
    }

    #[test]
    fn pt_10_query_that_is_split_over_reads_is_a_query() {
        let answered: String = ANSWERED.map(|(query, _)| query).concat();
        let whole = answered + &UNANSWERED.concat() + &DRAWN.concat() + ".";
        let bytes = whole.as_bytes();
        let expected = passed(&[bytes]);
        assert_eq!(expected.1, ANSWERED.map(|(_, answer)| answer).concat());
        for at in 0..bytes.len() {
            assert_eq!(passed(&[&bytes[..at], &bytes[at..]]), expected, "split at {at}");
        }
        assert_eq!(passed(&bytes.chunks(1).collect::<Vec<_>>()), expected, "single bytes");
    }

    #[test]
    fn unfinished_strings_of_any_length_are_not_held_back() {
        for begin in ["\x1b]0;", "\x1bP$q", "\x1b_Ga=q", "\x1b[?"] {
            let output = format!("{begin}{}", "1".repeat(500));
            let seen = passed(&[output.as_bytes()]);
            assert_eq!(seen, (output, String::new()));
        }
    }
}
