//! Where the requests of every ModelService go, before and after.

use std::collections::{BTreeMap, BTreeSet};

use modelplane_core::simulate::{ObjectKey, World};
use serde::Serialize;

use super::{Worlds, change};
use crate::output;
use crate::view::{backends, full_name, of_kind, or_dash, text};

/// An endpoint whose share of a service's requests changes.
#[derive(Debug, Serialize)]
pub(super) struct Change {
    service: String,
    /// URL of the service after the change, if it has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    address: String,
    endpoint: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    cluster: String,
    before: String,
    after: String,
}

pub(super) fn changes(worlds: Worlds<'_>) -> Vec<Change> {
    let mut services: Vec<&ObjectKey> = [worlds.before, worlds.after]
        .into_iter()
        .flat_map(|world| of_kind(world, "ModelService"))
        .map(|service| &service.key)
        .collect();
    services.sort();
    services.dedup();
    services.into_iter().flat_map(|service| of_service(worlds, service)).collect()
}

fn of_service(worlds: Worlds<'_>, service: &ObjectKey) -> Vec<Change> {
    let (before, after) = (shares(worlds.before, service), shares(worlds.after, service));
    let mut endpoints: Vec<&String> = before.keys().chain(after.keys()).collect();
    endpoints.sort();
    endpoints.dedup();
    let address = worlds.after.get(service).map(|service| text(&service.body, &["status", "address"]));
    let none = || (String::new(), "-".to_owned());
    let change = |endpoint: &String| {
        let (old_cluster, old) = before.get(endpoint).cloned().unwrap_or_else(none);
        let (new_cluster, new) = after.get(endpoint).cloned().unwrap_or_else(none);
        (old != new).then(|| Change {
            service: full_name(service),
            address: address.unwrap_or_default().to_owned(),
            endpoint: endpoint.clone(),
            cluster: if new_cluster.is_empty() { old_cluster } else { new_cluster },
            before: old,
            after: new,
        })
    };
    endpoints.into_iter().filter_map(change).collect()
}

/// Cluster and share by endpoint.
fn shares(world: &World, service: &ObjectKey) -> BTreeMap<String, (String, String)> {
    let backends = backends(world, service).into_iter();
    backends.map(|backend| (backend.endpoint, (backend.cluster, backend.share))).collect()
}

/// The number of services whose requests go elsewhere.
pub(super) fn services(changes: &[Change]) -> usize {
    changes.iter().map(|change| change.service.as_str()).collect::<BTreeSet<_>>().len()
}

pub(super) fn describe(changes: &[Change]) -> Option<String> {
    let rows = changes.iter().map(|route| {
        let share = change(&route.before, &route.after);
        vec![route.service.clone(), route.endpoint.clone(), or_dash(&route.cluster), share]
    });
    let table = output::table(&["SERVICE", "ENDPOINT", "CLUSTER", "REQUESTS"], rows);
    (!changes.is_empty()).then(|| format!("ROUTES\n{table}"))
}
