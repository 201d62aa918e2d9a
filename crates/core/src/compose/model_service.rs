//! `ModelService`: one HTTPRoute on the fleet's gateway that spreads requests over the endpoints its entries select
//! (spec gateway-and-routing §4).
//!
//! Endpoints and the gateway's address come from required resources; the route references the endpoints' Services by
//! the names they publish. An endpoint whose URL cannot be read keeps the reference the observed route has, and never
//! stands in the way of the others.

mod endpoints;
mod weights;

use std::net::Ipv6Addr;

use modelplane_api::conditions::{ConditionType, Reason};
use modelplane_api::inference_gateway::InferenceGateway;
use modelplane_api::kind::Object;
use modelplane_api::model_endpoint::ModelEndpoint;
use modelplane_api::model_service::{ModelService, ModelServiceStatus};
use modelplane_api::names::{
    DEFAULT_GATEWAY, FLEET_GATEWAY, GATEWAY_REQUIREMENT as GATEWAY, SERVICE_ROUTE_KEY as ROUTE,
    SYSTEM_NAMESPACE, endpoints_requirement, route_path,
};

use self::endpoints::Endpoints;
use self::weights::{MAX_WEIGHT, Share};
use super::gateway_api::{
    GATEWAY_API_VERSION, HttpBackendRef, HttpRouteFilter, HttpRouteMatch, HttpRouteRule, HttpRouteSpec,
    ParentReference,
};
use super::object::{KubernetesObject, Metadata};
use crate::contract::{
    Body, ComposeError, Condition, Desired, Observed, Ready, Required, Requirement, Severity,
};
use crate::document::Document;

/// Composes the HTTPRoute of a `ModelService`.
///
/// # Errors
///
/// If the service cannot be read, has no namespace or name, or an entry's weight is out of range.
pub fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
    let service: ModelService = observed.decode_composite()?;
    let namespace = observed.namespace()?;
    let name = observed.name()?;
    check_weights(observed, &service)?;
    let mut desired = Desired::starting_from(observed);
    require(&mut desired, &service);

    let Some(endpoints) = Endpoints::resolve(observed, namespace, service.spec.endpoints.len()) else {
        hold(&mut desired, observed, &service);
        desired.condition(
            Condition::is_false(ConditionType::EndpointsResolved.as_str(), Reason::WaitingForInput.as_str())
                .because("the ModelEndpoints have not been fetched yet"),
        );
        return Ok(desired);
    };
    for problem in &endpoints.problems {
        desired.event(Severity::Warning, problem);
    }
    if endpoints.matched == 0 {
        hold(&mut desired, observed, &service);
        report_no_endpoints(&mut desired, observed, &endpoints);
        return Ok(desired);
    }
    let shares: Vec<Share> = (service.spec.endpoints.iter().zip(&endpoints.routable))
        .map(|(entry, backends)| Share { weight: entry.weight() as u32, endpoints: backends.len() })
        .collect();
    let accepted = is_accepted(observed) && endpoints.routable_count() > 0;
    let path = route_path(namespace, name);
    let route = route(&path, &endpoints, &weights::spread(&shares));
    let route = KubernetesObject::with_spec(GATEWAY_API_VERSION, "HTTPRoute", route)
        .with_metadata(Metadata::in_namespace(namespace));
    desired.add(ROUTE, Body::of(&route), Ready::when(accepted));
    let address = address(observed, &service, namespace, name);
    desired.set_status(&ModelServiceStatus { address, ..ModelServiceStatus::default() });
    report(&mut desired, &endpoints, accepted);
    Ok(desired)
}

/// The weights in range, as the schema demands; the arithmetic relies on it.
fn check_weights(observed: &Observed<'_>, service: &ModelService) -> Result<(), ComposeError> {
    for (index, entry) in service.spec.endpoints.iter().enumerate() {
        if !(1..=i64::from(MAX_WEIGHT)).contains(&entry.weight()) {
            let weight = entry.weight();
            let message = format!("spec.endpoints[{index}].weight: {weight} is not from 1 to {MAX_WEIGHT}");
            return Err(observed.error(message));
        }
    }
    Ok(())
}

fn require(desired: &mut Desired<'_>, service: &ModelService) {
    let (gateway, endpoint) = (InferenceGateway::INFO, ModelEndpoint::INFO);
    desired.require(GATEWAY, Requirement::named(&gateway.api_version(), gateway.kind, DEFAULT_GATEWAY));
    for (index, entry) in service.spec.endpoints.iter().enumerate() {
        let labels = entry.selector.match_labels.clone();
        let requirement = Requirement::labelled(&endpoint.api_version(), endpoint.kind, labels);
        desired.require(endpoints_requirement(index), requirement);
    }
}

