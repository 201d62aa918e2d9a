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
        "eviction" => delete::delete(context, b"").await.map(|response| {
            let (mut parts, _) = response.into_parts();
            parts.status = StatusCode::CREATED;
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
            Response::from_parts(parts, Body::from(status.to_string()))
        }),
        _ => Err(ApiError::method_not_allowed()),
    }
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
