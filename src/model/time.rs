//! Timestamps and durations in wire and display formats. Never reads a clock: callers pass the
//! current time.

use jiff::Timestamp as Instant;
use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Formats like JavaScript's `toISOString`: `2026-11-20T22:43:51.440Z`, always with three
    /// decimals.
    pub fn iso(self) -> String {
        let ms = i64::try_from(self.0).unwrap_or(i64::MAX);
        Instant::from_millisecond(ms)
            .map(|t| t.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
            .unwrap_or_else(|_| format!("{}ms", self.0))
    }

    /// Parses RFC 3339, which includes the output of [`Timestamp::iso`]; `None` for other text and
    /// times before 1970.
    pub fn parse(text: &str) -> Option<Timestamp> {
        let at = text.parse::<Instant>().ok()?;
        u64::try_from(at.as_millisecond()).ok().map(Timestamp)
    }

    /// Returns the milliseconds since `earlier`, or 0 if the clock went backwards.
    pub fn since(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    pub fn plus_ms(self, ms: u64) -> Timestamp {
        Timestamp(self.0.saturating_add(ms))
    }

    pub fn minus_ms(self, ms: u64) -> Timestamp {
        Timestamp(self.0.saturating_sub(ms))
    }
}

/// Formats a duration for people: `0.4s`, `12s`, `3m04s`, `2h05m`.
pub fn human(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..=9 => format!("{}.{}s", seconds, ms % 1000 / 100),
        10..=59 => format!("{seconds}s"),
        60..=3599 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Formats an age for people: `now`, `12s ago`, `2m ago`, `3h ago`, `5d ago`.
pub fn ago(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => "now".to_owned(),
        1..60 => format!("{seconds}s ago"),
        60..3600 => format!("{}m ago", seconds / 60),
        3600..86_400 => format!("{}h ago", seconds / 3600),
        _ => format!("{}d ago", seconds / 86_400),
    }
}

/// Parses a time given by a user: RFC 3339, or an age relative to `now` with one unit (`90s`,
/// `10m`, `2h`, `1d`).
pub fn parse_since(text: &str, now: Timestamp) -> Option<Timestamp> {
    const UNITS: [(char, u64); 4] =
        [('s', 1000), ('m', 60_000), ('h', 3_600_000), ('d', 86_400_000)];
    let span = UNITS.iter().find_map(|(unit, ms)| {
        let number: u64 = text.strip_suffix(*unit)?.parse().ok()?;
        number.checked_mul(*ms)
    });
    span.map(|ms| now.minus_ms(ms)).or_else(|| Timestamp::parse(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_since_accepts_ages_and_rfc_3339() {
        let now = Timestamp(1_795_214_631_440);
        assert_eq!(parse_since("90s", now), Some(now.minus_ms(90_000)));
        assert_eq!(parse_since("2h", now), Some(now.minus_ms(7_200_000)));
        assert_eq!(parse_since("2026-11-20T22:43:51.440Z", Timestamp(0)), Some(now));
        for text in ["", "5", "m", "5 m", "-5m", "99999999999999999999d", "yesterday"] {
            assert_eq!(parse_since(text, now), None, "{text}");
        }
    }

    #[test]
    fn iso_format_keeps_three_decimals() {
        assert_eq!(Timestamp(1_795_214_631_440).iso(), "2026-11-20T22:43:51.440Z");
        assert_eq!(Timestamp(0).iso(), "1970-01-01T00:00:00.000Z");
        assert_eq!(
            Timestamp::parse("2026-11-20T22:43:51.440Z"),
            Some(Timestamp(1_795_214_631_440))
        );
        assert!(
            ["", "yesterday", "1960-01-01T00:00:00Z"].iter().all(|t| Timestamp::parse(t).is_none())
        );
        assert!(Timestamp(u64::MAX).iso().ends_with("ms"));
    }

    #[test]
    fn durations_are_formatted_for_people() {
        assert_eq!(human(430), "0.4s");
        assert_eq!(human(12_900), "12s");
        assert_eq!(human(184_000), "3m04s");
        assert_eq!(human(7_500_000), "2h05m");
    }

    #[test]
    fn ages_are_formatted_for_people() {
        let table = [
            (999, "now"),
            (12_900, "12s ago"),
            (184_000, "3m ago"),
            (7_500_000, "2h ago"),
            (86_400_000, "1d ago"),
        ];
        for (ms, expected) in table {
            assert_eq!(ago(ms), expected);
        }
    }

    #[test]
    fn parse_since_rejects_overflow_and_malformed_ages() {
        let now = Timestamp(1_795_214_631_440);
        assert_eq!(parse_since("90s", now), Some(now.minus_ms(90_000)));
        assert_eq!(parse_since("2h", now), Some(now.minus_ms(7_200_000)));
        assert_eq!(parse_since("2026-11-20T22:43:51.440Z", Timestamp(0)), Some(now));
        assert_eq!(parse_since("999999999999999999d", now), None);
        assert!(
            ["", "h", "-1h", "2 h", "yesterday"]
                .iter()
                .all(|text| parse_since(text, now).is_none())
        );
    }
}
