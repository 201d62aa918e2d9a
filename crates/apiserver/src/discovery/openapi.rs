//! OpenAPI: `/openapi/v3` with one document per group and version, and `/openapi/v2` as JSON.
//!
//! Clients read from it which kinds there are, what their fields mean (`kubectl explain`), how lists merge, and
//! which parameters the verbs take (`dryRun`, `fieldValidation`).

use axum::body::Body;
use bytes::Bytes;
use http::header::{ACCEPT, ETAG};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use modelplane_apimachinery::builtin;
use modelplane_apimachinery::schema::publish::{self, KindName};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::resources::subresources;
use crate::core::Core;
use crate::http::negotiate::media_ranges;
use crate::http::query::Query;
use crate::http::respond;
use crate::registry::resource::{Origin, Special};
use crate::registry::{Registry, Resource, Version};
use crate::status::{ApiError, ApiResult};

/// Answers `/openapi/…`.
pub(crate) fn answer(
    _core: &Core,
    registry: &Registry,
    path: &str,
    request: (&Query, &HeaderMap),
) -> ApiResult<Response<Body>> {
    let (_, headers) = request;
    if path == "/openapi/v3" {
        let body = registry.document("openapi v3", || index(registry));
        return Ok(respond::json_bytes(StatusCode::OK, body));
    }
    if path == "/openapi/v2" && wants_protobuf(headers) {
        let body = Bytes::from_static(WITHOUT_DEFINITIONS);
        return Ok(respond::bytes(StatusCode::OK, VERSION_2_PROTOBUF_TYPE, body));
    }
    check_accept(headers)?;
    if path == "/openapi/v2" {
        let body = registry.document("openapi v2", || version_2(registry));
        return Ok(respond::json_bytes(StatusCode::OK, body));
    }
    let group_version = path.strip_prefix("/openapi/v3/").and_then(|rest| {
        let segments: Vec<&str> = rest.split('/').collect();
        match segments.as_slice() {
            ["api", version] => Some(("", *version)),
            ["apis", group, version] => Some((*group, *version)),
            _ => None,
        }
    });
    let (group, version) = group_version.ok_or_else(ApiError::no_such_resource)?;
    if registry.in_version(group, version).is_empty() {
        return Err(ApiError::no_such_resource());
    }
    let body =
        registry.document(&format!("openapi v3 {group}/{version}"), || version_3(registry, group, version));
    let tag = HeaderValue::from_str(&format!("\"{}\"", hash(&body)));
    let mut response = respond::json_bytes(StatusCode::OK, body);
    if let Ok(tag) = tag {
        response.headers_mut().insert(ETAG, tag);
    }
    Ok(response)
}

/// OpenAPI v2 as `gnostic` writes it, for which `kubectl` asks when it is given a `List`: a document without
/// definitions (`swagger`, `info` with `title` and `version`, empty `paths`), by which every object is valid. The
/// server itself validates the items, strictly if asked to.
const VERSION_2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// What the answer calls it, since `@` is not allowed there.
const VERSION_2_PROTOBUF_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const WITHOUT_DEFINITIONS: &[u8] = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.36.0\x42\x00";

fn wants_protobuf(headers: &HeaderMap) -> bool {
    let header = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media_ranges(header).first().is_some_and(|range| range.media_type == VERSION_2_PROTOBUF)
}

/// Only JSON is written; clients that ask for protobuf alone get 406.
fn check_accept(headers: &HeaderMap) -> ApiResult<()> {
    let Some(header) = headers.get(ACCEPT).and_then(|value| value.to_str().ok()) else { return Ok(()) };
    let json = |media_type: &str| matches!(media_type, "application/json" | "*/*" | "application/*");
    if header.trim().is_empty() || media_ranges(header).iter().any(|range| json(range.media_type)) {
        Ok(())
    } else {
        Err(ApiError::not_acceptable("application/json"))
    }
}

fn hash(body: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(body).iter().fold(String::new(), |mut text, byte| {
        // Writing to memory cannot fail.
        let _ = write!(text, "{byte:02X}");
        text
    })
}

