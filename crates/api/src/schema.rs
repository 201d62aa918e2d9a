//! Kubernetes structural schemas derived from the Rust types.
//!
//! `schemars` derives a JSON schema; this module turns it into the dialect of a CustomResourceDefinition:
//! everything inline, one `type` each, `enum` instead of `oneOf` constants, no number formats. What the derive
//! cannot say is set on the types with `#[schemars(extend(…))]`: defaults, list types and the CEL rules of
//! [`rules`].

mod crossplane;
pub(crate) mod older_shape;
pub mod rules;

use std::sync::OnceLock;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::kind::{ALL, KindInfo, Object};

/// The schemas of one kind, each derived when it is first asked for: a process seldom needs more than one of them.
struct Schemas {
    strict: OnceLock<Value>,
    normalized: OnceLock<Value>,
    published: OnceLock<Value>,
}

/// One entry for each kind of [`ALL`].
static SCHEMAS: [Schemas; ALL.len()] =
    [const { Schemas { strict: OnceLock::new(), normalized: OnceLock::new(), published: OnceLock::new() } };
        ALL.len()];

/// The schema of a kind's objects in the newer shape of the API alone.
pub fn strict(info: &KindInfo) -> &'static Value {
    schemas(info).strict.get_or_init(info.schema)
}

/// The schema of a kind's objects as it is published: it also accepts the older shape of the API.
pub fn published(info: &KindInfo) -> &'static Value {
    schemas(info).published.get_or_init(|| in_both_shapes(info))
}

/// The schema that a normalized object is checked against: the newer shape, the one older field that
/// [`crate::normalize`] keeps, and the fields that Crossplane adds.
pub fn normalized(info: &KindInfo) -> &'static Value {
    schemas(info).normalized.get_or_init(|| {
        let mut schema = (info.schema)();
        older_shape::accept_project(info, &mut schema);
        crossplane::add(info, &mut schema);
        schema
    })
}

/// The published schema with the fields that Crossplane adds: what an API server serves. It is derived at each
/// call, because whoever installs it needs it once.
pub fn installed(info: &KindInfo) -> Value {
    let mut schema = in_both_shapes(info);
    crossplane::add(info, &mut schema);
    schema
}

fn in_both_shapes(info: &KindInfo) -> Value {
    let mut schema = (info.schema)();
    older_shape::accept(info, &mut schema);
    schema
}

/// The schemas of a kind.
fn schemas(info: &KindInfo) -> &'static Schemas {
    let position = ALL
        .iter()
        .position(|row| row.kind == info.kind && row.group == info.group)
        .expect("a KindInfo can only come from the table of kinds: some of its fields are private");
    &SCHEMAS[position]
}

/// The schema of the objects of one kind: `spec` (required) and `status`.
pub(crate) fn object<Kind: Documented>() -> Value {
    let mut schema = json!({
        "type": "object",
        "description": Kind::DESCRIPTION,
        "required": ["spec"],
        "properties": { "spec": of::<Kind::Spec>() },
    });
    let status = of::<Kind::Status>();
    if Kind::INFO.declares_status {
        schema["properties"]["status"] = status;
    }
    join_lines(&mut schema["description"]);
    schema
}

/// A kind with the description that its definition carries.
pub(crate) trait Documented: Object<Spec: JsonSchema, Status: JsonSchema> {
    /// What the kind is for.
    const DESCRIPTION: &'static str;
}

/// The structural schema of one type.
fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    make_structural(&mut schema);
    schema
}

/// Rewrites one node and all below it.
fn make_structural(schema: &mut Value) {
    let Some(node) = schema.as_object_mut() else { return };
    unwrap_optional(node);
    collapse_enum(node);
    node.remove("title");
    node.remove("format");
    if let Some(format) = node.remove("x-keep-format") {
        node.insert("format".to_owned(), format);
    }
    drop_null(node);
    if let Some(description) = node.get_mut("description") {
        join_lines(description);
    }
    if let Some(properties) = node.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(make_structural);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = node.get_mut(key) {
            make_structural(child);
        }
    }
}

/// Replaces `anyOf: [S, null]`, which stands for an optional field, by S. The node's own keywords win.
fn unwrap_optional(node: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = node.remove("anyOf") else { return };
    let inner = branches.into_iter().find(|branch| branch.get("type") != Some(&json!("null")));
    if let Some(Value::Object(inner)) = inner {
        for (key, value) in inner {
            node.entry(key).or_insert(value);
        }
    }
}

