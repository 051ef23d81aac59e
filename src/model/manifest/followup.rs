//! The reminder keys of `[team]`: `followup_interval_minutes`, `followup_max_reminders` and
//! `escalation_mode`.

use toml::de::DeValue;

use crate::model::followup::{Escalation, MAX_REMINDERS, ReminderPolicy};
use crate::model::sheet::{Faults, Section};

const INTERVAL: &str = "followup_interval_minutes";
const REMINDERS: &str = "followup_max_reminders";
const MODE: &str = "escalation_mode";
/// One year, in minutes.
const LONGEST: f64 = 525_600.0;
const MS_IN_A_MINUTE: f64 = 60_000.0;
const MODES: [(&str, Escalation); 2] = [
    (Escalation::NotifyLead.as_str(), Escalation::NotifyLead),
    (Escalation::FailTask.as_str(), Escalation::FailTask),
];

/// Reads the reminder settings; `None` without an interval, and then the other keys are faults.
pub(super) fn read_followup(section: &Section, faults: &mut Faults) -> Option<ReminderPolicy> {
    let interval_ms = read_interval(section, faults);
    let max_reminders = read_reminders(section, faults).unwrap_or(MAX_REMINDERS);
    let escalation =
        section.choice(MODE, &MODES, faults).map(|mode| *mode.get_ref()).unwrap_or_default();
    for key in [REMINDERS, MODE].into_iter().filter(|_| section.value(INTERVAL).is_none()) {
        if let Some(value) = section.value(key) {
            faults.add(
                &value.span(),
                format!("`{key}` in {} has no effect without `{INTERVAL}`", section.title),
            );
        }
    }
    Some(ReminderPolicy { interval_ms: interval_ms?, max_reminders, escalation })
}

/// Reads the interval, which may be a fraction of minutes, and returns milliseconds.
fn read_interval(section: &Section, faults: &mut Faults) -> Option<u64> {
    let value = section.value(INTERVAL)?;
    let minutes: Option<f64> = match value.get_ref() {
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .and_then(|n| u32::try_from(n).ok())
            .map(f64::from),
        DeValue::Float(number) => number.as_str().parse().ok(),
        other => return section.refuse(INTERVAL, value, "a number of minutes", other, faults),
    };
    // Within these bounds the conversion is exact to the millisecond; they also exclude NaN.
    match minutes
        .map(|minutes| (minutes * MS_IN_A_MINUTE).round())
        .filter(|ms| (1.0..=LONGEST * MS_IN_A_MINUTE).contains(ms))
    {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is within its bounds"
        )]
        Some(ms) => Some(ms as u64),
        None => {
            let said = format!(
                "`{INTERVAL}` in {} must be more than 0, and at most {LONGEST}",
                section.title
            );
            faults.add(&value.span(), said);
            None
        }
    }
}

fn read_reminders(section: &Section, faults: &mut Faults) -> Option<u32> {
    let number = section.integer(REMINDERS, faults)?;
    let count = u32::try_from(*number.get_ref()).ok().filter(|count| *count <= 1000);
    if count.is_none() {
        faults.add(
            &number.span(),
            format!("`{REMINDERS}` in {} must be between 0 and 1000", section.title),
        );
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::manifest::Manifest;

    fn read(keys: &str) -> Result<Option<ReminderPolicy>, String> {
        let text = format!("[team]\nname = \"t\"\n{keys}");
        Manifest::parse(&text).map(|manifest| manifest.team.followup).map_err(|e| e.to_string())
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
