//! `resume`: members that fell are started again.

use serde_json::json;

use super::args_lead::Resume;
use super::fail::{Class, Exit, Failure, chain};
use super::setup::{Setup, member};
use super::{Done, interrupt, spawn};
use crate::model::id::MemberName;
use crate::ops;
use crate::ops::spawn::Terms;

pub(super) fn resume(setup: &Setup, args: &Resume) -> Done {
    let team = setup.team()?;
    let names = args.names.iter().map(|name| member(name)).collect::<Result<Vec<MemberName>, _>>()?;
    if names.len() > 1 && args.session.is_some() {
        return Err(Failure::usage("a session belongs to one member", "name one, or leave `--session` away"));
    }
    let orders = ops::resume::orders(&setup.ctx, &team, &names, args.session.as_deref())?;
    if orders.is_empty() {
        setup.out.give(&json!([]), || "nobody is to be started again".to_owned())?;
        return Ok(Exit::DONE);
    }
    let names: Vec<String> = orders.iter().map(|order| order.name.clone()).collect();
    let terms = Terms { backend: None, deadline: args.deadline, unique: false, layout: None };
    let runtime = interrupt::runtime()?;
    let batch = runtime.block_on(spawn::start(setup, &team, orders, terms));
    runtime.shutdown_background();
    let (batch, interrupted) = batch?;
    let (mut rows, mut lines, mut worst) = (Vec::new(), Vec::new(), None);
    for (name, result) in names.iter().zip(batch.results) {
        match result {
            Ok(one) => {
                lines.push(format!("{name} runs again (process {})", one.pid));
                rows.push(json!({ "name": name, "started": one, "problem": null }));
            }
            Err(e) => {
                lines.push(format!("{name}: {}", chain(&e)));
                rows.push(json!({ "name": name, "started": null, "problem": chain(&e) }));
                worst.get_or_insert(Class::from(e.kind()));
            }
        }
    }
    setup.out.give(&rows, || lines.join("\n"))?;
    let interrupted = interrupted.then_some(Class::Interrupted);
    Ok(interrupted.or(worst).map_or(Exit::DONE, Exit::of))
}
