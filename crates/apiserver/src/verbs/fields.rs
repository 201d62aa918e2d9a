//! Who owns which field: server-side apply and the managers of other writes.

use std::sync::{Arc, OnceLock};

use modelplane_apimachinery::apply::{self, ApplyError, Reset, WriteRequest};
use modelplane_apimachinery::schema::Schema;
use serde_json::{Map, Value};

use super::Context;
use crate::registry::resource::Origin;
use crate::status::{ApiError, ApiResult, StatusCause};

/// The schemas of all served versions.
struct Schemas(Vec<(String, Arc<Schema>)>);

impl Schemas {
    fn of(context: &Context) -> Schemas {
        let versions = context.resource.versions.iter();
        Schemas(
            versions
                .map(|version| {
                    let schema = version.schema.get().unwrap_or_else(|| free());
                    (version.api_version.clone(), Arc::clone(schema))
                })
                .collect(),
        )
    }

    fn pairs(&self) -> Vec<(&str, &Schema)> {
        self.0.iter().map(|(version, schema)| (version.as_str(), &**schema)).collect()
    }
}

/// The schema of a kind that has none: any fields.
fn free() -> &'static Arc<Schema> {
    static FREE: OnceLock<Arc<Schema>> = OnceLock::new();
    FREE.get_or_init(|| {
        let mut schema = Schema::default();
        schema.preserve_unknown_fields = true;
        Arc::new(schema)
    })
}

/// What a write through the request's path leaves as it is.
fn reset(context: &Context) -> Reset {
    if let Origin::BuiltIn(kind) = &context.resource.origin {
        return if context.subresource() == "status" { kind.status_reset() } else { kind.reset() };
    }
    match context.subresource() {
        "status" => Reset::all_but_status(),
        "" if context.version().status => Reset::status(),
        _ => Reset::nothing(),
    }
}

/// The object of the kind that sets nothing.
fn empty(context: &Context) -> Value {
    match &context.resource.origin {
        Origin::BuiltIn(kind) => kind.empty(),
        Origin::Custom { .. } => Value::Object(Map::new()),
    }
}

/// Records a create (`live` is null), update or patch.
pub(crate) fn own_update(context: &Context, manager: &str, change: (&Value, &mut Value), now: &str) {
    let (live, object) = change;
    let schemas = Schemas::of(context);
    let empty = empty(context);
    let request = WriteRequest {
        versions: &schemas.pairs(),
        api_version: &context.version().api_version,
        kind: &context.resource.kind,
        manager,
        subresource: context.subresource(),
        time: now,
        reset: &reset(context),
        empty: &empty,
    };
    let live = (!live.is_null()).then_some(live);
    apply::update_managers(&request, live, object);
    if let Some(live) = live {
        apply::keep_times_if_unchanged(live, object);
    }
}

/// Applies a configuration on the live object; `None` creates it.
pub(crate) fn apply(
    context: &Context,
    live: Option<&Value>,
    applied: &Value,
    options: &super::options::WriteOptions,
    now: &str,
) -> ApiResult<Value> {
    let schemas = Schemas::of(context);
    let empty = empty(context);
    let request = WriteRequest {
        versions: &schemas.pairs(),
        api_version: &context.version().api_version,
        kind: &context.resource.kind,
        manager: &options.manager,
        subresource: context.subresource(),
        time: now,
        reset: &reset(context),
        empty: &empty,
    };
    let mut object = apply::apply(&request, live, applied, options.force).map_err(refused)?;
    if let Some(live) = live {
        apply::keep_times_if_unchanged(live, &mut object);
    }
    Ok(object)
}

fn refused(error: ApplyError) -> ApiError {
    let message = error.to_string();
    match error {
        ApplyError::Conflicts(conflicts) => {
            let causes = conflicts
                .0
                .iter()
                .map(|conflict| StatusCause {
                    reason: "FieldManagerConflict".to_owned(),
                    message: conflict.message(),
                    field: conflict.field.clone(),
                })
                .collect();
            ApiError::apply_conflict(message, causes)
        }
        ApplyError::WrongKind { .. } | ApplyError::ManagedFields => ApiError::bad_request(message),
        _ => ApiError::failed(message),
    }
}
