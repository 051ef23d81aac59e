//! Program profiles: how phalanx starts a program, types into it and reads its screen. A profile is
//! data read from TOML; it is independent of the backend that runs the program.

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
mod value;
mod words;

pub(crate) use crate::model::launch::{SHELL, WORKER};
pub(crate) use builtin::{builtin, builtin_names, builtin_text};
pub(crate) use definition::{
    Brief, DialogKeys, LoginSigns, MailDelivery, Paste, Profile, Prompt, Ready, Runs,
    ShutdownPolicy,
};
pub(crate) use judge::{Composer, DialogQuestion, ScreenFinding, judge, last_words};
pub(crate) use learn::{
    LabelledScreen, LearnGap, LearnedProfile, Lesson, ScreenLabel, learn, steady_text,
};
pub(crate) use near_miss::{NearMiss, nearest};
pub(crate) use rule::ScreenState;
pub(crate) use screen::Screen;
pub(crate) use snapshot::Screenshot;
pub(crate) use words::{Group, Placeholder, Values, fill};
