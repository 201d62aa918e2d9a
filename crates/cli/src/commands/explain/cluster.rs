//! Explains an InferenceCluster: is it up, what has it got, who is on it.

use modelplane_core::schedule::{self, ClusterCapacity};
use modelplane_core::simulate::{StoredObject, World};

use super::{Explanation, Section, general};
use crate::view::{Replica, count, full_name, of_kind, or_dash, resources, text};

pub(super) fn explain(world: &World, cluster: &StoredObject) -> Explanation {
    let name = &cluster.key.name;
    let capacity =
        schedule::capacity(&resources(world, "InferenceCluster"), &resources(world, "ModelReplica"));
    let capacity = capacity.clusters.into_iter().find(|capacity| capacity.name == *name);
    let replicas: Vec<Replica<'_>> =
        Replica::all(world).filter(|replica| replica.cluster() == name).collect();
    let answer = answer(world, cluster, capacity.as_ref(), replicas.len());
    let mut explanation = Explanation::of(cluster, answer)
        .with(general::waits_for(world, cluster))
        .with(pools(cluster, capacity.as_ref(), &replicas))
        .with(Section::new("TAINTS", capacity.map(|capacity| capacity.taints).unwrap_or_default()))
        .with(replica_section(&replicas))
        .with(caches(world, name));
    explanation.help = missing_classes(world, cluster);
    explanation
}

fn answer(
    world: &World,
    cluster: &StoredObject,
    capacity: Option<&ClusterCapacity>,
    replicas: usize,
) -> String {
    if !cluster.is_ready() {
        return general::not_ready(world, cluster);
    }
    let Some(capacity) = capacity else { return "ready, but it publishes no capacity".to_owned() };
    let (nodes, used) = capacity.pools.iter().fold((0i64, 0i64), |(nodes, used), pool| {
        (nodes.saturating_add(pool.nodes), used.saturating_add(pool.used))
    });
    let gateway = match &capacity.gateway {
        Some(address) => format!("gateway at {address}"),
        None => "no gateway address, so it takes no replicas".to_owned(),
    };
    let closed = match capacity.taints.is_empty() {
        true => "",
        false => "; tainted, so only deployments that tolerate it come",
    };
    format!("ready, {gateway}; {used} of {nodes} nodes used by {}{closed}", count(replicas, "replica"))
}

fn pools(cluster: &StoredObject, capacity: Option<&ClusterCapacity>, replicas: &[Replica<'_>]) -> Section {
    let written = cluster.body["spec"]["nodePools"].as_array().into_iter().flatten();
    let rows = written.map(|pool| {
        let name = text(pool, &["name"]);
        let class = text(pool, &["className"]).to_owned();
        let published = capacity.and_then(|capacity| capacity.pools.iter().find(|pool| pool.name == name));
        let numbers = match published {
            Some(pool) => [pool.nodes, pool.used, pool.free].map(|number| number.to_string()),
            None => ["not published", "-", "-"].map(str::to_owned),
        };
        let devices = published.map(|pool| {
            let devices = pool.devices.iter();
            devices.map(|device| format!("{}x {}", device.count, device.name)).collect::<Vec<_>>().join(", ")
        });
        let on_pool = replicas.iter().filter(|replica| replica.pools().contains(&name)).count();
        let [nodes, used, free] = numbers;
        let devices = or_dash(&devices.unwrap_or_default());
        vec![name.to_owned(), class, devices, nodes, used, free, on_pool.to_string()]
    });
    let headings = ["POOL", "CLASS", "DEVICES PER NODE", "NODES", "USED", "FREE", "REPLICAS"];
    Section::table("POOLS", &headings, rows.collect())
}

fn replica_section(replicas: &[Replica<'_>]) -> Section {
    let rows = replicas.iter().map(|replica| {
        let deployment = replica.deployment().map(|key| full_name(&key)).unwrap_or_default();
        vec![
            replica.object.key.name.clone(),
            or_dash(&deployment),
            replica.pools().join(", "),
            crate::view::yes_or_no(replica.object.is_ready()),
        ]
    });
    Section::table("REPLICAS", &["REPLICA", "DEPLOYMENT", "POOL", "READY"], rows.collect())
}

fn caches(world: &World, cluster: &str) -> Section {
    let rows = of_kind(world, "ModelCache").filter_map(|cache| {
        let clusters = cache.body["status"]["clusters"].as_array()?;
        let here = clusters.iter().find(|entry| entry["name"] == cluster)?;
        Some(vec![full_name(&cache.key), or_dash(text(here, &["phase"]))])
    });
    Section::table("MODEL CACHES", &["CACHE", "PHASE"], rows.collect())
}

fn missing_classes(world: &World, cluster: &StoredObject) -> Vec<String> {
    let known: Vec<&str> = of_kind(world, "InferenceClass").map(|class| class.key.name.as_str()).collect();
    let written = cluster.body["spec"]["nodePools"].as_array().into_iter().flatten();
    let classes = written.map(|pool| text(pool, &["className"])).filter(|class| !known.contains(class));
    classes
        .map(|class| match crate::resolve::closest(class, known.iter().copied()) {
            Some(close) => format!("there is no InferenceClass {class:?}; did you mean {close}?"),
            None => {
                format!("there is no InferenceClass {class:?}; apply one, `modelplane catalog list` has some")
            }
        })
        .collect()
}
