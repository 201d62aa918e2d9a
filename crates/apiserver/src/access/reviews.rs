//! Questions about access: `kubectl auth can-i`, `auth can-i --list` and `auth whoami` (authorization.k8s.io
//! and authentication.k8s.io, v1). A review is answered with itself and a status, and never stored.

use serde_json::{Value, json};

use super::action::Action;
use super::{Access, Decision, MASTERS};
use crate::identity::Identity;
use crate::status::{ApiError, ApiResult, StatusCause};

/// Answers a review of one of the kinds above; `namespace` is the one in the path.
pub(crate) fn answer(
    access: &Access,
    identity: &Identity,
    namespace: Option<&str>,
    mut review: Value,
) -> ApiResult<Value> {
    let kind = review.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let status = match kind.as_str() {
        "SelfSubjectAccessReview" => decision(access, identity, &review, &kind)?,
        "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            check_place(&review, namespace, &kind)?;
            decision(access, &subject(&review, &kind)?, &review, &kind)?
        }
        "SelfSubjectRulesReview" => match text(&review, "/spec/namespace") {
            "" => return Err(ApiError::bad_request("no namespace on request")),
            namespace => rules(access, identity, namespace),
        },
        "SelfSubjectReview" => json!({
            "userInfo": {"username": identity.user, "groups": identity.groups},
        }),
        _ => return Err(ApiError::no_such_resource()),
    };
    if let Some(fields) = review.as_object_mut() {
        fields.insert("status".to_owned(), status);
    }
    Ok(review)
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn invalid(kind: &str, cause: StatusCause) -> ApiError {
    ApiError::invalid("authorization.k8s.io", kind, "", vec![cause])
}

fn decision(access: &Access, identity: &Identity, review: &Value, kind: &str) -> ApiResult<Value> {
    let resource = review.pointer("/spec/resourceAttributes").filter(|value| !value.is_null());
    let path = review.pointer("/spec/nonResourceAttributes").filter(|value| !value.is_null());
    let action = match (resource, path) {
        (Some(wanted), None) => Action {
            verb: text(wanted, "/verb"),
            namespace: text(wanted, "/namespace"),
            group: text(wanted, "/group"),
            resource: text(wanted, "/resource"),
            subresource: text(wanted, "/subresource"),
            name: text(wanted, "/name"),
            path: "",
        },
        (None, Some(wanted)) => {
            Action { verb: text(wanted, "/verb"), path: text(wanted, "/path"), ..Action::default() }
        }
        _ => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            let cause = StatusCause::invalid_value("spec.resourceAttributes", &Value::Null, why);
            return Err(invalid(kind, cause));
        }
    };
    let Decision { allowed, reason } = access.decide(identity, &action);
    let mut status = json!({"allowed": allowed});
    if !reason.is_empty() {
        status["reason"] = reason.into();
    }
    Ok(status)
}

fn check_place(review: &Value, namespace: Option<&str>, kind: &str) -> ApiResult<()> {
    let Some(namespace) = namespace else { return Ok(()) };
    let asked = text(review, "/spec/resourceAttributes/namespace");
    if asked == namespace {
        return Ok(());
    }
    let field = "spec.resourceAttributes.namespace";
    let why = "must match metadata.namespace";
    Err(invalid(kind, StatusCause::invalid_value(field, &asked.into(), why)))
}

fn subject(review: &Value, kind: &str) -> ApiResult<Identity> {
    let user = text(review, "/spec/user");
    let groups = review.pointer("/spec/groups").and_then(Value::as_array).into_iter().flatten();
    let groups: Vec<&str> = groups.filter_map(Value::as_str).collect();
    if user.is_empty() && groups.is_empty() {
        let why = "at least one of user or group must be specified";
        return Err(invalid(kind, StatusCause::invalid_value("spec.user", &user.into(), why)));
    }
    Ok(Identity::new(user, groups))
}

/// The status of a SelfSubjectRulesReview.
pub(crate) fn rules(access: &Access, identity: &Identity, namespace: &str) -> Value {
    if identity.is_in(MASTERS) {
        return json!({
            "incomplete": false,
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        });
    }
    let rules = access.snapshot().rules_for(identity, namespace);
    let (urls, resources): (Vec<_>, Vec<_>) =
        rules.into_iter().partition(|rule| !rule.non_resource_urls.is_empty());
    json!({"incomplete": false, "resourceRules": resources, "nonResourceRules": urls})
}
