//! Questions asked by creating an object that is answered and not stored: who am I, what may I do.

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::access::reviews;
use crate::http::request::Verb;
use crate::http::{decode, negotiate};
use crate::registry::Resource;
use crate::status::{ApiError, ApiResult};
use crate::verbs::{Context, create};

/// Subresources that are created: name and the group, version and kind of what is sent.
pub(crate) fn subresources(resource: &Resource) -> Vec<(&'static str, [&'static str; 3])> {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => vec![("binding", ["", "v1", "Binding"]), ("eviction", ["policy", "v1", "Eviction"])],
        ("", "ServiceAccount") => vec![("token", ["authentication.k8s.io", "v1", "TokenRequest"])],
        _ => Vec::new(),
    }
}

/// Whether a resource has such a subresource.
pub(crate) fn has_subresource(resource: &Resource, name: &str) -> bool {
    subresources(resource).iter().any(|(found, _)| *found == name)
}

/// Answers a review.
pub(crate) fn review(context: &Context, body: &[u8]) -> ApiResult<Response<Body>> {
    if context.verb != Verb::Create {
        return Err(ApiError::method_not_allowed());
    }
    let mut object = decode::decode_object(body, negotiate::body_format(&context.headers)?)?.value;
    create::check_type(context, &mut object)?;
    let access = &context.core.access;
    let answer = if context.resource.kind == "TokenReview" {
        let token = object.pointer("/spec/token").and_then(Value::as_str).unwrap_or_default();
        object["status"] = match access.tokens().identity(token) {
            Some(user) => {
                json!({"authenticated": true, "user": {"username": user.user, "groups": user.groups}})
            }
            None => json!({"authenticated": false}),
        };
        object
    } else {
        reviews::answer(access, &context.identity, context.namespace(), object)?
    };
    Ok(context.answer_value(StatusCode::CREATED, &answer))
}
