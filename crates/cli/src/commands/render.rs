//! `modelplane render`: everything that manifests lead to, without a server.

mod tree;

use std::collections::BTreeMap;

use clap::Args;
use modelplane_core::contract::Severity;
use modelplane_core::simulate::{ObjectKey, Outcome, Pass, Simulation, World};
use serde_json::{Value, json};

use super::explain::Answer;
use crate::fleet::{Fleet, FleetArguments};
use crate::outcome::{CommandResult, Verdict};
use crate::output::{self, Format};
use crate::scheduling;
use crate::view::{self, Replica, count, yes_or_no};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  modelplane render -f examples/two-clouds
  modelplane render -f fleet/ -R --no-tree
  modelplane render -f fleet/ --unready Gateway --step
  modelplane render -f fleet/ -o yaml > composed.yaml

The exit code is 1 if no fixed point is reached.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    fleet: FleetArguments,

    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,

    /// Print what each pass creates, changes and makes ready
    #[arg(long)]
    step: bool,

    /// Leave out the tree of composed objects
    #[arg(long)]
    no_tree: bool,
}

impl Arguments {
    pub(crate) fn run(self) -> CommandResult {
        let fleet = self.fleet.load()?;
        let mut simulation = fleet.simulation();
        let outcome = simulation.run();
        match self.output {
            Format::Table => output::print(&self.report(&fleet, &simulation, &outcome))?,
            Format::Yaml => output::print_yaml(simulation.world().iter().map(|object| &object.body))?,
            Format::Json => {
                let items: Vec<&Value> = simulation.world().iter().map(|object| &object.body).collect();
                output::print_json(&json!({"apiVersion": "v1", "kind": "List", "items": items}))?;
            }
        }
        Ok(if outcome.converged { Verdict::Good } else { Verdict::Bad })
    }

    fn report(&self, fleet: &Fleet, simulation: &Simulation, outcome: &Outcome) -> String {
        let mut sections = Vec::new();
        if self.step {
            sections.extend(outcome.passes.iter().zip(1..).map(|(pass, number)| describe_pass(number, pass)));
        }
        if !self.no_tree {
            sections.push(tree::composites(simulation));
        }
        let unplaced = unplaced(simulation.world());
        sections.extend(placements(simulation));
        sections.extend(services(simulation));
        sections.extend(section("NOT PLACED", unplaced.values().cloned()));
        sections.extend(tree::not_composed(simulation));
        let replaced = fleet.replaced.iter().map(|(key, place)| format!("{key} at {place}"));
        sections.extend(section("NOT USED (given again later, and the last one counts)", replaced));
        sections.extend(section("WARNINGS", warnings(simulation, &unplaced)));
        sections.push(summary(simulation, outcome, unplaced.len()));
        sections.join("\n\n") + "\n"
    }
}

/// A heading and lines below it, unless there are none.
fn section(title: &str, lines: impl IntoIterator<Item = String>) -> Option<String> {
    let lines: Vec<String> = lines.into_iter().map(|line| format!("  {line}")).collect();
    (!lines.is_empty()).then(|| format!("{title}\n{}", lines.join("\n")))
}

fn describe_pass(number: usize, pass: &Pass) -> String {
    let mut lines = vec![format!("pass {number}")];
    let groups =
        [("+", &pass.created), ("~", &pass.changed), ("-", &pass.deleted), ("ready", &pass.became_ready)];
    for (sign, keys) in groups {
        // Everything that becomes ready also changes; one line is enough.
        let shown = keys.iter().filter(|key| sign != "~" || !pass.became_ready.contains(key));
        lines.extend(shown.map(|key| format!("  {sign:<5} {key}")));
    }
    if pass.is_quiet() {
        lines.push("  nothing changed: fixed point".to_owned());
    }
    lines.join("\n")
}

