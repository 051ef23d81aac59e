//! Tests against the emulator in `fixtures/osascript`, because neither iTerm2 nor macOS is
//! available.

mod harness;
mod life;
mod trouble;
