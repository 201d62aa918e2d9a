//! `modelplane cluster simulate`: a simulated cluster with the InferenceCluster that it stands behind.

use clap::Args;
use modelplane_core::catalog;
use serde_json::{Map, Value, json};

use super::{CLUSTER, SIMULATED};
use crate::live::{Live, LiveArguments};
use crate::outcome::{CommandError, CommandResult, Verdict};
use crate::output::print;

/// The kind of hardware classes.
const CLASS: (&str, &str) = ("modelplane.ai/v1alpha1", "InferenceClass");

#[derive(Debug, Args)]
#[command(after_help = "Example:
  modelplane cluster simulate west --pool h100=existing-h100-8x:2 --label modelplane.ai/region=us-west

A class that the control plane does not have is taken from the catalog (`modelplane catalog list`).")]
pub(crate) struct Arguments {
    /// Name of the cluster
    name: String,

    /// A node pool: its name, the InferenceClass of its nodes, and their number; repeatable
    #[arg(long = "pool", value_name = "POOL=CLASS[:NODES]", required = true)]
    pools: Vec<Pool>,

    /// A label of the InferenceCluster; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<Label>,

    /// How long a pod takes to become ready, such as 500ms or 2m [default: 1s]
    #[arg(long, value_name = "DURATION")]
    ready_after: Option<String>,

    /// How long an engine takes for each token [default: no time]
    #[arg(long, value_name = "DURATION")]
    token_time: Option<String>,

    #[command(flatten)]
    live: LiveArguments,
}

#[derive(Debug, Clone)]
struct Pool {
    name: String,
    class: String,
    nodes: u32,
}

impl std::str::FromStr for Pool {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape =
            || format!("{text:?} is not POOL=CLASS or POOL=CLASS:NODES, such as h100=existing-h100-8x:2");
        let (name, rest) = text.split_once('=').ok_or_else(shape)?;
        let (class, nodes) = rest.split_once(':').unwrap_or((rest, "1"));
        let nodes = nodes.parse().map_err(|_| format!("{nodes:?} is not a number of nodes"))?;
        if name.is_empty() || class.is_empty() {
            return Err(shape());
        }
        Ok(Self { name: name.to_owned(), class: class.to_owned(), nodes })
    }
}

#[derive(Debug, Clone)]
struct Label(String, String);

impl std::str::FromStr for Label {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not KEY=VALUE"))?;
        Ok(Self(key.to_owned(), value.to_owned()))
    }
}

impl Arguments {
    pub(super) async fn run(self) -> CommandResult {
        let live = self.live.connect().await?;
        for pool in &self.pools {
            provide_class(&live, &pool.class).await?;
        }
        let mut spec = Map::new();
        for (key, value) in [("readyAfter", &self.ready_after), ("tokenTime", &self.token_time)] {
            if let Some(value) = value {
                spec.insert(key.to_owned(), json!(value));
            }
        }
        live.apply(&json!({
            "apiVersion": SIMULATED.0, "kind": SIMULATED.1, "metadata": {"name": self.name}, "spec": spec,
        }))
        .await?;
        live.apply(&self.cluster()).await?;
        print(&format!(
            "cluster {} is being simulated; watch it with: kubectl get inferencecluster {} -w\n",
            self.name, self.name
        ))?;
        Ok(Verdict::Good)
    }

    fn cluster(&self) -> Value {
        let labels: Map<String, Value> =
            self.labels.iter().map(|Label(key, value)| (key.clone(), json!(value))).collect();
        let pools: Vec<Value> = self
            .pools
            .iter()
            .map(|pool| json!({"name": pool.name, "className": pool.class, "nodeCount": pool.nodes}))
            .collect();
        let secret = json!({"name": format!("{}-kubeconfig", self.name)});
        json!({
            "apiVersion": CLUSTER.0, "kind": CLUSTER.1, "metadata": {"name": self.name, "labels": labels},
            "spec": {
                "cluster": {"source": "Existing", "existing": {"secretRef": secret}},
                "nodePools": pools,
            },
        })
    }
}

/// Takes a class from the catalog unless the control plane has one of that name.
async fn provide_class(live: &Live, name: &str) -> Result<(), CommandError> {
    if live.get(CLASS, "", name).await?.is_some() {
        return Ok(());
    }
    let entry = catalog::show(name).ok_or_else(|| {
        CommandError::new(format!(
            "there is no InferenceClass {name}, neither on the control plane nor in the catalog"
        ))
        .with_hint("apply one, or choose one that `modelplane catalog list` shows")
    })?;
    let class: Value = serde_saphyr::from_str(entry.yaml)
        .map_err(|error| CommandError::new(format!("class {name} of the catalog cannot be read: {error}")))?;
    live.apply(&class).await
}

#[cfg(test)]
mod tests {
    use super::Pool;

    #[test]
    fn a_pool_is_a_name_a_class_and_perhaps_a_number() {
        for (text, expected) in [
            ("gpu=h100:4", Ok(("gpu", "h100", 4))),
            ("gpu=h100", Ok(("gpu", "h100", 1))),
            ("gpu", Err(())),
            ("=h100", Err(())),
            ("gpu=h100:x", Err(())),
            ("gpu=h100:-1", Err(())),
        ] {
            let parsed: Result<Pool, String> = text.parse();
            let parsed = parsed.as_ref().map(|pool| (pool.name.as_str(), pool.class.as_str(), pool.nodes));
            assert_eq!(parsed.map_err(|_| ()), expected, "{text}");
        }
    }
}
