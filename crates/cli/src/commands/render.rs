//! `modelplane render`: everything that manifests lead to, without a server.

mod tree;

use std::collections::BTreeMap;

use clap::Args;
use modelplane_core::simulate::{ObjectKey, Outcome, Pass, Simulation, StoredObject};
use serde_json::{Value, json};

use crate::fleet::FleetArguments;
use crate::outcome::{CommandResult, Verdict};
use crate::output::{self, Format};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    fleet: FleetArguments,

    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,

    /// Print what each pass creates, changes and makes ready
    #[arg(long)]
    step: bool,
}

impl Arguments {
    pub(crate) fn run(self) -> CommandResult {
        let fleet = self.fleet.load()?;
        let mut simulation = fleet.simulation();
        let outcome = simulation.run();
        match self.output {
            Format::Table => output::print(&self.report(&simulation, &outcome))?,
            Format::Yaml => output::print_yaml(simulation.world().iter().map(|object| &object.body))?,
            Format::Json => {
                let items: Vec<&Value> = simulation.world().iter().map(|object| &object.body).collect();
                output::print_json(&json!({"apiVersion": "v1", "kind": "List", "items": items}))?;
            }
        }
        Ok(if outcome.converged { Verdict::Good } else { Verdict::Bad })
    }

    fn report(&self, simulation: &Simulation, outcome: &Outcome) -> String {
        let mut sections = Vec::new();
        if self.step {
            sections.extend(outcome.passes.iter().zip(1..).map(|(pass, number)| describe_pass(number, pass)));
        }
        sections.push(tree::composites(simulation));
        sections.extend(placements(simulation));
        sections.extend(services(simulation));
        sections.extend(tree::not_composed(simulation));
        sections.extend(notices(outcome));
        sections.push(summary(simulation, outcome));
        sections.join("\n\n") + "\n"
    }
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

fn of_kind<'s>(simulation: &'s Simulation, kind: &'s str) -> impl Iterator<Item = &'s StoredObject> {
    simulation.world().iter().filter(move |object| object.is_composite() && object.key.kind == kind)
}

/// Where each replica of each deployment lands.
fn placements(simulation: &Simulation) -> Option<String> {
    let urls: BTreeMap<&ObjectKey, &str> = of_kind(simulation, "ModelEndpoint")
        .filter_map(|endpoint| Some((&endpoint.key, endpoint.body["spec"]["url"].as_str()?)))
        .collect();
    let rows: Vec<Vec<String>> = of_kind(simulation, "ModelReplica")
        .map(|replica| {
            let spec = &replica.body["spec"];
            let endpoint = ObjectKey { kind: "ModelEndpoint".to_owned(), ..replica.key.clone() };
            vec![
                replica.key.namespace.clone(),
                text(&replica.body["metadata"]["labels"]["modelplane.ai/deployment"]),
                replica.key.name.clone(),
                text(&spec["clusterName"]),
                pools(spec),
                yes_or_no(replica.is_ready()),
                urls.get(&endpoint).map_or_else(|| "-".to_owned(), |url| (*url).to_owned()),
            ]
        })
        .collect();
    let headings = ["NAMESPACE", "DEPLOYMENT", "REPLICA", "CLUSTER", "POOL", "READY", "ENDPOINT"];
    (!rows.is_empty()).then(|| format!("PLACEMENTS\n{}", output::table(&headings, rows)))
}

/// The distinct pools of a replica's members, in order.
fn pools(spec: &Value) -> String {
    let engines = spec["engines"].as_array().into_iter().flatten();
    let members = engines.flat_map(|engine| engine["members"].as_array().into_iter().flatten());
    let mut names: Vec<&str> = members.filter_map(|member| member["nodePoolName"].as_str()).collect();
    names.dedup();
    names.join(", ")
}

fn services(simulation: &Simulation) -> Option<String> {
    let rows: Vec<Vec<String>> = of_kind(simulation, "ModelService")
        .map(|service| {
            let address = service.body["status"]["address"].as_str().unwrap_or("-");
            let name = format!("{}/{}", service.key.namespace, service.key.name);
            vec![name, yes_or_no(service.is_ready()), address.to_owned()]
        })
        .collect();
    (!rows.is_empty()).then(|| format!("SERVICES\n{}", output::table(&["SERVICE", "READY", "ADDRESS"], rows)))
}

/// What the last pass complained about.
fn notices(outcome: &Outcome) -> Option<String> {
    let last = outcome.passes.last()?;
    let errors = last.errors.iter().map(|(_, text)| format!("  error: {text}"));
    let warnings = last
        .events
        .iter()
        .filter(|(_, severity, _)| *severity == modelplane_core::contract::Severity::Warning)
        .map(|(key, _, text)| format!("  {key}: {text}"));
    let lines: Vec<String> = errors.chain(warnings).collect();
    (!lines.is_empty()).then(|| format!("WARNINGS\n{}", lines.join("\n")))
}

fn summary(simulation: &Simulation, outcome: &Outcome) -> String {
    let world = simulation.world();
    let composites = world.iter().filter(|object| object.is_composite()).count();
    let composed = world.iter().filter(|object| object.owner.is_some()).count();
    let waiting: Vec<String> = world
        .iter()
        .filter(|object| object.is_composite() && !object.is_ready())
        .map(|object| object.key.to_string())
        .collect();
    let end = match outcome.converged {
        true => format!("fixed point after {} passes", outcome.passes.len()),
        false => format!("no fixed point after {} passes", outcome.passes.len()),
    };
    let ready = match waiting.as_slice() {
        [] => "all composites ready".to_owned(),
        names => format!("{} not ready: {}", names.len(), names.join(", ")),
    };
    format!("{composites} composites, {composed} composed objects; {end}; {ready}")
}

fn yes_or_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("-").to_owned()
}
