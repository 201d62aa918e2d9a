//! Explains replicas, services, endpoints, caches, classes and gateways.

use std::collections::BTreeSet;

use modelplane_api::names::DEPLOYMENT_LABEL;
use modelplane_core::simulate::{StoredObject, World};
use serde_json::{Map, Value};

use super::{Explanation, Section, general};
use crate::scheduling;
use crate::view::{Replica, backends, count, full_name, key, of_kind, or_dash, some_of, text, yes_or_no};

pub(super) fn replica(world: &World, object: &StoredObject) -> Explanation {
    let replica = Replica { object };
    let endpoint = world.get(&key("ModelEndpoint", &object.key.namespace, &object.key.name));
    let url = endpoint.map(|endpoint| text(&endpoint.body, &["spec", "url"])).unwrap_or_default();
    let answer = match object.is_ready() {
        true if url.is_empty() => {
            format!("ready on {}, but it has no endpoint, so no service routes to it", replica.location())
        }
        true => format!("serves on {} at {url}", replica.location()),
        false => format!("on {}, {}", replica.location(), general::not_ready(world, object)),
    };
    let services = routed_by(world, object);
    let mut explanation = Explanation::of(object, answer)
        .with(general::waits_for(world, object))
        .with(general::composed_by(world, object))
        .with(Section::new("RECEIVES REQUESTS OF", services));
    if replica.cluster().is_empty() || world.get(&key("InferenceCluster", "", replica.cluster())).is_none() {
        explanation.help.push(format!("there is no InferenceCluster {:?}", replica.cluster()));
    }
    explanation
}

pub(super) fn endpoint(world: &World, object: &StoredObject) -> Explanation {
    let url = text(&object.body, &["spec", "url"]);
    let services = routed_by(world, object);
    let answer = match (object.is_ready(), services.len()) {
        (false, _) => general::not_ready(world, object),
        (true, 0) => format!("ready at {url}, but no ModelService selects it"),
        (true, number) => format!("ready at {url}, used by {}", count(number, "service")),
    };
    Explanation::of(object, answer)
        .with(general::waits_for(world, object))
        .with(general::composed_by(world, object))
        .with(Section::new("RECEIVES REQUESTS OF", services))
}

/// Services that route to the endpoint of that name, with its share.
fn routed_by(world: &World, endpoint: &StoredObject) -> Vec<String> {
    let services =
        of_kind(world, "ModelService").filter(|service| service.key.namespace == endpoint.key.namespace);
    let mut lines = Vec::new();
    for service in services {
        let backends = backends(world, &service.key);
        let mine = backends.iter().find(|backend| backend.endpoint == endpoint.key.name);
        lines.extend(mine.map(|mine| format!("{}: {} of its requests", service.key, mine.share)));
    }
    lines
}

pub(super) fn service(world: &World, object: &StoredObject) -> Explanation {
    let backends = backends(world, &object.key);
    let address = text(&object.body, &["status", "address"]);
    let answer = match (address, backends.len()) {
        (_, 0) => "no endpoint answers it: none has the labels of any of its selectors".to_owned(),
        ("", number) => {
            format!("routes to {}, but it has no address yet", count(number, "endpoint"))
        }
        (address, number) => format!("{address} routes to {}", count(number, "endpoint")),
    };
    let rows = backends.iter().map(|backend| {
        vec![
            backend.endpoint.clone(),
            or_dash(&backend.cluster),
            backend.weight.to_string(),
            backend.share.clone(),
        ]
    });
    let headings = ["ENDPOINT", "CLUSTER", "WEIGHT", "REQUESTS"];
    let mut explanation = Explanation::of(object, answer)
        .with(general::waits_for(world, object))
        .with(Section::table("ROUTES", &headings, rows.collect()))
        .with(entries(world, object));
    if address.is_empty() && of_kind(world, "InferenceGateway").next().is_none() {
        explanation
            .help
            .push("services get an address from the InferenceGateway \"default\": apply one".to_owned());
    }
    explanation
}

/// What each entry of a service selects.
fn entries(world: &World, service: &StoredObject) -> Section {
    let entries = service.body["spec"]["endpoints"].as_array().into_iter().flatten();
    let none = Map::new();
    let rows = entries.map(|entry| {
        let labels = entry["selector"]["matchLabels"].as_object().unwrap_or(&none);
        let wanted: Vec<String> = labels
            .iter()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        let endpoints: Vec<&str> = of_kind(world, "ModelEndpoint")
            .filter(|endpoint| endpoint.key.namespace == service.key.namespace)
            .filter(|endpoint| {
                labels.iter().all(|(key, value)| endpoint.body["metadata"]["labels"][key] == *value)
            })
            .map(|endpoint| endpoint.key.name.as_str())
            .collect();
        let found = match endpoints.len() {
            0 => no_endpoint(world, service, labels),
            _ => some_of(&endpoints, 4),
        };
        let weight = entry["weight"].as_i64().unwrap_or(1).to_string();
        vec![wanted.join(","), weight, found]
    });
    Section::table("SELECTORS", &["LABELS", "WEIGHT", "SELECTS"], rows.collect())
}

