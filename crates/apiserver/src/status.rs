//! Errors in the shape of `meta/v1 Status`, the only error body a Kubernetes client understands.
//!
//! One constructor per reason of the API conventions; the wording of the well-known ones follows what
//! existing clients and scripts match on.

use serde_json::{Map, Value, json};

/// Kubernetes groups and names a resource as `plural.group`, or `plural` in the legacy group.
pub(crate) fn qualified(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

/// The reason of the cause in the Status of a deletion that was refused.
pub(crate) const REFUSED: &str = "DeletionRefused";

/// One entry of `details.causes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatusCause {
    /// `FieldValueInvalid`, `FieldValueRequired`, …
    pub(crate) reason: String,
    /// What is wrong with the field, without naming it.
    pub(crate) message: String,
    /// The field's path, e.g. `spec.replicas`.
    pub(crate) field: String,
}

/// `details` of a Status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Details {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) uid: String,
    pub(crate) causes: Vec<StatusCause>,
    pub(crate) retry_after_seconds: Option<u32>,
}

/// A failed request: what the client gets as a `Status` object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ApiError {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Option<Box<Details>>,
}

/// The result of handling a request.
pub(crate) type ApiResult<T> = Result<T, ApiError>;

/// The resource a request is about, as errors name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) name: &'a str,
}

impl Target<'_> {
    fn details(&self) -> Box<Details> {
        Box::new(Details {
            name: self.name.to_owned(),
            group: self.group.to_owned(),
            kind: self.resource.to_owned(),
            ..Details::default()
        })
    }

    fn described(&self) -> String {
        format!("{} {:?}", qualified(self.resource, self.group), self.name)
    }
}

impl ApiError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> ApiError {
        ApiError { code, reason, message: message.into(), details: None }
    }

    fn about(mut self, target: Target<'_>) -> ApiError {
        self.details = Some(target.details());
        self
    }

    /// 400: the request itself cannot be understood.
    pub(crate) fn bad_request(message: impl Into<String>) -> ApiError {
        ApiError::new(400, "BadRequest", message)
    }

    /// 401: no valid credentials.
    pub(crate) fn unauthorized() -> ApiError {
        ApiError::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403: `message` says why.
    pub(crate) fn forbidden(target: Target<'_>, message: &str) -> ApiError {
        let subject = if target.name.is_empty() {
            qualified(target.resource, target.group)
        } else {
            target.described()
        };
        ApiError::new(403, "Forbidden", format!("{subject} is forbidden: {message}")).about(target)
    }

    /// 404: no object of this name.
    pub(crate) fn not_found(target: Target<'_>) -> ApiError {
        ApiError::new(404, "NotFound", format!("{} not found", target.described())).about(target)
    }

    /// 404: nothing is served at this path.
    pub(crate) fn no_such_resource() -> ApiError {
        let mut error = ApiError::new(404, "NotFound", "the server could not find the requested resource");
        error.details = Some(Box::default());
        error
    }

    /// 405: the resource is served, but not with this verb.
    pub(crate) fn method_not_allowed() -> ApiError {
        let mut error = ApiError::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        error.details = Some(Box::default());
        error
    }

    /// 406: the client accepts nothing the server can write.
    pub(crate) fn not_acceptable(accepted: &str) -> ApiError {
        ApiError::new(
            406,
            "NotAcceptable",
            format!("only the following media types are accepted: {accepted}"),
        )
    }

    /// 408: the client stopped sending.
    pub(crate) fn slow_body() -> ApiError {
        ApiError::new(408, "Timeout", "the body of the request did not arrive in time")
    }

    /// 409: an object of this name exists.
    pub(crate) fn already_exists(target: Target<'_>) -> ApiError {
        ApiError::new(409, "AlreadyExists", format!("{} already exists", target.described())).about(target)
    }

    /// 409: optimistic concurrency, or a precondition, failed.
    pub(crate) fn conflict(target: Target<'_>, message: &str) -> ApiError {
        let text = format!("Operation cannot be fulfilled on {}: {message}", target.described());
        ApiError::new(409, "Conflict", text).about(target)
    }

    /// 409 for a stale `resourceVersion`.
    pub(crate) fn stale(target: Target<'_>) -> ApiError {
        ApiError::conflict(
            target,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 409 of a deletion that the host refuses. The cause tells it from a lost race, which is worth another try.
    pub(crate) fn refused(target: Target<'_>, message: String) -> ApiError {
        let cause =
            StatusCause { reason: REFUSED.to_owned(), message: message.clone(), field: String::new() };
        ApiError::new(409, "Conflict", message).about(target).with_cause(cause)
    }

    /// 409 of a server-side apply.
    pub(crate) fn apply_conflict(message: String, causes: Vec<StatusCause>) -> ApiError {
        let mut error = ApiError::new(409, "Conflict", message);
        error.details = Some(Box::new(Details { causes, ..Details::default() }));
        error
    }

    /// 410: a resourceVersion or continue token older than the kept history.
    pub(crate) fn expired(message: impl Into<String>) -> ApiError {
        ApiError::new(410, "Expired", message)
    }

    /// 413: body too large.
    pub(crate) fn too_large(message: impl Into<String>) -> ApiError {
        ApiError::new(413, "RequestEntityTooLarge", message)
    }

    /// 415: a body type the server cannot read.
    pub(crate) fn unsupported_media_type(accepted: &str) -> ApiError {
        ApiError::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {accepted}"
            ),
        )
    }

    /// 422: `kind_group` is `Kind` or `Kind.group`.
    pub(crate) fn invalid(group: &str, kind: &str, name: &str, causes: Vec<StatusCause>) -> ApiError {
        let mut listed: Vec<String> = Vec::with_capacity(causes.len());
        for cause in &causes {
            let text = if cause.field.is_empty() {
                cause.message.clone()
            } else {
                format!("{}: {}", cause.field, cause.message)
            };
            if !listed.contains(&text) {
                listed.push(text);
            }
        }
        let list = if listed.len() == 1 { listed.swap_remove(0) } else { format!("[{}]", listed.join(", ")) };
        let message = format!("{} {name:?} is invalid: {list}", qualified(kind, group));
        let mut error = ApiError::new(422, "Invalid", message);
        error.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            causes,
            ..Details::default()
        }));
        error
    }

    /// 422 without causes: an apply or patch that leads to an unreadable object.
    pub(crate) fn unprocessable(message: impl Into<String>) -> ApiError {
        ApiError::new(422, "Invalid", message)
    }

    /// 429: a limit of the server; trying later may help.
    pub(crate) fn too_many_requests(message: impl Into<String>) -> ApiError {
        let mut error = ApiError::new(429, "TooManyRequests", message);
        error.details = Some(Box::new(Details { retry_after_seconds: Some(1), ..Details::default() }));
        error
    }

    /// 500 without a reason, as Kubernetes answers for some faults of a request.
    pub(crate) fn failed(message: impl Into<String>) -> ApiError {
        ApiError::new(500, "", message)
    }

    /// 500.
    pub(crate) fn internal(message: impl std::fmt::Display) -> ApiError {
        ApiError::new(500, "InternalError", format!("Internal error occurred: {message}"))
    }

    /// 504: asked for a revision the store has not reached.
    pub(crate) fn future_revision(asked: u64, current: u64) -> ApiError {
        let message = format!("Too large resource version: {asked}, current: {current}");
        let mut error = ApiError::new(504, "Timeout", format!("Timeout: {message}"));
        error.details = Some(Box::new(Details {
            causes: vec![StatusCause {
                reason: "ResourceVersionTooLarge".to_owned(),
                message: "Too large resource version".to_owned(),
                field: String::new(),
            }],
            retry_after_seconds: Some(1),
            ..Details::default()
        }));
        error
    }

    /// Adds one cause to the details.
    pub(crate) fn with_cause(mut self, cause: StatusCause) -> ApiError {
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// The `Status` object.
    pub(crate) fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        });
        if let (false, Some(object)) = (self.reason.is_empty(), status.as_object_mut()) {
            object.insert("reason".to_owned(), self.reason.into());
        }
        if let (Some(details), Some(object)) = (&self.details, status.as_object_mut()) {
            object.insert("details".to_owned(), Value::Object(details.to_json()));
        }
        if let Some(object) = status.as_object_mut() {
            object.insert("code".to_owned(), self.code.into());
        }
        status
    }
}

