//! `ModelService`: one HTTPRoute on the fleet's gateway that spreads requests over the endpoints its entries select
//! (spec gateway-and-routing §4).
//!
//! Endpoints and the gateway's address come from required resources; the route references the endpoints' Services by
//! the names they publish. An endpoint whose URL cannot be read keeps the reference the observed route has, and never
//! stands in the way of the others.

mod weights;

use std::collections::HashSet;

use modelplane_api::conditions::{ConditionType, Reason};
use modelplane_api::inference_gateway::InferenceGateway;
use modelplane_api::kind::Object;
use modelplane_api::model_endpoint::ModelEndpoint;
use modelplane_api::model_service::{ModelService, ModelServiceStatus};
use modelplane_api::names::{
    DEFAULT_GATEWAY, FLEET_GATEWAY, GATEWAY_REQUIREMENT as GATEWAY, SERVICE_ROUTE_KEY as ROUTE,
    SYSTEM_NAMESPACE, endpoints_requirement, route_path,
};

use self::weights::{MAX_WEIGHT, Share};
use super::gateway_api::{
    GATEWAY_API_VERSION, HttpBackendRef, HttpRouteFilter, HttpRouteMatch, HttpRouteRule, HttpRouteSpec,
    ParentReference,
};
use super::model_endpoint::url::EndpointUrl;
use super::object::{KubernetesObject, Metadata};
use crate::contract::{
    Body, ComposeError, Condition, Desired, Observed, Ready, Required, Requirement, Resource, Severity,
};
use crate::document::Document;

/// The endpoints of the service, entry by entry.
#[derive(Default)]
struct Endpoints<'a> {
    /// Those that take requests.
    routable: Vec<Vec<Backend<'a>>>,
    /// How many were selected, routable or not.
    matched: usize,
    /// How many more there were in other namespaces, where this service's route cannot reach them.
    elsewhere: usize,
    /// What is wrong with some of them.
    problems: Vec<String>,
}

/// An endpoint that takes requests.
struct Backend<'a> {
    service: &'a str,
    port: u16,
    rewrite_path: Option<&'a str>,
}

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

    let Some(endpoints) = resolve(observed, namespace, &service) else {
        hold(&mut desired, observed, &service);
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
    let routable: usize = shares.iter().map(|share| share.endpoints).sum();
    let accepted = is_accepted(observed) && routable > 0;
    let path = route_path(namespace, name);
    let route = route(&path, &endpoints, &weights::spread(&shares));
    let route = KubernetesObject::with_spec(GATEWAY_API_VERSION, "HTTPRoute", route)
        .with_metadata(Metadata::in_namespace(namespace));
    desired.add(ROUTE, Body::of(&route), Ready::when(accepted));
    let address = match observed.required(GATEWAY) {
        Required::NotFetched => published_address(&service).map(str::to_owned),
        Required::Absent => None,
        Required::Present(gateways) => {
            let address = gateways[0].document.text_at(&["status", "address"]);
            address.map(|address| format!("http://{address}/{namespace}/{name}"))
        }
    };
    desired.set_status(&ModelServiceStatus { address, ..ModelServiceStatus::default() });
    report(&mut desired, &endpoints, routable, accepted);
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

/// The endpoints of every entry; `None` while some have not been fetched.
fn resolve<'a>(observed: &Observed<'a>, namespace: &str, service: &ModelService) -> Option<Endpoints<'a>> {
    let mut endpoints = Endpoints::default();
    let mut seen = HashSet::new();
    for index in 0..service.spec.endpoints.len() {
        let selected = match observed.required(&endpoints_requirement(index)) {
            Required::NotFetched => return None,
            Required::Absent => &[][..],
            Required::Present(selected) => selected,
        };
        let mut routable = Vec::with_capacity(selected.len());
        for endpoint in selected {
            let identity = endpoint.identity();
            if !["", namespace].contains(&identity.namespace) {
                endpoints.elsewhere += 1;
            } else if seen.insert(identity.name) {
                endpoints.matched += 1;
                match backend(observed, endpoint) {
                    Ok(backend) => routable.extend(backend),
                    Err((problem, backend)) => {
                        endpoints.problems.push(problem);
                        routable.extend(backend);
                    }
                }
            }
        }
        endpoints.routable.push(routable);
    }
    Some(endpoints)
}

/// The reference to an endpoint, if it takes requests; with a problem, what the observed route has for it.
fn backend<'a>(
    observed: &Observed<'a>,
    endpoint: &Resource<'a>,
) -> Result<Option<Backend<'a>>, (String, Option<Backend<'a>>)> {
    let document = endpoint.document;
    let Some(service) = document.text_at(&["status", "routing", "backendName"]) else { return Ok(None) };
    let rewrite_path = document.text_at(&["spec", "rewritePath"]);
    let url = document.text_at(&["spec", "url"]).unwrap_or_default();
    match EndpointUrl::parse(url) {
        Ok(url) => Ok(Some(Backend { service, port: url.port, rewrite_path })),
        Err(error) => {
            let backend =
                observed_port(observed, service).map(|port| Backend { service, port, rewrite_path });
            let action = if backend.is_some() { "its port stays as it is" } else { "it gets no requests" };
            let problem =
                format!("{}: spec.url {url:?} is not usable: {error}; {action}", endpoint.identity());
            Err((problem, backend))
        }
    }
}

/// The port the observed route uses for a Service.
fn observed_port(observed: &Observed<'_>, service: &str) -> Option<u16> {
    let route = observed.resources.get(ROUTE)?;
    let rules: Vec<Document<'_>> = route.document.decode_at(&["spec", "rules"]).ok()??;
    let backends: Vec<Document<'_>> = rules.first()?.decode_at(&["backendRefs"]).ok()??;
    let backend = backends.iter().find(|backend| backend.text_at(&["name"]) == Some(service))?;
    backend.decode_at(&["port"]).ok()?
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

/// Keeps the route and the published address.
fn hold<'a>(desired: &mut Desired<'a>, observed: &Observed<'a>, service: &ModelService) {
    desired.hold_all(observed);
    if let Some(route) = desired.resources.get_mut(ROUTE) {
        route.ready = Ready::when(is_accepted(observed));
    }
    if observed.has(ROUTE)
        && let Some(address) = published_address(service)
    {
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

fn report(desired: &mut Desired<'_>, endpoints: &Endpoints<'_>, routable: usize, accepted: bool) {
    let matched = endpoints.matched;
    let message = match matched - routable {
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
