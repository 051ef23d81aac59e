//! The usage limit of a member's account at its provider: until when it applies, and when the
//! member is to be asked to continue.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Zoned};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::time::Timestamp;
use crate::value::{As, AtLeast};

/// Times after which a limit whose end is not known is tried again, in ms: after the first refusal,
/// and after each one that follows. The last one repeats.
const PAUSES_MS: [u64; 4] = [60_000, 5 * 60_000, 15 * 60_000, 30 * 60_000];
/// Time for a member to react after it was asked to continue, in ms.
const REACTION_MS: u64 = 15 * 60_000;
/// Time in ms after the end of a limit that a program has to continue by itself. Claude Code
/// 2.1.330 does so.
const GRACE_MS: u64 = 60_000;
/// Describes a limit whose end is not known.
const UNKNOWN: &str = "for an unknown time";
/// Time of day in the past up to which it means today. Programs print times without seconds, and a
/// screen is read again after the limit has ended.
const JUST_PAST: SignedDuration = SignedDuration::from_hours(1);
/// Words before the time in the texts of programs.
const MARKS: [&str; 4] = ["try again", "resets", "reset", "available again"];
/// Maximum number of a unit in a duration.
const MOST_UNITS: i64 = 10_000;

/// A refusal for lack of quota, as a program shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitHit {
    /// The text of the program, on one line.
    pub said: String,
    /// The end of the limit, if the program names it.
    pub until: Option<Timestamp>,
}

impl LimitHit {
    /// Reads the end of the limit from the text of a program, if it names one.
    pub fn of_text(said: &str, now: Timestamp, zone: &TimeZone) -> LimitHit {
        LimitHit { said: said.to_owned(), until: until_in(said, now, zone) }
    }
}

/// The policy for members at a usage limit (`[team] resume_limited`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "resume_limited", deny_unknown_fields)]
pub struct ResumePolicy {
    /// Number of times that a member is asked to continue; 0 for never.
    #[serde(with = "As::<AtLeast<0, u32>>")]
    pub attempts: u32,
}

impl Default for ResumePolicy {
    fn default() -> ResumePolicy {
        ResumePolicy { attempts: 3 }
    }
}

/// The usage limit that a member has reached, in its record.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    pub said: String,
    pub since: Timestamp,
    pub until: Option<Timestamp>,
    /// Number of refusals since the last answer. Missing in older records.
    #[serde(default)]
    pub refusals: usize,
    /// Number of times that the lead has asked the member to continue since its last answer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u32,
    /// The time of the last of them.
    pub resumed_at: Option<Timestamp>,
    /// The lead was notified that the member is not asked again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_reported: bool,
    /// The member works again, and has not finished a turn yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_over: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl RateLimit {
    /// Returns the limit after a refusal. The attempts to continue before it still count.
    pub fn after(earlier: Option<&RateLimit>, hit: &LimitHit, now: Timestamp) -> RateLimit {
        RateLimit {
            said: hit.said.clone(),
            since: now,
            until: hit.until,
            refusals: earlier.map_or(0, |earlier| earlier.refusals).saturating_add(1),
            attempts: earlier.map_or(0, |earlier| earlier.attempts),
            resumed_at: None,
            is_reported: earlier.is_some_and(|earlier| earlier.is_reported),
            is_over: false,
        }
    }

    /// Returns the earliest time at which the member is asked to continue.
    pub fn next_attempt(&self) -> Timestamp {
        let end = end_of(self.since, self.until, self.refusals).plus_ms(GRACE_MS);
        self.resumed_at.map_or(end, |at| end.max(at.plus_ms(REACTION_MS)))
    }

    /// Describes the limit for people: `until 14:30`, or with the date if it began on another day.
    pub fn describe(&self, zone: &TimeZone) -> String {
        let (words, at) = match self.until {
            Some(until) => ("until", until),
            None if self.is_reported => return UNKNOWN.to_owned(),
            None => ("for an unknown time, next try at", self.next_attempt()),
        };
        let (Some(at), Some(since)) = (zoned(at, zone), zoned(self.since, zone)) else {
            return UNKNOWN.to_owned();
        };
        let form = if at.date() == since.date() { "%H:%M" } else { "%b %-d %H:%M" };
        format!("{words} {}", at.strftime(form))
    }
}

