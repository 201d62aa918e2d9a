//! Helm on simulated clusters: releases are recorded there as deployed, and of what the charts bring, only
//! the definitions and classes that other objects of the fleet depend on.
//!
//! Everything written carries the label `modelplane.ai/simulated`. A record is a Secret of a type of its
//! own, which Helm does not mistake for one of its own.

use futures_util::future::BoxFuture;
use modelplane_core::crds::{self, Definition};
use modelplane_core::versions;
use serde_json::{Value, json};

use super::SIMULATED_LABEL;
use super::helm::{Chart, HelmError, HelmRunner, Place, ReleaseState};
use crate::bootstrap::{install_definition, open_definition, wait_established};
use crate::client::{ApiClient, ClientError, Propagation, Resource, Target, Write};

/// Records releases instead of installing them.
#[derive(Debug, Clone, Copy, Default)]
pub struct SimulatedHelm;

const MANAGER: &str = "modelplane-simulated-helm";
const RECORD_TYPE: &str = "modelplane.ai/simulated-release";

/// A kind that a chart defines: chart, `group/version`, kind, plural, whether namespaced.
type DefinedKind = (&'static str, &'static str, &'static str, &'static str, bool);

/// The kinds other objects of the fleet use, by the chart that defines them.
const KINDS: &[DefinedKind] = &[
    (versions::ENVOY_GATEWAY.name, "gateway.envoyproxy.io/v1alpha1", "EnvoyProxy", "envoyproxies", true),
    (versions::ENVOY_GATEWAY.name, "gateway.envoyproxy.io/v1alpha1", "Backend", "backends", true),
    (
        versions::ENVOY_GATEWAY.name,
        "gateway.envoyproxy.io/v1alpha1",
        "BackendTrafficPolicy",
        "backendtrafficpolicies",
        true,
    ),
    (
        versions::ENVOY_GATEWAY.name,
        "gateway.envoyproxy.io/v1alpha1",
        "ClientTrafficPolicy",
        "clienttrafficpolicies",
        true,
    ),
    (
        versions::AI_GATEWAY_CRDS.name,
        "aigateway.envoyproxy.io/v1alpha1",
        "AIGatewayRoute",
        "aigatewayroutes",
        true,
    ),
    (
        versions::LEADER_WORKER_SET.name,
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        "leaderworkersets",
        true,
    ),
    (versions::PROMETHEUS.name, "monitoring.coreos.com/v1", "PodMonitor", "podmonitors", true),
    (versions::PROMETHEUS.name, "monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors", true),
    (versions::CERT_MANAGER.name, "cert-manager.io/v1", "Certificate", "certificates", true),
    (versions::CERT_MANAGER.name, "cert-manager.io/v1", "Issuer", "issuers", true),
    (versions::METALLB.name, "metallb.io/v1beta1", "IPAddressPool", "ipaddresspools", true),
    (versions::METALLB.name, "metallb.io/v1beta1", "L2Advertisement", "l2advertisements", true),
];

impl HelmRunner for SimulatedHelm {
    fn state<'a>(&'a self, place: Place<'a>) -> BoxFuture<'a, Result<Option<ReleaseState>, HelmError>> {
        Box::pin(async move {
            let found =
                place.cluster.caches.api().get(&secrets(), place.namespace, &record_name(place.name)).await;
            Ok(found.map_err(failed)?.map(|record| state_of(&record)))
        })
    }

    fn deploy<'a>(
        &'a self,
        place: Place<'a>,
        chart: &'a Chart,
        known: Option<&'a ReleaseState>,
    ) -> BoxFuture<'a, Result<ReleaseState, HelmError>> {
        Box::pin(async move {
            let api = place.cluster.caches.api();
            namespace(api, place.namespace).await.map_err(failed)?;
            bring(api, &chart.name).await?;
            let state = ReleaseState {
                state: "deployed".to_owned(),
                revision: known.map_or(0, |known| known.revision) + 1,
                description: format!("{}-{} (simulated)", chart.name, chart.version),
            };
            let record = record(place, chart, &state);
            let name = record_name(place.name);
            let target = Target::named(place.namespace, &name);
            api.write(&secrets(), &target, Write::Apply(MANAGER), &record).await.map_err(failed)?;
            Ok(state)
        })
    }

    fn uninstall<'a>(&'a self, place: Place<'a>) -> BoxFuture<'a, Result<(), HelmError>> {
        Box::pin(async move {
            // Definitions stay, as Helm leaves those of a chart's `crds` folder.
            let name = record_name(place.name);
            let target = Target::named(place.namespace, &name);
            let api = place.cluster.caches.api();
            api.delete(&secrets(), &target, None, Propagation::Background).await.map_err(failed)
        })
    }
}

