//! What can be created below a pod: a binding to a node, and an eviction.

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::modify::{Proposal, modify};
use super::options::WriteOptions;
use super::{Context, delete};
use crate::http::{decode, negotiate};
use crate::status::{ApiError, ApiResult};

/// `POST` to a pod's subresource.
pub(crate) async fn create(context: &mut Context, name: &str, body: &[u8]) -> ApiResult<Response<Body>> {
    match name {
        "binding" => bind(context, body).await,
        "eviction" => evict(context, body).await,
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// Deletes the pod as the eviction's `deleteOptions` say; disruption budgets are not looked at.
async fn evict(context: &mut Context, body: &[u8]) -> ApiResult<Response<Body>> {
    let eviction = match body {
        [] => Value::Null,
        body => decode::decode_object(body, negotiate::body_format(&context.headers)?)?.value,
    };
    delete::evict(context, eviction.get("deleteOptions").unwrap_or(&Value::Null)).await?;
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
    Ok(context.answer_value(StatusCode::CREATED, &status))
}

async fn bind(context: &mut Context, body: &[u8]) -> ApiResult<Response<Body>> {
    let options = WriteOptions::of(context, "CreateOptions")?;
    let binding = decode::decode_object(body, negotiate::body_format(&context.headers)?)?.value;
    let node = binding.pointer("/target/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if node.is_empty() {
        return Err(ApiError::bad_request("target.name must name a node"));
    }
    modify(context, &options, |context, live| {
        let bound = live.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
        if !bound.is_empty() {
            let why = format!("pod {} is already assigned to node {bound:?}", context.name());
            return Err(ApiError::conflict(context.resource.target(context.name()), &why));
        }
        let mut object = live.clone();
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("nodeName".to_owned(), node.as_str().into());
        }
        Ok(Proposal::Object(object))
    })
    .await?;
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
    Ok(context.answer_value(StatusCode::CREATED, &status))
}