/// Replaces the `oneOf` of documented constants by `enum`, moving their descriptions into the node's own.
fn collapse_enum(node: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = node.remove("oneOf") else { return };
    let allowed = node.get("enum").and_then(Value::as_array).cloned();
    let chosen: Vec<(Value, String)> = variants
        .iter()
        .filter_map(|variant| {
            let value = variant.get("const")?.clone();
            let text = variant.get("description").and_then(Value::as_str).unwrap_or_default();
            Some((value, text.to_owned()))
        })
        .filter(|(value, _)| allowed.as_ref().is_none_or(|allowed| allowed.contains(value)))
        .collect();
    let mut description = node.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    for (value, text) in &chosen {
        description.push_str(&format!("\n\n`{}`: {text}", value.as_str().unwrap_or_default()));
    }
    node.insert("description".to_owned(), json!(description.trim()));
    node.insert("type".to_owned(), json!("string"));
    node.insert("enum".to_owned(), chosen.into_iter().map(|(value, _)| value).collect());
}

/// Removes what the derive adds for fields that may be absent: `null` as a type, an enum member or a default,
/// and the empty defaults of lists and maps.
fn drop_null(node: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = node.get("type") {
        let first = types.iter().find(|type_| *type_ != "null").cloned();
        node.insert("type".to_owned(), first.unwrap_or(Value::Null));
    }
    if let Some(Value::Array(values)) = node.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let empty = match node.get("default") {
        Some(Value::Null) => true,
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        _ => false,
    };
    if empty {
        node.remove("default");
    }
}

/// Joins the lines of a paragraph; blank lines stay.
fn join_lines(description: &mut Value) {
    let Some(text) = description.as_str() else { return };
    let paragraphs: Vec<String> = text
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    *description = json!(paragraphs.join("\n\n"));
}

/// The properties of an object schema.
fn properties(schema: &mut Value) -> Option<&mut Map<String, Value>> {
    schema.get_mut("properties")?.as_object_mut()
}

/// A map of strings whose values have at most `MAX` characters.
pub(crate) fn label_values<const MAX: u64>(schema: &mut Schema) {
    schema.insert("additionalProperties".to_owned(), json!({ "type": "string", "maxLength": MAX }));
}

/// Conditions as the published API declares them: objects, whose fields Crossplane adds.
pub(crate) fn bare_conditions(schema: &mut Schema) {
    schema.insert("items".to_owned(), json!({ "type": "object" }));
}

/// Makes `matchLabels` required in a selector.
pub(crate) fn required_match_labels(schema: &mut Schema) {
    schema.insert("required".to_owned(), json!(["matchLabels"]));
}

/// Makes `mode` required in a serving block; its default fills it in.
pub(crate) fn required_mode(schema: &mut Schema) {
    with_optional_inner(schema, |inner| {
        inner.insert("required".to_owned(), json!(["mode"]));
    });
}

/// A list of secrets of the given types, with or without a namespace of their own.
pub(crate) fn secret_types(schema: &mut Schema, types: &[&str], namespaced: bool) {
    let Some(items) = schema.get_mut("items").and_then(properties) else { return };
    if let Some(type_) = items.get_mut("type").and_then(Value::as_object_mut) {
        type_.insert("enum".to_owned(), json!(types));
    }
    if !namespaced {
        items.remove("namespace");
    }
}

/// Drops, below a list, what only matters for input: a status repeats values that have been
/// checked and defaulted already, and an upper bound alone protects the store.
pub(crate) fn repeated(schema: &mut Schema) {
    fn relax(value: &mut Value) {
        match value {
            Value::Object(node) => {
                for keyword in ["default", "minLength", "minimum", "maximum", "x-kubernetes-validations"] {
                    node.remove(keyword);
                }
                node.values_mut().for_each(relax);
            }
            Value::Array(list) => list.iter_mut().for_each(relax),
            _ => {}
        }
    }
    if let Some(items) = schema.get_mut("items") {
        relax(items);
    }
}

/// Applies `edit` to the schema, or, for an optional field, to the branch that is not `null`.
fn with_optional_inner(schema: &mut Schema, edit: impl FnOnce(&mut Map<String, Value>)) {
    let Some(node) = schema.as_object_mut() else { return };
    let branch = match node.get_mut("anyOf") {
        Some(Value::Array(branches)) => branches
            .iter_mut()
            .filter_map(Value::as_object_mut)
            .find(|branch| branch.get("type") != Some(&json!("null"))),
        _ => None,
    };
    match branch {
        Some(branch) => edit(branch),
        None => edit(node),
    }
}
