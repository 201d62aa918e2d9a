//! `modelplane cluster kubeconfig`: how the fleet reaches a cluster.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use modelplane_api::names::SYSTEM_NAMESPACE;

use super::CLUSTER;
use crate::live::LiveArguments;
use crate::outcome::{CommandError, CommandResult, Verdict};
use crate::output::print;

#[derive(Debug, Args)]
#[command(after_help = "Example:
  modelplane cluster kubeconfig dc-east > dc-east.yaml
  kubectl --kubeconfig dc-east.yaml get pods -o wide")]
pub(crate) struct Arguments {
    /// Name of the InferenceCluster
    name: String,

    #[command(flatten)]
    live: LiveArguments,
}

impl Arguments {
    pub(super) async fn run(self) -> CommandResult {
        let live = self.live.connect().await?;
        let name = &self.name;
        let cluster = live
            .get(CLUSTER, "", name)
            .await?
            .ok_or_else(|| CommandError::new(format!("there is no InferenceCluster {name}")))?;
        let reference = &cluster["spec"]["cluster"]["existing"]["secretRef"];
        let Some(secret_name) = reference["name"].as_str() else {
            return Err(CommandError::new(format!("InferenceCluster {name} is not of source Existing"))
                .with_hint("kubeconfigs of provisioned clusters are in the connection Secrets of their cloud's objects"));
        };
        let key = reference["key"].as_str().unwrap_or("kubeconfig");
        let secret = live.get(("v1", "Secret"), SYSTEM_NAMESPACE, secret_name).await?;
        let missing = || {
            CommandError::new(format!("Secret {SYSTEM_NAMESPACE}/{secret_name} has no entry {key} yet"))
                .with_hint("a simulated cluster publishes it once it runs: see `modelplane cluster list`")
        };
        let encoded = secret.as_ref().and_then(|secret| secret["data"][key].as_str()).ok_or_else(missing)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| missing())?;
        print(&String::from_utf8_lossy(&bytes))?;
        Ok(Verdict::Good)
    }
}
