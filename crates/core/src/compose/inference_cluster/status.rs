//! The published status: how to reach the cluster, and the capacity it offers (spec clusters §3.9).

use std::collections::BTreeMap;

use modelplane_api::common::{CacheStatus, Device};
use modelplane_api::inference_cluster::{GatewayStatus, GpuPool, NodePool, ProviderConfigRef};
use modelplane_api::names::{SERVING_STACK_KEY, SYSTEM_NAMESPACE, cluster_kubeconfig_name};
use serde::Serialize;

use super::Pass;
use crate::compose::cluster::Provider;
use crate::document::Document;

/// The status. Unlike the API's type it always has the list of pools, empty or not.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'s> {
    provider_config_ref: ProviderConfigRef,
    namespace: &'static str,
    gpu_pools: Vec<PublishedPool<'s>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<CacheStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway: Option<GatewayStatus>,
}

/// The capacity of a pool.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum PublishedPool<'s> {
    /// As its class says.
    Current(GpuPool),
    /// As it was published before.
    Held(&'s GpuPool),
}

/// Writes the status.
pub(super) fn compose(
    pass: &mut Pass<'_, '_>,
    provider: Option<&'static Provider>,
    storage_class: Option<String>,
) {
    let held = held_pools(pass);
    // A cluster that could not be changed as asked still has the nodes it had.
    let unchanged = provider.is_some() && pass.problem.is_some();
    let published = |pool: &NodePool| match pass.classes.of(pool).filter(|_| !unchanged) {
        Some(class) => Some(PublishedPool::Current(capacity(pool, &class.devices))),
        None => held.get(pool.name.as_str()).map(PublishedPool::Held),
    };
    let gateway = pass.observed.resources.get(SERVING_STACK_KEY);
    let address = gateway.and_then(|stack| stack.document.text_at(&["status", "gateway", "address"]));
    let status = Status {
        provider_config_ref: ProviderConfigRef { name: Some(cluster_kubeconfig_name(pass.name)) },
        namespace: SYSTEM_NAMESPACE,
        gpu_pools: pass.spec.node_pools.iter().filter_map(published).collect(),
        cache: storage_class.map(|name| CacheStatus { storage_class_name: Some(name) }),
        gateway: address.map(|address| GatewayStatus { address: Some(address.to_owned()) }),
    };
    pass.desired.set_status(&status);
}

fn capacity(pool: &NodePool, devices: &[Device]) -> GpuPool {
    let complete = |device: &Device| Device {
        claim: Some(device.claim()),
        count: Some(device.count.unwrap_or(1)),
        ..device.clone()
    };
    GpuPool {
        name: pool.name.clone(),
        nodes: Some(pool.nodes()),
        devices: devices.iter().map(complete).collect(),
    }
}

/// The pools published before, by name; entries that cannot be read are left out.
fn held_pools(pass: &Pass<'_, '_>) -> BTreeMap<String, GpuPool> {
    if pass.problem.is_none() {
        return BTreeMap::new();
    }
    let pools: Option<Vec<Document<'_>>> =
        pass.observed.composite.document.decode_at(&["status", "gpuPools"]).ok().flatten();
    let pools = pools.unwrap_or_default();
    let pools = pools.iter().filter_map(|pool| pool.decode::<GpuPool>().ok());
    pools.map(|pool| (pool.name.clone(), pool)).collect()
}
