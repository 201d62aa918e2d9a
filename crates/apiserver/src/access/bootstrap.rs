//! The roles and bindings a server starts with: Kubernetes' user-facing roles `cluster-admin`, `admin`, `edit`
//! and `view` with their aggregation, what every authenticated user may do, and a reader for whole clusters.
//!
//! The API groups a fleet brings along are part of `admin`, `edit` and `view`, so that a binding in a namespace
//! lets an ML team work with its models there.

use serde_json::{Value, json};

use super::rules::{self, GROUP, PolicyRule, rules_of};
use super::{AUTHENTICATED, MASTERS};

/// Members may read everything but secrets.
pub(crate) const READERS: &str = "system:readers";

const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
const READ: &[&str] = &["get", "list", "watch"];
const CHANGE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
const EVERYTHING: &[&str] = &["*"];

/// Resources by group: what `view` reads, `edit` changes, and `admin` has beyond that.
const VIEWED: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "bindings",
            "configmaps",
            "endpoints",
            "events",
            "limitranges",
            "namespaces",
            "namespaces/status",
            "persistentvolumeclaims",
            "persistentvolumeclaims/status",
            "pods",
            "pods/log",
            "pods/status",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "resourcequotas",
            "resourcequotas/status",
            "serviceaccounts",
            "services",
            "services/status",
        ],
    ),
    (
        "apps",
        &[
            "controllerrevisions",
            "daemonsets",
            "daemonsets/status",
            "deployments",
            "deployments/scale",
            "deployments/status",
            "replicasets",
            "replicasets/scale",
            "replicasets/status",
            "statefulsets",
            "statefulsets/scale",
            "statefulsets/status",
        ],
    ),
    ("autoscaling", &["horizontalpodautoscalers", "horizontalpodautoscalers/status"]),
    ("batch", &["cronjobs", "cronjobs/status", "jobs", "jobs/status"]),
    ("discovery.k8s.io", &["endpointslices"]),
    ("events.k8s.io", &["events"]),
    ("networking.k8s.io", &["ingresses", "ingresses/status", "networkpolicies"]),
    ("policy", &["poddisruptionbudgets", "poddisruptionbudgets/status"]),
    ("resource.k8s.io", &["resourceclaims", "resourceclaims/status", "resourceclaimtemplates"]),
];

const EDITED: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "configmaps",
            "endpoints",
            "events",
            "persistentvolumeclaims",
            "pods",
            "pods/attach",
            "pods/exec",
            "pods/portforward",
            "pods/proxy",
            "pods/eviction",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "secrets",
            "serviceaccounts",
            "services",
            "services/proxy",
        ],
    ),
    (
        "apps",
        &[
            "daemonsets",
            "deployments",
            "deployments/rollback",
            "deployments/scale",
            "replicasets",
            "replicasets/scale",
            "statefulsets",
            "statefulsets/scale",
        ],
    ),
    ("autoscaling", &["horizontalpodautoscalers"]),
    ("batch", &["cronjobs", "jobs"]),
    ("coordination.k8s.io", &["leases"]),
    ("networking.k8s.io", &["ingresses", "networkpolicies"]),
    ("policy", &["poddisruptionbudgets"]),
    ("resource.k8s.io", &["resourceclaims", "resourceclaimtemplates"]),
];

/// What the reader of a whole cluster sees beyond `view`.
const READ_IN_CLUSTER: &[(&str, &[&str])] = &[
    ("", &["nodes", "nodes/status", "persistentvolumes"]),
    ("apiextensions.k8s.io", &["customresourcedefinitions"]),
    ("coordination.k8s.io", &["leases"]),
    ("resource.k8s.io", &["deviceclasses", "resourceslices"]),
    ("scheduling.k8s.io", &["priorityclasses"]),
    ("storage.k8s.io", &["csidrivers", "csinodes", "storageclasses", "volumeattachments"]),
    (GROUP, &["clusterrolebindings", "clusterroles", "rolebindings", "roles"]),
];

const DISCOVERY: &[&str] = &[
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
];

