//! Metadata of objects: its fields, their types and what an API server asks of them.

pub mod names;
mod shape;

use serde_json::{Map, Value};

use super::cause::Cause;

pub use shape::check_types;
pub(crate) use shape::drop_unknown;

/// All annotations together hold at most this many bytes.
pub const ANNOTATIONS_LIMIT: usize = 256 * 1024;
/// Longest name of a field manager in bytes.
pub const MANAGER_LIMIT: usize = 128;
/// Longest name of a subresource in bytes.
const SUBRESOURCE_LIMIT: usize = 256;
/// Longest name that an API server makes from `generateName`.
const GENERATED_LIMIT: usize = 63;
/// How many characters `generateName` gets appended.
pub const GENERATED_SUFFIX_LENGTH: usize = 5;

/// The syntax of a kind's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS subdomain (RFC 1123): custom resources and most kinds.
    Subdomain,
    /// A DNS label (RFC 1123).
    Label,
    /// A DNS label that starts with a letter (RFC 1035).
    Label1035,
    /// Whatever fits into a URL path.
    PathSegment,
}

impl NameRule {
    /// The rule of a built-in kind, or that of custom resources.
    pub fn of_kind(group: &str, kind: &str) -> Self {
        match (group, kind) {
            ("", "Namespace") => Self::Label,
            ("", "Service") => Self::Label1035,
            ("rbac.authorization.k8s.io", "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding") => {
                Self::PathSegment
            }
            _ => Self::Subdomain,
        }
    }

    /// What is wrong with a name, or with the start of one if `is_prefix`.
    pub fn check(self, name: &str, is_prefix: bool) -> Vec<String> {
        let masked = if is_prefix && self != Self::PathSegment { mask_trailing_dash(name) } else { None };
        let name = masked.as_deref().unwrap_or(name);
        match self {
            Self::Subdomain => names::dns1123_subdomain(name),
            Self::Label => names::dns1123_label(name),
            Self::Label1035 => names::dns1035_label(name),
            Self::PathSegment => names::path_segment(name, is_prefix),
        }
    }
}

/// A prefix may end with a dash, because something follows.
fn mask_trailing_dash(name: &str) -> Option<String> {
    let kept = name.strip_suffix('-').filter(|kept| !kept.is_empty())?;
    let end = kept.char_indices().next_back().map_or(0, |(position, _)| position);
    Some(format!("{}a", &kept[..end]))
}

/// The name made from `generateName` and [a suffix](GENERATED_SUFFIX_LENGTH) that the caller draws.
pub fn generated_name(base: &str, suffix: &str) -> String {
    let mut end = base.len().min(GENERATED_LIMIT.saturating_sub(suffix.len()));
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{suffix}", &base[..end])
}

