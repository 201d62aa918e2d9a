//! CustomResourceDefinitions: checked, defaulted, and turned into served resources.

use bytes::Bytes;
use modelplane_apimachinery::schema::metadata::{NameRule, names};
use modelplane_store::Revision;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::resource::{
    Column, Columns, Generation, LazySchema, Origin, Resource, Rules, Scale, SchemaSource, Special, Version,
    api_version, prefix,
};
use super::{Registry, versions};
use crate::object::encode::Head;
use crate::object::json_path::JsonPath;
use crate::schema::problems;
use crate::status::StatusCause;

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn served(definition: &Value) -> impl Iterator<Item = (usize, &Value)> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    versions.enumerate().filter(|(_, version)| version.get("served") == Some(&Value::Bool(true)))
}

/// Fills in the names and the conversion strategy a definition may leave out.
pub(crate) fn default(definition: &mut Value) {
    let kind = text(definition, "/spec/names/kind").to_owned();
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let mut fill = |field: &str, value: String| {
            if names.get(field).and_then(Value::as_str).is_none_or(str::is_empty) && !kind.is_empty() {
                names.insert(field.to_owned(), Value::String(value));
            }
        };
        fill("singular", kind.to_lowercase());
        fill("listKind", format!("{kind}List"));
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
}

/// Everything wrong with a definition.
pub(crate) fn check(definition: &Value) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    let group = text(definition, "/spec/group");
    let plural = text(definition, "/spec/names/plural");
    if !names::dns1123_subdomain(group).is_empty() || !group.contains('.') {
        causes.push(StatusCause::invalid_value(
            "spec.group",
            &group.into(),
            "should be a domain with at least one dot",
        ));
    }
    for field in ["plural", "singular"] {
        let value = text(definition, &format!("/spec/names/{field}"));
        if !names::dns1035_label(value).is_empty() {
            let path = format!("spec.names.{field}");
            causes.push(StatusCause::invalid_value(&path, &value.into(), "must be a DNS-1035 label"));
        }
    }
    for field in ["kind", "listKind"] {
        let value = text(definition, &format!("/spec/names/{field}"));
        let path = format!("spec.names.{field}");
        if value.is_empty() {
            causes.push(StatusCause::required(&path, ""));
        } else if !names::dns1035_label(&value.to_lowercase()).is_empty() {
            causes.push(StatusCause::invalid_value(
                &path,
                &value.into(),
                "may have mixed case, but should otherwise match: a DNS-1035 label",
            ));
        }
    }
    let name = crate::object::name(definition);
    if !plural.is_empty() && name != format!("{plural}.{group}") {
        let why = "must be spec.names.plural+\".\"+spec.group";
        causes.push(StatusCause::invalid_value("metadata.name", &name.into(), why));
    }
    let scope = text(definition, "/spec/scope");
    if !matches!(scope, "Namespaced" | "Cluster") {
        causes.push(if scope.is_empty() {
            StatusCause::required("spec.scope", "")
        } else {
            StatusCause {
                reason: "FieldValueNotSupported".to_owned(),
                message: format!(
                    "Unsupported value: {scope:?}: supported values: \"Cluster\", \"Namespaced\""
                ),
                field: "spec.scope".to_owned(),
            }
        });
    }
    if text(definition, "/spec/conversion/strategy") != "None" {
        let value = definition.pointer("/spec/conversion/strategy").cloned().unwrap_or_default();
        let why = "only the strategy None is supported by this server";
        causes.push(StatusCause::invalid_value("spec.conversion.strategy", &value, why));
    }
    check_versions(definition, &mut causes);
    causes
}

