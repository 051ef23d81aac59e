//! `mcp install`: registers the server in the configuration of an agent program.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::{Value, json};
use toml_edit::{Array, DocumentMut, Item, Table, TomlError, value};

use crate::fail::{Exit, Failure, VerbResult};
use crate::out::Out;
use crate::read::read_text;
use ops::Kind;
use sys::{env, fs};

/// Register the server in the configuration of an agent program.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx mcp install --for claude\n  phalanx mcp install --for codex --print\n  \
    phalanx mcp install --for claude --undo\n\n\
    Codex and Copilot keep one configuration for all projects; the others get one in the current directory. \
    What the file contains is kept, also comments in JSON."
)]
pub(crate) struct InstallArgs {
    /// Program to configure.
    #[arg(long = "for", value_enum, value_name = "PROGRAM")]
    pub(crate) client: ClientProgram,
    /// Print the configuration, and write nothing.
    #[arg(long, conflicts_with = "undo")]
    pub(crate) print: bool,
    /// Remove the server from the configuration.
    #[arg(long)]
    pub(crate) undo: bool,
}

/// A program that can be configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientProgram {
    Claude,
    Codex,
    Gemini,
    Opencode,
    Qwen,
    Copilot,
    Cursor,
    Vscode,
}

/// The next step for Claude Code. The preselected answer of 2.1.332 is not to use the server.
const CLAUDE_ASKS: &str =
    "Claude Code asks about it at its next start in this directory: choose \"Use this MCP server\"";
/// Name of the server in each configuration.
const NAME: &str = "phalanx";
/// Maximum size of a configuration, in bytes.
const MAX_SIZE: u64 = 4 * 1024 * 1024;

impl ClientProgram {
    /// Returns the configuration file, from the current directory and the home directory.
    fn file(self, here: &Path) -> Result<PathBuf, Failure> {
        Ok(match self {
            ClientProgram::Claude => here.join(".mcp.json"),
            ClientProgram::Gemini => here.join(".gemini/settings.json"),
            ClientProgram::Opencode => {
                let commented = here.join("opencode.jsonc");
                if fs::exists(&commented) { commented } else { here.join("opencode.json") }
            }
            ClientProgram::Cursor => here.join(".cursor/mcp.json"),
            ClientProgram::Vscode => here.join(".vscode/mcp.json"),
            ClientProgram::Qwen => here.join(".qwen/settings.json"),
            ClientProgram::Codex => own_dir("CODEX_HOME", ".codex")?.join("config.toml"),
            ClientProgram::Copilot => own_dir("COPILOT_HOME", ".copilot")?.join("mcp-config.json"),
        })
    }

    /// Returns the key that holds the servers, and the entry of ours.
    fn entry(self, command: &str) -> (&'static str, Value) {
        match self {
            ClientProgram::Opencode => {
                ("mcp", json!({ "type": "local", "command": [command, "mcp"], "enabled": true }))
            }
            ClientProgram::Vscode => {
                ("servers", json!({ "type": "stdio", "command": command, "args": ["mcp"] }))
            }
            ClientProgram::Codex => ("mcp_servers", json!({ "command": command, "args": ["mcp"] })),
            ClientProgram::Copilot => (
                "mcpServers",
                json!({ "type": "local", "command": command, "args": ["mcp"], "tools": ["*"] }),
            ),
            _ => ("mcpServers", json!({ "command": command, "args": ["mcp"] })),
        }
    }
}

/// Returns the directory of a program's configuration for all projects: that of the variable, or
/// else the usual one in the home directory.
fn own_dir(variable: &str, usual: &str) -> Result<PathBuf, Failure> {
    let given = env::var(variable).map(PathBuf::from);
    let dir = given.or_else(|| env::home_dir().map(|home| home.join(usual)));
    dir.ok_or_else(|| Failure::usage("there is no home directory", &format!("set ${variable}")))
}

