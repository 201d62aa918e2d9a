//! A stand-in for provider-helm and for what its charts would bring. Nothing else of a run is stood in for.
//!
//! Charts come from registries, which a test must not need. So, in place of provider-helm, a `Release` is
//! marked ready, labelled [`LABEL`], once what its chart would have brought is there, which is: namespaces,
//! definitions, NVIDIA's DeviceClass, and the status that the gateways' controllers write. A load balancer's
//! address is an invented one. Charts with no entry here bring nothing that anything in a run looks at.

use modelplane_api::names::{CLUSTER_GATEWAY, COMPOSITE_LABEL, FLEET_GATEWAY};
use modelplane_core::versions;
use serde_json::{Value, json};

use crate::crossplane::{create_namespace, install_definitions};
use crate::failure::{Failure, Outcome};
use crate::kube_api::{Kube, Target, is_true, label, list, name, text};
use crate::resources::{DEVICE_CLASS, GATEWAY, GATEWAY_CLASS, HTTP_ROUTE, RELEASE};
use crate::tools::repository;

/// Label on every Release that the stand-in has marked ready.
pub const LABEL: &str = "e2e.modelplane.ai/stood-in";

/// The fleet as provider-helm sees it.
pub struct StandIn {
    /// The control plane.
    pub control: Kube,
    /// Workload clusters by name, with the address their load balancer would have.
    pub clusters: Vec<(String, String, Kube)>,
}

impl StandIn {
    /// Works until dropped. What fails is tried again; a lasting failure shows as what does not come about.
    pub async fn run(self) {
        loop {
            // Until the first composites exist there is nothing to do, and afterwards a failed pass is
            // repeated, as a controller does.
            drop(self.pass().await);
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        }
    }

    async fn pass(&self) -> Outcome {
        for release in self.control.list(RELEASE, "", "").await? {
            if !is_true(&release, "Ready") {
                self.install(&release).await?;
            }
        }
        run_gateway(&self.control, FLEET_GATEWAY, "203.0.113.1").await?;
        for (_, address, kube) in &self.clusters {
            run_gateway(kube, CLUSTER_GATEWAY, address).await?;
        }
        Ok(())
    }

    async fn install(&self, release: &Value) -> Outcome {
        let kube = self.cluster_of(release);
        let namespace = text(release, "/spec/forProvider/namespace");
        create_namespace(kube, namespace).await?;
        let chart = text(release, "/spec/forProvider/chart/name");
        if chart == versions::ENVOY_GATEWAY.name {
            install_definitions(kube, &vendored("gateway-api")?).await?;
            install_definitions(kube, &[envoy_proxy_definition()]).await?;
        } else if chart == versions::NVIDIA_DRA_DRIVER.name {
            kube.create_or_keep(&device_class()).await?;
        }
        let target = Target::of(RELEASE, release);
        let labels = json!({"metadata": {"labels": {LABEL: "true"}}});
        self.control.merge(target, "", &labels).await?;
        let conditions = [condition("Synced", "ReconcileSuccess"), condition("Ready", "Available")];
        let status = json!({"status": {"conditions": conditions, "atProvider": {"state": "deployed"}}});
        self.control.merge(target, "status", &status).await.map(drop)
    }

    /// The cluster whose serving stack wants the release; the control plane's own gateway wants the others.
    fn cluster_of(&self, release: &Value) -> &Kube {
        // The label names the outermost composite, which is the InferenceCluster, not its ServingStack.
        let composite = label(release, COMPOSITE_LABEL);
        let found = self.clusters.iter().find(|(name, ..)| name == composite);
        found.map_or(&self.control, |(_, _, kube)| kube)
    }
}

/// Does what a gateway's controller does: accepts classes, Gateways and routes, and tells the address.
async fn run_gateway(kube: &Kube, gateway: &str, address: &str) -> Outcome {
    let Ok(classes) = kube.list(GATEWAY_CLASS, "", "").await else { return Ok(()) };
    for class in classes.iter().filter(|class| !is_true(class, "Accepted")) {
        let status = json!({"status": {"conditions": [condition("Accepted", "Accepted")]}});
        kube.merge(Target::of(GATEWAY_CLASS, class), "status", &status).await?;
    }
    let gateways = kube.list(GATEWAY, "", "").await?;
    for object in gateways.iter().filter(|object| name(object) == gateway && !is_true(object, "Programmed")) {
        let status = json!({"status": {
            "addresses": [{"type": "IPAddress", "value": address}],
            "conditions": [condition("Accepted", "Accepted"), condition("Programmed", "Programmed")],
        }});
        kube.merge(Target::of(GATEWAY, object), "status", &status).await?;
    }
    for route in kube.list(HTTP_ROUTE, "", "").await? {
        if !list(&route, "/status/parents").is_empty() {
            continue;
        }
        let parent = |reference: &Value| {
            json!({
                "parentRef": reference,
                "controllerName": "e2e.modelplane.ai/stand-in",
                "conditions": [condition("Accepted", "Accepted"), condition("ResolvedRefs", "ResolvedRefs")],
            })
        };
        let parents: Vec<Value> = list(&route, "/spec/parentRefs").iter().map(parent).collect();
        let status = json!({"status": {"parents": parents}});
        kube.merge(Target::of(HTTP_ROUTE, &route), "status", &status).await?;
    }
    Ok(())
}

fn condition(type_: &str, reason: &str) -> Value {
    json!({
        "type": type_,
        "status": "True",
        "reason": reason,
        "message": "stood in for",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

/// Definitions kept in this repository.
fn vendored(folder: &str) -> Outcome<Vec<Value>> {
    let path = repository().join("third_party/crds").join(folder).join("crds.json");
    let text = std::fs::read_to_string(&path).map_err(Failure::io(format!("read {}", path.display())))?;
    serde_json::from_str(&text).map_err(|error| Failure::Wrong(format!("{}: {error}", path.display())))
}

/// The part of Envoy Gateway's EnvoyProxy that anything here needs: that it exists.
fn envoy_proxy_definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "envoyproxies.gateway.envoyproxy.io"},
        "spec": {
            "group": "gateway.envoyproxy.io",
            "names": {"kind": "EnvoyProxy", "plural": "envoyproxies"},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

/// What the chart of NVIDIA's DRA driver defines for whole GPUs.
fn device_class() -> Value {
    json!({
        "apiVersion": DEVICE_CLASS.api_version(),
        "kind": DEVICE_CLASS.kind,
        "metadata": {"name": "gpu.nvidia.com"},
        "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]},
    })
}