/// A text of metadata, empty if absent.
pub(crate) fn text<'m>(metadata: &'m Value, name: &str) -> &'m str {
    metadata.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn texts<'m>(metadata: &'m Value, name: &str) -> impl Iterator<Item = &'m str> {
    metadata.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn entries<'m>(metadata: &'m Value, name: &str) -> impl Iterator<Item = (&'m str, &'m str)> {
    let entries = metadata.get(name).and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

/// What is wrong with the metadata of a new object, whose name has been generated.
///
/// `path` is that of the metadata, usually `metadata`. Types are [checked](check_types) before.
pub fn check_create(metadata: &Value, rule: NameRule, namespaced: bool, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let prefix = text(metadata, "generateName");
    if !prefix.is_empty() {
        for error in rule.check(prefix, true) {
            causes.push(Cause::invalid_text(format!("{path}.generateName"), prefix, &error));
        }
    }
    let name = text(metadata, "name");
    if name.is_empty() {
        causes.push(Cause::required(format!("{path}.name"), "name or generateName is required"));
    } else {
        for error in rule.check(name, false) {
            causes.push(Cause::invalid_text(format!("{path}.name"), name, &error));
        }
    }
    check_namespace(metadata, namespaced, path, &mut causes);
    check_common(metadata, path, &mut causes);
    causes
}

/// [`check_create`] for an embedded resource, which may be without name.
pub(crate) fn check_embedded(metadata: &Value, rule: NameRule, namespaced: bool, path: &str) -> Vec<Cause> {
    let mut causes = check_create(metadata, rule, namespaced, path);
    if text(metadata, "name").is_empty() {
        let unnamed = format!("{path}.name");
        causes.retain(|cause| cause.field != unnamed);
    }
    causes
}

/// What is wrong with a change of metadata; `resourceVersion` has to be the caller's to give.
pub fn check_update(new: &Value, old: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    if old.get("deletionTimestamp").is_some_and(|time| !time.is_null()) {
        let mut added: Vec<&str> = texts(new, "finalizers")
            .filter(|finalizer| !texts(old, "finalizers").any(|known| known == *finalizer))
            .collect();
        added.sort_unstable();
        if !added.is_empty() {
            let added: Vec<String> = added.into_iter().map(super::go_text::quoted).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            causes.push(Cause::forbidden(format!("{path}.finalizers"), &detail));
        }
    }
    if text(new, "resourceVersion").is_empty() {
        let field = format!("{path}.resourceVersion");
        causes.push(Cause::invalid_text(field, "", "must be specified for an update"));
    }
    let generation =
        |metadata: &Value| metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
    if generation(new) < generation(old) {
        let value = Value::from(generation(new));
        causes.push(Cause::invalid(format!("{path}.generation"), &value, "must not be decremented"));
    }
    const IMMUTABLE: [&str; 6] =
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
    for name in IMMUTABLE {
        let is_text = matches!(name, "name" | "namespace" | "uid");
        let empty = if is_text { Value::from("") } else { Value::Null };
        let (new, old) = (new.get(name).unwrap_or(&empty), old.get(name).unwrap_or(&empty));
        if new != old {
            causes.push(Cause::invalid(format!("{path}.{name}"), new, "field is immutable"));
        }
    }
    check_common(new, path, &mut causes);
    causes
}

fn check_namespace(metadata: &Value, namespaced: bool, path: &str, causes: &mut Vec<Cause>) {
    let namespace = text(metadata, "namespace");
    let field = format!("{path}.namespace");
    match (namespaced, namespace) {
        (true, "") => causes.push(Cause::required(field, "")),
        (true, name) => {
            for error in names::dns1123_label(name) {
                causes.push(Cause::invalid_text(&field, name, &error));
            }
        }
        (false, "") => {}
        (false, _) => causes.push(Cause::forbidden(field, "not allowed on this type")),
    }
}

fn check_common(metadata: &Value, path: &str, causes: &mut Vec<Cause>) {
    if let Some(generation) =
        metadata.get("generation").filter(|value| value.as_i64().is_some_and(|it| it < 0))
    {
        let detail = "must be greater than or equal to 0";
        causes.push(Cause::invalid(format!("{path}.generation"), generation, detail));
    }
    check_labels(entries(metadata, "labels"), &format!("{path}.labels"), causes);
    let field = format!("{path}.annotations");
    let mut size = 0;
    for (key, value) in entries(metadata, "annotations") {
        size += key.len() + value.len();
        for error in names::qualified_name(&key.to_lowercase()) {
            causes.push(Cause::invalid_text(&field, key, &error));
        }
    }
    if size > ANNOTATIONS_LIMIT {
        causes.push(Cause::too_long(&field, ANNOTATIONS_LIMIT as u64));
    }
    check_owners(metadata, &format!("{path}.ownerReferences"), causes);
    check_finalizers(metadata, &format!("{path}.finalizers"), causes);
    check_managed_fields(metadata, &format!("{path}.managedFields"), causes);
}

/// What is wrong with labels, also in the `matchLabels` of a selector.
pub fn check_labels<'l>(
    labels: impl Iterator<Item = (&'l str, &'l str)>,
    path: &str,
    causes: &mut Vec<Cause>,
) {
    for (key, value) in labels {
        for error in names::qualified_name(key) {
            causes.push(Cause::invalid_text(path, key, &error));
        }
        for error in names::label_value(value) {
            causes.push(Cause::invalid_text(path, value, &error));
        }
    }
}

