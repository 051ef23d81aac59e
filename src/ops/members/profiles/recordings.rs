//! Tests the rules of a profile on a directory of recorded screens. The file `expected.toml` names
//! the state that each recording must have.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::OpsError;
use model::name::check_name;
use profile::{Composer, NearMiss, Profile, Screen, ScreenFinding, ScreenState, judge, nearest};
use sys::fs;

/// Name of the file with the expected states.
pub(super) const EXPECTED: &str = "expected.toml";
/// File name ending of a recording.
pub(super) const RECORDING: &str = ".ansi";
/// Maximum size of a recording, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;
/// Time without output to assume for a recording, in ms.
const AT_REST_MS: u64 = 60_000;

/// The content of `expected.toml`.
#[derive(Debug, Deserialize)]
struct ExpectedScreens {
    rows: u16,
    cols: u16,
    #[serde(flatten)]
    screens: BTreeMap<String, ExpectedScreen>,
}

/// The expected verdict about a recording. A key that is absent is not compared.
#[derive(Debug, Deserialize)]
struct ExpectedScreen {
    state: String,
    rule: Option<String>,
    /// `empty`, `unknown`, or `holds` and the text.
    composer: Option<String>,
    /// Size of the terminal, if it is another one.
    rows: Option<u16>,
    cols: Option<u16>,
}

/// The verdict about a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TestedScreen {
    #[serde(flatten)]
    pub finding: ScreenFinding,
    /// The rule that comes closest, if none fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<NearMiss>,
}

/// The verdict about a recording of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TestedRecording {
    /// Name of its file, without the ending.
    pub screen: String,
    /// The expected state.
    pub expected: String,
    pub passed: bool,
    #[serde(flatten)]
    pub tested: TestedScreen,
}

/// Returns the verdict about recorded output on a terminal of this size (rows, columns).
///
/// # Errors
/// [`OpsError::Usage`] if the file is absent or cannot be read.
pub fn test_recording(
    profile: &Profile,
    file: &Path,
    size: (u16, u16),
) -> Result<TestedScreen, OpsError> {
    let mut screen = Screen::new(size.0, size.1);
    screen.feed(&read(file)?);
    let look = screen.look(AT_REST_MS);
    let finding = judge(profile, &look);
    let is_unknown = finding.state == ScreenState::Unknown;
    let nearest = if is_unknown { nearest(profile, &look) } else { None };
    Ok(TestedScreen { finding, nearest })
}

/// Returns the verdicts about all recordings that `expected.toml` lists, sorted by name.
///
/// # Errors
/// [`OpsError::Usage`] if a file is absent or cannot be read.
pub fn test_recordings(profile: &Profile, dir: &Path) -> Result<Vec<TestedRecording>, OpsError> {
    let file = dir.join(EXPECTED);
    let invalid = |problem: String| OpsError::Usage {
        problem: format!("{}: {problem}", file.display()),
        hint: Some(
            "it has `rows`, `cols`, and for each recording a table [NAME] with `state`".to_owned(),
        ),
    };
    let text = String::from_utf8(read(&file)?).map_err(|_| invalid("is not UTF-8".to_owned()))?;
    let expected: ExpectedScreens =
        toml::from_str(&text).map_err(|e| invalid(e.message().to_owned()))?;
    let mut tested = Vec::new();
    for (name, wanted) in expected.screens {
        check_name(&name).map_err(|e| invalid(format!("`{}` {e}", name.escape_debug())))?;
        let size = (wanted.rows.unwrap_or(expected.rows), wanted.cols.unwrap_or(expected.cols));
        let found = test_recording(profile, &dir.join(format!("{name}{RECORDING}")), size)?;
        let passed = wanted.is_met(&found.finding);
        tested.push(TestedRecording {
            screen: name,
            expected: wanted.state,
            passed,
            tested: found,
        });
    }
    Ok(tested)
}

impl ExpectedScreen {
    fn is_met(&self, finding: &ScreenFinding) -> bool {
        let composer = match &finding.composer {
            Composer::Empty => "empty".to_owned(),
            Composer::Holds(text) => format!("holds {text}"),
            Composer::Unknown => "unknown".to_owned(),
        };
        self.state == finding.state.to_string()
            && self.rule.as_ref().is_none_or(|rule| *rule == finding.rule)
            && self.composer.as_ref().is_none_or(|wanted| *wanted == composer)
    }
}

fn read(file: &Path) -> Result<Vec<u8>, OpsError> {
    let usage = |problem: String| OpsError::Usage { problem, hint: None };
    let bytes = fs::read(file, LARGEST).map_err(|e| usage(e.to_string()))?;
    bytes.ok_or_else(|| usage(format!("there is no file {}", file.display())))
}
