//! `POST` to a service account's `token`: a bearer token for it (authentication.k8s.io/v1 TokenRequest).
//!
//! The token is opaque, valid at this server alone, and ends with its time or its service account. It cannot be
//! bound to other objects or made for other audiences.

use axum::body::Body;
use http::{Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Context, options};
use crate::access::{self, AccessError, Bound};
use crate::http::{decode, negotiate};
use crate::object::encode::Glance;
use crate::status::{ApiError, ApiResult, StatusCause};

/// Who the tokens are for, as clusters name their API server.
const AUDIENCE: &str = "https://kubernetes.default.svc";
const DEFAULT_SECONDS: i64 = 60 * 60;
const MIN_SECONDS: i64 = 10 * 60;
/// Longer ones are cut to this, which a server may do.
const MAX_SECONDS: i64 = 365 * 24 * 60 * 60;

/// Answers a TokenRequest.
pub(crate) async fn create(context: &Context, body: &[u8]) -> ApiResult<Response<Body>> {
    let dry_run = options::dry_run(&context.query, "CreateOptions")?;
    let mut request = decode::decode_object(body, negotiate::body_format(&context.headers)?)?.value;
    let namespace = context.namespace().unwrap_or_default();
    let entry = context.core.read(&context.key())?;
    let entry = entry.ok_or_else(|| ApiError::not_found(context.resource.target(context.name())))?;
    let seconds = lifetime(&request)?;
    let until = Timestamp::now() + SignedDuration::from_secs(seconds);
    let uid = Glance::of(&entry.value).uid.unwrap_or_default();
    let token = if dry_run {
        String::new()
    } else {
        let identity = access::identity_of_service_account(namespace, context.name());
        let bound = Bound { key: context.key(), uid };
        let issued = context.core.access.tokens().issue_bound(&identity, until, bound).await;
        issued.map_err(|error| match error {
            AccessError::TooManyTokens { .. } => ApiError::too_many_requests(error.to_string()),
            other => ApiError::internal(other),
        })?
    };
    request["apiVersion"] = "authentication.k8s.io/v1".into();
    request["kind"] = "TokenRequest".into();
    request["metadata"] = json!({
        "name": context.name(), "namespace": namespace, "creationTimestamp": context.core.now(),
    });
    request["spec"]["audiences"] = json!([AUDIENCE]);
    request["spec"]["expirationSeconds"] = seconds.into();
    let expires = until.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    request["status"] = json!({"token": token, "expirationTimestamp": expires});
    Ok(context.answer_value(StatusCode::CREATED, &request))
}

/// Checks a request and says how long its token is to live.
fn lifetime(request: &Value) -> ApiResult<i64> {
    let spec = request.get("spec").filter(|spec| !spec.is_null());
    let field = |name: &str| spec.and_then(|spec| spec.get(name)).filter(|value| !value.is_null());
    let invalid = |cause| Err(ApiError::invalid("authentication.k8s.io", "TokenRequest", "", vec![cause]));
    if spec.is_some_and(|spec| !spec.is_object()) {
        return Err(ApiError::bad_request("spec must be an object"));
    }
    if let Some(object) = field("boundObjectRef") {
        let why = "tokens are bound to their service account alone";
        return invalid(StatusCause::invalid_value("spec.boundObjectRef", object, why));
    }
    if let Some(audiences) = field("audiences") {
        let list = audiences.as_array().map(Vec::as_slice).unwrap_or_default();
        if !list.is_empty() && !list.iter().any(|audience| audience == AUDIENCE) {
            let why = format!("the only audience is {AUDIENCE:?}");
            return invalid(StatusCause::invalid_value("spec.audiences", audiences, &why));
        }
    }
    let Some(asked) = field("expirationSeconds") else { return Ok(DEFAULT_SECONDS) };
    match asked.as_i64() {
        Some(seconds) if seconds >= MIN_SECONDS => Ok(seconds.min(MAX_SECONDS)),
        _ => {
            let why = "may not specify a duration less than 10 minutes";
            invalid(StatusCause::invalid_value("spec.expirationSeconds", asked, why))
        }
    }
}
