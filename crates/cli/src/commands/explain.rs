//! `modelplane explain`: why something is as it is, for an operator who has no time.
//!
//! The answer comes first, in one sentence; then what it rests on; then what would help.

mod answer;
mod cluster;
mod deployment;
mod general;
mod others;

pub(crate) use answer::Answer;
use clap::Args;
use modelplane_core::schedule::Report;
use modelplane_core::simulate::{StoredObject, World};
use serde::Serialize;

use crate::fleet::FleetOrLiveArguments;
use crate::outcome::{CommandResult, Verdict};
use crate::output::{self, Format};
use crate::resolve;
use crate::view::{Condition, conditions, full_name};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  modelplane explain modeldeployment/qwen -n ml-team
  modelplane explain modeldeployment/qwen -n ml-team -f fleet/
  modelplane explain md/big -f examples/does-not-fit
  modelplane explain ic/edge-1 -f fleet/ --unready Gateway

Without -f the running control plane is read, by $KUBECONFIG or --kubeconfig; nothing is written.
A kind can be written in full, in the plural or short (md, mr, ms, mc, ic, ...), in any case.")]
pub(crate) struct Arguments {
    /// What to explain: KIND/NAME, or KIND NAME
    #[arg(required = true, num_args = 1..=2, value_name = "KIND/NAME")]
    reference: Vec<String>,

    /// Namespace of the object; may be left out if the name is unique
    #[arg(short, long)]
    namespace: Option<String>,

    #[command(flatten)]
    fleet: FleetOrLiveArguments,

    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// What is said about an object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation {
    /// The object.
    kind: String,
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    /// The one thing to know.
    answer: String,
    /// What it rests on.
    #[serde(serialize_with = "by_title")]
    sections: Vec<Section>,
    /// What would help, most promising first.
    help: Vec<String>,
    conditions: Vec<Condition>,
    /// What the scheduler says, for a deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<Report>,
}

/// Facts under a heading.
#[derive(Debug)]
struct Section {
    title: &'static str,
    lines: Vec<String>,
}

impl Section {
    fn new(title: &'static str, lines: Vec<String>) -> Self {
        Self { title, lines }
    }

    /// A section whose lines are a table.
    fn table(title: &'static str, headings: &[&str], rows: Vec<Vec<String>>) -> Self {
        let lines = match rows.is_empty() {
            true => Vec::new(),
            false => output::table(headings, rows).lines().map(str::to_owned).collect(),
        };
        Self { title, lines }
    }
}

fn by_title<S: serde::Serializer>(sections: &[Section], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(sections.iter().map(|section| (section.title.to_lowercase(), &section.lines)))
}

impl Explanation {
    fn of(object: &StoredObject, answer: String) -> Self {
        Self {
            kind: object.key.kind.clone(),
            name: object.key.name.clone(),
            namespace: object.key.namespace.clone(),
            answer,
            sections: Vec::new(),
            help: Vec::new(),
            conditions: conditions(object),
            report: None,
        }
    }

    /// Adds a section, unless it is empty.
    fn with(mut self, section: Section) -> Self {
        if !section.lines.is_empty() {
            self.sections.push(section);
        }
        self
    }

    fn describe(&self) -> String {
        let mut text = format!("{}\n", self.answer);
        let mut section = |title: &str, lines: &[String]| {
            if !lines.is_empty() {
                text.push_str(&format!("\n{title}\n"));
                lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
            }
        };
        for Section { title, lines } in &self.sections {
            section(title, lines);
        }
        let help: Vec<String> = self.help.iter().map(|line| format!("* {line}")).collect();
        section("WHAT WOULD HELP", &help);
        let conditions: Vec<String> = match self.conditions.is_empty() {
            true => Vec::new(),
            false => {
                let rows = self.conditions.iter().map(|condition| {
                    let Condition { about, status, reason, message } = condition.clone();
                    vec![about, status, reason, message]
                });
                let table = output::table(&["TYPE", "STATUS", "REASON", "MESSAGE"], rows);
                table.lines().map(str::to_owned).collect()
            }
        };
        section("CONDITIONS", &conditions);
        text
    }
}

impl Arguments {
    pub(crate) fn run(self) -> CommandResult {
        let (simulation, converged) = self.fleet.settled()?;
        let world = simulation.world();
        let object = resolve::object(world, &self.reference, self.namespace.as_deref())?;
        let explanation = explain(world, object);
        match self.output {
            Format::Table => {
                output::print(&format!("{}: {}", header(object), explanation.describe()))?;
            }
            Format::Json => output::print_json(&explanation)?,
            Format::Yaml => output::print_yaml([&output::to_json(&explanation)?])?,
        }
        Ok(if converged { Verdict::Good } else { Verdict::Bad })
    }
}

fn header(object: &StoredObject) -> String {
    format!("{} {}", object.key.kind, full_name(&object.key))
}

fn explain(world: &World, object: &StoredObject) -> Explanation {
    match object.key.kind.as_str() {
        "ModelDeployment" => deployment::explain(world, object),
        "InferenceCluster" => cluster::explain(world, object),
        "ModelReplica" => others::replica(world, object),
        "ModelService" => others::service(world, object),
        "ModelEndpoint" => others::endpoint(world, object),
        "ModelCache" => others::cache(world, object),
        "InferenceClass" => others::class(world, object),
        "InferenceGateway" => others::gateway(world, object),
        _ => general::explain(world, object),
    }
}
