//! `manifest schema`: the JSON Schema of a manifest, for editors.

use clap::Subcommand;

use crate::fail::VerbResult;
use crate::out::Out;
use config::manifest::Manifest;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ManifestVerb {
    /// Print the JSON Schema of manifests, with which editors complete and check keys.
    #[command(after_help = "Example:\n  phalanx manifest schema >team.schema.json\n\n\
        The first line `#:schema ./team.schema.json` of a manifest names the schema.")]
    Schema,
}

pub(crate) fn manifest(out: &Out, verb: &ManifestVerb) -> VerbResult {
    match verb {
        ManifestVerb::Schema => {
            let schema = Manifest::schema();
            out.print(&schema, || format!("{schema:#}"))
        }
    }
}
