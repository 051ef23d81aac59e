//! The sessions of a program, by the transcripts that it writes.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use model::members::record::MemberRecord;
use model::members::transcript::TranscriptForm;
use model::team::Team;
use store::TeamStore;
use sys::fs;

/// Maximum number of directories that are searched for a transcript.
const MOST_DIRS: usize = 20_000;
/// Bytes at the beginning of a transcript that say whose it is.
const HEAD: u64 = 256 << 10;
const ENDING: &str = "jsonl";

/// Returns the session that a member's program has written last. It differs from the recorded one
/// if its launcher was killed before it could see that `/clear` had begun another. Claude Code gets
/// its session's id at its start and creates the transcript in its first turn: a session without
/// one cannot be resumed.
pub fn last_session(team: &TeamStore, record: &MemberRecord) -> Option<String> {
    let session = record.session.as_deref()?;
    if record.is_elsewhere || record.request.transcript != Some(TranscriptForm::Claude) {
        return Some(session.to_owned());
    }
    let known = record.usage.as_ref().and_then(|usage| usage.transcripts.first());
    let known = known.map(|known| PathBuf::from(&known.path));
    let is_its = |path: &PathBuf| session_of(path) == Some(session) && fs::exists(path);
    let path = known.filter(is_its).or_else(|| {
        let root = record.config_dir.as_deref().map_or(team.root(), Path::new);
        find(TranscriptForm::Claude, &root.join("projects"), session)
    });
    let path = path?;
    let later = later_transcript(team, record, &path);
    later.as_deref().and_then(session_of).or(Some(session)).map(str::to_owned)
}

/// Finds the transcript of a session.
pub(crate) fn find(form: TranscriptForm, root: &Path, session: &str) -> Option<PathBuf> {
    if !is_session(session) {
        return None;
    }
    let mut left = MOST_DIRS;
    match form {
        TranscriptForm::Claude => {
            let file = format!("{session}.{ENDING}");
            search(root, 1, &mut left, &|name| name == file)
        }
        TranscriptForm::Codex => {
            let end = format!("-{session}.{ENDING}");
            search(root, 3, &mut left, &|name| name.ends_with(&end))
        }
    }
}