fn check_versions(definition: &Value, causes: &mut Vec<StatusCause>) {
    let empty = Vec::new();
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).unwrap_or(&empty);
    if versions.is_empty() {
        causes.push(StatusCause::required("spec.versions", "must have at least one version"));
        return;
    }
    let stored = versions.iter().filter(|version| version.get("storage") == Some(&Value::Bool(true))).count();
    if stored != 1 {
        let value = Value::from(stored);
        let why = "must have exactly one version marked as storage version";
        causes.push(StatusCause::invalid_value("spec.versions", &value, why));
    }
    let mut known = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        let name = text(version, "/name");
        if !names::dns1035_label(name).is_empty() || known.contains(&name) {
            let why = "must be a DNS-1035 label and unique";
            causes.push(StatusCause::invalid_value(&format!("{path}.name"), &name.into(), why));
        }
        known.push(name);
        match version.pointer("/schema/openAPIV3Schema") {
            None => causes.push(StatusCause::required(
                &format!("{path}.schema.openAPIV3Schema"),
                "schemas are required",
            )),
            Some(schema) => {
                causes.extend(problems(schema, &format!("{path}.schema.openAPIV3Schema")));
            }
        }
        check_columns(version, &path, causes);
        if let Some(scale) = version.pointer("/subresources/scale") {
            check_scale(scale, &format!("{path}.subresources.scale"), causes);
        }
    }
}

fn check_columns(version: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let columns = version.get("additionalPrinterColumns").and_then(Value::as_array).into_iter().flatten();
    for (index, column) in columns.enumerate() {
        let path = format!("{path}.additionalPrinterColumns[{index}]");
        let kind = text(column, "/type");
        if !matches!(kind, "boolean" | "date" | "integer" | "number" | "string") {
            let why = "must be one of boolean,date,integer,number,string";
            causes.push(StatusCause::invalid_value(&format!("{path}.type"), &kind.into(), why));
        }
        let json_path = text(column, "/jsonPath");
        if let Err(why) = JsonPath::parse(json_path) {
            causes.push(StatusCause::invalid_value(&format!("{path}.jsonPath"), &json_path.into(), &why));
        }
    }
    let fields = version.get("selectableFields").and_then(Value::as_array).into_iter().flatten();
    for (index, field) in fields.enumerate() {
        let json_path = text(field, "/jsonPath");
        if JsonPath::parse(json_path).ok().is_none_or(|path| path.fields().is_none()) {
            let path = format!("{path}.selectableFields[{index}].jsonPath");
            causes.push(StatusCause::invalid_value(&path, &json_path.into(), "must be a simple field path"));
        }
    }
}

fn check_scale(scale: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let fields = [
        ("specReplicasPath", ".spec.", true),
        ("statusReplicasPath", ".status.", true),
        ("labelSelectorPath", ".", false),
    ];
    for (field, start, required) in fields {
        let value = text(scale, &format!("/{field}"));
        let path = format!("{path}.{field}");
        if value.is_empty() {
            if required {
                causes.push(StatusCause::required(&path, ""));
            }
        } else if !value.starts_with(start) || scale_path(value).is_none() {
            let why = format!("should be a json path under {start}");
            causes.push(StatusCause::invalid_value(&path, &value.into(), &why));
        }
    }
}

fn scale_path(text: &str) -> Option<Vec<String>> {
    let path = JsonPath::parse(text).ok()?;
    Some(path.fields()?.into_iter().map(str::to_owned).collect())
}

