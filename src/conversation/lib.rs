//! Draws a conversation with an agent on a terminal, above a line to type in. Without I/O: reports
//! and keys come in, bytes for the terminal go out.
