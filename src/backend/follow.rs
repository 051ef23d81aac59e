//! The screen of a placement as a picture, and following it by polling where the backend does not
//! report changes.

use std::time::Duration;

use unicode_width::UnicodeWidthStr;

use super::BackendError;
use model::members::placement::Verdict;
use sys::output_watch::OutputWatch;

/// Number of lines that are polled.
pub const LINES: usize = 50;
/// Interval of polling.
const POLL: Duration = Duration::from_secs(2);
/// Number of consecutive failures after which the screen is no longer followed.
const MOST_FAILURES: u32 = 5;
/// The smallest width: a character may take two columns.
const LEAST_COLS: u16 = 2;

/// A screen at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenImage {
    pub rows: u16,
    pub cols: u16,
    /// Draws the screen on an empty terminal of this size. Text of other programs: for a terminal
    /// emulator, not for a person's terminal.
    pub bytes: Vec<u8>,
}

impl ScreenImage {
    /// Draws plain text on a terminal on which it fits.
    pub fn of_text(text: &str) -> ScreenImage {
        let lines: Vec<&str> = text.lines().collect();
        let cols = lines.iter().map(|line| line.width()).max().unwrap_or_default();
        ScreenImage {
            rows: u16::try_from(lines.len()).unwrap_or(u16::MAX).max(1),
            cols: u16::try_from(cols).unwrap_or(u16::MAX).max(LEAST_COLS),
            bytes: lines.join("\r\n").into_bytes(),
        }
    }
}

/// Passes the images of a screen on, each once.
pub(super) struct ImageFilter<'a> {
    shown: Option<ScreenImage>,
    on_screen: &'a mut dyn FnMut(ScreenImage),
}

impl<'a> ImageFilter<'a> {
    pub(super) fn new(on_screen: &'a mut dyn FnMut(ScreenImage)) -> ImageFilter<'a> {
        ImageFilter { shown: None, on_screen }
    }

    /// Passes the image on and returns true if it differs from the one before.
    pub(super) fn show(&mut self, image: ScreenImage) -> bool {
        let is_new = self.shown.as_ref() != Some(&image);
        if is_new {
            (self.on_screen)(image.clone());
            self.shown = Some(image);
        }
        is_new
    }
}

/// Counts consecutive failures to read a screen.
#[derive(Debug, Default)]
pub(super) struct FailureCount(u32);

impl FailureCount {
    pub(super) fn reset(&mut self) {
        self.0 = 0;
    }

    /// Counts a failure. Returns the error if further attempts are of no use.
    pub(super) fn add(&mut self, error: BackendError) -> Result<(), BackendError> {
        self.0 += 1;
        let is_final = matches!(
            error,
            BackendError::NotOurs { verdict: Verdict::Gone | Verdict::Foreign { .. }, .. }
        );
        if is_final || self.0 >= MOST_FAILURES { Err(error) } else { Ok(()) }
    }
}

/// Reads a screen as plain text every two seconds, and passes it on if it has changed. Returns once
/// `watch` is stopped.
///
/// # Errors
/// The error of `read` if the placement is not ours, or after several failures in a row.
pub fn poll(
    watch: &OutputWatch,
    mut read: impl FnMut() -> Result<String, BackendError>,
    on_screen: &mut dyn FnMut(ScreenImage),
) -> Result<(), BackendError> {
    let (mut filter, mut failures) = (ImageFilter::new(on_screen), FailureCount::default());
    loop {
        match read() {
            Ok(text) => {
                failures.reset();
                filter.show(ScreenImage::of_text(&text));
            }
            Err(error) => failures.add(error)?,
        }
        if !watch.pause(POLL) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(verdict: Verdict) -> BackendError {
        BackendError::NotOurs { place: "pane %1".to_owned(), verdict }
    }

    #[test]
    fn text_is_drawn_on_a_terminal_on_which_it_fits() {
        let image = ScreenImage::of_text("one\n日本\n\nfour");
        assert_eq!((image.rows, image.cols), (4, 4));
        let mut terminal = vt100::Parser::new(image.rows, image.cols, 0);
        terminal.process(&image.bytes);
        assert_eq!(terminal.screen().contents(), "one\n日本\n\nfour");
        let empty = ScreenImage::of_text("");
        assert_eq!((empty.rows, empty.cols, empty.bytes), (1, 2, Vec::new()));
    }

    #[test]
    fn unchanged_image_is_not_passed_on_again() {
        let mut seen = Vec::new();
        let mut on_screen = |image: ScreenImage| seen.push(image.bytes);
        let mut filter = ImageFilter::new(&mut on_screen);
        let shown = ["a", "a", "b", "a"].map(|text| filter.show(ScreenImage::of_text(text)));
        assert_eq!(shown, [true, false, true, true]);
        assert_eq!(seen, [b"a", b"b", b"a"]);
    }

    #[test]
    fn lost_placement_ends_at_once_and_other_failures_after_several() {
        let unknown = || lost(Verdict::Unknown { reason: "no answer".to_owned() });
        let mut failures = FailureCount::default();
        for _ in 1..MOST_FAILURES {
            assert!(failures.add(unknown()).is_ok());
        }
        assert!(failures.add(unknown()).is_err());
        failures.reset();
        assert!(failures.add(unknown()).is_ok(), "failures in a row count");
        assert!(failures.add(lost(Verdict::Gone)).is_err());
    }

    #[test]
    fn stopped_watch_ends_the_polling() {
        let (watch, stopper) = OutputWatch::new().expect("descriptors are left");
        drop(stopper);
        let mut seen = 0;
        let read = || Ok("text".to_owned());
        assert!(poll(&watch, read, &mut |_| seen += 1).is_ok());
        assert_eq!(seen, 1);
        let gone = || Err(lost(Verdict::Gone));
        assert!(poll(&watch, gone, &mut |_| ()).is_err());
    }
}
