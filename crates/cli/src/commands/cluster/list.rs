//! `modelplane cluster list`: the simulated clusters.

use clap::Args;
use serde_json::Value;

use super::SIMULATED;
use crate::live::LiveArguments;
use crate::outcome::{CommandResult, Verdict};
use crate::output::{self, Format, table};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,

    #[command(flatten)]
    live: LiveArguments,
}

impl Arguments {
    pub(super) async fn run(self) -> CommandResult {
        let clusters = self.live.connect().await?.list(SIMULATED).await?;
        match self.output {
            Format::Yaml => output::print_yaml(&clusters)?,
            Format::Json => output::print_json(&clusters)?,
            Format::Table => {
                let rows = clusters.iter().map(row);
                output::print(&(table(&["NAME", "NODES", "API SERVER", "GATEWAY", "FAULTS"], rows) + "\n"))?;
            }
        }
        Ok(Verdict::Good)
    }
}

fn row(cluster: &Value) -> Vec<String> {
    let text = |pointer: &str| match cluster.pointer(pointer) {
        Some(Value::String(text)) if !text.is_empty() => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => "-".to_owned(),
    };
    let faults: Vec<String> = cluster["spec"]["faults"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| if *value == true { name.clone() } else { format!("{name}={value}") })
        .collect();
    let faults = if faults.is_empty() { "-".to_owned() } else { faults.join(" ") };
    vec![
        text("/metadata/name"),
        text("/status/nodes"),
        text("/status/server"),
        text("/status/gateway"),
        faults,
    ]
}
