//! The statuses that the Gateway API expects of a controller, for the gateway that is Modelplane's own data plane:
//! its GatewayClass, its Gateways with their address, and the HTTPRoutes that name them.
//!
//! Runs beside the data plane, in `modelplane up` and in `modelplane gateway`. It writes only what differs, so any
//! number of processes may report the same. Routing does not depend on it.

use std::sync::Arc;
use std::time::Duration;

use modelplane_api::names::{GATEWAY_CONTROLLER, GATEWAY_WORKLOAD, SYSTEM_NAMESPACE};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::cache::{CacheError, Caches, Change, Keep, Listener};
use crate::client::{ApiClient, ClientError, Target, Write};
use crate::metrics::Metrics;

const GATEWAY_API: &str = "gateway.networking.k8s.io/v1";
/// Changes that come close together are looked at together.
const DEBOUNCE: Duration = Duration::from_millis(10);
/// After an error, and while the Gateway API is not served, the next try.
const RETRY: Duration = Duration::from_millis(500);

/// Where clients reach the data plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// At this host and port.
    HostPort(String),
    /// At the load balancer of the Service that belongs to the data plane.
    Service,
}

/// How to report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where clients reach the data plane.
    pub address: Address,
    /// Whether this process is the only data plane there is: it stands in for the data plane's Deployment, and for
    /// the controllers of other gateways too.
    pub stands_in: bool,
}

/// Reports until the future is dropped.
pub async fn report(client: kube::Client, settings: Settings) {
    let dirty: Arc<Notify> = Arc::default();
    let listener = Arc::new(Dirty(Arc::clone(&dirty)));
    let caches = Caches::new(ApiClient::new(client), Keep::All, listener, Arc::new(Metrics::default()));
    let reporter = Reporter { caches, settings };
    loop {
        let retry = match reporter.pass().await {
            Ok(again) => again.then_some(RETRY),
            Err(error) => {
                tracing::debug!(%error, "gateway statuses are looked at again");
                Some(RETRY)
            }
        };
        match retry {
            None => dirty.notified().await,
            Some(after) => drop(tokio::time::timeout(after, dirty.notified()).await),
        }
        tokio::time::sleep(DEBOUNCE).await;
    }
}

struct Dirty(Arc<Notify>);

impl Listener for Dirty {
    fn changed(&self, _: &Change) {
        self.0.notify_one();
    }
}

struct Reporter {
    caches: Caches,
    settings: Settings,
}

