//! Rows that tmux prints for us: formats and parsers. Each row begins with a word of its own,
//! because the user's hooks print to the same stream. Fields are ids, numbers and our own options,
//! separated by spaces; a field of free text comes last (PT-04).

use std::path::Path;

use super::arrange::Size;
use super::command::{PaneId, SessionId, WindowId};
use model::members::placement::{ProcessId, TmuxPane};

/// The server that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerRow {
    pub(super) pid: i32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MadeRow {
    /// Pid of the server.
    pub(super) server: i32,
    pub(super) pane: PaneId,
    /// Pid of the pane's program.
    pub(super) pid: i32,
    pub(super) window: WindowId,
    pub(super) session: SessionId,
    /// Columns and rows of the pane's window.
    pub(super) width: usize,
    pub(super) height: usize,
    /// The server's path of its socket.
    pub(super) socket: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionRow {
    pub(super) id: SessionId,
    /// The tag of the team that owns the session; empty if none does.
    pub(super) tag: String,
    pub(super) name: String,
}

/// A window, once for each session that contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WindowRow {
    pub(super) id: WindowId,
    pub(super) session: SessionId,
    /// Columns and rows.
    pub(super) width: usize,
    pub(super) height: usize,
    /// Number of panes in the window.
    pub(super) panes: usize,
    /// The active pane fills the window.
    pub(super) zoomed: bool,
    /// The tag of the team whose hidden pane the window holds; empty if it holds none.
    pub(super) hidden: String,
    /// The tag of the team that owns the window; empty if none does.
    pub(super) tag: String,
    pub(super) name: String,
}

/// A pane, once for each session that contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PaneRow {
    pub(super) id: PaneId,
    /// Pid of the program that tmux started in the pane. After that has exited, tmux 3.8 reports
    /// none, and older versions still report the pid.
    pub(super) pid: Option<i32>,
    /// The program has exited and the pane was kept (`remain-on-exit`).
    pub(super) dead: bool,
    pub(super) session: SessionId,
    pub(super) window: WindowId,
    /// The size of its window.
    pub(super) window_size: Size,
    pub(super) size: Size,
    /// Its window is zoomed: it shows its active pane alone.
    pub(super) zoomed: bool,
    pub(super) active: bool,
    /// The tag of the team that placed the pane beside its lead; empty if none did.
    pub(super) beside: String,
    /// Empty if no team owns the pane.
    pub(super) token: String,
}

impl PaneRow {
    /// Returns the pane with these processes, without names: it keeps its identity wherever it is
    /// moved.
    pub(super) fn pane(&self, socket: &Path, server: ProcessId, pane: ProcessId) -> TmuxPane {
        TmuxPane {
            socket: socket.to_string_lossy().into_owned(),
            server,
            session_id: self.session.to_string(),
            session_name: String::new(),
            window_id: self.window.to_string(),
            window_name: String::new(),
            pane_id: self.id.to_string(),
            pane,
        }
    }
}

/// The state of a pane's input at the moment of the write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InputRow {
    /// The program has exited and the pane was kept.
    pub(super) dead: bool,
    /// A person has disabled its input (`select-pane -d`).
    pub(super) off: bool,
    /// Keys also go to the other panes of its window (`synchronize-panes`).
    pub(super) synchronized: bool,
}

/// The form of a pane's screen, whose lines follow the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScreenRow {
    pub(super) cols: u16,
    pub(super) rows: u16,
    /// Column and row of the cursor, from 0.
    pub(super) cursor_x: u16,
    pub(super) cursor_y: u16,
    /// The cursor is visible.
    pub(super) cursor: bool,
    /// The pane shows its alternate screen.
    pub(super) is_alternate: bool,
    /// Path of the pane's terminal.
    pub(super) tty: String,
}

/// A terminal attached to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientRow {
    pub(super) session: SessionId,
    /// A client in control mode, which arranges panes itself (`tmux -CC`).
    pub(super) control: bool,
    /// The time of its last activity, in seconds since 1970.
    pub(super) activity: u64,
    pub(super) name: String,
}

pub(super) trait TmuxRow: Sized {
    /// The tmux format; its first word identifies the kind.
    const FORMAT: &'static str;

    /// Parses the fields after the first word, one with each call of `next`. The last one is the
    /// rest of the row.
    fn read<'l>(next: &mut dyn FnMut() -> Option<&'l str>) -> Option<Self>;
}

/// Returns all rows of one kind, in order; skips other lines.
pub(super) fn rows<R: TmuxRow>(lines: &[String]) -> Vec<R> {
    let (kind, fields) = R::FORMAT.split_once(' ').unwrap_or_default();
    let count = fields.split(' ').count();
    let read = |line: &String| {
        let mut fields = line.strip_prefix(kind)?.strip_prefix(' ')?.splitn(count, ' ');
        R::read(&mut || fields.next())
    };
    lines.iter().filter_map(read).collect()
}

impl TmuxRow for ServerRow {
    const FORMAT: &'static str = "phx-server #{pid}";

    fn read<'l>(next: &mut dyn FnMut() -> Option<&'l str>) -> Option<Self> {
        Some(ServerRow { pid: next()?.parse().ok()? })
    }
}

impl TmuxRow for MadeRow {
    const FORMAT: &'static str = "phx-made #{pid} #{pane_id} #{pane_pid} #{window_id} \
                                  #{session_id} #{window_width} #{window_height} #{socket_path}";

