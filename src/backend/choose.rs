//! Chooses a team's backend from the setting and from what works here (SP-07), and the next one
//! when a spawn fails. Pure functions; the caller does the probing.

use model::members::placement::BackendKind;
use model::team::settings::BackendChoice;

/// The properties of the caller's environment on which the choice depends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The caller runs in a pane of tmux.
    pub inside_tmux: bool,
    /// tmux works; otherwise the reason why it does not.
    pub tmux: Result<(), String>,
    /// The caller's terminal is a live iTerm2 session; otherwise the reason why it is not.
    pub iterm2: Result<(), String>,
}

/// The chosen backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub backend: BackendKind,
    /// The reason for the choice, as a phrase for the user.
    pub why: String,
    /// The user did not request this backend, so a fallback may replace it.
    pub auto: bool,
}

/// A step of the fallback cascade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    Place(BackendKind),
    /// No placement: the program answers its prompt once, without a terminal, and exits.
    Once,
}

impl Tier {
    /// The name of the tier in messages and in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Tier::Place(backend) => backend.as_str(),
            Tier::Once => "one-shot",
        }
    }

    /// Returns the tier to try after this one failed: tmux, then iTerm2 if this terminal is one of
    /// its sessions, then our own PTYs, then one run without a terminal. No tier is tried twice.
    pub fn next(self, in_iterm2: impl FnOnce() -> bool) -> Option<Tier> {
        match self {
            Tier::Place(BackendKind::Tmux) if in_iterm2() => Some(Tier::Place(BackendKind::Iterm2)),
            Tier::Place(BackendKind::Tmux | BackendKind::Iterm2) => {
                Some(Tier::Place(BackendKind::Pty))
            }
            Tier::Place(BackendKind::Pty) => Some(Tier::Once),
            Tier::Once => None,
        }
    }
}

/// Chooses a backend. An explicit choice never falls back. `auto` takes the tmux that the caller
/// runs in, else the iTerm2 session that it runs in, else tmux in the background, else our own
/// PTYs.
///
/// # Errors
/// Returns the reason why the requested backend does not work here; `auto` always succeeds.
pub fn choose(requested: BackendChoice, facts: &Facts) -> Result<Chosen, String> {
    let auto = requested == BackendChoice::Auto;
    let chosen = |backend, why: &str| Ok(Chosen { backend, why: why.to_owned(), auto });
    match requested {
        BackendChoice::Tmux => {
            facts.tmux.clone().and_then(|()| chosen(BackendKind::Tmux, "as requested"))
        }
        BackendChoice::Iterm2 => {
            facts.iterm2.clone().and_then(|()| chosen(BackendKind::Iterm2, "as requested"))
        }
        BackendChoice::Pty => chosen(BackendKind::Pty, "as requested"),
        BackendChoice::Auto => match (&facts.tmux, &facts.iterm2) {
            (Ok(()), _) if facts.inside_tmux => {
                chosen(BackendKind::Tmux, "this terminal is in tmux")
            }
            (_, Ok(())) => chosen(BackendKind::Iterm2, "this terminal is an iTerm2 session"),
            (Ok(()), Err(_)) => chosen(BackendKind::Tmux, "tmux is installed"),
            (Err(problem), Err(_)) => chosen(BackendKind::Pty, &format!("no tmux: {problem}")),
        },
    }
}

/// Environment variables that hint at iTerm2. Any descendant process inherits them (PT-03), so they
/// decide only whether to query iTerm2, which costs a process and may make macOS show a permission
/// dialog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Signs<'a> {
    /// `$SSH_CONNECTION` or `$SSH_TTY` is set.
    pub ssh: bool,
    /// `$TMUX` is set.
    pub tmux: bool,
    pub term_program: Option<&'a str>,
    pub iterm_session_id: Option<&'a str>,
    pub lc_terminal: Option<&'a str>,
}

