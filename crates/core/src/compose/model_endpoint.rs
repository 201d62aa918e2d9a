//! `ModelEndpoint`: a Service without selector and the EndpointSlice behind it (spec gateway-and-routing §3).
//!
//! Both live on the control plane, in the endpoint's namespace. TLS, host headers and credentials are not this
//! composition's business; the gateway decides those. The URL comes from the spec; nothing else is read.

pub mod url;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use modelplane_api::conditions::{ConditionType, Reason};
use modelplane_api::model_endpoint::{EndpointRouting, ModelEndpoint, ModelEndpointStatus};
use modelplane_api::names::{
    ENDPOINT_SERVICE_KEY as SERVICE, ENDPOINT_SLICE_KEY as SLICE, SERVICE_NAME_LABEL,
};

use self::url::{EndpointUrl, UrlError};
use crate::contract::{Body, ComposeError, Condition, Desired, Observed, Ready, Severity};

/// Composes the Service and EndpointSlice of a `ModelEndpoint`.
///
/// # Errors
///
/// If the endpoint cannot be read or has no namespace.
pub fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
    let endpoint: ModelEndpoint = observed.decode_composite()?;
    let namespace = observed.namespace()?;
    match EndpointUrl::parse(&endpoint.spec.url) {
        Ok(url) => Ok(route(observed, namespace, &url)),
        Err(error) => Ok(keep(observed, &endpoint, &error)),
    }
}

/// Wants the backend of a URL.
fn route<'a>(observed: &Observed<'a>, namespace: &str, url: &EndpointUrl) -> Desired<'a> {
    let mut desired = Desired::starting_from(observed);
    let service = service(namespace, url);
    desired.add(SERVICE, Body::of(&service), Ready::when(observed.has(SERVICE)));
    let service_name =
        observed.resources.get(SERVICE).and_then(|service| service.document.text_at(&["metadata", "name"]));
    let slice_observed = observed.resources.get(SLICE);
    match (service_name, slice_observed) {
        (Some(name), _) => {
            let slice = endpoint_slice(namespace, name, url);
            desired.add(SLICE, Body::of(&slice), Ready::when(slice_observed.is_some()));
        }
        // The slice carries the Service's name; until that is known again, what is there stays.
        (None, Some(slice)) => desired.hold(SLICE, slice),
        (None, None) => {}
    }
    // A service may route here only once there is a slice behind the name.
    let backend_name = service_name.filter(|_| slice_observed.is_some());
    desired.set_status(&status(backend_name));
    desired.condition(if observed.has(SERVICE) && slice_observed.is_some() {
        Condition::is_true(ConditionType::RoutingReady.as_str(), Reason::BackendConfigured.as_str())
    } else {
        Condition::is_false(ConditionType::RoutingReady.as_str(), Reason::WaitingForBackend.as_str())
    });
    desired
}

/// Keeps the backend of the last good URL, and says what is wrong with this one.
fn keep<'a>(observed: &Observed<'a>, endpoint: &ModelEndpoint, error: &UrlError) -> Desired<'a> {
    let mut desired = Desired::starting_from(observed);
    desired.hold_all(observed);
    let backend_name = endpoint.status.as_ref().map(ModelEndpointStatus::backend_name).unwrap_or_default();
    if !backend_name.is_empty() && observed.has(SERVICE) {
        desired.set_status(&status(Some(backend_name)));
    }
    let message = format!(
        "spec.url {:?} is not usable: {error}; write scheme://host or scheme://host:port",
        endpoint.spec.url
    );
    desired.condition(
        Condition::is_false(ConditionType::RoutingReady.as_str(), Reason::InvalidUrl.as_str())
            .because(message.clone()),
    );
    desired.event(Severity::Warning, message);
    desired
}

fn status(backend_name: Option<&str>) -> ModelEndpointStatus {
    let routing = backend_name.map(|name| EndpointRouting { backend_name: Some(name.to_owned()) });
    ModelEndpointStatus { routing, ..ModelEndpointStatus::default() }
}

fn service(namespace: &str, url: &EndpointUrl) -> Service {
    let port =
        ServicePort { port: url.port.into(), protocol: Some("TCP".to_owned()), ..ServicePort::default() };
    Service {
        metadata: ObjectMeta { namespace: Some(namespace.to_owned()), ..ObjectMeta::default() },
        spec: Some(ServiceSpec { ports: Some(vec![port]), ..ServiceSpec::default() }),
        status: None,
    }
}

fn endpoint_slice(namespace: &str, service: &str, url: &EndpointUrl) -> EndpointSlice {
    let labels = BTreeMap::from([(SERVICE_NAME_LABEL.to_owned(), service.to_owned())]);
    let port = EndpointPort {
        name: Some(String::new()),
        port: Some(url.port.into()),
        protocol: Some("TCP".to_owned()),
        app_protocol: None,
    };
    // Traefik skips endpoints that do not say they are ready.
    let conditions = EndpointConditions { ready: Some(true), ..EndpointConditions::default() };
    let endpoint =
        Endpoint { addresses: vec![url.host.clone()], conditions: Some(conditions), ..Endpoint::default() };
    EndpointSlice {
        address_type: url.address_type.as_str().to_owned(),
        endpoints: vec![endpoint],
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        ports: Some(vec![port]),
    }
}
