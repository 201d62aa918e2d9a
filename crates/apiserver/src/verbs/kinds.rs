//! What single kinds do beyond their schema: namespaces, definitions, secrets, services.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::Context;
use crate::access::{self, validation};
use crate::object::{is_terminating, metadata_mut};
use crate::registry::resource::Special;
use crate::registry::{Resource, custom};
use crate::status::{ApiError, ApiResult, StatusCause};

/// The label every namespace carries.
const NAMESPACE_LABEL: &str = "kubernetes.io/metadata.name";
/// Keeps a definition until its objects are gone.
pub(crate) const DEFINITION_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Completes a new object.
pub(crate) fn before_create(context: &Context, object: &mut Value, now: &str) -> ApiResult<()> {
    match context.resource.rules.special {
        Special::Namespace => {
            label_namespace(object);
            set(object, "spec", json!({"finalizers": ["kubernetes"]}));
            set(object, "status", json!({"phase": "Active"}));
        }
        Special::CustomResourceDefinition => {
            custom::default(object);
            if custom::check(object).is_empty() {
                custom::set_status(object, &context.core.registry(), now);
            }
        }
        Special::Secret => merge_string_data(object),
        Special::Pod => set(object, "status", json!({"phase": "Pending", "qosClass": "BestEffort"})),
        Special::Service => complete_service(object),
        Special::None if context.resource.group == access::GROUP => validation::default(object),
        Special::None | Special::ConfigMap | Special::Review => {}
    }
    Ok(())
}

/// Completes a changed object.
pub(crate) fn before_update(context: &Context, live: &Value, object: &mut Value, now: &str) -> ApiResult<()> {
    let main = context.subresource().is_empty();
    match context.resource.rules.special {
        Special::Namespace if main => {
            label_namespace(object);
            copy(live, object, "spec");
        }
        Special::CustomResourceDefinition if main => {
            custom::default(object);
            if custom::check(object).is_empty() {
                custom::set_status(object, &context.core.registry(), now);
            }
        }
        Special::Secret => merge_string_data(object),
        Special::Service => complete_service(object),
        Special::None if context.resource.group == access::GROUP => validation::default(object),
        _ => {}
    }
    Ok(())
}

/// Namespaces every cluster needs.
const KEPT_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Marks an object that is about to be deleted.
pub(crate) fn before_delete(context: &Context, object: &mut Value, now: &str) -> ApiResult<()> {
    match context.resource.rules.special {
        Special::Namespace if KEPT_NAMESPACES.contains(&crate::object::name(object)) => {
            let target = context.resource.target(crate::object::name(object));
            return Err(ApiError::forbidden(target, "this namespace may not be deleted"));
        }
        Special::Namespace if !is_finalized(&context.resource, object) => {
            if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
                status.insert("phase".to_owned(), "Terminating".into());
            } else {
                set(object, "status", json!({"phase": "Terminating"}));
            }
        }
        Special::CustomResourceDefinition if !is_terminating(object) && has_objects(context, object) => {
            custom::set_terminating(object, now);
            let finalizers = metadata_mut(object).entry("finalizers").or_insert_with(|| json!([]));
            if let Some(list) = finalizers.as_array_mut()
                && !list.iter().any(|name| name == DEFINITION_FINALIZER)
            {
                list.push(DEFINITION_FINALIZER.into());
            }
        }
        _ => {}
    }
    Ok(())
}

fn has_objects(context: &Context, definition: &Value) -> bool {
    let (group, plural) = custom::group_and_plural(definition);
    let prefix = crate::registry::resource::prefix(&group, &plural);
    let request = modelplane_store::ListRequest { prefix: &prefix, limit: 1, ..Default::default() };
    context.core.store.list(request).is_ok_and(|page| !page.entries.is_empty())
}

/// Whether nothing but `metadata.finalizers` keeps the object: `spec.finalizers` of a namespace do.
pub(crate) fn is_finalized(resource: &Resource, object: &Value) -> bool {
    resource.rules.special != Special::Namespace
        || object.pointer("/spec/finalizers").and_then(Value::as_array).is_none_or(Vec::is_empty)
}

/// Whether an update of the object itself may write `status`: the server writes that of definitions.
pub(crate) fn keeps_status(resource: &Resource) -> bool {
    resource.rules.special == Special::CustomResourceDefinition
}

