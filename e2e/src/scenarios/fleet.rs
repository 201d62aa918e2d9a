//! Two clusters that exist already join the fleet.

use modelplane_api::inference_cluster::InferenceCluster;
use modelplane_api::inference_gateway::InferenceGateway;
use modelplane_api::kind::Object as _;

use crate::environment::{CLUSTERS, Environment};
use crate::failure::{Outcome, ensure, not_yet, until};
use crate::kube_api::{condition, conditions, is_true, name, text};
use crate::manifests;
use crate::resources::{CUSTOM_RESOURCE_DEFINITION, GATEWAY, Resource};

const INFERENCE_CLUSTER: Resource = Resource::of(InferenceCluster::INFO);
const INFERENCE_GATEWAY: Resource = Resource::of(InferenceGateway::INFO);

/// The clusters and the gateway become Ready, with addresses, and the clusters carry what the stack composed.
pub(super) async fn becomes_ready(environment: &mut Environment) -> Outcome {
    let fleet = manifests::own("fleet.yaml")?;
    environment.install_hardware(&fleet).await?;
    environment.apply("fleet.yaml").await?;
    let kube = environment.control();
    for (cluster, address) in CLUSTERS {
        let found = until(&format!("InferenceCluster {cluster} is ready"), async || {
            let found = kube.get(INFERENCE_CLUSTER, "", cluster).await.map_err(not_yet)?;
            // `Ready` alone is true for a moment before the stack is composed; see docs/divergences.md.
            let ready = ["Ready", "Synced", "BackendReady"].iter().all(|type_| is_true(&found, type_));
            let has_address = !text(&found, "/status/gateway/address").is_empty();
            if ready && has_address { Ok(found) } else { Err(conditions(&found)) }
        })
        .await?;
        let published = text(&found, "/status/gateway/address");
        ensure(published == address, || {
            format!("{cluster} publishes the address {published:?}, not {address}")
        })?;
        for type_ in ["ClusterReady", "BackendReady"] {
            ensure(is_true(&found, type_), || format!("{cluster}: {:?}", condition(&found, type_)))?;
        }
        let there = environment.workload(cluster)?;
        let gateways = there.list(GATEWAY, "", "").await?;
        ensure(gateways.len() == 1, || format!("{cluster} has {} Gateways", gateways.len()))?;
        let pools = "inferencepools.inference.networking.k8s.io";
        let definition = there.get(CUSTOM_RESOURCE_DEFINITION, "", pools).await?;
        ensure(is_true(&definition, "Established"), || {
            format!("{}: {}", name(&definition), conditions(&definition))
        })?;
    }
    until("the fleet's gateway is ready", async || {
        let found = kube.get(INFERENCE_GATEWAY, "", "default").await.map_err(not_yet)?;
        let ready = is_true(&found, "Ready") && !text(&found, "/status/address").is_empty();
        if ready { Ok(()) } else { Err(conditions(&found)) }
    })
    .await
}
