//! Tests against the emulator in `fixtures/osascript`, because neither iTerm2 nor macOS is
//! available.

mod dictionary;
mod harness;
mod life;
mod trouble;
mod windows;
