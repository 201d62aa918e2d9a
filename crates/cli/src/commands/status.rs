//! `modelplane status`: the fleet at a glance.

use clap::Args;
use modelplane_core::schedule::{self, Capacity, PoolCapacity};
use modelplane_core::simulate::{StoredObject, World};
use serde::Serialize;

use crate::fleet::FleetOrLiveArguments;
use crate::outcome::{CommandResult, Verdict};
use crate::output::{self, Format};
use crate::view::{
    Replica, backends, count, failing_condition, full_name, of_kind, or_dash, resources, text, yes_or_no,
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  modelplane status
  modelplane status -f examples/two-clouds

Without -f the running control plane is read, by $KUBECONFIG or --kubeconfig. With it, figures are those of a
simulation in which everything that can become ready has.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    fleet: FleetOrLiveArguments,

    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// The fleet.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    summary: String,
    clusters: Vec<Cluster>,
    deployments: Vec<Deployment>,
    services: Vec<Service>,
    caches: Vec<Cache>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cluster {
    name: String,
    source: String,
    ready: bool,
    gateway: Option<String>,
    taints: Vec<String>,
    replicas: usize,
    pools: Vec<PoolCapacity>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Deployment {
    name: String,
    wanted: i64,
    placed: usize,
    ready: usize,
    clusters: Vec<String>,
    /// Why it has fewer replicas than it wants, in one word.
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Service {
    name: String,
    ready: bool,
    endpoints: usize,
    address: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cache {
    name: String,
    ready: bool,
    /// Clusters that hold the weights, of those matched.
    staged: String,
}

impl Arguments {
    pub(crate) fn run(self) -> CommandResult {
        let (simulation, converged) = self.fleet.settled()?;
        let status = Status::of(simulation.world());
        match self.output {
            Format::Table => output::print(&status.describe())?,
            Format::Json => output::print_json(&status)?,
            Format::Yaml => output::print_yaml([&output::to_json(&status)?])?,
        }
        Ok(if converged { Verdict::Good } else { Verdict::Bad })
    }
}

impl Status {
    fn of(world: &World) -> Self {
        let capacity =
            schedule::capacity(&resources(world, "InferenceCluster"), &resources(world, "ModelReplica"));
        let mut status = Self {
            summary: String::new(),
            clusters: clusters(world, capacity),
            deployments: of_kind(world, "ModelDeployment").map(|object| deployment(world, object)).collect(),
            services: of_kind(world, "ModelService").map(|object| service(world, object)).collect(),
            caches: of_kind(world, "ModelCache").map(cache).collect(),
        };
        status.summary = status.summarize();
        status
    }

    fn summarize(&self) -> String {
        let ready = self.clusters.iter().filter(|cluster| cluster.ready).count();
        let pools = || self.clusters.iter().flat_map(|cluster| &cluster.pools);
        let nodes = pools().fold(0i64, |sum, pool| sum.saturating_add(pool.nodes));
        let used = pools().fold(0i64, |sum, pool| sum.saturating_add(pool.used));
        let wanted: i64 = self.deployments.iter().map(|deployment| deployment.wanted).sum();
        let serving: usize = self.deployments.iter().map(|deployment| deployment.ready).sum();
        format!(
            "{ready} of {} clusters ready, {used} of {nodes} nodes used; {}, {serving} of {wanted} replicas ready; {}",
            self.clusters.len(),
            count(self.deployments.len(), "deployment"),
            count(self.services.len(), "service"),
        )
    }

    fn describe(&self) -> String {
        let clusters = self.clusters.iter().map(|cluster| {
            let gateway = cluster.gateway.clone().unwrap_or_default();
            let taints = or_dash(&cluster.taints.join(","));
            let (ready, replicas) = (yes_or_no(cluster.ready), cluster.replicas.to_string());
            vec![cluster.name.clone(), cluster.source.clone(), ready, replicas, or_dash(&gateway), taints]
        });
        let pools = self.clusters.iter().flat_map(|cluster| {
            cluster.pools.iter().map(|pool| {
                let devices = pool.devices.iter().map(|device| format!("{}x {}", device.count, device.name));
                let devices = devices.collect::<Vec<_>>().join(", ");
                let [nodes, used, free] = [pool.nodes, pool.used, pool.free].map(|number| number.to_string());
                vec![cluster.name.clone(), pool.name.clone(), or_dash(&devices), nodes, used, free]
            })
        });
        let deployments = self.deployments.iter().map(|deployment| {
            let placed = format!("{}/{}", deployment.placed, deployment.wanted);
            let ready = format!("{}/{}", deployment.ready, deployment.wanted);
            let clusters = or_dash(&crate::view::some_of(&deployment.clusters, 4));
            vec![deployment.name.clone(), placed, ready, clusters, or_dash(&deployment.reason)]
        });
        let services = self.services.iter().map(|service| {
            let (ready, endpoints) = (yes_or_no(service.ready), service.endpoints.to_string());
            vec![service.name.clone(), ready, endpoints, or_dash(&service.address)]
        });
        let caches = self
            .caches
            .iter()
            .map(|cache| vec![cache.name.clone(), yes_or_no(cache.ready), or_dash(&cache.staged)]);
        let sections = [
            section("CLUSTERS", &["NAME", "SOURCE", "READY", "REPLICAS", "GATEWAY", "TAINTS"], clusters),
            section("POOLS", &["CLUSTER", "POOL", "DEVICES PER NODE", "NODES", "USED", "FREE"], pools),
            section("DEPLOYMENTS", &["NAME", "PLACED", "READY", "CLUSTERS", "REASON"], deployments),
            section("SERVICES", &["NAME", "READY", "ENDPOINTS", "ADDRESS"], services),
            section("MODEL CACHES", &["NAME", "READY", "STAGED"], caches),
        ];
        let sections: Vec<String> =
            std::iter::once(self.summary.clone()).chain(sections.into_iter().flatten()).collect();
        sections.join("\n\n") + "\n"
    }
}

fn section(title: &str, headings: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Option<String> {
    let rows: Vec<Vec<String>> = rows.collect();
    (!rows.is_empty()).then(|| format!("{title}\n{}", output::table(headings, rows)))
}

fn clusters(world: &World, capacity: Capacity) -> Vec<Cluster> {
    let describe = |capacity: schedule::ClusterCapacity| {
        let object = of_kind(world, "InferenceCluster").find(|object| object.key.name == capacity.name);
        let source = object.map(|object| text(&object.body, &["spec", "cluster", "source"]));
        Cluster {
            replicas: Replica::all(world).filter(|replica| replica.cluster() == capacity.name).count(),
            source: or_dash(source.unwrap_or_default()),
            ready: capacity.ready,
            gateway: capacity.gateway,
            taints: capacity.taints,
            pools: capacity.pools,
            name: capacity.name,
        }
    };
    capacity.clusters.into_iter().map(describe).collect()
}

fn deployment(world: &World, object: &StoredObject) -> Deployment {
    let replicas: Vec<Replica<'_>> =
        Replica::all(world).filter(|replica| replica.deployment().as_ref() == Some(&object.key)).collect();
    let mut clusters: Vec<String> = replicas.iter().map(|replica| replica.cluster().to_owned()).collect();
    clusters.sort();
    clusters.dedup();
    let wanted = object.body["spec"]["replicas"].as_i64().unwrap_or(1);
    let short = i64::try_from(replicas.len()).is_ok_and(|placed| placed < wanted);
    let reason = failing_condition(object).filter(|_| short).map(|condition| condition.reason);
    Deployment {
        name: full_name(&object.key),
        wanted,
        placed: replicas.len(),
        ready: replicas.iter().filter(|replica| replica.object.is_ready()).count(),
        clusters,
        reason: reason
            .unwrap_or_else(|| if short { "InsufficientCapacity".to_owned() } else { String::new() }),
    }
}

fn service(world: &World, object: &StoredObject) -> Service {
    Service {
        name: full_name(&object.key),
        ready: object.is_ready(),
        endpoints: backends(world, &object.key).len(),
        address: text(&object.body, &["status", "address"]).to_owned(),
    }
}

fn cache(object: &StoredObject) -> Cache {
    Cache {
        name: full_name(&object.key),
        ready: object.is_ready(),
        staged: text(&object.body, &["status", "summary", "ready"]).to_owned(),
    }
}
