//! `modelplane plan`: what applying manifests would change.
//!
//! The fleet as it is (`--against`: manifests, or a control plane that runs) is simulated to a fixed point, the
//! manifests are applied on top, and the simulation runs on. What differs is the plan. Reasons come from the scheduler: it is asked about the
//! replicas as they were, on the fleet as it would be.

mod capacity;
mod objects;
mod replicas;
mod routes;

use std::path::{Path, PathBuf};

use clap::Args;
use modelplane_core::simulate::{Simulation, World};
use serde::Serialize;

use crate::fleet::{Fleet, FleetArguments};
use crate::live::LiveArguments;
use crate::outcome::{CommandError, CommandResult, Verdict};
use crate::output::{self, Format};
use crate::process;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  modelplane plan -f new-model.yaml --against fleet/
  modelplane plan -f new-model.yaml --against ~/.kube/config
  modelplane plan -f drain.yaml --against fleet/ -o json

Without --against the fleet is taken to be empty. Objects that are not among the manifests stay.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    fleet: FleetArguments,

    /// The fleet as it is: the kubeconfig of a running control plane, or a file or folder of manifests
    #[arg(long, value_name = "KUBECONFIG|PATH")]
    against: Option<PathBuf>,

    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// What applying would change.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Plan {
    /// The plan in one sentence.
    summary: String,
    objects: Vec<objects::Change>,
    composed: objects::Totals,
    replicas: Vec<replicas::Change>,
    /// Deployments that would have fewer replicas than they want, and why.
    unplaced: Vec<replicas::Unplaced>,
    capacity: Vec<capacity::Change>,
    routes: Vec<routes::Change>,
}

/// The fleet before and after.
#[derive(Clone, Copy)]
struct Worlds<'w> {
    before: &'w World,
    after: &'w World,
}

impl Arguments {
    pub(crate) fn run(self) -> CommandResult {
        let new = self.fleet.load()?;
        let (before, settled_before) = match &self.against {
            None => (self.fleet.nothing().simulation(), true),
            Some(path) => self.current_fleet(path)?,
        };
        let mut after = before.clone();
        after.apply(new.manifests.values().map(|manifest| manifest.body.clone()));
        let settled_after = after.run().converged;
        let worlds = Worlds { before: before.world(), after: after.world() };
        let plan = Plan::new(worlds, &new);
        match self.output {
            Format::Table => output::print(&plan.describe())?,
            Format::Json => output::print_json(&plan)?,
            Format::Yaml => output::print_yaml([&output::to_json(&plan)?])?,
        }
        Ok(if settled_before && settled_after { Verdict::Good } else { Verdict::Bad })
    }

    /// The fleet as it is, and whether it stands still.
    fn current_fleet(&self, path: &Path) -> Result<(Simulation, bool), CommandError> {
        let fleet = self.fleet.of_path(path).load()?;
        if !fleet.manifests.keys().any(|key| key.kind == "Config" && key.group.is_empty()) {
            return Ok(fleet.settled());
        }
        let options = self.fleet.options();
        let live = LiveArguments::of_kubeconfig(path);
        let fleet = async { live.connect().await?.fleet_to_plan_on(options).await };
        let mut simulation = process::runtime()?.block_on(fleet)?;
        let converged = simulation.run().converged;
        Ok((simulation, converged))
    }
}

impl Plan {
    fn new(worlds: Worlds<'_>, new: &Fleet) -> Self {
        let (objects, composed) = objects::changes(worlds, new);
        let (replicas, unplaced) = replicas::changes(worlds);
        let capacity = capacity::changes(worlds);
        let routes = routes::changes(worlds);
        let mut plan =
            Self { summary: String::new(), objects, composed, replicas, unplaced, capacity, routes };
        plan.summary = plan.summarize();
        plan
    }

    fn summarize(&self) -> String {
        let mut parts = replicas::summarize(&self.replicas);
        let missing: usize = self.unplaced.iter().map(|unplaced| unplaced.wanted - unplaced.placed).sum();
        match missing {
            0 => {}
            1 => parts.push("1 replica finds no place".to_owned()),
            missing => parts.push(format!("{missing} replicas find no place")),
        }
        match routes::services(&self.routes) {
            0 => {}
            1 => parts.push("1 service is rerouted".to_owned()),
            services => parts.push(format!("{services} services are rerouted")),
        }
        if parts.is_empty() {
            let nothing = self.objects.is_empty() && self.composed.is_nothing();
            parts.push(if nothing { "nothing changes" } else { "no replica is affected" }.to_owned());
        }
        let composed = self.composed.describe().map(|composed| format!("; {composed}"));
        parts.join(", ") + &composed.unwrap_or_default()
    }

    fn describe(&self) -> String {
        let sections = [
            Some(self.summary.clone()),
            objects::describe(&self.objects),
            replicas::describe(&self.replicas),
            replicas::describe_unplaced(&self.unplaced),
            capacity::describe(&self.capacity),
            routes::describe(&self.routes),
        ];
        sections.into_iter().flatten().collect::<Vec<_>>().join("\n\n") + "\n"
    }
}

/// `1` or `1 -> 2`.
fn change(before: &str, after: &str) -> String {
    if before == after { after.to_owned() } else { format!("{before} -> {after}") }
}
