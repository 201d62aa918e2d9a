//! Schemas as the OpenAPI endpoints publish them, by which `kubectl explain` and validation in clients work.
//!
//! Both forms get `apiVersion`, `kind` and `metadata`. OpenAPI v2 also loses what its clients cannot read: junctors,
//! nullable, defaults, and the fields of what may hold unknown ones.

use serde_json::{Map, Value, json};

/// The name of the schema of metadata.
pub const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The kind that a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindName<'k> {
    /// The API group.
    pub group: &'k str,
    /// The version.
    pub version: &'k str,
    /// The kind.
    pub kind: &'k str,
}

impl KindName<'_> {
    /// The name of the schema: the group's labels in reverse, the version and the kind, such as `io.example.v1.Pool`.
    pub fn schema_name(&self) -> String {
        let labels: Vec<&str> = self.group.rsplit('.').collect();
        format!("{}.{}.{}", labels.join("."), self.version, self.kind)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    V2,
    V3,
}

/// The schema for `/openapi/v3`, from the `openAPIV3Schema` of a CRD that [parses](super::Schema::parse).
pub fn v3(open_api_v3_schema: &Value, kind: KindName<'_>) -> Value {
    published(open_api_v3_schema, kind, Form::V3)
}

/// The schema for `/openapi/v2`.
pub fn v2(open_api_v3_schema: &Value, kind: KindName<'_>) -> Value {
    published(open_api_v3_schema, kind, Form::V2)
}

fn published(schema: &Value, kind: KindName<'_>, form: Form) -> Value {
    let preserves = schema["x-kubernetes-preserve-unknown-fields"] == true;
    let mut output = match schema {
        // With any field listed, clients would refuse all others.
        Value::Object(_) if form == Form::V2 && preserves => {
            Map::from_iter([("type".to_owned(), json!("object"))])
        }
        Value::Object(keywords) => {
            let mut output = level(keywords, form, 0);
            add_resource_fields(&mut output, form, false);
            output
        }
        _ => Map::from_iter([("type".to_owned(), json!("object"))]),
    };
    let identity = json!({ "group": kind.group, "kind": kind.kind, "version": kind.version });
    output.insert("x-kubernetes-group-version-kind".to_owned(), json!([identity]));
    Value::Object(output)
}

/// Keywords that OpenAPI v2 does not have.
const NOT_IN_V2: [&str; 6] = ["allOf", "anyOf", "oneOf", "not", "nullable", "default"];

fn level(keywords: &Map<String, Value>, form: Form, depth: usize) -> Map<String, Value> {
    if depth > super::MAXIMUM_SCHEMA_DEPTH {
        return Map::new();
    }
    let flag = |name: &str| keywords.get(name) == Some(&Value::Bool(true));
    let (nullable, preserves) = (flag("nullable"), flag("x-kubernetes-preserve-unknown-fields"));
    let drops_fields = form == Form::V2 && (nullable || preserves);
    let mut output = Map::new();
    for (name, value) in keywords.iter().filter(|(_, value)| !value.is_null()) {
        let dropped = match name.as_str() {
            "properties" | "items" => drops_fields,
            "type" => drops_fields && (nullable || matches!(value.as_str(), Some("object" | "array"))),
            other => form == Form::V2 && NOT_IN_V2.contains(&other),
        };
        if !dropped {
            output.insert(name.clone(), child(name, value, form, depth));
        }
    }
    if flag("x-kubernetes-int-or-string") {
        output.remove("type");
        if form == Form::V3 {
            name_both_types(&mut output);
        }
    }
    if form == Form::V2 {
        drop_required_nullables(keywords, &mut output);
    }
    if flag("x-kubernetes-embedded-resource") && !(form == Form::V2 && preserves) {
        add_resource_fields(&mut output, form, true);
    }
    output
}

/// An int-or-string names its types in a junctor.
fn name_both_types(keywords: &mut Map<String, Value>) {
    let types = json!([{ "type": "integer" }, { "type": "string" }]);
    let in_all_of = keywords.get("allOf").is_some_and(|all| all[0]["anyOf"] == types);
    match keywords.get("anyOf") {
        _ if in_all_of => {}
        None => {
            keywords.insert("anyOf".to_owned(), types);
        }
        Some(any) if *any == types => {}
        Some(_) => {
            let all = keywords.entry("allOf").or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(all) = all {
                all.insert(0, json!({ "anyOf": types }));
            }
        }
    }
}

fn child(name: &str, value: &Value, form: Form, depth: usize) -> Value {
    let inner = |value: &Value| match value {
        Value::Object(keywords) => Value::Object(level(keywords, form, depth + 1)),
        other => other.clone(),
    };
    match (name, value) {
        ("properties", Value::Object(named)) => {
            named.iter().map(|(name, value)| (name.clone(), inner(value))).collect::<Map<_, _>>().into()
        }
        ("items" | "additionalProperties", value) => inner(value),
        (_, value) => value.clone(),
    }
}

/// OpenAPI v2 clients take a null for an absent value.
fn drop_required_nullables(keywords: &Map<String, Value>, output: &mut Map<String, Value>) {
    let is_nullable = |schema: Option<&Value>| schema.is_some_and(|schema| schema["nullable"] == true);
    if is_nullable(keywords.get("additionalProperties")) {
        output.remove("required");
        return;
    }
    let properties = keywords.get("properties");
    let Some(Value::Array(required)) = output.get_mut("required") else { return };
    required.retain(|name| {
        !name.as_str().is_some_and(|name| is_nullable(properties.and_then(|properties| properties.get(name))))
    });
    if required.is_empty() {
        output.remove("required");
    }
}

fn add_resource_fields(schema: &mut Map<String, Value>, form: Form, embedded: bool) {
    let reference = match form {
        Form::V2 => json!(format!("#/definitions/{OBJECT_META}")),
        Form::V3 => json!([{ "$ref": format!("#/components/schemas/{OBJECT_META}") }]),
    };
    let keyword = match form {
        Form::V2 => "$ref",
        Form::V3 => "allOf",
    };
    let fields = [
        ("apiVersion", json!({ "description": "API group and version of the object.", "type": "string" })),
        ("kind", json!({ "description": "Kind of the object, in CamelCase.", "type": "string" })),
        (
            "metadata",
            json!({ "description": "Metadata of the object: its name, labels, annotations, owners.", keyword: reference }),
        ),
    ];
    let properties = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(properties) = properties {
        for (name, field) in fields {
            properties.insert(name.to_owned(), field);
        }
    }
    if !embedded {
        return;
    }
    let required = schema.entry("required").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(required) = required {
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|known| known == name) {
                required.push(json!(name));
            }
        }
    }
}