#[derive(Debug, thiserror::Error)]
enum PassError {
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl Reporter {
    /// Reports what is not reported yet; true if a kind is not served and there is to be another try.
    async fn pass(&self) -> Result<bool, PassError> {
        if self.settings.stands_in {
            self.stand_in().await?;
        }
        let Some(classes) = self.objects("GatewayClass").await? else { return Ok(true) };
        let ours: Vec<Value> = classes
            .into_iter()
            .filter(|class| self.settings.stands_in || class["spec"]["controllerName"] == GATEWAY_CONTROLLER)
            .collect();
        for class in &ours {
            self.write(class, json!({"conditions": conditions(class, &["Accepted"])})).await?;
        }
        let Some(gateways) = self.objects("Gateway").await? else { return Ok(true) };
        let is_ours = |gateway: &Value| {
            ours.iter().any(|class| class["metadata"]["name"] == gateway["spec"]["gatewayClassName"])
        };
        let gateways: Vec<Value> = gateways.into_iter().filter(is_ours).collect();
        let address = self.address().await?;
        for gateway in &gateways {
            self.write(gateway, gateway_status(gateway, address.as_ref())).await?;
        }
        let Some(routes) = self.objects("HTTPRoute").await? else { return Ok(true) };
        for route in &routes {
            if let Some(status) = route_status(route, &gateways) {
                self.write(route, status).await?;
            }
        }
        Ok(false)
    }

    /// All objects of a kind of the Gateway API; none while it is not served.
    async fn objects(&self, kind: &str) -> Result<Option<Vec<Value>>, PassError> {
        match self.caches.kind(GATEWAY_API, kind).await {
            Ok(cache) => Ok(Some(cache.list(None).iter().map(|object| object.value()).collect())),
            Err(CacheError::Client(error)) if error.is_not_served() => {
                self.caches.api().forget_resources(GATEWAY_API);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn address(&self) -> Result<Option<Value>, PassError> {
        let host_port = |value: &str| Some(json!({"type": "modelplane.ai/host-port", "value": value}));
        match &self.settings.address {
            Address::HostPort(address) => Ok(host_port(address)),
            Address::Service => {
                let services = self.caches.kind("v1", "Service").await?;
                let Some(service) = services.get(SYSTEM_NAMESPACE, GATEWAY_WORKLOAD) else { return Ok(None) };
                let service = service.value();
                let ingress = &service["status"]["loadBalancer"]["ingress"][0];
                Ok(match (ingress["ip"].as_str(), ingress["hostname"].as_str()) {
                    (Some(ip), _) => Some(json!({"type": "IPAddress", "value": ip})),
                    (None, Some(hostname)) => Some(json!({"type": "Hostname", "value": hostname})),
                    (None, None) => None,
                })
            }
        }
    }

    /// Reports the data plane's Deployment as running: this process is it.
    async fn stand_in(&self) -> Result<(), PassError> {
        let deployments = self.caches.kind("apps/v1", "Deployment").await?;
        let Some(deployment) = deployments.get(SYSTEM_NAMESPACE, GATEWAY_WORKLOAD) else { return Ok(()) };
        let deployment = deployment.value();
        let replicas = deployment["spec"]["replicas"].clone();
        let available = json!({
            "type": "Available", "status": "True", "reason": "RunsInThisProcess",
            "message": "the embedded control plane runs the data plane itself",
            "lastTransitionTime": deployment["metadata"]["creationTimestamp"],
            "lastUpdateTime": deployment["metadata"]["creationTimestamp"],
        });
        let status = json!({
            "observedGeneration": deployment["metadata"]["generation"], "replicas": replicas,
            "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
            "conditions": [available],
        });
        self.write(&deployment, status).await
    }

    /// Writes a status unless the object has it already.
    async fn write(&self, object: &Value, status: Value) -> Result<(), PassError> {
        let fields = status.as_object().into_iter().flatten();
        if fields.into_iter().all(|(key, value)| same(&object["status"][key], value)) {
            return Ok(());
        }
        let (api_version, kind) = (object["apiVersion"].as_str(), object["kind"].as_str());
        let resource =
            self.caches.api().resource(api_version.unwrap_or_default(), kind.unwrap_or_default()).await?;
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        let target = Target::named(namespace, name).status();
        let body = json!({ "status": status });
        match self.caches.api().write(&resource, &target, Write::Merge, &body).await {
            Ok(written) => drop(self.caches.put(written)),
            // Gone meanwhile.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// Equal, whatever the form of whole numbers.
fn same(known: &Value, wanted: &Value) -> bool {
    match (known, wanted) {
        (Value::Number(known), Value::Number(wanted)) => known.as_f64() == wanted.as_f64(),
        (Value::Array(known), Value::Array(wanted)) => {
            known.len() == wanted.len() && known.iter().zip(wanted).all(|(known, wanted)| same(known, wanted))
        }
        (Value::Object(known), Value::Object(wanted)) => {
            known.len() == wanted.len()
                && wanted.iter().all(|(key, wanted)| known.get(key).is_some_and(|known| same(known, wanted)))
        }
        _ => known == wanted,
    }
}

/// True conditions about an object as it is; their time is the object's own, which never changes.
fn conditions(object: &Value, types: &[&str]) -> Value {
    let one = |condition_type: &&str| {
        json!({
            "type": condition_type, "status": "True", "reason": condition_type, "message": "",
            "observedGeneration": object["metadata"]["generation"],
            "lastTransitionTime": object["metadata"]["creationTimestamp"],
        })
    };
    types.iter().map(one).collect()
}

fn gateway_status(gateway: &Value, address: Option<&Value>) -> Value {
    match address {
        Some(address) => json!({
            "conditions": conditions(gateway, &["Accepted", "Programmed"]), "addresses": [address],
        }),
        None => json!({"conditions": conditions(gateway, &["Accepted"])}),
    }
}

/// The status of a route that names one of the gateways, with what other controllers say of it kept.
fn route_status(route: &Value, gateways: &[Value]) -> Option<Value> {
    let is_ours = |reference: &&Value| {
        let namespace = reference.get("namespace").unwrap_or(&route["metadata"]["namespace"]);
        gateways.iter().any(|gateway| {
            gateway["metadata"]["name"] == reference["name"] && gateway["metadata"]["namespace"] == *namespace
        })
    };
    let references: Vec<&Value> = route["spec"]["parentRefs"].as_array()?.iter().filter(is_ours).collect();
    if references.is_empty() {
        return None;
    }
    let others = route["status"]["parents"].as_array().into_iter().flatten();
    let others = others.filter(|parent| parent["controllerName"] != GATEWAY_CONTROLLER).cloned();
    let ours = references.into_iter().map(|reference| {
        json!({
            "parentRef": reference, "controllerName": GATEWAY_CONTROLLER,
            "conditions": conditions(route, &["Accepted", "ResolvedRefs"]),
        })
    });
    Some(json!({"parents": others.chain(ours).collect::<Vec<_>>()}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route() -> Value {
        json!({
            "metadata": {"name": "chat", "namespace": "ml", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"parentRefs": [{"name": "modelplane", "namespace": "modelplane-system"}]},
            "status": {"parents": [{"controllerName": "other", "parentRef": {"name": "x"}, "conditions": []}]},
        })
    }

    #[test]
    fn a_route_keeps_what_other_controllers_say_of_it() {
        let gateway = json!({"metadata": {"name": "modelplane", "namespace": "modelplane-system"}});
        let status = route_status(&route(), &[gateway]).expect("it names the gateway");
        assert_eq!(status["parents"][0]["controllerName"], "other");
        assert_eq!(status["parents"][1]["controllerName"], GATEWAY_CONTROLLER);
        assert_eq!(status["parents"][1]["conditions"][0]["observedGeneration"], 2);
    }

    #[test]
    fn a_route_of_another_gateway_is_left_alone() {
        let gateway = json!({"metadata": {"name": "modelplane", "namespace": "elsewhere"}});
        assert_eq!(route_status(&route(), &[gateway]), None);
    }

    #[test]
    fn a_status_is_the_same_whatever_the_form_of_its_numbers() {
        assert!(same(&json!({"a": [1.0]}), &json!({"a": [1]})));
        assert!(!same(&json!({"a": [1], "b": 2}), &json!({"a": [1]})), "a field too many");
    }
}