/// Why an entry selects nothing, as far as its deployment tells.
fn no_endpoint(world: &World, service: &StoredObject, labels: &Map<String, Value>) -> String {
    let Some(name) = labels.get(DEPLOYMENT_LABEL).and_then(Value::as_str) else {
        return "nothing".to_owned();
    };
    match world.get(&key("ModelDeployment", &service.key.namespace, name)) {
        None => format!("nothing: there is no ModelDeployment {}/{name}", service.key.namespace),
        Some(_) => format!("nothing: no replica of {name} serves yet; see `modelplane explain md/{name}`"),
    }
}

pub(super) fn cache(world: &World, object: &StoredObject) -> Explanation {
    let clusters = object.body["status"]["clusters"].as_array();
    let entries: Vec<&Value> = clusters.into_iter().flatten().collect();
    let ready = entries.iter().filter(|entry| entry["phase"] == "Ready").count();
    let answer = match (object.is_ready(), entries.len()) {
        (_, 0) => general::not_ready(world, object),
        (_, matched) => format!("staged on {ready} of {}", count(matched, "matching cluster")),
    };
    let rows = entries.iter().map(|entry| {
        vec![
            text(entry, &["name"]).to_owned(),
            text(entry, &["phase"]).to_owned(),
            text(entry, &["message"]).to_owned(),
        ]
    });
    let users = of_kind(world, "ModelDeployment").filter(|deployment| {
        deployment.key.namespace == object.key.namespace
            && deployment.body["spec"]["template"]["spec"]["modelCacheRef"]["name"]
                == object.key.name.as_str()
    });
    let users: Vec<String> = users.map(|deployment| deployment.key.to_string()).collect();
    Explanation::of(object, answer)
        .with(general::waits_for(world, object))
        .with(Section::table("CLUSTERS", &["CLUSTER", "PHASE", "MESSAGE"], rows.collect()))
        .with(Section::new("USED BY", users))
}

pub(super) fn class(world: &World, object: &StoredObject) -> Explanation {
    let mut users = Vec::new();
    let mut nodes = 0i64;
    for cluster in of_kind(world, "InferenceCluster") {
        for pool in cluster.body["spec"]["nodePools"].as_array().into_iter().flatten() {
            if pool["className"] == object.key.name.as_str() {
                let most = pool["maxNodeCount"].as_i64().or_else(|| pool["nodeCount"].as_i64()).unwrap_or(0);
                nodes = nodes.saturating_add(most);
                let number = count(usize::try_from(most).unwrap_or_default(), "node");
                users.push(format!(
                    "InferenceCluster/{} pool {}: {number}",
                    cluster.key.name,
                    text(pool, &["name"])
                ));
            }
        }
    }
    let suits: Vec<String> = of_kind(world, "ModelDeployment")
        .filter(|deployment| {
            scheduling::report_on_classes(&deployment.body, [&object.body])
                .is_ok_and(|report| !scheduling::suitable(&report).is_empty())
        })
        .map(|deployment| deployment.key.to_string())
        .collect();
    let description = text(&object.body, &["spec", "description"]);
    let used = match users.len() {
        0 => "no pool uses it".to_owned(),
        pools => format!("{} with {nodes} nodes use it", count(pools, "pool")),
    };
    let answer = if description.is_empty() { used } else { format!("{description}; {used}") };
    Explanation::of(object, answer)
        .with(general::waits_for(world, object))
        .with(devices(object))
        .with(Section::new("USED BY", users))
        .with(Section::new("SUITS", suits))
}

fn devices(class: &StoredObject) -> Section {
    let devices = class.body["spec"]["devices"].as_array().into_iter().flatten();
    let rows = devices.map(|device| {
        let attributes = device["attributes"].as_object().into_iter().flatten().map(|(name, attribute)| {
            let value = attribute.as_object().and_then(|attribute| attribute.values().next());
            format!("{name}={}", plain(value.unwrap_or(&Value::Null)))
        });
        let capacity = device["capacity"].as_object().into_iter().flatten();
        let capacity = capacity.map(|(name, capacity)| format!("{name}={}", plain(&capacity["value"])));
        let facts: Vec<String> = capacity.chain(attributes).collect();
        vec![
            text(device, &["name"]).to_owned(),
            device["count"].to_string(),
            text(device, &["driver"]).to_owned(),
            facts.join(" "),
        ]
    });
    Section::table("DEVICES PER NODE", &["DEVICE", "COUNT", "DRIVER", "FACTS"], rows.collect())
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn gateway(world: &World, object: &StoredObject) -> Explanation {
    let address = text(&object.body, &["status", "address"]);
    let services: BTreeSet<String> =
        of_kind(world, "ModelService").map(|service| full_name(&service.key)).collect();
    let answer = match object.is_ready() {
        true => format!("ready at {}, in front of {}", or_dash(address), count(services.len(), "service")),
        false => general::not_ready(world, object),
    };
    let rows = of_kind(world, "ModelService").map(|service| {
        let address = or_dash(text(&service.body, &["status", "address"]));
        vec![full_name(&service.key), yes_or_no(service.is_ready()), address]
    });
    Explanation::of(object, answer).with(general::waits_for(world, object)).with(Section::table(
        "SERVICES",
        &["SERVICE", "READY", "ADDRESS"],
        rows.collect(),
    ))
}