/// All roles and bindings to start with; `groups` are the API groups the fleet brings along.
pub(crate) fn objects(groups: &[String]) -> Vec<Value> {
    let read = |table: &[(&str, &[&str])]| rules(table, READ);
    let fleet = |verbs: &[&str]| groups.iter().map(|group| rule(group, &["*"], verbs)).collect::<Vec<_>>();
    let everything = vec![rule("*", &["*"], EVERYTHING), urls(&["*"], EVERYTHING)];
    let discovery = vec![urls(DISCOVERY, &["get"])];
    let reviews = vec![
        rule("authorization.k8s.io", &["selfsubjectaccessreviews", "selfsubjectrulesreviews"], &["create"]),
        rule("authentication.k8s.io", &["selfsubjectreviews"], &["create"]),
    ];
    let mut edit = rules(EDITED, CHANGE);
    edit.push(rule(
        "",
        &["secrets", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "services/proxy"],
        READ,
    ));
    edit.push(rule("coordination.k8s.io", &["leases"], READ));
    edit.push(rule("", &["serviceaccounts"], &["impersonate"]));
    edit.push(rule("", &["serviceaccounts/token"], &["create"]));
    let admin = vec![
        rule(GROUP, &["rolebindings", "roles"], &[READ, CHANGE].concat()),
        rule("authorization.k8s.io", &["localsubjectaccessreviews"], &["create"]),
    ];
    let write = [READ, CHANGE].concat();
    vec![
        role("cluster-admin", &[], everything),
        aggregate("admin", &[], &["admin"]),
        aggregate("edit", &["admin"], &["edit"]),
        aggregate("view", &["edit"], &["view"]),
        role("system:aggregate-to-admin", &["admin"], [admin, fleet(&write)].concat()),
        role("system:aggregate-to-edit", &["edit"], [edit, fleet(&write)].concat()),
        role("system:aggregate-to-view", &["view"], [read(VIEWED), fleet(READ)].concat()),
        role("system:discovery", &[], discovery),
        role("system:basic-user", &[], reviews),
        role("system:cluster-reader", &[], read(READ_IN_CLUSTER)),
        binding("cluster-admin", "cluster-admin", MASTERS),
        binding("system:discovery", "system:discovery", AUTHENTICATED),
        binding("system:basic-user", "system:basic-user", AUTHENTICATED),
        binding("system:readers:view", "view", READERS),
        binding("system:readers:cluster", "system:cluster-reader", READERS),
    ]
}

/// What to store at a start, given what is there: nothing if the object may stay, else the object; missing
/// rules and subjects are added to what users changed, unless they turned that off by annotation.
pub(crate) fn reconcile(wanted: &Value, found: Option<&Value>) -> Option<Value> {
    let Some(found) = found else { return Some(wanted.clone()) };
    let autoupdate = found.pointer("/metadata/annotations").and_then(|all| all.get(AUTOUPDATE));
    if autoupdate.and_then(Value::as_str) == Some("false") {
        return None;
    }
    let mut changed = found.clone();
    let missing = rules::missing(&rules_of(found), &rules_of(wanted));
    if !missing.is_empty() && found.get("aggregationRule").is_none_or(Value::is_null) {
        append(&mut changed, "rules", missing.iter().map(|rule| json!(rule)));
    }
    let subjects =
        |object: &Value| object.get("subjects").and_then(Value::as_array).cloned().unwrap_or_default();
    let present = subjects(found);
    append(
        &mut changed,
        "subjects",
        subjects(wanted).into_iter().filter(|subject| !present.contains(subject)),
    );
    (changed != *found).then_some(changed)
}

fn append(object: &mut Value, field: &str, items: impl Iterator<Item = Value>) {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return;
    }
    match object.get_mut(field).and_then(Value::as_array_mut) {
        Some(list) => list.extend(items),
        None => object[field] = items.collect(),
    }
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        verbs: texts(verbs),
        api_groups: vec![group.to_owned()],
        resources: texts(resources),
        ..PolicyRule::default()
    }
}

fn urls(urls: &[&str], verbs: &[&str]) -> PolicyRule {
    PolicyRule { verbs: texts(verbs), non_resource_urls: texts(urls), ..PolicyRule::default() }
}

fn rules(table: &[(&str, &[&str])], verbs: &[&str]) -> Vec<PolicyRule> {
    table.iter().map(|(group, resources)| rule(group, resources, verbs)).collect()
}

fn metadata(name: &str, parts_of: &[&str]) -> Value {
    let mut labels = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
    for whole in parts_of {
        labels[format!("{GROUP}/aggregate-to-{whole}")] = "true".into();
    }
    json!({"name": name, "labels": labels, "annotations": {AUTOUPDATE: "true"}})
}

fn role(name: &str, parts_of: &[&str], rules: Vec<PolicyRule>) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole",
        "metadata": metadata(name, parts_of), "rules": rules,
    })
}

fn aggregate(name: &str, parts_of: &[&str], selected: &[&str]) -> Value {
    let selectors: Vec<Value> = selected
        .iter()
        .map(|whole| json!({"matchLabels": {format!("{GROUP}/aggregate-to-{whole}"): "true"}}))
        .collect();
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole",
        "metadata": metadata(name, parts_of),
        "aggregationRule": {"clusterRoleSelectors": selectors}, "rules": [],
    })
}

fn binding(name: &str, role: &str, group: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata(name, &[]),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": GROUP, "kind": "Group", "name": group}],
    })
}
