//! Finds paths outside of a member's directory in a use of a tool. A path that may lead elsewhere
//! counts as outside: a false alarm costs one more key, a miss may cost files.

use serde_json::Value;

use super::Use;
use super::pattern::changes_files;

/// Files that take output and keep nothing.
const HARMLESS: [&str; 4] = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"];

/// Returns the first path outside of the member's directory that the use names and may write to:
/// the file of an editing tool, or any path in a shell command.
pub fn path_outside(used: &Use) -> Option<String> {
    let text = |key: &str| used.input.get(key).and_then(Value::as_str);
    if used.tool == "Bash" {
        let command = text("command").unwrap_or_default();
        return paths(command).find(|path| leads_outside(path, used.cwd)).map(str::to_owned);
    }
    if !changes_files(used.tool) {
        return None;
    }
    let path = ["file_path", "notebook_path", "path"].iter().find_map(|key| text(key))?;
    leads_outside(path, used.cwd).then(|| path.to_owned())
}

/// Returns the words of a command that can be paths, also those within quotes, values of options
/// and redirections.
fn paths(command: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || "'\"`=(),;<>|&[]".contains(c);
    command.split(ends).map(|word| {
        // `-o/etc/x` is an option with its value.
        let value = word.strip_prefix('-').and_then(|option| option.get(1..));
        value.filter(|value| value.starts_with(['/', '~', '$'])).unwrap_or(word)
    })
}

fn leads_outside(path: &str, cwd: &str) -> bool {
    if HARMLESS.contains(&path) {
        return false;
    }
    let is_expanded = path.starts_with('~') || (path.starts_with('$') && path.contains('/'));
    let goes_up = path.split('/').any(|part| part == "..");
    let cwd = cwd.trim_end_matches('/');
    let is_below =
        path.strip_prefix(cwd).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    is_expanded || goes_up || (path.starts_with('/') && !is_below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn outside(tool: &str, input: &Value) -> Option<String> {
        path_outside(&Use { tool, input, home: Some("/home/u"), cwd: "/w/site" })
    }

    #[test]
    fn paths_outside_of_the_directory_are_found_in_commands_and_edits() {
        let commands = [
            ("make test", None),
            ("rm -rf build ./out /w/site/x", None),
            ("make >/dev/null 2>&1", None),
            ("curl https://example.org/a/b", None),
            ("rm -rf /w/site-other", Some("/w/site-other")),
            ("echo x >/etc/hosts", Some("/etc/hosts")),
            ("dd of=/dev/sda", Some("/dev/sda")),
            ("tar -C/opt -xf a.tar", Some("/opt")),
            ("cd .. && rm x", Some("..")),
            ("rm ./a/../../b", Some("./a/../../b")),
            ("rm ~/x", Some("~/x")),
            ("rm \"$HOME/x\"", Some("$HOME/x")),
            ("python -c 'open(\"/etc/x\", \"w\")'", Some("/etc/x")),
            ("bash -c 'rm -rf /srv'", Some("/srv")),
        ];
        for (command, expected) in commands {
            let found = outside("Bash", &json!({ "command": command }));
            assert_eq!(found.as_deref(), expected, "{command}");
        }
        let edits = [
            ("Edit", "src/a.rs", None),
            ("Write", "/w/site/a.rs", None),
            ("Write", "/w/other/a.rs", Some("/w/other/a.rs")),
            ("Edit", "../a.rs", Some("../a.rs")),
            ("Read", "/etc/hosts", None),
        ];
        for (tool, path, expected) in edits {
            let found = outside(tool, &json!({ "file_path": path }));
            assert_eq!(found.as_deref(), expected, "{tool} {path}");
        }
    }
}
