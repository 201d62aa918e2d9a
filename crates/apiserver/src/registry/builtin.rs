//! The built-in kinds the server serves, by profile, from the table in `modelplane_apimachinery::builtin`.

use modelplane_apimachinery::builtin::{self, BuiltinKind};
use modelplane_apimachinery::schema::metadata::NameRule;
use tokio::sync::watch;

use super::resource::{
    Columns, Generation, LazySchema, Origin, Resource, Rules, Scale, SchemaSource, Special, Version,
    api_version, prefix,
};
use crate::object::encode::Head;
use crate::object::json_path::JsonPath;
use crate::options::Profile;

/// Groups that a control plane without workloads does without.
const WORKLOAD_GROUPS: [&str; 10] = [
    "admissionregistration.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "networking.k8s.io",
    "policy",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];
/// Kinds of the legacy group that it does without.
const WORKLOAD_KINDS: [&str; 4] = ["Node", "PersistentVolume", "PersistentVolumeClaim", "Pod"];
/// Kinds whose generation follows the desired state although they have no status.
const GENERATION_WITHOUT_STATUS: [&str; 3] = ["EndpointSlice", "NetworkPolicy", "ResourceSlice"];
/// Kinds with a status and no generation.
const STATUS_WITHOUT_GENERATION: [&str; 5] =
    ["Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim", "Service"];

/// The built-in resources of a profile.
pub(crate) fn resources(profile: Profile) -> Vec<Resource> {
    let kinds = builtin::kinds().iter();
    kinds.filter(|kind| profile == Profile::Workload || !is_workload(kind)).map(resource).collect()
}

fn is_workload(kind: &BuiltinKind) -> bool {
    WORKLOAD_GROUPS.contains(&kind.group) || (kind.group.is_empty() && WORKLOAD_KINDS.contains(&kind.kind))
}

fn special(kind: &BuiltinKind) -> Special {
    match (kind.group, kind.kind) {
        _ if kind.transient => Special::Review,
        ("", "Namespace") => Special::Namespace,
        ("", "Secret") => Special::Secret,
        ("", "ConfigMap") => Special::ConfigMap,
        ("", "Service") => Special::Service,
        ("", "Pod") => Special::Pod,
        (_, "CustomResourceDefinition") => Special::CustomResourceDefinition,
        _ => Special::None,
    }
}

fn resource(kind: &'static BuiltinKind) -> Resource {
    let path = |fields: &[&str]| fields.iter().map(|field| (*field).to_owned()).collect::<Vec<_>>();
    let full = api_version(kind.group, kind.version);
    let counts = (kind.status && !STATUS_WITHOUT_GENERATION.contains(&kind.kind))
        || GENERATION_WITHOUT_STATUS.contains(&kind.kind);
    let selectable = kind.selectable_fields.iter();
    let version = Version {
        name: kind.version.to_owned(),
        head: Head::new(&full, kind.kind),
        schema: LazySchema::new(SchemaSource::BuiltIn(kind)),
        status: kind.status,
        scale: kind.scale.then(|| Scale {
            spec_replicas: path(&["spec", "replicas"]),
            status_replicas: path(&["status", "replicas"]),
            selector: Some(path(&["spec", "selector"])),
        }),
        columns: Columns::BuiltIn(kind),
        selectable: selectable
            .filter_map(|field| Some(((*field).to_owned(), JsonPath::parse(field).ok()?)))
            .collect(),
        deprecated: None,
        api_version: full.clone(),
    };
    Resource {
        group: kind.group.to_owned(),
        plural: kind.plural.to_owned(),
        singular: kind.singular.to_owned(),
        kind: kind.kind.to_owned(),
        list_kind: format!("{}List", kind.kind),
        short_names: kind.short_names.iter().map(|name| (*name).to_owned()).collect(),
        categories: kind.categories.iter().map(|name| (*name).to_owned()).collect(),
        namespaced: kind.namespaced,
        versions: vec![version],
        storage_version: full,
        prefix: prefix(kind.group, kind.plural),
        rules: Rules {
            generation: if counts { Generation::ExceptStatus } else { Generation::None },
            name: NameRule::of_kind(kind.group, kind.kind),
            unconditional_update: !matches!(kind.plural, "leases" | "customresourcedefinitions"),
            create_on_update: matches!(kind.plural, "leases" | "events" | "endpoints"),
            status_on_create: !kind.status || kind.kind == "Node",
            special: special(kind),
        },
        origin: Origin::BuiltIn(kind),
        closed: watch::Sender::new(false),
    }
}
