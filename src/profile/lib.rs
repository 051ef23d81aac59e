//! Program profiles: how phalanx starts a program, types into it and reads its screen. A profile is
//! data read from TOML; it is independent of the backend that runs the program.

mod acp;
mod builtin;
mod definition;
mod judge;
mod learn;
mod near_miss;
mod rule;
mod screen;
mod snapshot;
#[cfg(test)]
mod tests;
mod typing;
mod value;
mod words;

pub use acp::{AcpTraits, UsageCount};
pub use builtin::{builtin, builtin_names, builtin_text};
pub use definition::{
    Brief, LoginSigns, MailDelivery, Profile, Prompt, Ready, Runs, ShutdownPolicy,
};
pub use judge::{Composer, DialogQuestion, ScreenFinding, judge, last_words};
pub use learn::{
    LabelledScreen, LearnGap, LearnedProfile, Lesson, ScreenLabel, learn, steady_text,
};
pub use model::members::launch::{SHELL, WORKER};
pub use near_miss::{NearMiss, nearest};
pub use rule::ScreenState;
pub use screen::Screen;
pub use snapshot::Screenshot;
pub use typing::{DialogKeys, Paste};
pub use words::{Group, Placeholder, Values, fill};