/// Decides the definition's names and readiness: `status.acceptedNames`, `conditions`, `storedVersions`.
///
/// Unlike Kubernetes, which does this in a controller after the create, it happens within the request.
pub(crate) fn set_status(definition: &mut Value, registry: &Registry, now: &str) {
    let conflict = name_conflict(definition, registry);
    let accepted = conflict.is_none();
    let mut stored = texts(definition.pointer("/status/storedVersions"));
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    for version in versions.filter(|version| version.get("storage") == Some(&Value::Bool(true))) {
        let name = text(version, "/name").to_owned();
        if !stored.contains(&name) {
            stored.push(name);
        }
    }
    let names = definition.pointer("/spec/names").cloned().unwrap_or_default();
    let mut conditions =
        definition.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let (reason, message) = match &conflict {
        None => ("NoConflicts", "no conflicts found".to_owned()),
        Some((reason, message)) => (*reason, message.clone()),
    };
    set_condition(&mut conditions, ("NamesAccepted", accepted, reason, &message), now);
    let established = accepted
        || conditions
            .iter()
            .any(|found| text(found, "/type") == "Established" && text(found, "/status") == "True");
    let (reason, message) = if established {
        ("InitialNamesAccepted", "the initial names have been accepted")
    } else {
        ("NotAccepted", "not all names are accepted")
    };
    set_condition(&mut conditions, ("Established", established, reason, message), now);
    let accepted_names = if accepted {
        names
    } else {
        definition
            .pointer("/status/acceptedNames")
            .cloned()
            .unwrap_or_else(|| json!({"kind": "", "plural": ""}))
    };
    if let Some(fields) = definition.as_object_mut() {
        let status =
            json!({"conditions": conditions, "acceptedNames": accepted_names, "storedVersions": stored});
        fields.insert("status".to_owned(), status);
    }
}

/// Sets a condition, keeping its transition time while its status stays.
pub(crate) fn set_condition(conditions: &mut Vec<Value>, wanted: (&str, bool, &str, &str), now: &str) {
    let (kind, status, reason, message) = wanted;
    let status = if status { "True" } else { "False" };
    let found = conditions.iter_mut().find(|found| text(found, "/type") == kind);
    let since = match &found {
        Some(found) if text(found, "/status") == status => text(found, "/lastTransitionTime").to_owned(),
        _ => now.to_owned(),
    };
    let condition = json!({
        "type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message,
    });
    match found {
        Some(found) => *found = condition,
        None => conditions.push(condition),
    }
}

fn name_conflict(definition: &Value, registry: &Registry) -> Option<(&'static str, String)> {
    let group = text(definition, "/spec/group");
    let plural = text(definition, "/spec/names/plural");
    let singular = text(definition, "/spec/names/singular");
    let kind = text(definition, "/spec/names/kind");
    let list_kind = text(definition, "/spec/names/listKind");
    let short_names = texts(definition.pointer("/spec/names/shortNames"));
    for other in registry.resources() {
        if other.group != group || other.plural == plural {
            continue;
        }
        let taken = |name: &str| {
            name == other.plural
                || name == other.singular
                || other.short_names.iter().any(|short| short == name)
        };
        let in_use = |name: &str| format!("{name:?} is already in use");
        if taken(plural) {
            return Some(("PluralConflict", in_use(plural)));
        }
        if taken(singular) {
            return Some(("SingularConflict", in_use(singular)));
        }
        if let Some(short) = short_names.iter().find(|short| taken(short)) {
            return Some(("ShortNamesConflict", in_use(short)));
        }
        if kind == other.kind || kind == other.list_kind {
            return Some(("KindConflict", in_use(kind)));
        }
        if list_kind == other.kind || list_kind == other.list_kind {
            return Some(("ListKindConflict", in_use(list_kind)));
        }
    }
    None
}

/// Whether the definition's resource is to be served.
pub(crate) fn is_established(definition: &Value) -> bool {
    let conditions = definition.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    conditions
        .into_iter()
        .any(|found| text(found, "/type") == "Established" && text(found, "/status") == "True")
}

