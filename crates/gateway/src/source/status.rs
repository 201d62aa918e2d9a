//! Tells a control plane that its gateway is served: the statuses of GatewayClass, Gateway and HTTPRoute (Gateway API
//! v1), which the compositions wait for.
//!
//! The data plane itself never reads these objects. Several gateways may report at once: what they write is the same,
//! and nothing is written that is there already.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::select_all;
use k8s_openapi::api::core::v1::Service;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use modelplane_api::names::{GATEWAY_CONTROLLER, GATEWAY_WORKLOAD, SYSTEM_NAMESPACE};
use serde_json::{Value, json};

/// Reports for one control plane.
#[derive(Clone)]
pub struct StatusReporter {
    client: Client,
    address: Option<String>,
}

impl std::fmt::Debug for StatusReporter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("StatusReporter").field("address", &self.address).finish_non_exhaustive()
    }
}

/// How long to wait for more changes before reporting.
const SETTLE: Duration = Duration::from_millis(50);

/// How long to wait after a report that failed.
const RETRY: Duration = Duration::from_secs(2);

impl StatusReporter {
    /// A reporter of a gateway that clients reach at an address, or at that of the gateway's Service if none is given.
    pub fn new(client: Client, address: Option<String>) -> Self {
        Self { client, address }
    }

    /// Reports until dropped.
    pub async fn run(self) {
        let mut changes = select_all([
            self.changes("GatewayClass", "gatewayclasses"),
            self.changes("Gateway", "gateways"),
            self.changes("HTTPRoute", "httproutes"),
            self.service_changes(),
        ]);
        while changes.next().await.is_some() {
            tokio::time::sleep(SETTLE).await;
            while let Ok(Some(())) = tokio::time::timeout(Duration::ZERO, changes.next()).await {}
            while let Err(error) = self.report().await {
                tracing::warn!(%error, "the gateway's status cannot be reported");
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    fn objects(&self, kind: &str, plural: &str) -> (Api<DynamicObject>, ApiResource) {
        let kind = GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        (Api::all_with(self.client.clone(), &resource), resource)
    }

    fn changes(&self, kind: &str, plural: &str) -> futures_util::stream::BoxStream<'static, ()> {
        let (api, _) = self.objects(kind, plural);
        watcher(api, watcher::Config::default())
            .default_backoff()
            .filter_map(async |event| event.ok().map(|_| ()))
            .boxed()
    }

    fn service_changes(&self) -> futures_util::stream::BoxStream<'static, ()> {
        let api: Api<Service> = Api::namespaced(self.client.clone(), SYSTEM_NAMESPACE);
        let only = watcher::Config::default().fields(&format!("metadata.name={GATEWAY_WORKLOAD}"));
        watcher(api, only).default_backoff().filter_map(async |event| event.ok().map(|_| ())).boxed()
    }

    async fn report(&self) -> Result<(), kube::Error> {
        let address = match &self.address {
            Some(address) => Some(address.clone()),
            None => self.service_address().await?,
        };
        let everything = ListParams::default();
        let classes = self.objects("GatewayClass", "gatewayclasses").0.list(&everything).await?;
        let classes: Vec<&DynamicObject> = classes
            .iter()
            .filter(|class| {
                class.data.pointer("/spec/controllerName").is_some_and(|name| name == GATEWAY_CONTROLLER)
            })
            .collect();
        for class in &classes {
            self.write(class, "GatewayClass", "gatewayclasses", class_status(class)).await?;
        }
        let (gateways, _) = self.objects("Gateway", "gateways");
        let gateways = gateways.list(&everything).await?;
        let is_ours = |gateway: &&DynamicObject| {
            let class = gateway.data.pointer("/spec/gatewayClassName").and_then(Value::as_str);
            classes.iter().any(|ours| class == Some(ours.name_any().as_str()))
        };
        let gateways: Vec<&DynamicObject> = gateways.iter().filter(is_ours).collect();
        for gateway in &gateways {
            self.write(gateway, "Gateway", "gateways", gateway_status(gateway, address.as_deref())).await?;
        }
        for route in &self.objects("HTTPRoute", "httproutes").0.list(&everything).await? {
            self.write(route, "HTTPRoute", "httproutes", route_status(route, &gateways)).await?;
        }
        Ok(())
    }

    /// The address a load balancer gave the gateway's Service.
    async fn service_address(&self) -> Result<Option<String>, kube::Error> {
        let api: Api<Service> = Api::namespaced(self.client.clone(), SYSTEM_NAMESPACE);
        let service = api.get_opt(GATEWAY_WORKLOAD).await?;
        let ingress = service.and_then(|service| service.status?.load_balancer?.ingress?.into_iter().next());
        Ok(ingress.and_then(|ingress| ingress.ip.or(ingress.hostname)))
    }

    /// Writes a status that differs from the one there is. Losing to another writer is no harm: that is a change,
    /// and changes are reported on.
    async fn write(
        &self,
        object: &DynamicObject,
        kind: &str,
        plural: &str,
        status: Option<Value>,
    ) -> Result<(), kube::Error> {
        let Some(status) =
            status.filter(|status| differs(status, object.data.get("status").unwrap_or(&Value::Null)))
        else {
            return Ok(());
        };
        let (_, resource) = self.objects(kind, plural);
        let api: Api<DynamicObject> = match object.namespace() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), &namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let patch =
            json!({"metadata": {"resourceVersion": object.metadata.resource_version}, "status": status});
        match api.patch_status(&object.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await {
            Err(kube::Error::Api(response)) if matches!(response.code, 404 | 409) => Ok(()),
            written => written.map(|_| ()),
        }
    }
}

/// A condition that holds. The time of one that held already is kept.
fn holds(object: &DynamicObject, before: Option<&Value>, kind: &str) -> Value {
    let since = before
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == kind && condition["status"] == "True")
        .and_then(|condition| condition["lastTransitionTime"].as_str().map(str::to_owned));
    json!({
        "type": kind,
        "status": "True",
        "reason": kind,
        "message": "",
        "observedGeneration": object.metadata.generation.unwrap_or_default(),
        "lastTransitionTime": since.unwrap_or_else(|| format!("{:.0}", jiff::Timestamp::now())),
    })
}

