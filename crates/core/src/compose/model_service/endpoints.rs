//! Which endpoints a service's entries select, and how the route refers to them (spec gateway-and-routing §4.3).

use std::collections::HashSet;

use modelplane_api::names::{SERVICE_ROUTE_KEY, endpoints_requirement};

use crate::compose::model_endpoint::url::EndpointUrl;
use crate::contract::{Observed, Required, Resource};
use crate::document::Document;

/// The endpoints of a service, entry by entry.
#[derive(Default)]
pub(super) struct Endpoints<'a> {
    /// Those that take requests.
    pub(super) routable: Vec<Vec<Backend<'a>>>,
    /// How many were selected, routable or not.
    pub(super) matched: usize,
    /// How many more there were in other namespaces, where this service's route cannot reach them.
    pub(super) elsewhere: usize,
    /// What is wrong with some of them.
    pub(super) problems: Vec<String>,
}

/// An endpoint that takes requests.
pub(super) struct Backend<'a> {
    /// Name of its Service.
    pub(super) service: &'a str,
    /// Port of the Service.
    pub(super) port: u16,
    /// What replaces the service's path prefix.
    pub(super) rewrite_path: Option<&'a str>,
}

impl<'a> Endpoints<'a> {
    /// The endpoints of a service with this many entries; `None` while some have not been fetched.
    ///
    /// An endpoint that several entries select belongs to the first.
    pub(super) fn resolve(observed: &Observed<'a>, namespace: &str, entries: usize) -> Option<Self> {
        let mut endpoints = Self::default();
        let mut seen = HashSet::new();
        for entry in 0..entries {
            let selected = match observed.required(&endpoints_requirement(entry)) {
                Required::NotFetched => return None,
                Required::Absent => &[][..],
                Required::Present(selected) => selected,
            };
            endpoints.routable.push(Vec::with_capacity(selected.len()));
            for endpoint in selected {
                let identity = endpoint.identity();
                if !["", namespace].contains(&identity.namespace) {
                    endpoints.elsewhere += 1;
                } else if seen.insert(identity.name) {
                    endpoints.select(observed, entry, endpoint);
                }
            }
        }
        Some(endpoints)
    }

    /// How many endpoints take requests.
    pub(super) fn routable_count(&self) -> usize {
        self.routable.iter().map(Vec::len).sum()
    }

    fn select(&mut self, observed: &Observed<'a>, entry: usize, endpoint: &Resource<'a>) {
        self.matched += 1;
        let document = endpoint.document;
        let Some(service) = document.text_at(&["status", "routing", "backendName"]) else { return };
        let url = document.text_at(&["spec", "url"]).unwrap_or_default();
        let port = match EndpointUrl::parse(url) {
            Ok(url) => Some(url.port),
            Err(error) => {
                let port = observed_port(observed, service);
                let action = if port.is_some() { "its port stays as it is" } else { "it gets no requests" };
                let endpoint = endpoint.identity();
                self.problems.push(format!("{endpoint}: spec.url {url:?} is not usable: {error}; {action}"));
                port
            }
        };
        let rewrite_path = document.text_at(&["spec", "rewritePath"]);
        self.routable[entry].extend(port.map(|port| Backend { service, port, rewrite_path }));
    }
}

/// The port the observed route uses for a Service.
fn observed_port(observed: &Observed<'_>, service: &str) -> Option<u16> {
    let route = observed.resources.get(SERVICE_ROUTE_KEY)?;
    let rules: Vec<Document<'_>> = route.document.decode_at(&["spec", "rules"]).ok()??;
    let backends: Vec<Document<'_>> = rules.first()?.decode_at(&["backendRefs"]).ok()??;
    let backend = backends.iter().find(|backend| backend.text_at(&["name"]) == Some(service))?;
    backend.decode_at(&["port"]).ok()?
}
