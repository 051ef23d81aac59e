//! The reminder keys of `[team]`: `followup_interval_minutes`, `followup_max_reminders` and
//! `escalation_mode`.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

use crate::{Faults, Place};
use model::team::followup::{
    Escalation, LONGEST_MINUTES, MAX_REMINDERS, MOST_REMINDERS, ReminderPolicy, interval_ms,
};
use model::value::{Choice, FIELD, inline_schema};

/// An interval in milliseconds, written in minutes that may be a fraction.
#[derive(Debug)]
pub(super) struct Interval(u64);

inline_schema!(Interval, {
    "type": "number", "exclusiveMinimum": 0, "maximum": LONGEST_MINUTES
});

impl<'de> Deserialize<'de> for Interval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Interval, D::Error> {
        deserializer.deserialize_any(IntervalVisitor)
    }
}

struct IntervalVisitor;

impl Visitor<'_> for IntervalVisitor {
    type Value = Interval;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a number of minutes")
    }

    fn visit_f64<E: Error>(self, minutes: f64) -> Result<Interval, E> {
        interval_ms(minutes).map(Interval).ok_or_else(|| {
            E::custom(format!("{FIELD} must be more than 0, and at most {LONGEST_MINUTES}"))
        })
    }

    fn visit_i128<E: Error>(self, minutes: i128) -> Result<Interval, E> {
        self.visit_f64(minutes as f64)
    }

    fn visit_i64<E: Error>(self, minutes: i64) -> Result<Interval, E> {
        self.visit_f64(minutes as f64)
    }

    fn visit_u64<E: Error>(self, minutes: u64) -> Result<Interval, E> {
        self.visit_f64(minutes as f64)
    }
}

#[derive(Debug)]
pub(super) struct ReminderCount(u32);

inline_schema!(ReminderCount, { "type": "integer", "minimum": 0, "maximum": MOST_REMINDERS });

impl<'de> Deserialize<'de> for ReminderCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ReminderCount, D::Error> {
        let count = u32::try_from(i64::deserialize(deserializer)?).ok();
        count.filter(|count| *count <= MOST_REMINDERS).map(ReminderCount).ok_or_else(|| {
            D::Error::custom(format!("{FIELD} must be between 0 and {MOST_REMINDERS}"))
        })
    }
}

/// Returns the reminder settings; `None` without an interval, and then the other keys are faults.
pub(super) fn reminder_policy(
    interval: Option<Interval>,
    count: Option<ReminderCount>,
    escalation: Option<Choice<Escalation>>,
    faults: &mut Faults,
) -> Option<ReminderPolicy> {
    let Some(Interval(interval_ms)) = interval else {
        let others = [
            ("followup_max_reminders", count.is_some()),
            ("escalation_mode", escalation.is_some()),
        ];
        for (key, _) in others.into_iter().filter(|(_, is_given)| *is_given) {
            let message =
                format!("`{key}` in [team] has no effect without `followup_interval_minutes`");
            faults.add_at(&[Place::Key("team"), Place::Key(key)], message);
        }
        return None;
    };
    Some(ReminderPolicy {
        interval_ms,
        max_reminders: count.map_or(MAX_REMINDERS, |count| count.0),
        escalation: escalation.map(|mode| mode.0).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;

    fn read(keys: &str) -> Result<Option<ReminderPolicy>, String> {
        let text = format!("[team]\nname = \"t\"\n{keys}");
        Manifest::parse(&text).map(|manifest| manifest.settings.followup).map_err(|e| e.to_string())
    }

    #[test]
    fn the_interval_is_in_minutes_and_the_rest_has_defaults() {
        for (minutes, interval_ms) in
            [("30", 1_800_000), ("0.5", 30_000), ("0x10", 960_000), ("525600", 31_536_000_000)]
        {
            let expected = ReminderPolicy {
                interval_ms,
                max_reminders: 3,
                escalation: Escalation::NotifyLead,
            };
            assert_eq!(read(&format!("followup_interval_minutes = {minutes}")), Ok(Some(expected)));
        }
        assert_eq!(read(""), Ok(None));
    }

    #[test]
    fn values_out_of_range_and_keys_without_effect_are_refused() {
        let table = [
            ("followup_interval_minutes = 0", "more than 0"),
            ("followup_interval_minutes = -1.5", "more than 0"),
            ("followup_interval_minutes = 1e-9", "more than 0"),
            ("followup_interval_minutes = nan", "more than 0"),
            ("followup_interval_minutes = inf", "at most 525600"),
            ("followup_interval_minutes = 525601", "at most 525600"),
            ("followup_interval_minutes = 99999999999999999999", "at most 525600"),
            ("followup_interval_minutes = \"30\"", "a number of minutes, not"),
            ("followup_interval_minutes = 1\nfollowup_max_reminders = -1", "between 0 and 1000"),
            (
                "followup_interval_minutes = 1\nescalation_mode = \"shout\"",
                "known: `notify_lead`, `fail_task`",
            ),
            ("followup_max_reminders = 3", "has no effect without `followup_interval_minutes`"),
            (
                "escalation_mode = \"fail_task\"",
                "has no effect without `followup_interval_minutes`",
            ),
            // Not supported (docs/decisions.md).
            ("escalation_actions = [\"x\"]", "unknown key"),
        ];
        for (keys, said) in table {
            let problem = read(keys).expect_err(keys);
            assert!(problem.contains(said), "{keys}: {problem}");
        }
    }
}
