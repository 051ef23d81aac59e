//! Splits a shell command line into the simple commands that it would run, without running it. A
//! line whose commands cannot be determined is marked as unclear, never guessed.

/// Maximum depth of nested commands.
const DEEPEST: u8 = 8;
/// Words that run, or may run, the words after them as a command.
const RUNNERS: [&str; 48] = [
    "!", "{", "if", "then", "else", "elif", "while", "until", "do", "for", "case", "function",
    "select", "time", "coproc", "eval", "exec", "command", "builtin", "source", ".", "trap", "env",
    "sudo", "doas", "su", "sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "nohup", "setsid",
    "nice", "ionice", "timeout", "stdbuf", "xargs", "parallel", "find", "watch", "script",
    "chroot", "unshare", "ssh", "strace",
];

/// A word without its quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// The shell expands the word: it contains a variable, a glob or a command substitution.
    pub(super) hazy: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) words: Vec<Word>,
    /// The command may run its later words as a command.
    pub(super) runner: bool,
    /// The command was found inside a word of a runner. It matters for denials only.
    pub(super) hidden: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) parts: Vec<Part>,
    /// True if `parts` lists everything that will run.
    pub(super) clear: bool,
}

pub(super) fn split(text: &str) -> Line {
    nested(text, 0)
}

fn nested(text: &str, depth: u8) -> Line {
    let mut reader =
        ShellReader { chars: text.chars().collect(), at: 0, depth, parts: Vec::new(), clear: true };
    reader.list(None);
    reader.clear &= !reader.parts.is_empty();
    let mut line = Line { clear: reader.clear, parts: Vec::new() };
    for words in reader.parts {
        take_in(&mut line, words, depth);
    }
    line
}

/// Adds a simple command and the commands that it may run.
fn take_in(line: &mut Line, mut words: Vec<Word>, depth: u8) {
    while words.first().is_some_and(is_assignment) {
        // Assignments such as PATH=… or LD_PRELOAD=… change which program runs.
        line.clear = false;
        words.remove(0);
    }
    let Some(first) = words.first() else { return };
    line.clear &= !first.hazy;
    let name = first.text.rsplit('/').next().unwrap_or_default();
    let runner = RUNNERS.contains(&name);
    if runner && depth < DEEPEST {
        let inner = words.iter().filter(|word| word.text.contains(|c: char| !is_plain(c)));
        let hidden = inner.flat_map(|word| nested(&word.text, depth + 1).parts);
        line.parts.extend(hidden.map(|part| Part { hidden: true, ..part }));
    }
    line.parts.push(Part { words, runner, hidden: false });
}

fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "-_./,:=+@%".contains(c)
}

fn is_assignment(word: &Word) -> bool {
    let Some((name, _)) = word.text.split_once('=') else { return false };
    let name = name.trim_end_matches('+');
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(in_name)
}

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

struct ShellReader {
    chars: Vec<char>,
    at: usize,
    depth: u8,
    parts: Vec<Vec<Word>>,
    clear: bool,
}

/// State of the command being parsed.
#[derive(Default)]
struct Open {
    words: Vec<Word>,
    word: Option<Word>,
}

impl Open {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().text.push(c);
    }

    fn haze(&mut self) {
        self.word.get_or_insert_default().hazy = true;
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }
}

