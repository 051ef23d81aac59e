//! The `template` subcommands: list and show the templates of manifests.

use clap::Subcommand;
use serde_json::{Value, json};

use crate::fail::VerbResult;
use crate::setup::Setup;
use model::text;
use ops::starting::templates::{self, ListedTemplate};

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum TemplateVerb {
    /// List all templates.
    List,
    /// Print the TOML of a template, to make one of your own.
    #[command(after_help = "Example:\n  \
        phalanx template show review >~/.claude/phalanx/templates/mine.toml")]
    Show {
        /// Name of the template.
        name: String,
    },
}

pub(crate) fn template(setup: &Setup, verb: &TemplateVerb) -> VerbResult {
    match verb {
        TemplateVerb::List => list(setup),
        TemplateVerb::Show { name } => show(setup, name),
    }
}

fn list(setup: &Setup) -> VerbResult {
    let found = templates::list(&setup.ctx)?;
    let document: Vec<Value> = found.iter().map(entry).collect();
    setup.out.print(&document, || {
        let rows = found.iter().map(|one| ui::TemplateRow {
            name: one.name.clone(),
            source: one.source.to_string(),
            about: one.template.as_ref().map_or_else(ToString::to_string, |t| t.about.clone()),
        });
        ui::template_table(rows, setup.out.paint)
    })
}

fn entry(one: &ListedTemplate) -> Value {
    match &one.template {
        Ok(template) => {
            json!({ "name": one.name, "source": one.source.to_string(), "about": template.about })
        }
        Err(e) => {
            json!({ "name": one.name, "source": one.source.to_string(), "problem": e.to_string() })
        }
    }
}

fn show(setup: &Setup, name: &str) -> VerbResult {
    let found = templates::listed(&setup.ctx, name)?;
    let source = found.source.to_string();
    let about = found.template?.about;
    let document =
        json!({ "name": found.name, "source": source, "about": about, "text": found.text });
    setup.out.print(&document, || text::block(&found.text))
}