pub(super) fn install(out: &Out, args: &InstallArgs) -> VerbResult {
    let client = args.client;
    let command = own_command()?;
    let file = client.file(&env::current_dir()?)?;
    let shown = file.display().to_string();
    let before = if args.print || !fs::exists(&file) {
        None
    } else {
        Some(read_text(&file, MAX_SIZE).map_err(|problem| unreadable(&shown, &problem))?)
    };
    let edit = Edit { client, command: &command, undo: args.undo };
    let after = match client {
        ClientProgram::Codex => edit.toml(before.as_deref()),
        _ => edit.json(before.as_deref()),
    };
    let after = after.map_err(|problem| unreadable(&shown, &problem))?;
    if args.print {
        out.print(&json!({ "file": shown, "text": after }), || after.clone())?;
        return Ok(Exit::DONE);
    }
    let is_changed = before.as_deref().unwrap_or_default() != after;
    if is_changed && after.is_empty() {
        fs::remove_file(&file)?;
    } else if is_changed {
        fs::write_foreign(&file, after.as_bytes())?;
    }
    let document = json!({ "file": shown, "changed": is_changed });
    out.confirm(&document, || match (args.undo, is_changed) {
        (false, true) if client == ClientProgram::Claude => {
            format!("added the server to {shown}\n{CLAUDE_ASKS}")
        }
        (false, true) => format!("added the server to {shown}"),
        (false, false) => format!("{shown} has the server already"),
        (true, true) => format!("removed the server from {shown}"),
        (true, false) => format!("{shown} has no such server"),
    })
}

/// Returns `phalanx` if that is this program on the search path, else its path.
fn own_command() -> Result<String, Failure> {
    let own = env::current_exe()?;
    let found = env::find_program(NAME.as_ref(), env::var("PATH").as_deref(), &env::current_dir()?);
    let found = found.and_then(|path| fs::canonical(&path).ok());
    if found.is_some() && found == fs::canonical(&own).ok() {
        return Ok(NAME.to_owned());
    }
    own.into_os_string().into_string().map_err(|path| {
        Failure::usage(format!("the path {path:?} is not UTF-8"), "move phalanx to another path")
    })
}

fn unreadable(file: &str, problem: &str) -> Failure {
    let hint = "add the entry by hand: `--print` shows it".to_owned();
    Failure::new(Kind::Refused, format!("{file} is left as it is: {problem}"), Some(hint))
}

/// A change of a configuration. Each function returns the new text; it is empty if nothing is left.
struct Edit<'a> {
    client: ClientProgram,
    command: &'a str,
    undo: bool,
}

impl Edit<'_> {
    fn json(&self, before: Option<&str>) -> Result<String, String> {
        let unchanged = || Ok(before.unwrap_or_default().to_owned());
        let text = before.filter(|text| !text.trim().is_empty()).unwrap_or("{}\n");
        let whole = CstRootNode::parse(text, &JSON).map_err(|e| format!("not JSON: {e}"))?;
        let object = whole.object_value().ok_or("it is not an object")?;
        let (key, entry) = self.client.entry(self.command);
        if self.undo {
            let Some(servers) = object.object_value(key) else { return unchanged() };
            let Some(own) = servers.get(NAME) else { return unchanged() };
            own.remove();
            if let Some(property) = object.get(key).filter(|_| is_empty(&servers)) {
                property.remove();
            }
            let is_bare = is_empty(&object) && !has_comments(&whole.children());
            return Ok(if is_bare { String::new() } else { whole.to_string() });
        }
        let servers = object.object_value_or_create(key);
        let servers = servers.ok_or(format!("`{key}` is not an object"))?;
        match servers.get(NAME) {
            Some(own)
                if own.value().and_then(|own| own.to_serde_value()).as_ref() == Some(&entry) =>
            {
                return unchanged();
            }
            Some(own) => own.set_value(json_input(&entry)),
            None => drop(servers.append(NAME, json_input(&entry))),
        }
        Ok(whole.to_string())
    }

    fn toml(&self, before: Option<&str>) -> Result<String, String> {
        let text = before.unwrap_or_default();
        // Its first line names the place; the next one quotes the file, which may contain a token.
        let problem = |e: TomlError| e.to_string().lines().next().unwrap_or_default().to_owned();
        let mut whole: DocumentMut = text.parse().map_err(problem)?;
        let (key, _) = self.client.entry(self.command);
        if self.undo {
            let servers = whole.get_mut(key).and_then(Item::as_table_like_mut);
            let (removed, is_empty) = match servers {
                Some(servers) => (servers.remove(NAME).is_some(), servers.is_empty()),
                None => (false, false),
            };
            if removed && is_empty {
                whole.remove(key);
            }
            return Ok(whole.to_string());
        }
        let servers = whole.entry(key).or_insert_with(|| {
            let mut servers = Table::new();
            // Only the tables of its servers have headers.
            servers.set_implicit(true);
            Item::Table(servers)
        });
        let servers = servers.as_table_like_mut().ok_or(format!("`{key}` is not a table"))?;
        let is_ours =
            |item: &Item| item.get("command").and_then(Item::as_str) == Some(self.command);
        if !servers.get(NAME).is_some_and(is_ours) {
            let mut entry = Table::new();
            entry.insert("command", value(self.command));
            entry.insert("args", value(Array::from_iter(["mcp"])));
            servers.insert(NAME, Item::Table(entry));
        }
        Ok(whole.to_string())
    }
}