impl ShellReader {
    fn next(&mut self) -> Option<char> {
        let c = self.chars.get(self.at).copied();
        self.at += 1;
        c
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    /// Parses commands up to `end`, or up to the end of the text.
    fn list(&mut self, end: Option<char>) {
        let mut open = Open::default();
        loop {
            let Some(c) = self.next() else {
                self.clear &= end.is_none();
                break;
            };
            match c {
                c if Some(c) == end => break,
                ' ' | '\t' => open.end_word(),
                '\n' | ';' | '&' | '|' => self.end_part(&mut open),
                '(' | ')' => {
                    self.clear = false;
                    self.end_part(&mut open);
                }
                '<' | '>' => self.redirection(c, &mut open),
                '\'' => self.single(&mut open),
                '"' => self.double(&mut open),
                '\\' => self.escaped(&mut open),
                '$' => self.dollar(&mut open),
                '`' => self.backticks(&mut open),
                _ => self.plain(c, &mut open),
            }
        }
        self.end_part(&mut open);
    }

    fn end_part(&mut self, open: &mut Open) {
        open.end_word();
        let words = std::mem::take(&mut open.words);
        if !words.is_empty() {
            self.parts.push(words);
        }
    }

    fn plain(&mut self, c: char, open: &mut Open) {
        // Shell options decide whether `#` starts a comment.
        self.clear &= !(c.is_control() || c == '#' && open.word.is_none());
        let starts = open.word.is_none();
        open.push(c);
        if matches!(c, '*' | '?' | '[' | '{') || (c == '~' && starts) {
            open.haze();
        }
    }

    fn single(&mut self, open: &mut Open) {
        open.word.get_or_insert_default();
        loop {
            match self.next() {
                Some('\'') => return,
                Some(c) => open.push(c),
                None => break,
            }
        }
        self.clear = false;
    }

    fn double(&mut self, open: &mut Open) {
        open.word.get_or_insert_default();
        loop {
            match self.next() {
                Some('"') => return,
                Some('\\') => match self.peek() {
                    Some('\n') => self.at += 1,
                    Some(c @ ('$' | '`' | '"' | '\\')) => {
                        self.at += 1;
                        open.push(c);
                    }
                    Some(_) | None => open.push('\\'),
                },
                Some('$') => self.dollar(open),
                Some('`') => self.backticks(open),
                Some(c) => open.push(c),
                None => break,
            }
        }
        self.clear = false;
    }

    fn escaped(&mut self, open: &mut Open) {
        match self.next() {
            Some('\n') => {}
            Some(c) => open.push(c),
            None => self.clear = false,
        }
    }

    fn dollar(&mut self, open: &mut Open) {
        open.push('$');
        open.haze();
        match self.peek() {
            Some('(') if self.depth < DEEPEST => {
                self.at += 1;
                self.depth += 1;
                self.list(Some(')'));
                self.depth -= 1;
            }
            Some('{') => self.braces(),
            // `$'…'` has its own quoting rules; `$(` here exceeds the maximum depth.
            Some('\'' | '(') => self.clear = false,
            Some(_) | None => {}
        }
    }

    /// Parses `${NAME}`. Any other parameter expansion makes the line unclear.
    fn braces(&mut self) {
        self.at += 1;
        while self.peek().is_some_and(in_name) {
            self.at += 1;
        }
        match self.peek() {
            Some('}') => self.at += 1,
            Some(_) | None => self.clear = false,
        }
    }

    fn backticks(&mut self, open: &mut Open) {
        open.haze();
        let from = self.at;
        while self.peek().is_some_and(|c| c != '`') {
            self.at += 1;
        }
        let inner: String = self.chars[from..self.at].iter().collect();
        self.clear &= self.next().is_some() && !inner.contains('\\') && self.depth < DEEPEST;
        if self.depth < DEEPEST {
            let mut reader = ShellReader {
                chars: inner.chars().collect(),
                at: 0,
                depth: self.depth + 1,
                parts: Vec::new(),
                clear: true,
            };
            reader.list(None);
            self.clear &= reader.clear;
            self.parts.append(&mut reader.parts);
        }
    }

    /// Skips redirections of output to `/dev/null` or another descriptor, which are harmless. Any
    /// other redirection touches a file and makes the line unclear.
    fn redirection(&mut self, c: char, open: &mut Open) {
        if open.word.as_ref().is_some_and(|word| word.text.chars().all(|c| c.is_ascii_digit())) {
            open.word = None;
        }
        open.end_word();
        let rest: String = self.chars[self.at.min(self.chars.len())..].iter().take(12).collect();
        let harmless = ["&1", "&2", "/dev/null", " /dev/null"].into_iter().find(|target| {
            let ends = |after: &str| after.chars().next().is_none_or(|c| " \t\n;|&)".contains(c));
            c == '>' && rest.strip_prefix(target).is_some_and(ends)
        });
        match harmless {
            Some(target) => self.at += target.len(),
            None => self.clear = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &Line) -> Vec<String> {
        let text =
            |part: &Part| part.words.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join("|");
        line.parts.iter().filter(|part| !part.hidden).map(text).collect()
    }

    #[test]
    fn clear_lines_are_split_into_commands() {
        let table: [(&str, &[&str]); 11] = [
            ("git status", &["git|status"]),
            ("git add . && git commit -m 'a; b'", &["git|add|.", "git|commit|-m|a; b"]),
            ("a;b|c\nd & e || f", &["a", "b", "c", "d", "e", "f"]),
            ("echo \"$(git log | head)\"", &["git|log", "head", "echo|$"]),
            ("echo `whoami; id`", &["whoami", "id", "echo|"]),
            ("cargo test 2>&1 | tail -5", &["cargo|test", "tail|-5"]),
            ("make >/dev/null 2> /dev/null", &["make"]),
            ("r\\m -r''f \"x\"", &["rm|-rf|x"]),
            ("echo \\\n  two", &["echo|two"]),
            ("echo ${HOME}/x", &["echo|$/x"]),
            ("echo ''", &["echo|"]),
        ];
        for (text, parts) in table {
            let line = split(text);
            assert_eq!(words(&line), parts, "{text}");
            assert!(line.clear, "{text}");
        }
    }

    #[test]
    fn unclear_lines_are_marked() {
        for text in [
            "",
            "  ",
            ";",
            "echo 'open",
            "echo \"open",
            "(cd x; ls)",
            "cat <(ls)",
            "cat < x",
            "ls > x",
            "ls >> x",
            "cat <<EOF\nx\nEOF",
            "$CMD x",
            "`x` y",
            "X=1 make",
            "PATH=. ls",
            "echo $'\\x41'",
            "echo ${x:-$(y)}",
            "echo $((1+2))",
            "ls # x",
            "echo \u{1b}",
            "f() { ls; }",
            "ls \\",
            "echo $(ls",
            "echo `ls",
            "~/x",
            "*/x",
            "ls >/dev/nullx",
            "ls 2>&1x",
        ] {
            assert!(!split(text).clear, "{text}");
        }
    }

    #[test]
    fn commands_inside_runner_arguments_are_found() {
        for text in ["bash -c 'x; rm -rf y'", "sudo sh -c \"rm -rf y\"", "eval 'eval \"rm -rf y\"'"]
        {
            let line = split(text);
            let seen = line
                .parts
                .iter()
                .any(|p| p.words.iter().map(|w| w.text.as_str()).eq(["rm", "-rf", "y"]));
            assert!(seen, "{text}: {line:?}");
        }
    }
}