fn check_owners(metadata: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(owners) = metadata.get("ownerReferences").and_then(Value::as_array) else { return };
    let mut controller: Option<String> = None;
    for owner in owners {
        let (api_version, kind, name) = (text(owner, "apiVersion"), text(owner, "kind"), text(owner, "name"));
        // Like Kubernetes, an API version with two slashes has no version.
        if api_version.is_empty() || api_version.ends_with('/') || api_version.matches('/').count() > 1 {
            let detail = "version must not be empty";
            causes.push(Cause::invalid_text(format!("{path}.apiVersion"), api_version, detail));
        }
        for (field, value) in [("kind", kind), ("name", name), ("uid", text(owner, "uid"))] {
            if value.is_empty() {
                causes.push(Cause::invalid_text(format!("{path}.{field}"), value, "must not be empty"));
            }
        }
        if api_version == "v1" && kind == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            causes.push(Cause::invalid(path, owner, detail));
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let current = format!("{kind}/{name}");
            match &controller {
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {current}"
                    );
                    causes.push(Cause::invalid(path, &Value::Array(owners.clone()), &detail));
                }
                None => controller = Some(current),
            }
        }
    }
}

fn check_finalizers(metadata: &Value, path: &str, causes: &mut Vec<Cause>) {
    for finalizer in texts(metadata, "finalizers") {
        for error in names::qualified_name(finalizer) {
            causes.push(Cause::invalid_text(path, finalizer, &error));
        }
    }
    let has = |name: &str| texts(metadata, "finalizers").any(|finalizer| finalizer == name);
    if has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        let value = metadata.get("finalizers").unwrap_or(&Value::Null);
        causes.push(Cause::invalid(path, value, detail));
    }
}

/// A warning for each finalizer without a domain, which may collide with those of others.
pub fn finalizer_warnings(metadata: &Value, path: &str) -> Vec<String> {
    const STANDARD: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];
    texts(metadata, "finalizers")
        .filter(|finalizer| !finalizer.contains('/') && !STANDARD.contains(finalizer))
        .map(|finalizer| {
            let form = if finalizer.contains('.') { " including a path (/)" } else { "" };
            format!(
                "{path}.finalizers: {}: prefer a domain-qualified finalizer name{form} to avoid accidental conflicts with other finalizer writers",
                super::go_text::quoted(finalizer)
            )
        })
        .collect()
}

fn check_managed_fields(metadata: &Value, path: &str, causes: &mut Vec<Cause>) {
    let entries = metadata.get("managedFields").and_then(Value::as_array).into_iter().flatten();
    for (index, entry) in entries.enumerate() {
        let path = format!("{path}[{index}]");
        let operation = text(entry, "operation");
        if !matches!(operation, "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            causes.push(Cause::invalid_text(format!("{path}.operation"), operation, detail));
        }
        let kind = text(entry, "fieldsType");
        if !kind.is_empty() && kind != "FieldsV1" {
            let detail = "must be `FieldsV1`";
            causes.push(Cause::invalid_text(format!("{path}.fieldsType"), kind, detail));
        }
        causes.extend(check_manager(text(entry, "manager"), &format!("{path}.manager")));
        if text(entry, "subresource").len() > SUBRESOURCE_LIMIT {
            causes.push(Cause::too_long(format!("{path}.subresource"), SUBRESOURCE_LIMIT as u64));
        }
    }
}

/// What is wrong with the name of a field manager.
pub fn check_manager(manager: &str, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    if manager.len() > MANAGER_LIMIT {
        causes.push(Cause::too_long(path, MANAGER_LIMIT as u64));
    }
    for (position, character) in manager.char_indices() {
        if character.is_control() {
            let detail = format!("invalid character U+{:04X} (at position {position})", u32::from(character));
            causes.push(Cause::invalid_text(path, manager, &detail));
        }
    }
    causes
}

/// The metadata of an object, if it is one.
pub fn of(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata").and_then(Value::as_object)
}