/// Returns the time from which a limit that began at `since` counts as ended: the last one of so
/// many refusals in a row.
pub fn end_of(since: Timestamp, until: Option<Timestamp>, refusals: usize) -> Timestamp {
    until.unwrap_or(since.plus_ms(PAUSES_MS[refusals.clamp(1, PAUSES_MS.len()) - 1]))
}

/// Returns the end of the reason of a run whose program repeats a request by itself; `words` are
/// those of the program about the time: ` (next try at 14:30:05)` for `in 5s`.
pub fn next_try(words: Option<&str>, now: Timestamp, zone: &TimeZone) -> String {
    let at = words.and_then(|words| zoned(parse_until(words, now, zone)?, zone));
    at.map(|at| at.strftime(" (next try at %H:%M:%S)").to_string()).unwrap_or_default()
}

fn zoned(at: Timestamp, zone: &TimeZone) -> Option<Zoned> {
    let ms = i64::try_from(at.0).ok()?;
    Some(jiff::Timestamp::from_millisecond(ms).ok()?.to_zoned(zone.clone()))
}

/// Finds the end of a limit in a program's text: the time after `resets`, `try again` and the like.
fn until_in(said: &str, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let lower = said.to_lowercase();
    let after = |mark: &str| Some(&lower[lower.rfind(mark)? + mark.len()..]);
    MARKS.into_iter().filter_map(after).find_map(|rest| parse_until(rest, now, zone))
}

/// Parses a future time as programs write it: `3pm`, `8:36am (UTC)`, `14:30`, `Oct 9, 10am`,
/// `Oct 9th, 2026 3:25 PM`, `in 2 hours 5 minutes`, `at …`. Words that are not understood are
/// skipped. Times of day are in `zone`, except with `(UTC)`.
pub fn parse_until(text: &str, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let lower = text.to_lowercase();
    let zone = if lower.contains("(utc)") { &TimeZone::UTC } else { zone };
    let words: Vec<&str> = lower
        .split(|c: char| c.is_whitespace() || ",()".contains(c))
        .map(|word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()))
        .filter(|word| !word.is_empty())
        .take(16)
        .collect();
    let now = zoned(now, zone)?;
    let at = if words.first() == Some(&"in") {
        now.checked_add(duration(&words[1..])?).ok()?
    } else {
        time_of_day(&words, &now)?
    };
    u64::try_from(at.timestamp().as_millisecond()).ok().map(Timestamp)
}

/// Parses `2 hours 5 minutes`, `1h30m`. Words after the last unit are ignored.
fn duration(words: &[&str]) -> Option<Span> {
    let text = words.join(" ");
    let mut rest = text.as_str();
    let mut span = None;
    loop {
        let (number, after) = split_while(rest.trim_start(), |c| c.is_ascii_digit());
        let (unit, after) = split_while(after.trim_start(), |c| c.is_ascii_alphabetic());
        let Ok(number) = number.parse::<i64>() else { return span };
        let (number, sum) = (number.min(MOST_UNITS), span.unwrap_or_default());
        span = Some(match unit {
            "s" | "sec" | "secs" | "second" | "seconds" => sum.seconds(number),
            "m" | "min" | "mins" | "minute" | "minutes" => sum.minutes(number),
            "h" | "hr" | "hrs" | "hour" | "hours" => sum.hours(number),
            "d" | "day" | "days" => sum.days(number),
            _ => return span,
        });
        rest = after;
    }
}

fn split_while(text: &str, is_part: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()))
}