/// Where each replica of each deployment lands.
fn placements(simulation: &Simulation) -> Option<String> {
    let urls: BTreeMap<&ObjectKey, &str> = view::of_kind(simulation.world(), "ModelEndpoint")
        .filter_map(|endpoint| Some((&endpoint.key, endpoint.body["spec"]["url"].as_str()?)))
        .collect();
    let rows: Vec<Vec<String>> = view::of_kind(simulation.world(), "ModelReplica")
        .map(|replica| {
            let spec = &replica.body["spec"];
            let endpoint = ObjectKey { kind: "ModelEndpoint".to_owned(), ..replica.key.clone() };
            vec![
                replica.key.namespace.clone(),
                text(&replica.body["metadata"]["labels"]["modelplane.ai/deployment"]),
                replica.key.name.clone(),
                text(&spec["clusterName"]),
                Replica { object: replica }.pools().join(", "),
                yes_or_no(replica.is_ready()),
                urls.get(&endpoint).map_or_else(|| "-".to_owned(), |url| (*url).to_owned()),
            ]
        })
        .collect();
    let headings = ["NAMESPACE", "DEPLOYMENT", "REPLICA", "CLUSTER", "POOL", "READY", "ENDPOINT"];
    (!rows.is_empty()).then(|| format!("PLACEMENTS\n{}", output::table(&headings, rows)))
}

fn services(simulation: &Simulation) -> Option<String> {
    let rows: Vec<Vec<String>> = view::of_kind(simulation.world(), "ModelService")
        .map(|service| {
            let address = service.body["status"]["address"].as_str().unwrap_or("-");
            let name = format!("{}/{}", service.key.namespace, service.key.name);
            vec![name, yes_or_no(service.is_ready()), address.to_owned()]
        })
        .collect();
    (!rows.is_empty()).then(|| format!("SERVICES\n{}", output::table(&["SERVICE", "READY", "ADDRESS"], rows)))
}

/// Deployments with fewer replicas than they want, and why.
fn unplaced(world: &World) -> BTreeMap<&ObjectKey, String> {
    let mut placed: BTreeMap<ObjectKey, usize> = BTreeMap::new();
    for deployment in Replica::all(world).filter_map(Replica::deployment) {
        *placed.entry(deployment).or_default() += 1;
    }
    let deployments = view::of_kind(world, "ModelDeployment");
    let short = deployments.filter(|deployment| {
        let wanted = deployment.body["spec"]["replicas"].as_u64().unwrap_or(1);
        placed.get(&deployment.key).copied().unwrap_or_default() < usize::try_from(wanted).unwrap_or(0)
    });
    let explained = short.map(|deployment| {
        let why = match scheduling::report(world, world, deployment) {
            Ok(report) => Answer::new(world, deployment, &report).sentence,
            Err(error) => error.to_string(),
        };
        let name = view::full_name(&deployment.key);
        (&deployment.key, format!("{name}: {why}"))
    });
    explained.collect()
}

/// What compositions complained about last, of what is not said already.
fn warnings(simulation: &Simulation, unplaced: &BTreeMap<&ObjectKey, String>) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, latest) in simulation.latest().iter().filter(|(key, _)| !unplaced.contains_key(key)) {
        lines.extend(latest.error.iter().map(|error| format!("error: {error}")));
        let warnings = latest.events.iter().filter(|event| event.severity == Severity::Warning);
        lines.extend(warnings.map(|event| format!("{key}: {}", event.message)));
    }
    lines
}

fn summary(simulation: &Simulation, outcome: &Outcome, unplaced: usize) -> String {
    let world = simulation.world();
    let composites = world.iter().filter(|object| object.is_composite()).count();
    let composed = world.iter().filter(|object| object.owner.is_some()).count();
    let waiting: Vec<String> = world
        .iter()
        .filter(|object| object.is_composite() && !object.is_ready())
        .map(|object| object.key.to_string())
        .collect();
    let passes = count(outcome.passes.len(), "pass");
    let end = match outcome.converged {
        true => format!("fixed point after {passes}"),
        false => format!("no fixed point after {passes}"),
    };
    let ready = match waiting.as_slice() {
        [] => "all composites ready".to_owned(),
        names => format!("{} not ready: {}", names.len(), names.join(", ")),
    };
    let short = match unplaced {
        0 => String::new(),
        number => format!("; {} short of replicas", count(number, "deployment")),
    };
    let composed = count(composed, "composed object");
    format!("{}, {composed}; {end}; {ready}{short}", count(composites, "composite"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("-").to_owned()
}
