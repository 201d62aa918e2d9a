//! Structural schemas as the request path uses them.

use modelplane_apimachinery::schema::{Cause, Schema};
use serde_json::Value;

use crate::status::StatusCause;

/// A schema's complaint as a cause of a Status.
pub(crate) fn to_status_cause(cause: Cause) -> StatusCause {
    StatusCause { reason: cause.reason.as_str().to_owned(), message: cause.message, field: cause.field }
}

/// Drops what the schema does not know and fills in defaults; names what was dropped.
pub(crate) fn normalize(schema: &Schema, object: &mut Value) -> Vec<String> {
    schema.apply_defaults(object);
    schema.prune(object).iter().map(ToString::to_string).collect()
}

/// Everything about a new object that its schema and rules forbid.
pub(crate) fn validate(schema: &Schema, object: &Value) -> Vec<StatusCause> {
    schema.validate(object, None).into_iter().map(to_status_cause).collect()
}

/// The same for a changed object; what was wrong before may stay.
pub(crate) fn validate_update(
    schema: &Schema,
    object: &Value,
    live: &Value,
    status_only: bool,
) -> Vec<StatusCause> {
    let causes = if status_only {
        schema.validate_status(object, Some(live))
    } else {
        schema.validate(object, Some(live))
    };
    causes.into_iter().map(to_status_cause).collect()
}