/// Installs what a chart brings that others depend on.
async fn bring(api: &ApiClient, chart: &str) -> Result<(), HelmError> {
    if chart == versions::ENVOY_GATEWAY.name {
        for definition in crds::gateway_api() {
            install(api, &document(definition)?).await?;
        }
    }
    for (_, api_version, kind, plural, namespaced) in KINDS.iter().filter(|(by, ..)| *by == chart) {
        let resource = Resource::new(api_version, kind, plural, *namespaced);
        install(api, &open_definition(&resource, &[])).await?;
    }
    if chart == versions::NVIDIA_DRA_DRIVER.name {
        device_class(api).await.map_err(failed)?;
    }
    Ok(())
}

fn document(definition: &Definition) -> Result<Value, HelmError> {
    definition.document().to_json().map_err(|error| HelmError::Other(error.to_string()))
}

async fn install(api: &ApiClient, definition: &Value) -> Result<(), HelmError> {
    let mut definition = definition.clone();
    definition["metadata"]["labels"][SIMULATED_LABEL] = json!("true");
    install_definition(api, &definition, MANAGER).await.map_err(failed)?;
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    wait_established(api, name).await.map_err(|error| HelmError::Other(error.to_string()))
}

/// The class of devices that claims for NVIDIA's GPUs name.
async fn device_class(api: &ApiClient) -> Result<(), ClientError> {
    const NAME: &str = "gpu.nvidia.com";
    const API_VERSION: &str = "resource.k8s.io/v1";
    let resource = match api.resource(API_VERSION, "DeviceClass").await {
        Ok(resource) => resource,
        // A cluster without dynamic resource allocation has no use for it.
        Err(error) if error.is_not_served() => return Ok(()),
        Err(error) => return Err(error),
    };
    let selector = json!({"cel": {"expression": format!("device.driver == '{NAME}'")}});
    let class = json!({
        "apiVersion": API_VERSION, "kind": "DeviceClass",
        "metadata": {"name": NAME, "labels": {SIMULATED_LABEL: "true"}},
        "spec": {"selectors": [selector]},
    });
    api.write(&resource, &Target::named("", NAME), Write::Apply(MANAGER), &class).await.map(drop)
}

async fn namespace(api: &ApiClient, name: &str) -> Result<(), ClientError> {
    let namespaces = Resource::new("v1", "Namespace", "namespaces", false);
    if api.get(&namespaces, "", name).await?.is_some() {
        return Ok(());
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    api.write(&namespaces, &Target::named("", name), Write::Apply(MANAGER), &namespace).await.map(drop)
}

fn record(place: Place<'_>, chart: &Chart, state: &ReleaseState) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": RECORD_TYPE,
        "metadata": {
            "name": record_name(place.name),
            "namespace": place.namespace,
            "labels": {SIMULATED_LABEL: "true", "modelplane.ai/helm-release": place.name},
            "annotations": {
                "modelplane.ai/state": state.state,
                "modelplane.ai/revision": state.revision.to_string(),
                "modelplane.ai/description": state.description,
                "modelplane.ai/chart": format!("{}/{}", chart.repository, chart.name),
                "modelplane.ai/chart-version": chart.version,
            },
        },
    })
}

fn state_of(record: &Value) -> ReleaseState {
    let text = |name: &str| record["metadata"]["annotations"][name].as_str().unwrap_or_default().to_owned();
    ReleaseState {
        state: text("modelplane.ai/state"),
        revision: text("modelplane.ai/revision").parse().unwrap_or_default(),
        description: text("modelplane.ai/description"),
    }
}

fn record_name(release: &str) -> String {
    format!("simulated-release-{release}")
}

fn secrets() -> Resource {
    Resource::new("v1", "Secret", "secrets", true)
}

fn failed(error: ClientError) -> HelmError {
    HelmError::Other(error.to_string())
}