/// JSON, with comments and trailing commas.
const JSON: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Returns whether an object has neither properties nor comments.
fn is_empty(object: &CstObject) -> bool {
    object.properties().is_empty() && !has_comments(&object.children())
}

fn has_comments(nodes: &[CstNode]) -> bool {
    nodes.iter().any(CstNode::is_comment)
}

/// Returns a value as an input of the editor.
fn json_input(value: &Value) -> CstInputValue {
    match value {
        Value::Object(object) => CstInputValue::Object(
            object.iter().map(|(key, value)| (key.clone(), json_input(value))).collect(),
        ),
        Value::Array(list) => CstInputValue::Array(list.iter().map(json_input).collect()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Bool(is_set) => CstInputValue::Bool(*is_set),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::Null => CstInputValue::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(client: ClientProgram, undo: bool) -> Edit<'static> {
        Edit { client, command: NAME, undo }
    }

    #[test]
    fn json_configuration_is_kept_and_restored() {
        let before = "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"other\": {\n      \"command\": \"x\"\n    }\n  }\n}\n";
        let after = edit(ClientProgram::Claude, false).json(Some(before)).expect("json");
        let document: Value = serde_json::from_str(&after).expect("json");
        assert_eq!(document["theme"], "dark");
        assert_eq!(document["mcpServers"]["other"]["command"], "x");
        assert_eq!(
            document["mcpServers"]["phalanx"],
            json!({"command": "phalanx", "args": ["mcp"]})
        );
        assert_eq!(edit(ClientProgram::Claude, false).json(Some(&after)).expect("json"), after);
        assert_eq!(edit(ClientProgram::Claude, true).json(Some(&after)).expect("json"), before);
    }

    #[test]
    fn configuration_that_held_only_the_server_is_removed() {
        for client in [ClientProgram::Gemini, ClientProgram::Opencode, ClientProgram::Vscode] {
            let after = edit(client, false).json(None).expect("json");
            assert_eq!(edit(client, true).json(Some(&after)).expect("json"), "");
        }
    }

    #[test]
    fn toml_configuration_keeps_its_comments() {
        let before = "# mine\nmodel = \"o5\"\n\n[mcp_servers.other] # theirs\ncommand = \"x\"\n";
        let after = edit(ClientProgram::Codex, false).toml(Some(before)).expect("toml");
        assert!(after.starts_with(before.trim_end()), "{after}");
        assert!(
            after.contains("[mcp_servers.phalanx]\ncommand = \"phalanx\"\nargs = [\"mcp\"]\n"),
            "{after}"
        );
        assert_eq!(edit(ClientProgram::Codex, false).toml(Some(&after)).expect("toml"), after);
        let restored = edit(ClientProgram::Codex, true).toml(Some(&after)).expect("toml");
        assert_eq!(restored.trim_end(), before.trim_end());
        let alone = edit(ClientProgram::Codex, false).toml(None).expect("toml");
        assert_eq!(edit(ClientProgram::Codex, true).toml(Some(&alone)).expect("toml"), "");
    }

    #[test]
    fn comments_of_a_json_configuration_are_kept() {
        let texts = [
            "{\n  // mine\n  \"servers\": {\n    \"other\": {}, // theirs\n  },\n}\n",
            "// head\n{\n  \"inputs\": [], /* none */\n  \"servers\": {\n    // empty\n  }\n}\n",
        ];
        for before in texts {
            let after = edit(ClientProgram::Vscode, false).json(Some(before)).expect("json");
            for comment in ["// mine", "// theirs", "// head", "/* none */", "// empty"] {
                assert_eq!(after.contains(comment), before.contains(comment), "{after}");
            }
            assert!(after.contains("\"phalanx\": {"), "{after}");
            let again = edit(ClientProgram::Vscode, false).json(Some(&after)).expect("json");
            assert_eq!(again, after);
            let undone = edit(ClientProgram::Vscode, true).json(Some(&after)).expect("json");
            assert_eq!(undone, before);
        }
    }

    #[test]
    fn configuration_that_cannot_be_parsed_is_refused() {
        assert!(edit(ClientProgram::Vscode, false).json(Some("{ \"servers\": ")).is_err());
        assert!(edit(ClientProgram::Vscode, false).json(Some("[]")).is_err());
        assert!(edit(ClientProgram::Codex, false).toml(Some("= 1")).is_err());
        assert!(edit(ClientProgram::Claude, false).json(Some("{\"mcpServers\": 3}")).is_err());
    }
}