fn class_status(class: &DynamicObject) -> Option<Value> {
    let before = class.data.pointer("/status/conditions");
    Some(json!({"conditions": [holds(class, before, "Accepted")]}))
}

fn gateway_status(gateway: &DynamicObject, address: Option<&str>) -> Option<Value> {
    let before = gateway.data.pointer("/status/conditions");
    let kind =
        |address: &str| if address.parse::<std::net::IpAddr>().is_ok() { "IPAddress" } else { "Hostname" };
    let mut conditions = vec![holds(gateway, before, "Accepted")];
    // Programmed means that clients can reach it, which takes an address.
    conditions.extend(address.map(|_| holds(gateway, before, "Programmed")));
    let addresses: Vec<Value> =
        address.into_iter().map(|address| json!({"type": kind(address), "value": address})).collect();
    Some(json!({"addresses": addresses, "conditions": conditions}))
}

/// The status of a route with our gateways among its parents; other controllers' parents stay as they are.
fn route_status(route: &DynamicObject, gateways: &[&DynamicObject]) -> Option<Value> {
    let own_namespace = route.namespace().unwrap_or_default();
    let is_ours = |parent: &&Value| {
        let namespace = parent["namespace"].as_str().unwrap_or(&own_namespace);
        gateways.iter().any(|gateway| {
            parent["name"] == gateway.name_any().as_str() && gateway.namespace().as_deref() == Some(namespace)
        })
    };
    let wanted: Vec<&Value> =
        route.data.pointer("/spec/parentRefs").and_then(Value::as_array)?.iter().filter(is_ours).collect();
    let parents = route.data.pointer("/status/parents").and_then(Value::as_array);
    let (ours, others): (Vec<&Value>, Vec<&Value>) =
        parents.into_iter().flatten().partition(|parent| parent["controllerName"] == GATEWAY_CONTROLLER);
    if wanted.is_empty() && ours.is_empty() {
        return None;
    }
    let report = |parent: &&Value| {
        let before =
            ours.iter().find(|before| before["parentRef"] == **parent).map(|before| &before["conditions"]);
        let conditions = ["Accepted", "ResolvedRefs"].map(|kind| holds(route, before, kind));
        json!({"parentRef": parent, "controllerName": GATEWAY_CONTROLLER, "conditions": conditions})
    };
    let parents: Vec<Value> = others.into_iter().cloned().chain(wanted.iter().map(report)).collect();
    Some(json!({"parents": parents}))
}

