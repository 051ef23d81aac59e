//! Templates of manifests: the built-in ones, and the user's own, which are read again at each use.

use crate::members::profiles::Source;
use crate::own_files;
use crate::{Context, OpsError};
use config::manifest::{ManifestTemplate, builtin_template, builtin_templates};

/// A template by name, whether it can be parsed or not.
#[derive(Debug)]
pub struct ListedTemplate {
    pub name: String,
    pub source: Source,
    /// Its text; empty if it cannot be read.
    pub text: String,
    pub template: Result<ManifestTemplate, OpsError>,
}

/// Returns the template of this name; a user's own overrides a built-in one.
///
/// # Errors
/// A refusal for an unknown name.
pub fn listed(ctx: &Context, name: &str) -> Result<ListedTemplate, OpsError> {
    let own = own_files::names(&ctx.store.templates())?;
    let name = name.to_owned();
    if own.contains(&name) {
        let file = own_files::path(&ctx.store.templates(), &name);
        let found = own_files::read("template", "manifest.md#templates", &file);
        let text = found.as_ref().map_or(String::new(), Clone::clone);
        let template = found.and_then(|text| {
            ManifestTemplate::parse(&text)
                .map_err(|source| OpsError::Template { file: file.clone(), source })
        });
        return Ok(ListedTemplate { name, source: Source::File(file), text, template });
    }
    let Some(text) = builtin_template(&name) else {
        let known = names(&own);
        return Err(OpsError::unknown_word("template", &name, &known, ""));
    };
    let template = ManifestTemplate::parse(text).expect("a test parses every built-in template");
    let (text, template) = (text.to_owned(), Ok(template));
    Ok(ListedTemplate { name, source: Source::Builtin, text, template })
}

/// Returns all templates: the built-in ones, then the user's own by name.
///
/// # Errors
/// A directory of templates that cannot be read.
pub fn list(ctx: &Context) -> Result<Vec<ListedTemplate>, OpsError> {
    let own = own_files::names(&ctx.store.templates())?;
    names(&own).iter().map(|name| listed(ctx, name)).collect()
}

fn names(own: &[String]) -> Vec<String> {
    let mut names: Vec<String> = builtin_templates().map(str::to_owned).collect();
    names.extend(own.iter().filter(|name| builtin_template(name).is_none()).cloned());
    names
}