/// Parses a time of day, with or without a date before it. Without one it is the next such time.
fn time_of_day(words: &[&str], now: &Zoned) -> Option<Zoned> {
    let (mut month, mut day, mut year, mut time) = (None, None, None, None);
    for (at, word) in words.iter().enumerate() {
        let is_pm = |word: &str| match word {
            "am" => Some(false),
            "pm" => Some(true),
            _ => None,
        };
        let half = words.get(at + 1).and_then(|word| is_pm(word));
        let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let suffix = &word[number.len()..];
        if let Some(found) =
            clock(number, is_pm(suffix).or(half), suffix.is_empty() || is_pm(suffix).is_some())
        {
            time = Some(found);
            break;
        } else if let Some(found) = month_number(word) {
            month = Some(found);
        } else if let Ok(number) = number.parse::<i16>() {
            match number {
                1..=31 if day.is_none() => day = i8::try_from(number).ok(),
                2000..=9999 => year = Some(number),
                _ => {}
            }
        }
    }
    let (hour, minute) = time?;
    let on = |date: Date| date.at(hour, minute, 0, 0).to_zoned(now.time_zone().clone()).ok();
    let (Some(month), Some(day)) = (month, day) else {
        let today = on(now.date())?;
        let is_past = now.duration_since(&today) > JUST_PAST;
        return if is_past { on(now.date().tomorrow().ok()?) } else { Some(today) };
    };
    let found = on(Date::new(year.unwrap_or(now.year()), month, day).ok()?)?;
    let is_past = year.is_none() && now.duration_since(&found) > SignedDuration::from_hours(24);
    if is_past { on(Date::new(now.year().checked_add(1)?, month, day).ok()?) } else { Some(found) }
}

/// Parses `8:36` or `15:25`, and with a half of the day also `8`.
fn clock(number: &str, is_pm: Option<bool>, is_whole: bool) -> Option<(i8, i8)> {
    let (hour, minute) = match number.split_once(':') {
        Some((hour, minute)) if minute.len() == 2 => (hour, minute),
        Some(_) => return None,
        None if is_pm.is_some() && is_whole => (number, "0"),
        None => return None,
    };
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match is_pm {
        Some(is_pm) if (1..=12).contains(&hour) => hour % 12 + if is_pm { 12 } else { 0 },
        Some(_) => return None,
        None => hour,
    };
    ((0..24).contains(&hour) && (0..60).contains(&minute)).then_some((hour, minute))
}