fn is_session(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Finds a file `depth` directories below `dir`, the latest name first: codex names its directories
/// by date.
fn search(
    dir: &Path,
    depth: usize,
    left: &mut usize,
    is_it: &impl Fn(&str) -> bool,
) -> Option<PathBuf> {
    *left = left.checked_sub(1)?;
    let mut names = fs::list(dir).ok()?;
    if depth == 0 {
        return names.into_iter().find(|name| is_it(name)).map(|name| dir.join(name));
    }
    names.sort_unstable_by(|a, b| b.cmp(a));
    names.into_iter().find_map(|name| search(&dir.join(name), depth - 1, left, is_it))
}

/// Returns the session of a transcript of Claude Code.
pub(crate) fn session_of(transcript: &Path) -> Option<&str> {
    let is_transcript = transcript.extension().is_some_and(|ending| ending == ENDING);
    transcript.file_stem()?.to_str().filter(|stem| is_transcript && is_session(stem))
}

/// Returns the transcript that the member's run has written after `transcript`, which is that of
/// its recorded session: `/clear` and `/resume` move Claude Code to another session of the same
/// directory.
///
/// Claude Code names the team and the member in its lines. A program that does not is followed only
/// to a transcript that is the only later one and that nothing names.
pub(crate) fn later_transcript(
    team: &TeamStore,
    record: &MemberRecord,
    transcript: &Path,
) -> Option<PathBuf> {
    let dir = transcript.parent()?;
    let written = |path: &Path| Some(fs::version(path).ok()??.mtime);
    let since = written(transcript)?;
    let paths = fs::list(dir).ok()?.into_iter().map(|name| dir.join(name));
    let mut later: Vec<(i128, PathBuf)> = paths
        .filter(|path| session_of(path).is_some() && path != transcript)
        .filter_map(|path| Some((written(&path)?, path)))
        .filter(|(at, _)| *at > since)
        .collect();
    if later.is_empty() {
        return None;
    }
    later.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
    let heads = later.into_iter().map(|(_, path)| (TranscriptHead::read(&path), path));
    let (named, unnamed): (Vec<_>, Vec<_>) = heads.partition(|(head, _)| head.writer.is_some());
    let own = (Some(team.name().as_str()), Some(record.name.as_str()));
    let is_own = |head: &TranscriptHead| {
        head.writer.as_ref().is_some_and(|(team, agent)| (team.as_deref(), agent.as_deref()) == own)
    };
    if let Some((_, path)) = named.into_iter().find(|(head, _)| is_own(head)) {
        return Some(path);
    }
    let before = TranscriptHead::read(transcript);
    let mut unnamed = unnamed.into_iter().filter(|(head, _)| head.has_messages);
    match (unnamed.next(), unnamed.next()) {
        (Some((_, path)), None) if before.has_messages && before.writer.is_none() => {
            let session = session_of(&path)?;
            (!is_known(team, session)).then(|| path.clone())
        }
        _ => None,
    }
}

/// Returns true for a session of a member or of the lead.
fn is_known(team: &TeamStore, session: &str) -> bool {
    let is_leads = |team: Team| team.lead_session_id.as_deref() == Some(session);
    let of_member = |record: &MemberRecord| record.sessions().any(|known| known == session);
    team.team().map_or(true, is_leads)
        || team.member_records().map_or(true, |records| records.iter().any(of_member))
}

/// What the first lines of a transcript say.
#[derive(Default)]
struct TranscriptHead {
    /// The names of the team and of the member that writes it, if it names one of them.
    writer: Option<(Option<String>, Option<String>)>,
    /// It contains lines of a conversation.
    has_messages: bool,
}

/// A line of a transcript.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TranscriptLine {
    team_name: Option<String>,
    agent_name: Option<String>,
    /// `user`, `assistant`, or another kind of line.
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl TranscriptHead {
    fn read(path: &Path) -> TranscriptHead {
        let bytes = fs::read_range(path, 0, HEAD).unwrap_or_default();
        let lines = bytes.split(|byte| *byte == b'\n');
        let lines = lines.filter_map(|line| serde_json::from_slice::<TranscriptLine>(line).ok());
        let mut head = TranscriptHead::default();
        for line in lines {
            head.has_messages |= matches!(line.kind.as_deref(), Some("user" | "assistant"));
            if line.team_name.is_some() || line.agent_name.is_some() {
                head.writer = Some((line.team_name, line.agent_name));
                break;
            }
        }
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use fixture::sample;
    use model::id::TeamName;
    use model::team::settings::Settings;
    use model::time::Timestamp;
    use store::Store;
    use sys::clock;
    use tempfile::TempDir;

    const FIRST: &str = "839fce52-dd3f-4a71-bc89-8e91dadcf3d0";

    struct Lab {
        dir: TempDir,
        team: TeamStore,
        record: MemberRecord,
    }

    impl Lab {
        fn new() -> Lab {
            let dir = tempfile::tempdir().expect("a temporary directory");
            let name = TeamName::new("demo").expect("name");
            let file = Team::found(&name, "", "team-lead", "lead-1", "/", Timestamp(1));
            let store = Store::at(&dir.path().join("root"));
            let team = store.create(&name, &file, &Settings::by_hand(8)).expect("a team");
            let mut record = sample::record("ann", sample::run(1), "claude", Timestamp(1));
            record.session = Some(FIRST.to_owned());
            record.request.transcript = Some(TranscriptForm::Claude);
            fs::private_dir(&dir.path().join("root/projects/-w")).expect("writable");
            Lab { dir, team, record }
        }

        fn path(&self, session: &str) -> PathBuf {
            self.dir.path().join(format!("root/projects/-w/{session}.jsonl"))
        }

        /// Appends a line, at a later time than all before.
        fn write(&self, session: &str, names: &str) {
            let line = format!(r#"{{"type":"user","sessionId":"{session}"{names}}}"#);
            let newest = || {
                let all = fs::list(self.path(session).parent().expect("a parent")).expect("files");
                all.iter()
                    .map(|file| self.dir.path().join("root/projects/-w").join(file))
                    .filter_map(|path| Some(fs::version(&path).ok()??.mtime))
                    .max()
            };
            let before = newest();
            loop {
                fs::append_line(&self.path(session), line.as_bytes()).expect("writable");
                if newest() > before {
                    return;
                }
                // The clock of the file system is coarse.
                clock::sleep(Duration::from_millis(1));
            }
        }

        fn last(&self) -> Option<String> {
            last_session(&self.team, &self.record)
        }
    }

    const ANN: &str = r#","teamName":"demo","agentName":"ann""#;

    #[test]
    fn cr_18_session_that_was_never_written_is_not_resumed() {
        let mut lab = Lab::new();
        lab.write("other-member", r#","teamName":"demo","agentName":"ben""#);
        assert_eq!(lab.last(), None);
        lab.record.request.transcript = None;
        assert_eq!(lab.last().as_deref(), Some(FIRST), "its program's transcripts are not known");
    }

    #[test]
    fn cr_17_last_session_is_the_one_that_the_member_wrote_last() {
        let lab = Lab::new();
        lab.write(FIRST, ANN);
        lab.write("other-team", r#","teamName":"x","agentName":"ann""#);
        lab.write("other-member", r#","teamName":"demo","agentName":"ben""#);
        lab.write("nobodys", "");
        assert_eq!(lab.last().as_deref(), Some(FIRST));
        lab.write("cleared", ANN);
        assert_eq!(lab.last().as_deref(), Some("cleared"));
        lab.write(FIRST, ANN);
        assert_eq!(lab.last().as_deref(), Some(FIRST), "`/resume` has led back to it");
    }

    #[test]
    fn cr_17_unnamed_session_is_followed_only_if_it_is_the_only_one() {
        let lab = Lab::new();
        lab.write(FIRST, "");
        lab.write("lead-1", "");
        assert_eq!(lab.last().as_deref(), Some(FIRST), "it is the lead's");
        lab.write(FIRST, "");
        lab.write("cleared", "");
        assert_eq!(lab.last().as_deref(), Some("cleared"));
        lab.write("second", "");
        assert_eq!(lab.last().as_deref(), Some(FIRST), "one of them is somebody else's");
    }

    #[test]
    fn transcripts_are_found_by_their_session() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let write = |path: &str| {
            let path = dir.path().join(path);
            fs::private_dir(path.parent().expect("a parent")).expect("writable");
            fs::write_atomic(&path, b"").expect("writable");
            path
        };
        let claude = write(&format!("claude/-work/{FIRST}.jsonl"));
        let codex = format!("codex/2026/11/24/rollout-2026-11-24T06-35-19-{FIRST}.jsonl");
        let codex = write(&codex);
        fs::private_dir(&dir.path().join("codex/2027/01/01")).expect("writable");
        let root = |name: &str| dir.path().join(name);
        assert_eq!(find(TranscriptForm::Claude, &root("claude"), FIRST), Some(claude));
        assert_eq!(find(TranscriptForm::Codex, &root("codex"), FIRST), Some(codex));
        for session in ["", "other", "../x", "a/b"] {
            assert_eq!(find(TranscriptForm::Claude, &root("claude"), session), None, "{session}");
        }
    }
}
