//! Which backend a team gets: a pure function of what was asked and of what works here (SP-07). Probing is not its
//! business.

use crate::model::placement::BackendKind;
use crate::model::settings::BackendChoice;

/// What is known about this place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The asking process stands inside tmux.
    pub(crate) inside_tmux: bool,
    /// tmux answers; or why it does not.
    pub(crate) tmux: Result<(), String>,
}

/// What was chosen, and why, in words for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) backend: BackendKind,
    pub(crate) why: String,
}

/// An explicit choice never falls back; `auto` takes tmux if it works, else its own PTY.
///
/// # Errors
/// Why the backend that was asked for does not work here.
pub(crate) fn choose(asked: &BackendChoice, facts: &Facts) -> Result<Chosen, String> {
    let chosen = |backend, why: String| Ok(Chosen { backend, why });
    match (asked, &facts.tmux) {
        (BackendChoice::Iterm2, _) => Err("this phalanx cannot use it yet".to_owned()),
        // Its program is looked for where its path is needed: when the backend is opened.
        (BackendChoice::Exec(_), _) => chosen(BackendKind::Exec, "as asked".to_owned()),
        (BackendChoice::Tmux, Err(problem)) => Err(problem.clone()),
        (BackendChoice::Tmux, Ok(())) => chosen(BackendKind::Tmux, "as asked".to_owned()),
        (BackendChoice::Pty, _) => chosen(BackendKind::Pty, "as asked".to_owned()),
        (BackendChoice::Auto, Ok(())) if facts.inside_tmux => {
            chosen(BackendKind::Tmux, "this is a tmux session".to_owned())
        }
        (BackendChoice::Auto, Ok(())) => chosen(BackendKind::Tmux, "tmux works here".to_owned()),
        (BackendChoice::Auto, Err(problem)) => chosen(BackendKind::Pty, format!("no tmux: {problem}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SP-07: setting × inside tmux × tool missing.
    #[test]
    fn sp_07_the_table_of_choices() {
        use BackendChoice::{Auto, Pty, Tmux};
        let table = [
            (Auto, true, true, Some(BackendKind::Tmux)),
            (Auto, false, true, Some(BackendKind::Tmux)),
            (Auto, true, false, Some(BackendKind::Pty)),
            (Auto, false, false, Some(BackendKind::Pty)),
            (Tmux, true, true, Some(BackendKind::Tmux)),
            (Tmux, false, true, Some(BackendKind::Tmux)),
            (Tmux, true, false, None),
            (Tmux, false, false, None),
            (Pty, true, true, Some(BackendKind::Pty)),
            (Pty, false, false, Some(BackendKind::Pty)),
        ];
        for (asked, inside_tmux, works, expected) in table {
            let tmux = if works { Ok(()) } else { Err("tmux is not in PATH".to_owned()) };
            let got = choose(&asked, &Facts { inside_tmux, tmux });
            assert_eq!(got.as_ref().ok().map(|c| c.backend), expected, "{asked:?} {inside_tmux} {works}");
            match got {
                Ok(chosen) => assert!(!chosen.why.is_empty()),
                Err(problem) => assert!(problem.contains("PATH")),
            }
        }
    }
}
