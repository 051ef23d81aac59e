//! Three-way merge of JSON objects of which two copies were changed.

use serde_json::Value;

use crate::wire::Object;

/// Fields of a task that change together: a claim sets both.
const WORK: [&str; 2] = ["owner", "status"];

/// The merged form of two copies of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct MergedTask {
    pub task: Object,
    /// The second copy's change of owner or status was dropped, because the first has another one.
    pub lost_work: bool,
}

/// Merges two copies of an object that were equal to `base`. A field that only one of them changed
/// gets its value. Where both did, nested objects are merged, lists get the additions and removals
/// of both, and otherwise `first` counts.
pub fn merge(base: &Object, first: &Object, second: &Object) -> Object {
    let mut merged = Object::new();
    let added = second.keys().filter(|key| !first.contains_key(*key));
    for key in first.keys().chain(added) {
        let value = merge_values(base.get(key), first.get(key), second.get(key));
        if let Some(value) = value {
            merged.insert(key.clone(), value);
        }
    }
    merged
}

fn merge_values(
    base: Option<&Value>,
    first: Option<&Value>,
    second: Option<&Value>,
) -> Option<Value> {
    if first == second || second == base {
        return first.cloned();
    }
    if first == base {
        return second.cloned();
    }
    match (base, first, second) {
        (base, Some(Value::Object(first)), Some(Value::Object(second))) => {
            let none = Object::new();
            let base = base.and_then(Value::as_object).unwrap_or(&none);
            Some(Value::Object(merge(base, first, second)))
        }
        (base, Some(Value::Array(first)), Some(Value::Array(second))) => {
            let base = base.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let is_removed = |item: &&Value| base.contains(item) && !second.contains(item);
            let added = second.iter().filter(|item| !base.contains(item) && !first.contains(item));
            let kept = first.iter().filter(|item| !is_removed(item));
            Some(Value::Array(kept.chain(added).cloned().collect()))
        }
        (_, first, _) => first.cloned(),
    }
}

/// Merges two copies of a task. Owner and status count as one field.
pub fn merge_task(base: &Object, first: &Object, second: &Object) -> MergedTask {
    let differs =
        |one: &Object, other: &Object| WORK.iter().any(|key| one.get(*key) != other.get(*key));
    let mut task = merge(base, first, second);
    if differs(first, base) {
        for key in WORK {
            match first.get(key) {
                Some(value) => drop(task.insert(key.to_owned(), value.clone())),
                None => drop(task.shift_remove(key)),
            }
        }
    }
    let lost_work = differs(second, base) && differs(&task, second);
    MergedTask { task, lost_work }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn fields_that_one_side_changed_are_kept() {
        let base = object(json!({"a": 1, "b": 1, "c": 1, "m": {"x": 1, "y": 1}}));
        let first = object(json!({"a": 2, "b": 1, "c": 1, "m": {"x": 2, "y": 1}, "new": 1}));
        let second = object(json!({"a": 1, "b": 3, "m": {"x": 1, "y": 3, "z": 3}}));
        let merged = merge(&base, &first, &second);
        let expected = json!({"a": 2, "b": 3, "m": {"x": 2, "y": 3, "z": 3}, "new": 1});
        assert_eq!(Value::Object(merged), expected);
    }

    #[test]
    fn first_copy_counts_where_both_changed_a_field() {
        let base = object(json!({"a": 1, "b": 1}));
        let first = object(json!({"a": 2}));
        let second = object(json!({"a": 3, "b": 3}));
        assert_eq!(Value::Object(merge(&base, &first, &second)), json!({"a": 2}));
    }

    #[test]
    fn lists_get_the_changes_of_both_copies() {
        let base = object(json!({"blocks": ["1", "2", "3"]}));
        let first = object(json!({"blocks": ["1", "2", "3", "4"]}));
        let second = object(json!({"blocks": ["2", "3", "5"]}));
        let merged = merge(&base, &first, &second);
        assert_eq!(Value::Object(merged), json!({"blocks": ["2", "3", "4", "5"]}));
    }

    #[test]
    fn claim_of_the_first_copy_wins_as_a_whole() {
        let base = object(json!({"subject": "s", "status": "pending"}));
        let first = object(json!({"subject": "s", "status": "pending", "owner": "ann"}));
        let second = object(json!({"subject": "t", "status": "completed"}));
        let merged = merge_task(&base, &first, &second);
        let expected = json!({"subject": "t", "status": "pending", "owner": "ann"});
        assert_eq!((Value::Object(merged.task), merged.lost_work), (expected, true));
        let merged = merge_task(&base, &base, &second);
        assert_eq!((merged.task, merged.lost_work), (second, false));
    }
}