/// The served resource of a stored definition; `None` if no version is served.
pub(crate) fn resource(definition: &Value, stored: &Bytes, revision: Revision) -> Option<Resource> {
    let group = text(definition, "/spec/group");
    let names = definition.pointer("/spec/names")?;
    let plural = text(names, "/plural");
    let kind = text(names, "/kind");
    let all = definition.pointer("/spec/versions")?.as_array()?;
    let storage = all.iter().find(|version| version.get("storage") == Some(&Value::Bool(true)))?;
    let mut versions: Vec<Version> = served(definition)
        .map(|(index, version)| version_of(group, kind, version, (stored, index)))
        .collect();
    if versions.is_empty() {
        return None;
    }
    versions.sort_by_key(|version| std::cmp::Reverse(versions::priority(&version.name)));
    let has_status = storage.pointer("/subresources/status").is_some_and(|status| !status.is_null());
    Some(Resource {
        group: group.to_owned(),
        plural: plural.to_owned(),
        singular: text(names, "/singular").to_owned(),
        kind: kind.to_owned(),
        list_kind: text(names, "/listKind").to_owned(),
        short_names: texts(names.get("shortNames")),
        categories: texts(names.get("categories")),
        namespaced: text(definition, "/spec/scope") == "Namespaced",
        versions,
        storage_version: api_version(group, text(storage, "/name")),
        prefix: prefix(group, plural),
        rules: Rules {
            generation: if has_status { Generation::ExceptStatus } else { Generation::ExceptMetadata },
            name: NameRule::Subdomain,
            unconditional_update: false,
            create_on_update: false,
            status_on_create: !has_status,
            special: Special::None,
        },
        origin: Origin::Custom { revision, generation: crate::object::generation(definition) },
        closed: watch::Sender::new(false),
    })
}

fn version_of(group: &str, kind: &str, version: &Value, source: (&Bytes, usize)) -> Version {
    let name = text(version, "/name");
    let full = api_version(group, name);
    let subresource =
        |name: &str| version.pointer(&format!("/subresources/{name}")).filter(|found| !found.is_null());
    let deprecated = (version.get("deprecated") == Some(&Value::Bool(true))).then(|| {
        match text(version, "/deprecationWarning") {
            "" => format!("{full} {kind} is deprecated"),
            warning => warning.to_owned(),
        }
    });
    Version {
        head: Head::new(&full, kind),
        schema: LazySchema::new(SchemaSource::Definition(source.0.clone(), source.1)),
        status: subresource("status").is_some(),
        scale: subresource("scale").and_then(|scale| {
            Some(Scale {
                spec_replicas: scale_path(text(scale, "/specReplicasPath"))?,
                status_replicas: scale_path(text(scale, "/statusReplicasPath"))?,
                selector: scale_path(text(scale, "/labelSelectorPath")).filter(|path| !path.is_empty()),
            })
        }),
        columns: Columns::Paths(columns(version)),
        selectable: version
            .get("selectableFields")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|field| {
                let path = text(field, "/jsonPath");
                Some((path.trim_start_matches('.').to_owned(), JsonPath::parse(path).ok()?))
            })
            .collect(),
        deprecated,
        name: name.to_owned(),
        api_version: full,
    }
}

fn columns(version: &Value) -> Vec<Column> {
    let Some(columns) = version.get("additionalPrinterColumns").and_then(Value::as_array) else {
        return vec![Column {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            format: String::new(),
            description: "Creation time".to_owned(),
            priority: 0,
            path: JsonPath::parse(".metadata.creationTimestamp").expect("a path of ours"),
        }];
    };
    columns
        .iter()
        .filter_map(|column| {
            Some(Column {
                name: text(column, "/name").to_owned(),
                kind: text(column, "/type").to_owned(),
                format: text(column, "/format").to_owned(),
                description: text(column, "/description").to_owned(),
                priority: column.get("priority").and_then(Value::as_i64).unwrap_or_default(),
                path: JsonPath::parse(text(column, "/jsonPath")).ok()?,
            })
        })
        .collect()
}

/// The names of a definition's resource: group and plural.
pub(crate) fn group_and_plural(definition: &Value) -> (String, String) {
    (text(definition, "/spec/group").to_owned(), text(definition, "/spec/names/plural").to_owned())
}

/// Marks a definition as being deleted with all its objects.
pub(crate) fn set_terminating(definition: &mut Value, now: &str) {
    let Some(fields) = definition.as_object_mut() else { return };
    let status = fields.entry("status").or_insert_with(|| Value::Object(Map::new()));
    let mut conditions = status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let wanted = (
        "Terminating",
        true,
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    );
    set_condition(&mut conditions, wanted, now);
    if let Some(status) = status.as_object_mut() {
        status.insert("conditions".to_owned(), Value::Array(conditions));
    }
}