fn prefix(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn index(registry: &Registry) -> Bytes {
    let mut paths = Map::new();
    for (group, versions) in registry.group_versions() {
        for version in versions {
            let name = prefix(group, version);
            // A definition's revision changes with its schema; hashing the documents would mean making them all.
            let mut hasher = Sha256::new();
            for (resource, _) in registry.in_version(group, version) {
                hasher.update(resource.plural.as_bytes());
                hasher.update(format!("{:?}", resource.origin).as_bytes());
            }
            let hash = hasher.finalize().iter().map(|byte| format!("{byte:02X}")).collect::<String>();
            paths.insert(
                name.clone(),
                json!({"serverRelativeURL": format!("/openapi/v3/{name}?hash={hash}")}),
            );
        }
    }
    Bytes::from(json!({"paths": paths}).to_string())
}

fn kind_name<'k>(resource: &'k Resource, version: &'k Version) -> KindName<'k> {
    KindName { group: &resource.group, version: &version.name, kind: &resource.kind }
}

fn version_3(registry: &Registry, group: &str, version: &str) -> Bytes {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    schemas.insert(publish::OBJECT_META.to_owned(), object_meta());
    for (resource, index) in registry.in_version(group, version) {
        let served = &resource.versions[index];
        let name = kind_name(resource, served).schema_name();
        match &resource.origin {
            Origin::BuiltIn(_) => {
                let name = built_in(&mut schemas, resource, served);
                add_paths(&mut paths, resource, served, &name);
            }
            Origin::Custom { .. } => {
                let schema = served.schema.document().unwrap_or_else(|| json!({"type": "object"}));
                schemas.insert(name.clone(), publish::v3(&schema, kind_name(resource, served)));
                add_paths(&mut paths, resource, served, &name);
            }
        }
    }
    let document = json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.36.0"},
        "paths": paths, "components": {"schemas": schemas},
    });
    Bytes::from(document.to_string())
}

/// Adds a built-in kind's definition and all it refers to; gives its name.
fn built_in(schemas: &mut Map<String, Value>, resource: &Resource, version: &Version) -> String {
    let Some(name) = builtin::definition_name(&resource.group, &version.name, &resource.kind) else {
        return String::new();
    };
    let mut wanted = vec![name.to_owned()];
    while let Some(name) = wanted.pop() {
        if schemas.contains_key(&name) {
            continue;
        }
        let Some(mut definition) = builtin::definition(&name) else { continue };
        point(&mut definition, &mut wanted);
        schemas.insert(name, definition);
    }
    name.to_owned()
}

