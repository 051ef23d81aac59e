//! The tables of requests and of permission rules.

use crate::paint::{Paint, Tint};
use crate::table::{Table, cell, maybe, tinted};
use crate::views::life::span;
use model::decisions::question::Typed;
use model::decisions::rules::{List, TeamRules};
use model::text;
use ops::decisions::requests::Shown;

pub fn requests(shown: &[Shown], paint: Paint) -> String {
    if shown.is_empty() {
        return "no open requests".to_owned();
    }
    let mut table = Table::new(&["REQUEST", "KIND", "FROM", "STATE", "AGE", "BY", "WHAT", "WHY"]);
    for one in shown {
        let typed = one.typed.map(Typed::describe);
        let why = one.rule.as_deref().or(typed).or(one.reason.as_deref());
        table.row(vec![
            cell(one.request_id.as_str()),
            cell(one.kind),
            tinted(Tint::Bold, one.from.as_str()),
            tinted(
                if one.state == "pending" { Tint::Warn } else { Tint::Plain },
                one.state.replace('_', " "),
            ),
            cell(span(one.age_ms)),
            maybe(one.by.as_deref()),
            cell(text::short(&one.summary, 80)),
            maybe(why.map(|why| text::short(why, 80))),
        ]);
    }
    table.render(paint)
}

/// Formats one line for each rule, in the order of evaluation.
pub fn rules(rules: &TeamRules, paint: Paint) -> String {
    if rules.is_empty() {
        return "there are no rules: a person is asked".to_owned();
    }
    let mut table = Table::new(&["LIST", "RULE", "WHOSE"]);
    for list in List::ALL {
        for (whose, set) in rules.all() {
            for rule in set.list(list) {
                let rule = text::line(&String::from(rule.clone()));
                table.row(vec![cell(list.as_str()), cell(rule), cell(text::line(&whose))]);
            }
        }
    }
    table.render(paint)
}