    fn read<'l>(next: &mut dyn FnMut() -> Option<&'l str>) -> Option<Self> {
        Some(MadeRow {
            server: next()?.parse().ok()?,
            pane: PaneId::parse(next()?)?,
            pid: next()?.parse().ok()?,
            window: WindowId::parse(next()?)?,
            session: SessionId::parse(next()?)?,
            width: next()?.parse().ok()?,
            height: next()?.parse().ok()?,
            socket: next()?.to_owned(),
        })
    }
}

impl TmuxRow for SessionRow {
    const FORMAT: &'static str = "phx-session #{session_id} #{@phalanx_session} #{session_name}";

    fn read<'l>(next: &mut dyn FnMut() -> Option<&'l str>) -> Option<Self> {
        Some(SessionRow {
            id: SessionId::parse(next()?)?,
            tag: next()?.to_owned(),
            name: next()?.to_owned(),
        })
    }
}

impl TmuxRow for WindowRow {
    const FORMAT: &'static str = "phx-window #{window_id} #{session_id} #{window_width} \
                                  #{window_height} #{window_panes} #{window_zoomed_flag} \
                                  #{@phalanx_hidden} #{@phalanx_team} #{window_name}";

    fn read<'l>(next: &mut dyn FnMut() -> Option<&'l str>) -> Option<Self> {
        Some(WindowRow {
            id: WindowId::parse(next()?)?,
            session: SessionId::parse(next()?)?,
            width: next()?.parse().ok()?,
            height: next()?.parse().ok()?,
            panes: next()?.parse().ok()?,
            zoomed: next()? == "1",
            hidden: next()?.to_owned(),
            tag: next()?.to_owned(),
            name: next()?.to_owned(),
        })
    }
}

impl TmuxRow for PaneRow {
    const FORMAT: &'static str = "phx-pane #{pane_id} #{pane_pid} #{pane_dead} #{session_id} \
                                  #{window_id} #{window_width} #{window_height} #{pane_width} \
                                  #{pane_height} #{window_zoomed_flag} #{pane_active} \
                                  #{@phalanx_beside} #{@phalanx_token}";

    fn read<'l>(next: &mut dyn FnMut() -> Option<&'l str>) -> Option<Self> {
        Some(PaneRow {
            id: PaneId::parse(next()?)?,
            pid: match next()? {
                "" => None,
                pid => Some(pid.parse().ok()?),
            },
            dead: next()? == "1",
            session: SessionId::parse(next()?)?,
            window: WindowId::parse(next()?)?,
            window_size: Size { width: next()?.parse().ok()?, height: next()?.parse().ok()? },
            size: Size { width: next()?.parse().ok()?, height: next()?.parse().ok()? },
            zoomed: next()? == "1",
            active: next()? == "1",
            beside: next()?.to_owned(),
            token: next()?.to_owned(),
        })
    }
}

impl TmuxRow for InputRow {
    const FORMAT: &'static str = "phx-input #{pane_dead} #{pane_input_off} #{pane_synchronized}";

    fn read<'l>(next: &mut dyn FnMut() -> Option<&'l str>) -> Option<Self> {
        Some(InputRow { dead: next()? == "1", off: next()? == "1", synchronized: next()? == "1" })
    }
}

impl TmuxRow for ScreenRow {
    const FORMAT: &'static str = "phx-screen #{pane_width} #{pane_height} #{cursor_x} #{cursor_y} \
                                  #{cursor_flag} #{alternate_on} #{pane_tty}";

    fn read<'l>(next: &mut dyn FnMut() -> Option<&'l str>) -> Option<Self> {
        Some(ScreenRow {
            cols: next()?.parse().ok()?,
            rows: next()?.parse().ok()?,
            cursor_x: next()?.parse().ok()?,
            cursor_y: next()?.parse().ok()?,
            cursor: next()? == "1",
            is_alternate: next()? == "1",
            tty: next()?.to_owned(),
        })
    }
}

impl TmuxRow for ClientRow {
    const FORMAT: &'static str =
        "phx-client #{session_id} #{client_control_mode} #{client_activity} #{client_name}";

    fn read<'l>(next: &mut dyn FnMut() -> Option<&'l str>) -> Option<Self> {
        Some(ClientRow {
            session: SessionId::parse(next()?)?,
            control: next()? == "1",
            activity: next()?.parse().ok()?,
            name: next()?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn pt_06_output_of_hooks_is_skipped() {
        let answer =
            lines("hello from a hook\nphx-server 17\nphx-servers 18\nphx-server\nphx-server x\n");
        assert_eq!(rows::<ServerRow>(&answer), [ServerRow { pid: 17 }]);
    }

    #[test]
    fn pt_04_free_text_comes_last_and_empty_fields_are_kept() {
        let answer = lines("phx-session $1  my own session\nphx-session $2 tag-1 phalanx-demo");
        let read: Vec<_> =
            rows::<SessionRow>(&answer).into_iter().map(|row| (row.tag, row.name)).collect();
        let expected = [("", "my own session"), ("tag-1", "phalanx-demo")];
        assert_eq!(read, expected.map(|(tag, name)| (tag.to_owned(), name.to_owned())));
        let made = rows::<MadeRow>(&lines("phx-made 9 %1 10 @2 $3 200 50 /tmp/my dir/s"));
        assert_eq!(made.first().map(|row| row.socket.as_str()), Some("/tmp/my dir/s"));
        let panes = rows::<PaneRow>(&lines("phx-pane %1 10 0 $3 @0 80 24 40 24 0 1  "));
        assert_eq!(panes.first().map(|row| row.token.as_str()), Some(""));
    }
}
