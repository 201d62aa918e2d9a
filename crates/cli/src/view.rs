//! Reading a simulated fleet: what commands that tell about it have in common.

use modelplane_api::kind::Object;
use modelplane_api::model_deployment::ModelDeployment;
use modelplane_api::names::{CLUSTER_LABEL, DEPLOYMENT_LABEL};
use modelplane_core::contract::Resource;
use modelplane_core::simulate::{ObjectKey, StoredObject, World};
use serde::Serialize;
use serde_json::Value;

/// The API group of the kinds that people write.
const GROUP: &str = ModelDeployment::INFO.group;

/// A condition of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    pub(crate) about: String,
    /// `True`, `False` or `Unknown`.
    pub(crate) status: String,
    /// CamelCase reason.
    pub(crate) reason: String,
    /// The reason in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
}

/// The objects of one of Modelplane's own kinds, by key.
pub(crate) fn of_kind<'w>(world: &'w World, kind: &str) -> impl Iterator<Item = &'w StoredObject> + use<'w> {
    world.of_kind(GROUP, kind)
}

/// The objects of a kind as compositions and the scheduler read them.
pub(crate) fn resources<'w>(world: &'w World, kind: &str) -> Vec<Resource<'w>> {
    of_kind(world, kind).map(|object| Resource::new(object.document())).collect()
}

/// The key of an object of one of Modelplane's own kinds.
pub(crate) fn key(kind: &str, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey {
        group: GROUP.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// The text under a path of object keys, empty if there is none.
pub(crate) fn text<'v>(value: &'v Value, path: &[&str]) -> &'v str {
    path.iter().fold(value, |value, step| &value[*step]).as_str().unwrap_or_default()
}

/// The text, or `-` in its place.
pub(crate) fn or_dash(text: &str) -> String {
    if text.is_empty() { "-" } else { text }.to_owned()
}

pub(crate) fn yes_or_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

/// `1 replica`, `2 replicas`.
pub(crate) fn count(number: usize, what: &str) -> String {
    match (number, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) if what.ends_with('s') => format!("{number} {what}es"),
        (_, None) => format!("{number} {what}s"),
    }
}

/// The text on one line: selectors in YAML often end in line breaks.
pub(crate) fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The first few of many names.
pub(crate) fn some_of<S: AsRef<str>>(names: &[S], limit: usize) -> String {
    let shown: Vec<&str> = names.iter().take(limit).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(limit) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// `namespace/name`, or the name of a cluster-scoped object.
pub(crate) fn full_name(key: &ObjectKey) -> String {
    match key.namespace.as_str() {
        "" => key.name.clone(),
        namespace => format!("{namespace}/{}", key.name),
    }
}

/// The conditions of an object.
pub(crate) fn conditions(object: &StoredObject) -> Vec<Condition> {
    let list = object.body["status"]["conditions"].as_array().into_iter().flatten();
    list.map(|condition| Condition {
        about: text(condition, &["type"]).to_owned(),
        status: text(condition, &["status"]).to_owned(),
        reason: text(condition, &["reason"]).to_owned(),
        message: text(condition, &["message"]).to_owned(),
    })
    .collect()
}

/// The condition that says most about why an object is not ready: a specific one before a general one.
pub(crate) fn failing_condition(object: &StoredObject) -> Option<Condition> {
    let failing = conditions(object).into_iter().filter(|condition| condition.status != "True");
    failing.min_by_key(|condition| {
        let general = matches!(condition.about.as_str(), "Ready" | "Synced");
        (general && condition.message.is_empty(), condition.message.is_empty())
    })
}

/// A replica as tables show it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Replica<'w> {
    pub(crate) object: &'w StoredObject,
}

impl<'w> Replica<'w> {
    /// Every replica of the fleet.
    pub(crate) fn all(world: &'w World) -> impl Iterator<Item = Self> + use<'w> {
        of_kind(world, "ModelReplica").map(|object| Self { object })
    }

    pub(crate) fn cluster(self) -> &'w str {
        text(&self.object.body, &["spec", "clusterName"])
    }

    /// The deployment, if a deployment made it.
    pub(crate) fn deployment(self) -> Option<ObjectKey> {
        let name = text(&self.object.body, &["metadata", "labels", DEPLOYMENT_LABEL]);
        let key = key("ModelDeployment", &self.object.key.namespace, name);
        (!name.is_empty()).then_some(key)
    }

    /// The distinct pools of its members, in order.
    pub(crate) fn pools(self) -> Vec<&'w str> {
        let engines = self.object.body["spec"]["engines"].as_array().into_iter().flatten();
        let members = engines.flat_map(|engine| engine["members"].as_array().into_iter().flatten());
        let mut pools: Vec<&str> = Vec::new();
        for pool in members.filter_map(|member| member["nodePoolName"].as_str()) {
            if !pools.contains(&pool) {
                pools.push(pool);
            }
        }
        pools
    }

    /// `cluster/pool`, with several pools as `cluster/one+other`.
    pub(crate) fn location(self) -> String {
        format!("{}/{}", self.cluster(), self.pools().join("+"))
    }
}

/// One endpoint that a service routes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Backend {
    /// Name of the ModelEndpoint.
    pub(crate) endpoint: String,
    /// Cluster the endpoint's replica runs on; empty for an outside provider.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) cluster: String,
    /// Its weight in the route.
    pub(crate) weight: u64,
    /// Its share of the requests, in tenths of a per cent.
    #[serde(skip)]
    pub(crate) per_mille: u64,
    /// Its share of the requests, e.g. `33.3%`.
    pub(crate) share: String,
}

/// What the route composed for a ModelService sends requests to.
pub(crate) fn backends(world: &World, service: &ObjectKey) -> Vec<Backend> {
    let routes = world.composed_by(service).map(|(_, object)| object);
    let Some(route) = routes.into_iter().find(|object| object.key.kind == "HTTPRoute") else {
        return Vec::new();
    };
    let rules = route.body["spec"]["rules"].as_array().into_iter().flatten();
    let references: Vec<&Value> =
        rules.flat_map(|rule| rule["backendRefs"].as_array().into_iter().flatten()).collect();
    let weight = |reference: &Value| reference["weight"].as_u64().unwrap_or(1);
    let total: u64 = references.iter().map(|reference| weight(reference)).sum();
    let endpoints: Vec<&StoredObject> = of_kind(world, "ModelEndpoint")
        .filter(|endpoint| endpoint.key.namespace == service.namespace)
        .collect();
    let backend = |reference: &&Value| {
        let name = text(reference, &["name"]);
        let endpoint = endpoints
            .iter()
            .find(|endpoint| text(&endpoint.body, &["status", "routing", "backendName"]) == name);
        let weight = weight(reference);
        let per_mille = (weight * 1000).checked_div(total).unwrap_or_default();
        Backend {
            endpoint: endpoint.map_or(name, |endpoint| endpoint.key.name.as_str()).to_owned(),
            cluster: endpoint
                .map(|endpoint| text(&endpoint.body, &["metadata", "labels", CLUSTER_LABEL]))
                .unwrap_or_default()
                .to_owned(),
            weight,
            per_mille,
            share: share(per_mille),
        }
    };
    references.iter().map(backend).collect()
}

/// A share of requests as people write it: `50%`, `33.3%`.
pub(crate) fn share(per_mille: u64) -> String {
    match per_mille % 10 {
        0 => format!("{}%", per_mille / 10),
        tenths => format!("{}.{tenths}%", per_mille / 10),
    }
}
