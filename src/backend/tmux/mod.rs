//! Panes of a tmux server.
