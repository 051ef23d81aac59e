//! Parses the front matter of an agent file: a small subset of YAML. Deeper structures are
//! recognized but not parsed.

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Line number, starting at 1.
    line: usize,
    pub(super) key: String,
    pub(super) value: FieldValue,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FieldValue {
    Text(String),
    List(Vec<String>),
    /// A deeper structure, which is not parsed.
    Nested,
}

impl Field {
    /// Returns the trimmed text; `None` if it is blank.
    ///
    /// # Errors
    /// Fails if the value is not a text or contains a NUL character.
    pub(super) fn word(&self) -> Result<Option<String>, String> {
        match &self.value {
            FieldValue::Text(text) if text.contains('\0') => {
                Err(self.fault("it contains a NUL character"))
            }
            FieldValue::Text(text) => {
                Ok(Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned))
            }
            FieldValue::List(_) | FieldValue::Nested => Err(self.fault("not a text")),
        }
    }

    pub(super) fn fault(&self, problem: &str) -> String {
        format!("line {}: `{}`: {problem}", self.line, self.key)
    }
}

/// Splits a file into the fields of its front matter and the text that follows.
///
/// # Errors
/// Fails if the front matter is missing or not closed, a line is not a field, a field occurs twice,
/// or a value is malformed.
pub(super) fn split(text: &str) -> Result<(Vec<Field>, &str), String> {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n') {
        let bare = line.trim_end();
        match (lines.is_empty(), bare == "---") {
            (true, false) => break,
            (false, true) => return Ok((fields(&lines[1..])?, after)),
            (_, _) => lines.push(bare),
        }
        rest = after;
    }
    match lines.is_empty() {
        true => Err("it does not start with a `---` line".to_owned()),
        // The last line has no newline, so the loop has not seen it.
        false if rest.trim_end() == "---" => Ok((fields(&lines[1..])?, "")),
        false => Err("its front matter has no closing `---` line".to_owned()),
    }
}

fn fields(lines: &[&str]) -> Result<Vec<Field>, String> {
    let mut fields: Vec<Field> = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        // `lines` starts at line 2, after the opening `---`.
        let number = at + 2;
        at += 1;
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let (key, first) =
            line.split_once(':').ok_or_else(|| format!("line {number}: not a field"))?;
        let named = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if key.is_empty() || !key.chars().all(named) {
            return Err(format!("line {number}: `{}` is not a field name", key.escape_debug()));
        }
        if fields.iter().any(|field| field.key == key) {
            return Err(format!("line {number}: duplicate field `{key}`"));
        }
        let more = lines[at..].iter().take_while(|line| belongs(line)).count();
        let value = value(first.trim(), &lines[at..at + more]);
        let value = value.map_err(|problem| format!("line {number}: `{key}`: {problem}"))?;
        fields.push(Field { line: number, key: key.to_owned(), value });
        at += more;
    }
    Ok(fields)
}

/// Returns true if a line continues the field above it.
fn belongs(line: &str) -> bool {
    line.is_empty() || line.starts_with([' ', '\t']) || line.starts_with("- ") || line == "-"
}

fn value(first: &str, more: &[&str]) -> Result<FieldValue, String> {
    let block = |joint| {
        FieldValue::Text(more.iter().map(|line| line.trim()).collect::<Vec<_>>().join(joint))
    };
    match first.chars().next() {
        Some('|') => Ok(block("\n")),
        Some('>') => Ok(block(" ")),
        Some('[') => Ok(FieldValue::List(inline(first)?)),
        Some('{' | '&' | '*' | '!') if first != "*" => Ok(FieldValue::Nested),
        None | Some('#') => below(more),
        // A plain scalar may continue on the following lines.
        Some(_) => {
            let whole: Vec<&str> = [first]
                .into_iter()
                .chain(more.iter().copied())
                .map(str::trim)
                .filter(|l| !l.is_empty())
                .collect();
            Ok(FieldValue::Text(scalar(&whole.join(" "))?))
        }
    }
}

/// Parses a value that starts on the next line: a list or a deeper structure.
fn below(more: &[&str]) -> Result<FieldValue, String> {
    let lines = || {
        more.iter()
            .map(|line| line.trim())
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
    };
    let item = |line: &str| line.strip_prefix('-').map(|item| item.trim().to_owned());
    let list: Option<Vec<String>> = lines().map(item).collect();
    match list {
        Some(list) if list.is_empty() => Ok(FieldValue::Text(String::new())),
        Some(list) => {
            list.iter().map(|item| scalar(item)).collect::<Result<_, _>>().map(FieldValue::List)
        }
        None => Ok(FieldValue::Nested),
    }
}

/// Parses `[a, "b, c", Bash(d, e)]`. Commas inside quotes and parentheses do not separate items.
fn inline(text: &str) -> Result<Vec<String>, String> {
    let inner = text.strip_prefix('[').and_then(|text| text.trim_end().strip_suffix(']'));
    let inner = inner.ok_or("its list is not closed on the same line")?;
    let (mut items, mut from, mut depth, mut quote) = (Vec::new(), 0, 0_usize, None);
    for (at, c) in inner.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                items.push(&inner[from..at]);
                from = at + 1;
            }
            (Some(_) | None, _) => {}
        }
    }
    items.push(&inner[from..]);
    items.iter().map(|item| item.trim()).filter(|item| !item.is_empty()).map(scalar).collect()
}

/// Parses a scalar, plain or in quotes.
fn scalar(text: &str) -> Result<String, String> {
    let closed = || "its quotes do not close".to_owned();
    if text.starts_with('"') {
        return serde_json::from_str(text).map_err(|_| closed());
    }
    if let Some(rest) = text.strip_prefix('\'') {
        return rest.strip_suffix('\'').map(|inner| inner.replace("''", "'")).ok_or_else(closed);
    }
    Ok(text.split(" #").next().unwrap_or_default().trim_end().to_owned())
}
