//! The scale subresource: `autoscaling/v1` Scale of anything with replicas.

use axum::body::Body;
use http::{Response, StatusCode};
use modelplane_apimachinery::selector::LabelSelector;
use serde_json::{Map, Value, json};

use super::Context;
use super::modify::{Proposal, modify};
use super::options::WriteOptions;
use super::patch::PatchKind;
use crate::http::request::Verb;
use crate::http::{decode, negotiate};
use crate::object::metadata;
use crate::registry::resource::Scale;
use crate::status::{ApiError, ApiResult, StatusCause};

fn at<'v>(object: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(object, |value, field| value.get(field))
}

fn put(object: &mut Value, path: &[String], value: Value) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut place = object;
    for field in parents {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Some(fields) = place.as_object_mut() else { return };
        place = fields.entry(field.as_str()).or_insert_with(|| Value::Object(Map::new()));
    }
    if !place.is_object() {
        *place = Value::Object(Map::new());
    }
    if let Some(fields) = place.as_object_mut() {
        fields.insert(last.clone(), value);
    }
}

/// The Scale of an object.
fn scale_of(scale: &Scale, object: &Value) -> Value {
    let mut kept = Map::new();
    let fields = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
    for field in fields {
        if let Some(value) = metadata(object).and_then(|metadata| metadata.get(field)) {
            kept.insert(field.to_owned(), value.clone());
        }
    }
    let number = |path: &[String]| at(object, path).and_then(Value::as_i64).unwrap_or_default();
    let mut status = json!({"replicas": number(&scale.status_replicas)});
    if let Some(selector) = scale.selector.as_deref().and_then(|path| at(object, path)) {
        let text = match selector {
            Value::String(text) => Some(text.clone()),
            object => LabelSelector::from_object(object).ok().map(|selector| selector.to_string()),
        };
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            status["selector"] = text.into();
        }
    }
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": kept,
        "spec": {"replicas": number(&scale.spec_replicas)}, "status": status,
    })
}

fn paths(context: &Context) -> ApiResult<Scale> {
    context.version().scale.clone().ok_or_else(ApiError::no_such_resource)
}

/// `GET` of a scale.
pub(crate) fn get(context: &Context) -> ApiResult<Response<Body>> {
    let entry = context
        .core
        .read(&context.key())?
        .ok_or_else(|| ApiError::not_found(context.resource.target(context.name())))?;
    let scale = scale_of(&paths(context)?, &context.present(&entry.value, entry.modified));
    Ok(context.answer_value(StatusCode::OK, &scale))
}

/// `PUT` or `PATCH` of a scale: changes the object's replicas.
pub(crate) async fn change(context: &mut Context, body: &[u8]) -> ApiResult<Response<Body>> {
    let paths = paths(context)?;
    let options = WriteOptions::of(context, "UpdateOptions")?;
    let patch_kind = (context.verb == Verb::Patch).then(|| PatchKind::of(context)).transpose()?;
    let sent = match patch_kind {
        Some(kind) => kind.decode(body)?.value,
        None => decode::decode_object(body, negotiate::body_format(&context.headers)?)?.value,
    };
    let changed = modify(context, &options, |context, live| {
        let current = scale_of(&paths, live);
        let wanted = match patch_kind {
            None => sent.clone(),
            Some(PatchKind::Apply) => {
                let mut wanted = current.clone();
                if let Some(replicas) = sent.pointer("/spec/replicas") {
                    wanted["spec"]["replicas"] = replicas.clone();
                }
                wanted
            }
            Some(kind) => kind.patched(context, &current, &sent)?,
        };
        let name = crate::object::name(&wanted);
        if !name.is_empty() && name != context.name() {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                context.name()
            )));
        }
        let replicas = match wanted.pointer("/spec/replicas") {
            None => 0,
            Some(value) => value.as_i64().ok_or_else(|| {
                ApiError::bad_request(format!("spec.replicas must be an integer, not {value}"))
            })?,
        };
        if !(0..=i64::from(i32::MAX)).contains(&replicas) {
            let why = "must be greater than or equal to 0";
            let cause = StatusCause::invalid_value("spec.replicas", &replicas.into(), why);
            return Err(ApiError::invalid("autoscaling", "Scale", context.name(), vec![cause]));
        }
        let mut object = live.clone();
        put(&mut object, &paths.spec_replicas, replicas.into());
        let version = crate::object::metadata_text(&wanted, "resourceVersion").to_owned();
        let fields = crate::object::metadata_mut(&mut object);
        if version.is_empty() && context.verb == Verb::Patch {
            fields.shift_remove("resourceVersion");
        } else if !version.is_empty() {
            fields.insert("resourceVersion".to_owned(), version.into());
        }
        Ok(Proposal::Object(object))
    })
    .await?;
    let object = context.present(&changed.value, changed.revision);
    Ok(context.answer_value(StatusCode::OK, &scale_of(&paths, &object)))
}