/// Decides whether to query iTerm2 for this terminal.
///
/// # Errors
/// Returns the reason why this terminal cannot be an iTerm2 session.
pub fn may_be_iterm2(signs: &Signs<'_>) -> Result<(), String> {
    match signs {
        // ssh forwards `LC_TERMINAL`; the iTerm2 that set it runs on another machine.
        Signs { ssh: true, .. } => Err("this is an SSH session".to_owned()),
        Signs { tmux: true, .. } => Err("this terminal is in tmux".to_owned()),
        Signs { term_program: Some("iTerm.app"), .. } => Ok(()),
        // A terminal started from iTerm2 inherits the other variables, but sets this one itself.
        Signs { term_program: Some(other), .. } => Err(format!("this terminal is {other:?}")),
        Signs { iterm_session_id: Some(_), .. } | Signs { lc_terminal: Some("iTerm2"), .. } => {
            Ok(())
        }
        Signs { .. } => Err("this terminal is not iTerm2".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SP-07: every combination of setting, caller inside tmux, tmux works, and iTerm2.
    #[test]
    fn sp_07_backend_follows_setting_and_environment() {
        use BackendChoice::{Auto, Iterm2, Pty, Tmux};
        let (t, i, p) =
            (Some(BackendKind::Tmux), Some(BackendKind::Iterm2), Some(BackendKind::Pty));
        let table = [
            (Auto, true, true, false, t),
            (Auto, true, true, true, t),
            (Auto, true, false, true, i),
            (Auto, false, true, true, i),
            (Auto, false, false, true, i),
            (Auto, false, true, false, t),
            (Auto, true, false, false, p),
            (Auto, false, false, false, p),
            (Tmux, true, true, false, t),
            (Tmux, false, true, true, t),
            (Tmux, true, false, true, None),
            (Iterm2, false, true, true, i),
            (Iterm2, true, true, true, i),
            (Iterm2, true, true, false, None),
            (Iterm2, false, false, false, None),
            (Pty, true, true, true, p),
            (Pty, false, false, false, p),
        ];
        for (requested, inside_tmux, tmux, iterm2, expected) in table {
            let fact = |works, problem: &str| if works { Ok(()) } else { Err(problem.to_owned()) };
            let facts = Facts {
                inside_tmux,
                tmux: fact(tmux, "tmux is not in PATH"),
                iterm2: fact(iterm2, "no iTerm2"),
            };
            let got = choose(requested, &facts);
            assert_eq!(got.as_ref().ok().map(|c| c.backend), expected, "{requested:?} {facts:?}");
            match (got, requested) {
                (Ok(chosen), requested) => {
                    assert!(!chosen.why.is_empty());
                    assert_eq!(
                        chosen.auto,
                        requested == Auto,
                        "an explicit choice is never replaced"
                    );
                }
                (Err(problem), Iterm2) => assert_eq!(problem, "no iTerm2"),
                (Err(problem), _) => assert!(problem.contains("PATH")),
            }
        }
    }

    /// SP-08: the cascade only descends, and each tier occurs once.
    #[test]
    fn sp_08_fallback_tiers_are_tried_in_order_and_once() {
        let walk = |from, iterm2: bool| {
            let next = |tier: &Tier| tier.next(|| iterm2);
            std::iter::successors(Some(Tier::Place(from)), next)
                .map(Tier::as_str)
                .collect::<Vec<_>>()
        };
        assert_eq!(walk(BackendKind::Tmux, false), ["tmux", "pty", "one-shot"]);
        assert_eq!(walk(BackendKind::Tmux, true), ["tmux", "iterm2", "pty", "one-shot"]);
        assert_eq!(walk(BackendKind::Iterm2, true), ["iterm2", "pty", "one-shot"]);
        assert_eq!(walk(BackendKind::Pty, true), ["pty", "one-shot"]);
    }

    /// PT-03: variables that are inherited, forwarded by ssh, nested or left over.
    #[test]
    fn pt_03_only_plausible_environments_are_probed() {
        let none = Signs::default();
        let iterm = Signs {
            term_program: Some("iTerm.app"),
            iterm_session_id: Some("w0t0p0:A"),
            lc_terminal: Some("iTerm2"),
            ..none
        };
        let table = [
            ("a session of iTerm2", iterm, true),
            ("its variables stripped by sudo", Signs { lc_terminal: Some("iTerm2"), ..none }, true),
            (
                "only the id is left, maybe stale",
                Signs { iterm_session_id: Some("w9t9p9:Z"), ..none },
                true,
            ),
            ("ssh from iTerm2", Signs { ssh: true, lc_terminal: Some("iTerm2"), ..none }, false),
            ("ssh that carried all of it", Signs { ssh: true, ..iterm }, false),
            ("tmux in iTerm2", Signs { tmux: true, ..iterm }, false),
            (
                "tmux that names itself",
                Signs { tmux: true, term_program: Some("tmux"), ..iterm },
                false,
            ),
            ("VS Code started from iTerm2", Signs { term_program: Some("vscode"), ..iterm }, false),
            ("Terminal.app", Signs { term_program: Some("Apple_Terminal"), ..none }, false),
            ("another that calls itself so", Signs { lc_terminal: Some("WezTerm"), ..none }, false),
            ("nothing", none, false),
        ];
        for (place, signs, expected) in table {
            let got = may_be_iterm2(&signs);
            assert_eq!(got.is_ok(), expected, "{place}: {got:?}");
        }
    }
}
