//! A tmux server on a socket of its own, without the user's configuration, for the self-test.

use std::path::Path;

use super::command::Server;
use super::verb;
use crate::{BackendError, TmuxHome};
use model::members::placement::Layout;

/// A server that no user has, killed on drop.
#[derive(Debug)]
pub struct PrivateServer<'a> {
    server: Server<'a>,
}

impl<'a> PrivateServer<'a> {
    /// Starts the server; `socket` must not exist.
    ///
    /// # Errors
    /// The error of tmux, or that it cannot be run.
    pub fn start(program: &'a Path, socket: &'a Path) -> Result<PrivateServer<'a>, BackendError> {
        // Made first, so that a server that has failed halfway is killed as well.
        let server = PrivateServer { server: Server { program, socket: Some(socket) } };
        server.server.ask_unconfigured(&verb::start_server()).into_lines()?;
        Ok(server)
    }

    /// Returns the location of a team on this server.
    pub fn home(&self, team: &str) -> TmuxHome {
        TmuxHome {
            program: self.server.program.to_owned(),
            socket: self.server.socket.map(Path::to_owned),
            inside: None,
            last: None,
            team: team.to_owned(),
            tag: team.to_owned(),
            layout: Layout::default(),
        }
    }
}

impl Drop for PrivateServer<'_> {
    fn drop(&mut self) {
        // Fails if the server has ended.
        let _ = self.server.ask(&verb::kill_server());
    }
}