/// What is wrong with an object beyond metadata and schema.
pub(crate) fn check(context: &Context, object: &Value, live: Option<&Value>) -> Vec<StatusCause> {
    let mut causes =
        if context.resource.group == access::GROUP { validation::check(object, live) } else { Vec::new() };
    let special = context.resource.rules.special;
    if matches!(special, Special::Secret | Special::ConfigMap) {
        check_data(object, special, &mut causes);
        if let Some(live) = live {
            check_immutable(object, live, &mut causes);
        }
    }
    if let (Special::CustomResourceDefinition, Some(live)) = (special, live) {
        for field in ["/spec/scope", "/spec/group", "/spec/names/plural"] {
            let (old, new) = (live.pointer(field), object.pointer(field));
            if old != new && custom::is_established(live) {
                let path = field.trim_start_matches('/').replace('/', ".");
                let value = new.cloned().unwrap_or_default();
                causes.push(StatusCause::invalid_value(&path, &value, "field is immutable"));
            }
        }
    }
    if let (Special::Secret, Some(live)) = (special, live)
        && live.get("type") != object.get("type")
    {
        let value = object.get("type").cloned().unwrap_or_default();
        causes.push(StatusCause::invalid_value("type", &value, "field is immutable"));
    }
    causes
}

fn check_data(object: &Value, special: Special, causes: &mut Vec<StatusCause>) {
    const MAX_DATA_BYTES: usize = 1024 * 1024;
    let mut total = 0;
    for field in ["data", "binaryData"] {
        let base64 = special == Special::Secret || field == "binaryData";
        for (key, value) in object.get(field).and_then(Value::as_object).into_iter().flatten() {
            let path = format!("{field}[{key}]");
            let valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
            if key.is_empty()
                || key.len() > 253
                || !key.bytes().all(valid)
                || key == "."
                || key.starts_with("..")
            {
                let why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
                causes.push(StatusCause::invalid_value(&path, &key.as_str().into(), why));
            }
            let text = value.as_str().unwrap_or_default();
            if base64 && STANDARD.decode(text.trim()).is_err() {
                causes.push(StatusCause::invalid_value(&path, &"".into(), "must be base64"));
            }
            total += text.len();
        }
    }
    if total > MAX_DATA_BYTES * 4 / 3 {
        causes.push(StatusCause {
            reason: "FieldValueTooLong".to_owned(),
            message: format!("Too long: may not be more than {MAX_DATA_BYTES} bytes"),
            field: String::new(),
        });
    }
}

fn check_immutable(object: &Value, live: &Value, causes: &mut Vec<StatusCause>) {
    if live.get("immutable") != Some(&Value::Bool(true)) {
        return;
    }
    for field in ["immutable", "data", "binaryData"] {
        if live.get(field) != object.get(field) {
            causes.push(StatusCause {
                reason: "FieldValueForbidden".to_owned(),
                message: "Forbidden: field is immutable when `immutable` is set".to_owned(),
                field: field.to_owned(),
            });
        }
    }
}

fn label_namespace(object: &mut Value) {
    let name = crate::object::name(object).to_owned();
    if name.is_empty() {
        return;
    }
    let labels = metadata_mut(object).entry("labels").or_insert_with(|| Value::Object(Map::new()));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(NAMESPACE_LABEL.to_owned(), name.into());
    }
}

fn merge_string_data(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    if let Some(Value::Object(plain)) = fields.shift_remove("stringData") {
        let data = fields.entry("data").or_insert_with(|| Value::Object(Map::new()));
        if let Some(data) = data.as_object_mut() {
            for (key, value) in plain {
                data.insert(key, STANDARD.encode(value.as_str().unwrap_or_default()).into());
            }
        }
    }
    fields.entry("type").or_insert_with(|| "Opaque".into());
}

fn complete_service(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let number = port.get("port").cloned().unwrap_or_default();
        if let Some(port) = port.as_object_mut() {
            port.entry("protocol").or_insert_with(|| "TCP".into());
            port.entry("targetPort").or_insert(number);
        }
    }
    for (field, value) in [("type", "ClusterIP"), ("sessionAffinity", "None")] {
        spec.entry(field).or_insert_with(|| value.into());
    }
}

fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

fn copy(from: &Value, to: &mut Value, field: &str) {
    if let Some(value) = from.get(field) {
        set(to, field, value.clone());
    }
}
