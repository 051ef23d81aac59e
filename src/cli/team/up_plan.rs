//! The contents of a manifest for `up`: everything is checked that can be checked before a team is
//! created.

use std::path::Path;

use crate::fail::{Failure, chain};
use crate::read::prompt_file;
use crate::setup::Setup;
use config::manifest::Manifest;
use model::members::launch::{LaunchSpec, Template};
use model::team::settings::{BackendChoice, PlacementHome, Settings};
use ops::starting::agents;
use ops::starting::reconcile::WantedTeam;
use ops::{self, Kind};

/// The text of a manifest, and its name in messages.
pub(crate) struct ManifestText {
    pub(crate) shown: String,
    pub(crate) text: String,
}

/// Options of `up` that change a plan.
#[derive(Default)]
pub(crate) struct PlanOptions<'a> {
    pub(crate) backend: Option<BackendChoice>,
    pub(crate) keep: bool,
    pub(crate) timeout_s: Option<u64>,
    pub(crate) fail_fast: bool,
    pub(crate) tmux_socket: Option<&'a Path>,
}

/// The contents of a manifest, checked and resolved.
pub(crate) struct UpPlan {
    pub(crate) name: String,
    pub(crate) description: String,
    /// Address of the shared store for the team.
    pub(crate) store: Option<String>,
    pub(crate) wanted: WantedTeam,
    /// No member is permanent: each task is a run of its own.
    pub(crate) tasks_only: bool,
    /// Messages for the user: the reason for the mode, and warnings.
    pub(crate) messages: Vec<String>,
}

impl UpPlan {
    /// Parses a manifest and checks everything that can be checked before anything is created.
    pub(crate) fn new(
        setup: &Setup,
        source: &ManifestText,
        options: PlanOptions,
    ) -> Result<UpPlan, Failure> {
        let shown = &source.shown;
        let hosts = ops::hosts::user_hosts(&setup.ctx)?;
        let manifest = Manifest::parse_with_hosts(&source.text, &hosts).map_err(|e| {
            let message = format!("{shown}:{}:{}: {}", e.line, e.column, e.message);
            let hint = e.nearest.map(|word| format!("did you mean `{word}`?"));
            Failure::new(Kind::Usage, message, hint)
        })?;
        let here = &setup.ctx.caller.cwd;
        let settings =
            ops::starting::manifest::team_settings(&manifest, options.backend, options.keep);
        let settings = Settings {
            timeout_s: options.timeout_s.or(settings.timeout_s),
            fail_fast: options.fail_fast || settings.fail_fast,
            ..settings
        };
        let (tasks_only, mode) =
            ops::starting::manifest::choose_mode(&setup.ctx, &manifest, settings.backend);
        let members =
            ops::starting::manifest::member_launches(&manifest, tasks_only, here, |file| {
                prompt_file(here, file)
            })?
            .of_manifest();
        let messages = mode
            .into_iter()
            .chain(ops::starting::manifest::shared_checkout_warnings(&members.templates))
            .collect();
        let tmux_socket = options.tmux_socket.map(|path| setup.absolute(path)).transpose()?;
        let mut plan = UpPlan {
            name: manifest.name.clone(),
            description: manifest.description.clone().unwrap_or_default(),
            store: manifest.store.clone(),
            wanted: WantedTeam {
                source: shown.clone(),
                settings: Settings {
                    templates: members.templates,
                    home: PlacementHome { tmux_socket, chosen: None },
                    ..settings
                },
                specs: members.specs,
                tasks: ops::starting::manifest::task_definitions(&manifest, here),
            },
            tasks_only,
            messages,
        };
        let wanted = &plan.wanted;
        let later = wanted.settings.templates.iter().map(Template::sample);
        let all: Vec<LaunchSpec> = wanted.specs.iter().cloned().chain(later).collect();
        let checked = ops::starting::spawn::check(&setup.ctx, &wanted.settings, &all);
        let fits =
            if tasks_only { ops::starting::manifest::check_task_mode(&manifest) } else { Ok(()) };
        fits.and(checked)
            .map_err(|e| Failure::new(e.kind(), format!("{shown}: {}", chain(&e)), e.hint()))?;
        let advice = agents::advice(&setup.ctx, &all)?;
        plan.messages.extend(advice.into_iter().map(|line| format!("warning: {line}")));
        Ok(plan)
    }
}
