//! Tests against the emulator in `fixtures/osascript`: no iTerm2 and no macOS is at hand (docs/backends.md).

mod harness;
mod life;
mod trouble;