fn month_number(word: &str) -> Option<i8> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let start = word.get(..3)?;
    let at = MONTHS.iter().position(|month| *month == start)?;
    word.chars().all(|c| c.is_ascii_alphabetic()).then(|| i8::try_from(at + 1).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz;
    use proptest::prelude::*;

    /// 2026-11-24T06:37:30Z.
    const NOW: &str = "2026-11-24T06:37:30Z";

    fn now() -> Timestamp {
        Timestamp::parse(NOW).expect("a time")
    }

    fn at(text: &str) -> Option<Timestamp> {
        Some(Timestamp::parse(text).expect("a time"))
    }

    #[test]
    fn texts_of_programs_name_the_end_of_the_limit() {
        let utc = TimeZone::UTC;
        let table = [
            // Seen with Claude Code 2.1.34 and 2.1.330.
            ("You've hit your session limit · resets 8:36am (UTC)", "2026-11-24T08:36:00Z"),
            ("You've hit your 5-hour limit · resets 8:37am (UTC)", "2026-11-24T08:37:00Z"),
            // Seen with codex 0.169.0.
            (
                "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit \
                 https://chatgpt.com/settings/usage to purchase more credits or try again at 8:35 AM.",
                "2026-11-24T08:35:00Z",
            ),
            // From public reports.
            ("5-hour limit reached ∙ resets 3pm", "2026-11-24T15:00:00Z"),
            ("Weekly limit reached ∙ resets Oct 9 at 5pm", "2027-10-09T17:00:00Z"),
            ("Weekly limit reached · resets Nov 26, 10am (UTC)", "2026-11-26T10:00:00Z"),
            ("or try again at Nov 30th, 2026 3:25 PM.", "2026-11-30T15:25:00Z"),
            ("Please try again in 2 hours 5 minutes.", "2026-11-24T08:42:30Z"),
            ("try again in 3 days 1 hour.", "2026-11-27T07:37:30Z"),
            ("Limit resets in 1h30m.", "2026-11-24T08:07:30Z"),
            ("resets at 06:30", "2026-11-24T06:30:00Z"),
            ("resets at 05:30", "2026-11-25T05:30:00Z"),
            ("resets 12am", "2026-11-25T00:00:00Z"),
            ("resets 12pm", "2026-11-24T12:00:00Z"),
        ];
        for (said, until) in table {
            let table = LimitHit::of_text(said, now(), &utc);
            assert_eq!(table.until, at(until), "{said}");
        }
    }

    #[test]
    fn times_of_day_are_local_unless_they_are_in_utc() {
        let zone = TimeZone::fixed(tz::offset(-5));
        assert_eq!(parse_until("3pm", now(), &zone), at("2026-11-24T20:00:00Z"));
        assert_eq!(parse_until("8:36am (UTC)", now(), &zone), at("2026-11-24T08:36:00Z"));
        let limit = |until: &str| {
            RateLimit::after(None, &LimitHit { said: String::new(), until: at(until) }, now())
        };
        assert_eq!(limit("2026-11-24T20:00:00Z").describe(&zone), "until 15:00");
        assert_eq!(limit("2026-11-26T20:05:00Z").describe(&zone), "until Nov 26 15:05");
        let unknown = RateLimit { until: None, ..limit("2026-11-26T20:05:00Z") };
        assert_eq!(unknown.describe(&zone), "for an unknown time, next try at 01:39");
        let reported = RateLimit { is_reported: true, ..unknown };
        assert_eq!(reported.describe(&zone), "for an unknown time");
        assert_eq!(next_try(Some("in 9 seconds"), now(), &zone), " (next try at 01:37:39)");
        assert_eq!([None, Some("soon")].map(|words| next_try(words, now(), &zone)), ["", ""]);
    }

    #[test]
    fn texts_without_a_time_name_no_end() {
        for said in [
            "",
            "Rate limited",
            "resets soon",
            "try again later",
            "resets 25:00",
            "resets 13pm",
            "resets 7",
            "try again in a while",
            "resets at 3:5pm",
        ] {
            assert_eq!(LimitHit::of_text(said, now(), &TimeZone::UTC).until, None, "{said}");
        }
    }

    #[test]
    fn member_is_asked_to_continue_some_time_after_the_end() {
        let hit = LimitHit { said: "s".to_owned(), until: Some(now().plus_ms(1000)) };
        let first = RateLimit::after(None, &hit, now());
        assert_eq!(first.next_attempt(), now().plus_ms(1000 + GRACE_MS));
        let resumed =
            RateLimit { attempts: 1, resumed_at: Some(first.next_attempt()), ..first.clone() };
        assert_eq!(resumed.next_attempt(), first.next_attempt().plus_ms(REACTION_MS));
        let again = RateLimit::after(Some(&resumed), &hit, now());
        assert_eq!((again.attempts, again.resumed_at), (1, None));
        assert_eq!(again.next_attempt(), first.next_attempt());
    }

    /// ST-09: a limit without a known end is tried again soon, and after each refusal later.
    #[test]
    fn st_09_pause_before_a_limit_without_an_end_is_tried_grows() {
        let hit = LimitHit { said: "s".to_owned(), until: None };
        let mut limit = None;
        for minutes in [1, 5, 15, 30, 30] {
            let refused = RateLimit::after(limit.as_ref(), &hit, now());
            assert_eq!(refused.next_attempt(), now().plus_ms(minutes * 60_000 + GRACE_MS));
            limit = Some(refused);
        }
        let older: RateLimit =
            serde_json::from_str(r#"{"said": "s", "since": 0}"#).expect("of an older release");
        assert_eq!(older.next_attempt(), Timestamp(60_000 + GRACE_MS));
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_without_a_panic(text in "(resets|try again|in|at|[0-9:]{1,6}|am|pm|oct|9th|hours| |,|\\PC){0,12}", now in any::<u64>()) {
            let _ = LimitHit::of_text(&text, Timestamp(now), &TimeZone::UTC);
        }
    }
}