/// Makes references those of a document, and notes them. Definitions nest no deeper than their text does.
fn point(schema: &mut Value, wanted: &mut Vec<String>) {
    let mut open = vec![schema];
    while let Some(place) = open.pop() {
        match place {
            Value::Object(fields) => {
                for (key, value) in fields.iter_mut() {
                    match value {
                        Value::String(name) if key == "$ref" => {
                            wanted.push(name.clone());
                            *name = format!("#/components/schemas/{name}");
                        }
                        other => open.push(other),
                    }
                }
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
}

fn add_paths(paths: &mut Map<String, Value>, resource: &Resource, version: &Version, schema: &str) {
    let root = format!("/{}", prefix(&resource.group, &version.name));
    let scope = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{root}{scope}/{}", resource.plural);
    let operation =
        |action: &str, parameters: &[&str]| operation(resource, version, schema, (action, parameters));
    let write = ["dryRun", "fieldManager", "fieldValidation"];
    if resource.rules.special == Special::Review {
        paths.insert(collection, json!({"post": operation("post", &write)}));
        return;
    }
    let list = ["labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "watch"];
    let delete = ["dryRun", "propagationPolicy", "gracePeriodSeconds"];
    let patch = ["dryRun", "fieldManager", "fieldValidation", "force"];
    if resource.namespaced {
        let everywhere = format!("{root}/{}", resource.plural);
        paths.insert(everywhere, json!({"get": operation("list", &list)}));
    }
    let item = format!("{collection}/{{name}}");
    paths.insert(
        collection,
        json!({
            "get": operation("list", &list), "post": operation("post", &write),
            "delete": operation("deletecollection", &delete),
        }),
    );
    let object = json!({
        "get": operation("get", &["resourceVersion"]), "put": operation("put", &write),
        "patch": operation("patch", &patch), "delete": operation("delete", &delete),
    });
    for (name, ..) in
        subresources(resource, version).into_iter().filter(|(.., verbs)| verbs.contains(&"patch"))
    {
        let changes = json!({
            "get": operation("get", &[]), "put": operation("put", &write), "patch": operation("patch", &patch),
        });
        paths.insert(format!("{item}/{name}"), changes);
    }
    paths.insert(item, object);
}

fn operation(resource: &Resource, version: &Version, schema: &str, action: (&str, &[&str])) -> Value {
    let (action, parameters) = action;
    let parameters: Vec<Value> = parameters
        .iter()
        .map(|name| {
            let kind = match *name {
                "force" | "watch" => "boolean",
                "limit" | "gracePeriodSeconds" => "integer",
                _ => "string",
            };
            json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}})
        })
        .collect();
    let content = json!({"application/json": {"schema": {"$ref": format!("#/components/schemas/{schema}")}}});
    let mut operation = json!({
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {
            "group": resource.group, "version": version.name, "kind": resource.kind,
        },
    });
    if matches!(action, "post" | "put") {
        operation["requestBody"] = json!({"content": content, "required": true});
    }
    operation
}

fn version_2(registry: &Registry) -> Bytes {
    let mut definitions = Map::new();
    definitions.insert(publish::OBJECT_META.to_owned(), object_meta());
    let mut paths = Map::new();
    for resource in registry.resources() {
        for version in &resource.versions {
            let name = kind_name(resource, version).schema_name();
            let schema = version.schema.document().unwrap_or_else(|| json!({"type": "object"}));
            definitions.insert(name.clone(), publish::v2(&schema, kind_name(resource, version)));
            let mut of_version = Map::new();
            add_paths(&mut of_version, resource, version, &name);
            for (path, operations) in of_version {
                paths.insert(path, to_version_2(operations, &name));
            }
        }
    }
    let document = json!({
        "swagger": "2.0", "info": {"title": "Kubernetes", "version": "v1.36.0"},
        "paths": paths, "definitions": definitions,
    });
    Bytes::from(document.to_string())
}

fn to_version_2(mut operations: Value, schema: &str) -> Value {
    for operation in operations.as_object_mut().into_iter().flat_map(Map::values_mut) {
        for parameter in operation["parameters"].as_array_mut().into_iter().flatten() {
            let kind = parameter["schema"]["type"].clone();
            if let Some(fields) = parameter.as_object_mut() {
                fields.shift_remove("schema");
                fields.insert("type".to_owned(), kind);
            }
        }
        if let Some(fields) = operation.as_object_mut() {
            fields.shift_remove("requestBody");
        }
        let reference = json!({"$ref": format!("#/definitions/{schema}")});
        operation["responses"] = json!({"200": {"description": "OK", "schema": reference}});
    }
    operations
}

fn object_meta() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let map = |description: &str| json!({"type": "object", "description": description, "additionalProperties": {"type": "string"}});
    json!({
        "type": "object",
        "description": "Metadata that every object has.",
        "properties": {
            "annotations": map("Free-form data of clients and controllers."),
            "creationTimestamp": {"type": "string", "format": "date-time", "description": "When the object was created."},
            "deletionGracePeriodSeconds": {"type": "integer", "format": "int64", "description": "Time given to end, once deletion began."},
            "deletionTimestamp": {"type": "string", "format": "date-time", "description": "When deletion was asked for; finalizers may hold the object."},
            "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge", "description": "Who must agree before the object is removed."},
            "generateName": text("The beginning of a name the server completes."),
            "generation": {"type": "integer", "format": "int64", "description": "Counts changes of the desired state."},
            "labels": map("Labels that selectors match."),
            "managedFields": {"type": "array", "items": {"type": "object"}, "description": "Who owns which fields."},
            "name": text("The object's name, unique in its namespace."),
            "namespace": text("The namespace the object is in."),
            "ownerReferences": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"], "x-kubernetes-patch-merge-key": "uid", "x-kubernetes-patch-strategy": "merge", "description": "Objects this one is deleted with."},
            "resourceVersion": text("The version of the object; opaque."),
            "selfLink": text("No longer set."),
            "uid": text("Unique over all objects and times."),
        },
    })
}
