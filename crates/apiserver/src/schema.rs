//! Structural schemas as the request path uses them.
//!
//! The API servers of simulated clusters in one process have hundreds of copies of the same definitions: what was
//! parsed is shared, and what was found valid is not checked again.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use modelplane_apimachinery::schema::{Cause, Schema};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::status::StatusCause;

/// Digests of valid schemas that are kept.
const VALID_KEPT: usize = 4096;

/// What is known of schemas, by the digest of their text.
#[derive(Default)]
struct Known {
    in_use: HashMap<[u8; 32], Weak<Schema>>,
    valid: HashSet<[u8; 32]>,
}

impl Known {
    fn lock() -> MutexGuard<'static, Self> {
        static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn digest(document: &Value) -> [u8; 32] {
    Sha256::digest(document.to_string().as_bytes()).into()
}

/// The parsed schema, shared with whoever uses the same; `None` if it is not valid.
pub(crate) fn shared(document: &Value) -> Option<Arc<Schema>> {
    let digest = digest(document);
    if let Some(schema) = Known::lock().in_use.get(&digest).and_then(Weak::upgrade) {
        return Some(schema);
    }
    let schema = Arc::new(Schema::parse(document).ok()?);
    let mut known = Known::lock();
    known.in_use.retain(|_, schema| schema.strong_count() > 0);
    known.in_use.insert(digest, Arc::downgrade(&schema));
    Some(schema)
}

/// What is wrong with the `openAPIV3Schema` at a path of a definition.
pub(crate) fn problems(document: &Value, path: &str) -> Vec<StatusCause> {
    let digest = digest(document);
    if Known::lock().valid.contains(&digest) {
        return Vec::new();
    }
    if let Err(found) = Schema::parse_at(document, path) {
        return found.into_iter().map(to_status_cause).collect();
    }
    let mut known = Known::lock();
    if known.valid.len() >= VALID_KEPT {
        known.valid.clear();
    }
    known.valid.insert(digest);
    Vec::new()
}

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
