//! The handoffs from other teams, and the types of handoffs.

use serde_json::Value;
use strum::VariantArray;

use crate::paint::{Paint, Tint};
use crate::table::{Table, cell, maybe, tinted};
use model::mail::handoff::{HandoffType, TeamHandoff};
use model::text;
use model::time::{self, Timestamp};

pub fn handoff_table(
    handoffs: &[TeamHandoff],
    now: Timestamp,
    width: usize,
    paint: Paint,
) -> String {
    let mut table = Table::new(&["ID", "FROM", "WHEN", "TYPE", "ABOUT"]);
    for handoff in handoffs {
        table.row(vec![
            cell(&handoff.id),
            tinted(Tint::Bold, handoff.from_team.as_str()),
            tinted(Tint::Dim, time::ago(now.since(handoff.at))),
            cell(&handoff.kind),
            maybe(handoff.sentence()),
        ]);
    }
    table.render_within(width, &["ABOUT", "WHEN"], &["ABOUT"], paint)
}

/// Formats a handoff: where it comes from, its sentence, and its whole body as indented JSON.
pub fn handoff_page(handoff: &TeamHandoff, paint: Paint) -> String {
    let title = format!("{} from team {}", handoff.kind, handoff.from_team);
    let mut lines = vec![
        paint.put(Tint::Bold, &text::line(&title)),
        paint.put(Tint::Dim, &format!("{}  {}", handoff.id, handoff.at.iso())),
    ];
    lines.extend(handoff.sentence().map(|sentence| format!("its lead {}", text::line(&sentence))));
    let body = format!("{:#}", Value::Object(handoff.body.clone()));
    lines.push(String::new());
    lines.extend(text::block(&body).lines().map(|line| format!("  {line}")));
    lines.join("\n")
}

pub fn handoff_types(paint: Paint) -> String {
    let mut table = Table::new(&["TYPE", "SENT WHEN", "REQUIRED FIELDS"]);
    for kind in HandoffType::VARIANTS {
        let required = kind.fields().into_iter().filter(|field| field.is_required);
        let required = required.map(|field| field.name).collect::<Vec<_>>().join(", ");
        table.row(vec![tinted(Tint::Bold, kind.as_str()), cell(kind.purpose()), cell(required)]);
    }
    let more = "Fields and an example: phalanx handoff types TYPE";
    format!("{}\n\n{}", table.render(paint), paint.put(Tint::Dim, more))
}

pub fn handoff_type(kind: HandoffType, paint: Paint) -> String {
    let mut table = Table::new(&["FIELD", "", "VALUE"]);
    for field in kind.fields() {
        let need = if field.is_required { "required" } else { "optional" };
        table.row(vec![tinted(Tint::Bold, field.name), cell(need), cell(field.expected)]);
    }
    format!(
        "{}: {}\n\n{}\n\nExample:\n  {}",
        paint.put(Tint::Bold, kind.as_str()),
        kind.purpose(),
        table.render(paint),
        kind.example()
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PLAIN: Paint = Paint { on: false };

    fn handoff(kind: &str, body: Value) -> TeamHandoff {
        let line =
            json!({"id": "a-1", "from_team": "backend", "type": kind, "at": 5, "body": body});
        serde_json::from_value(line).expect("a handoff")
    }

    #[test]
    fn handoffs_are_listed_and_printed_whole() {
        let contract: Value =
            serde_json::from_str(HandoffType::ApiContract.example()).expect("an example");
        let known = handoff("api_contract", contract);
        let other = handoff("party", json!({"who": "all\u{1b}[31m"}));
        assert_eq!(
            handoff_table(&[known, other.clone()], Timestamp(60_005), 100, PLAIN),
            "ID   FROM     WHEN    TYPE          ABOUT\n\
             a-1  backend  1m ago  api_contract  proposes an API contract with 1 endpoint\n\
             a-1  backend  1m ago  party"
        );
        let page = handoff_page(&other, PLAIN);
        assert!(
            page.starts_with("party from team backend\na-1  1970-01-01T00:00:00.005Z\n\n  {\n")
        );
        assert!(!page.contains('\u{1b}') && page.contains("\"who\""), "{page}");
    }

    #[test]
    fn each_type_is_listed_with_its_fields() {
        let all = handoff_types(PLAIN);
        assert!(HandoffType::VARIANTS.iter().all(|kind| all.contains(kind.as_str())), "{all}");
        let one = handoff_type(HandoffType::CodeReviewResult, PLAIN);
        assert_eq!(
            one,
            "code_review_result: the code of a plan was reviewed\n\n\
             FIELD              VALUE\n\
             plan_id  required  the id of the plan, a text\n\
             result   required  `approve` or `changes_requested`\n\n\
             Example:\n  {\"type\":\"code_review_result\",\"plan_id\":\"01-01\",\"result\":\"approve\"}"
        );
    }
}