impl Details {
    fn to_json(&self) -> Map<String, Value> {
        let mut object = Map::new();
        for (key, value) in
            [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]
        {
            if !value.is_empty() {
                object.insert(key.to_owned(), value.as_str().into());
            }
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(StatusCause::to_json).collect();
            object.insert("causes".to_owned(), Value::Array(causes));
        }
        if let Some(seconds) = self.retry_after_seconds {
            object.insert("retryAfterSeconds".to_owned(), seconds.into());
        }
        object
    }
}

impl StatusCause {
    fn to_json(&self) -> Value {
        let mut object = Map::new();
        for (key, value) in [("reason", &self.reason), ("message", &self.message), ("field", &self.field)] {
            if !value.is_empty() {
                object.insert(key.to_owned(), value.as_str().into());
            }
        }
        Value::Object(object)
    }

    /// `FieldValueInvalid` with the value shown, as Kubernetes words it.
    pub(crate) fn invalid_value(field: &str, value: &Value, why: &str) -> StatusCause {
        StatusCause {
            reason: "FieldValueInvalid".to_owned(),
            message: format!("Invalid value: {value}: {why}"),
            field: field.to_owned(),
        }
    }

    /// `FieldValueRequired`.
    pub(crate) fn required(field: &str, why: &str) -> StatusCause {
        StatusCause {
            reason: "FieldValueRequired".to_owned(),
            message: if why.is_empty() {
                "Required value".to_owned()
            } else {
                format!("Required value: {why}")
            },
            field: field.to_owned(),
        }
    }
}

/// The `Status` of a successful deletion.
pub(crate) fn success(target: Target<'_>, uid: &str) -> Value {
    let mut details = Details { uid: uid.to_owned(), ..*target.details() };
    details.causes.clear();
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": details.to_json(),
    })
}
