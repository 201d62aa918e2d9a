//! `modelplane cluster remove`: takes a simulated cluster out of the fleet.

use std::time::{Duration, Instant};

use clap::Args;

use super::{CLUSTER, SIMULATED};
use crate::live::LiveArguments;
use crate::outcome::{CommandError, CommandResult, Verdict};
use crate::output::print;

/// Longest to wait for the fleet to let go of the cluster.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name of the cluster
    name: String,

    #[command(flatten)]
    live: LiveArguments,
}

impl Arguments {
    /// The InferenceCluster goes first, held until its replicas are gone; what it runs on goes last.
    pub(super) async fn run(self) -> CommandResult {
        let live = self.live.connect().await?;
        let name = &self.name;
        if live.get(SIMULATED, "", name).await?.is_none() {
            return Err(CommandError::new(format!("there is no simulated cluster {name}"))
                .with_hint("`modelplane cluster list` shows those there are"));
        }
        live.delete(CLUSTER, name).await?;
        let deadline = Instant::now() + PATIENCE;
        while live.get(CLUSTER, "", name).await?.is_some() {
            if Instant::now() > deadline {
                return Err(CommandError::new(format!("InferenceCluster {name} is still being deleted"))
                    .with_hint(format!("`kubectl describe inferencecluster {name}` says what holds it")));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        live.delete(SIMULATED, name).await?;
        print(&format!("cluster {name} is gone\n"))?;
        Ok(Verdict::Good)
    }
}
