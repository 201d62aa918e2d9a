//! Discovery: `/api`, `/apis`, their groups and versions, and the aggregated form of it all.

use axum::body::Body;
use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderMap, Response, StatusCode};
use serde_json::{Value, json};

use crate::http::negotiate::{MediaRange, media_ranges};
use crate::http::respond;
use crate::registry::resource::{Special, api_version};
use crate::registry::{Registry, Resource, Version};

const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const AGGREGATED: [(&str, &str); 2] = [
    ("v2", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
    ("v2beta1", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"),
];

/// Answers a discovery path; `None` if the path is no such.
pub(crate) fn answer(registry: &Registry, path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let legacy = segments.first() == Some(&"api");
    if let (["api"] | ["apis"], Some((version, content_type))) = (segments.as_slice(), aggregated(headers)) {
        let name = format!("aggregated {version} {legacy}");
        let body = registry.document(&name, || to_bytes(&aggregated_list(registry, version, legacy)));
        return Some(respond::bytes(StatusCode::OK, content_type, body));
    }
    let make: Box<dyn Fn() -> Option<Value>> = match segments.as_slice() {
        ["api"] => Box::new(|| {
            Some(json!({
                "kind": "APIVersions", "versions": ["v1"],
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
            }))
        }),
        ["apis"] => Box::new(|| Some(group_list(registry))),
        ["api", version] => {
            let version = (*version).to_owned();
            Box::new(move || resource_list(registry, "", &version))
        }
        ["apis", group] => {
            let group = (*group).to_owned();
            Box::new(move || {
                let versions = registry.group_versions().get(&group).filter(|_| !group.is_empty())?;
                let mut document = group_of(&group, versions);
                document["kind"] = "APIGroup".into();
                document["apiVersion"] = "v1".into();
                Some(document)
            })
        }
        ["apis", group, version] => {
            let (group, version) = ((*group).to_owned(), (*version).to_owned());
            Box::new(move || resource_list(registry, &group, &version))
        }
        _ => return None,
    };
    let document = make()?;
    Some(respond::json_bytes(StatusCode::OK, to_bytes(&document)))
}

fn to_bytes(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}

fn aggregated(headers: &HeaderMap) -> Option<(&'static str, &'static str)> {
    let header = headers.get(ACCEPT)?.to_str().ok()?;
    let wants = |range: &MediaRange<'_>, version: &str| {
        range.media_type == "application/json"
            && range.parameter("g") == Some("apidiscovery.k8s.io")
            && range.parameter("v") == Some(version)
            && range.parameter("as") == Some("APIGroupDiscoveryList")
    };
    for range in media_ranges(header) {
        if let Some(found) = AGGREGATED.into_iter().find(|(version, _)| wants(&range, version)) {
            return Some(found);
        }
        if range.parameter("as").is_none() && matches!(range.media_type, "application/json" | "*/*") {
            return None;
        }
    }
    None
}

fn group_of(group: &str, versions: &[String]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": api_version(group, version), "version": version}))
        .collect();
    json!({"name": group, "preferredVersion": versions.first(), "versions": versions})
}

fn group_list(registry: &Registry) -> Value {
    let groups: Vec<Value> = registry
        .group_versions()
        .iter()
        .filter(|(group, _)| !group.is_empty())
        .map(|(group, versions)| group_of(group, versions))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// The subresources of a version with their kind and verbs.
pub(crate) fn subresources(
    resource: &Resource,
    version: &Version,
) -> Vec<(&'static str, [String; 3], Vec<&'static str>)> {
    let own = || [resource.group.clone(), version.name.clone(), resource.kind.clone()];
    let mut found = Vec::new();
    if version.status {
        found.push(("status", own(), vec!["get", "patch", "update"]));
    }
    if version.scale.is_some() {
        let scale = ["autoscaling".to_owned(), "v1".to_owned(), "Scale".to_owned()];
        found.push(("scale", scale, vec!["get", "patch", "update"]));
    }
    if resource.rules.special == Special::Namespace {
        found.push(("finalize", own(), vec!["update"]));
    }
    for (name, [group, version, kind]) in crate::reviews::subresources(resource) {
        found.push((name, [group.to_owned(), version.to_owned(), kind.to_owned()], vec!["create"]));
    }
    found
}

fn verbs(resource: &Resource) -> &'static [&'static str] {
    match resource.rules.special {
        Special::Review => &["create"],
        _ => &VERBS,
    }
}

fn resource_list(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let found = registry.in_version(group, version);
    if found.is_empty() {
        return None;
    }
    let mut resources = Vec::new();
    for (resource, index) in found {
        let mut entry = json!({
            "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": verbs(resource),
        });
        if !resource.short_names.is_empty() {
            entry["shortNames"] = json!(resource.short_names);
        }
        if !resource.categories.is_empty() {
            entry["categories"] = json!(resource.categories);
        }
        resources.push(entry);
        for (name, [sub_group, sub_version, kind], verbs) in subresources(resource, &resource.versions[index])
        {
            let mut entry = json!({
                "name": format!("{}/{name}", resource.plural), "singularName": "",
                "namespaced": resource.namespaced, "kind": kind, "verbs": verbs,
            });
            if (sub_group.as_str(), sub_version.as_str()) != (group, version) {
                entry["group"] = sub_group.into();
                entry["version"] = sub_version.into();
            }
            resources.push(entry);
        }
    }
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version(group, version),
        "resources": resources,
    }))
}

fn aggregated_list(registry: &Registry, discovery: &str, legacy: bool) -> Value {
    let items: Vec<Value> = registry
        .group_versions()
        .iter()
        .filter(|(group, _)| group.is_empty() == legacy)
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> = registry
                        .in_version(group, version)
                        .into_iter()
                        .map(|(resource, index)| aggregated_resource(resource, &resource.versions[index]))
                        .collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{discovery}"),
        "metadata": {}, "items": items,
    })
}

fn aggregated_resource(resource: &Resource, version: &Version) -> Value {
    let scope = if resource.namespaced { "Namespaced" } else { "Cluster" };
    let kind =
        |[group, version, kind]: [String; 3]| json!({"group": group, "version": version, "kind": kind});
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": kind([resource.group.clone(), version.name.clone(), resource.kind.clone()]),
        "scope": scope, "singularResource": resource.singular, "verbs": verbs(resource),
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    let subresources: Vec<Value> = subresources(resource, version)
        .into_iter()
        .map(|(name, response, verbs)| json!({"subresource": name, "responseKind": kind(response), "verbs": verbs}))
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = Value::Array(subresources);
    }
    entry
}