fn route<'r>(path: &'r str, endpoints: &Endpoints<'r>, weights: &[u32]) -> HttpRouteSpec<'r> {
    let backend_refs = endpoints.routable.iter().flatten().zip(weights).map(|(backend, weight)| {
        let filters = backend.rewrite_path.map(HttpRouteFilter::replace_prefix);
        HttpBackendRef {
            name: backend.service,
            port: Some(backend.port),
            weight: Some(*weight),
            filters: filters.into_iter().collect(),
            ..HttpBackendRef::default()
        }
    });
    HttpRouteSpec {
        parent_refs: [ParentReference { name: FLEET_GATEWAY, namespace: SYSTEM_NAMESPACE }],
        rules: [HttpRouteRule {
            matches: [HttpRouteMatch::path_prefix(path)],
            timeouts: None,
            filters: Vec::new(),
            backend_refs: backend_refs.collect(),
        }],
    }
}

/// The service's URL, if the gateway has an address: by HTTPS if it publishes a host name for that.
fn address(observed: &Observed<'_>, service: &ModelService, namespace: &str, name: &str) -> Option<String> {
    let gateway = match observed.required(GATEWAY) {
        Required::NotFetched => return published_address(service).map(str::to_owned),
        Required::Absent => return None,
        Required::Present(gateways) => &gateways[0].document,
    };
    let address = gateway.text_at(&["status", "address"])?;
    if let Some(hostname) = https_hostname(gateway) {
        return Some(format!("https://{hostname}/{namespace}/{name}"));
    }
    let host = match address.parse::<Ipv6Addr>() {
        Ok(_) => format!("[{address}]"),
        Err(_) => address.to_owned(),
    };
    Some(format!("http://{host}/{namespace}/{name}"))
}

/// Host name that a gateway with Modelplane's own data plane publishes for HTTPS.
fn https_hostname<'a>(gateway: &Document<'a>) -> Option<&'a str> {
    let hostname = gateway.text_at(&["spec", "modelplane", "tls", "hostname"])?;
    (gateway.text_at(&["spec", "backend"]) == Some("Modelplane") && !hostname.is_empty()).then_some(hostname)
}

/// Keeps the route and the published address.
fn hold<'a>(desired: &mut Desired<'a>, observed: &Observed<'a>, service: &ModelService) {
    let Some((key, route)) = observed.resources.get_key_value(ROUTE) else { return };
    desired.hold_as(key, route, Ready::when(is_accepted(observed)));
    if let Some(address) = published_address(service) {
        let address = Some(address.to_owned());
        desired.set_status(&ModelServiceStatus { address, ..ModelServiceStatus::default() });
    }
}

fn published_address(service: &ModelService) -> Option<&str> {
    service.status.as_ref()?.address.as_deref()
}

/// Whether any gateway has accepted the observed route.
fn is_accepted(observed: &Observed<'_>) -> bool {
    let Some(route) = observed.resources.get(ROUTE) else { return false };
    let parents: Vec<Document<'_>> =
        route.document.decode_at(&["status", "parents"]).ok().flatten().unwrap_or_default();
    parents.iter().any(|parent| {
        let conditions: Vec<Document<'_>> =
            parent.decode_at(&["conditions"]).ok().flatten().unwrap_or_default();
        conditions.iter().any(|condition| {
            condition.text_at(&["type"]) == Some("Accepted") && condition.text_at(&["status"]) == Some("True")
        })
    })
}

fn report_no_endpoints(desired: &mut Desired<'_>, observed: &Observed<'_>, endpoints: &Endpoints<'_>) {
    let kept = if observed.has(ROUTE) { "; the route stays as it is" } else { "" };
    let elsewhere = match endpoints.elsewhere {
        0 => String::new(),
        count => format!(" ({count} in other namespaces do not count)"),
    };
    let message = format!(
        "spec.endpoints: no ModelEndpoint of this namespace has the labels of any entry's \
         selector.matchLabels{elsewhere}{kept}; label an endpoint or correct the selectors"
    );
    desired.condition(
        Condition::is_false(ConditionType::EndpointsResolved.as_str(), Reason::NoEndpoints.as_str())
            .because(message.clone()),
    );
    desired.event(Severity::Warning, message);
}

fn report(desired: &mut Desired<'_>, endpoints: &Endpoints<'_>, accepted: bool) {
    let matched = endpoints.matched;
    let message = match matched - endpoints.routable_count() {
        0 => format!("{matched} endpoints matched"),
        waiting => format!("{matched} endpoints matched, {waiting} of them without a backend yet"),
    };
    desired.condition(
        Condition::is_true(ConditionType::EndpointsResolved.as_str(), Reason::Resolved.as_str())
            .because(message),
    );
    desired.condition(if accepted {
        Condition::is_true(ConditionType::RoutingReady.as_str(), Reason::RouteConfigured.as_str())
    } else {
        Condition::is_false(ConditionType::RoutingReady.as_str(), Reason::Configuring.as_str())
    });
}
