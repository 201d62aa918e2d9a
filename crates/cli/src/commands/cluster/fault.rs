//! `modelplane cluster fault` and `heal`: what is wrong with a simulated cluster.

use clap::Args;
use serde_json::{Map, Value, json};

use super::SIMULATED;
use crate::live::LiveArguments;
use crate::outcome::{CommandError, CommandResult, Verdict};
use crate::output::print;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  modelplane cluster fault dc-east --lose-nodes l4=4
  modelplane cluster fault dc-east --gateway-down
  modelplane cluster heal dc-east

Faults add up; `heal` ends them all.")]
pub(crate) struct FaultArguments {
    /// Name of the cluster
    name: String,

    /// Its API server stops answering
    #[arg(long)]
    unreachable: bool,

    /// Its gateway refuses connections
    #[arg(long)]
    gateway_down: bool,

    /// Each answer takes this much longer, such as 500ms
    #[arg(long, value_name = "DURATION")]
    slow: Option<String>,

    /// Its engines answer 503
    #[arg(long)]
    overloaded: bool,

    /// This many nodes of a pool stop reporting; repeatable
    #[arg(long, value_name = "POOL=NODES")]
    lose_nodes: Vec<Loss>,

    #[command(flatten)]
    live: LiveArguments,
}

#[derive(Debug, Args)]
pub(crate) struct HealArguments {
    /// Name of the cluster
    name: String,

    #[command(flatten)]
    live: LiveArguments,
}

#[derive(Debug, Clone)]
struct Loss {
    pool: String,
    nodes: u32,
}

impl std::str::FromStr for Loss {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (pool, nodes) = text.split_once('=').ok_or_else(|| format!("{text:?} is not POOL=NODES"))?;
        let nodes = nodes.parse().map_err(|_| format!("{nodes:?} is not a number of nodes"))?;
        Ok(Self { pool: pool.to_owned(), nodes })
    }
}

impl FaultArguments {
    pub(super) async fn run(self) -> CommandResult {
        let faults = self.faults();
        if faults.is_empty() {
            return Err(CommandError::new("nothing to go wrong was named")
                .with_hint("give --unreachable, --gateway-down, --slow, --overloaded or --lose-nodes"));
        }
        change(&self.live, &self.name, json!(faults)).await?;
        print(&format!(
            "cluster {} now fails as asked; end it with: modelplane cluster heal {}\n",
            self.name, self.name
        ))?;
        Ok(Verdict::Good)
    }

    fn faults(&self) -> Map<String, Value> {
        let mut faults = Map::new();
        for (key, set) in [
            ("unreachable", self.unreachable),
            ("gatewayDown", self.gateway_down),
            ("overloaded", self.overloaded),
        ] {
            if set {
                faults.insert(key.to_owned(), json!(true));
            }
        }
        if let Some(slow) = &self.slow {
            faults.insert("slowdown".to_owned(), json!(slow));
        }
        if !self.lose_nodes.is_empty() {
            let lost: Map<String, Value> =
                self.lose_nodes.iter().map(|loss| (loss.pool.clone(), json!(loss.nodes))).collect();
            faults.insert("lostNodes".to_owned(), Value::Object(lost));
        }
        faults
    }
}

impl HealArguments {
    pub(super) async fn run(self) -> CommandResult {
        change(&self.live, &self.name, Value::Null).await?;
        print(&format!("cluster {} works again\n", self.name))?;
        Ok(Verdict::Good)
    }
}

/// Merges into the faults of a cluster; null ends them all.
async fn change(live: &LiveArguments, name: &str, faults: Value) -> Result<(), CommandError> {
    let live = live.connect().await?;
    if live.get(SIMULATED, "", name).await?.is_none() {
        return Err(CommandError::new(format!("there is no simulated cluster {name}"))
            .with_hint("`modelplane cluster list` shows those there are"));
    }
    live.merge(SIMULATED, name, &json!({"spec": {"faults": faults}})).await
}