/// Whether writing a status would change anything.
fn differs(wanted: &Value, current: &Value) -> bool {
    let Value::Object(wanted) = wanted else { return wanted != current };
    wanted.iter().any(|(key, value)| current.get(key) != Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    fn gateway(status: Value) -> DynamicObject {
        object(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
            "metadata": {"name": "modelplane", "namespace": SYSTEM_NAMESPACE, "generation": 2},
            "spec": {"gatewayClassName": "modelplane"}, "status": status,
        }))
    }

    #[test]
    fn a_gateway_is_programmed_once_it_has_an_address() {
        let conditions = |status: &Value| -> Vec<String> {
            let conditions = status["conditions"].as_array().unwrap().iter();
            conditions.map(|condition| condition["type"].as_str().unwrap().to_owned()).collect()
        };
        let without = gateway_status(&gateway(json!({})), None).unwrap();
        assert_eq!(conditions(&without), ["Accepted"]);
        let with = gateway_status(&gateway(json!({})), Some("10.0.0.7")).unwrap();
        assert_eq!(conditions(&with), ["Accepted", "Programmed"]);
        assert_eq!(with["addresses"], json!([{"type": "IPAddress", "value": "10.0.0.7"}]));
        let host = gateway_status(&gateway(json!({})), Some("127.0.0.1:8080")).unwrap();
        assert_eq!(host["addresses"][0]["type"], "Hostname");
    }

    #[test]
    fn a_status_that_is_there_is_not_written_again() {
        let written = gateway_status(&gateway(json!({})), Some("10.0.0.7")).unwrap();
        let again = gateway_status(&gateway(written.clone()), Some("10.0.0.7")).unwrap();
        assert!(!differs(&again, &written));
        assert!(differs(&gateway_status(&gateway(written.clone()), Some("10.0.0.8")).unwrap(), &written));
    }

    #[test]
    fn a_route_is_accepted_by_our_gateway_and_other_controllers_keep_their_say() {
        let other = json!({"parentRef": {"name": "x"}, "controllerName": "other", "conditions": []});
        let parent = json!({"name": "modelplane", "namespace": SYSTEM_NAMESPACE});
        let route = object(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": {"name": "r", "namespace": "ml-team"},
            "spec": {"parentRefs": [parent, {"name": "modelplane"}]}, "status": {"parents": [other]},
        }));
        let ours = gateway(json!({}));
        let status = route_status(&route, &[&ours]).unwrap();
        let parents = status["parents"].as_array().unwrap();
        assert_eq!(parents.len(), 2, "the second parent is of the route's own namespace: {status}");
        assert_eq!(parents[0], other);
        assert_eq!(
            (&parents[1]["parentRef"], &parents[1]["controllerName"]),
            (&parent, &json!(GATEWAY_CONTROLLER))
        );
        assert_eq!(parents[1]["conditions"][0]["type"], "Accepted");
        let foreign = object(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": {"name": "r", "namespace": "ml-team"}, "spec": {"parentRefs": [{"name": "x"}]},
        }));
        assert_eq!(route_status(&foreign, &[&ours]), None);
    }
}
