//! The common path of update, patch, apply and scale: read, change, check, write; again when someone was faster.

use bytes::Bytes;
use modelplane_apimachinery::schema::metadata::check_update;
use modelplane_store::{Entry, Revision, Write};
use serde_json::Value;

use super::options::WriteOptions;
use super::{Context, convert, create, fields, kinds};
use crate::http::request::Verb;
use crate::object::{encode, finalizers, is_terminating, metadata, metadata_mut, metadata_text};
use crate::registry::custom;
use crate::registry::resource::{Origin, Special};
use crate::schema::to_status_cause;
use crate::status::{ApiError, ApiResult, StatusCause};

/// How often a change without a resourceVersion is tried again on the latest object.
const ATTEMPTS: usize = 10;

/// What a client wants an object to become.
pub(crate) enum Proposal {
    /// The object, as an update or patch makes it. Its manager is to be recorded.
    Object(Value),
    /// The result of an apply, `managedFields` included.
    Applied(Value),
}

/// The outcome of a change.
pub(crate) struct Changed {
    /// The stored form.
    pub(crate) value: Bytes,
    pub(crate) revision: Revision,
}

/// Changes the object in the path to what `propose` makes of the live one.
pub(crate) async fn modify(
    context: &mut Context,
    options: &WriteOptions,
    mut propose: impl FnMut(&mut Context, &Value) -> ApiResult<Proposal>,
) -> ApiResult<Changed> {
    let core = context.core.clone();
    let resource = context.resource.clone();
    let key = context.key();
    let warnings = context.warnings.len();
    let _held = core.hold_definitions(&resource).await;
    for attempt in 1.. {
        context.warnings.truncate(warnings);
        let entry = core.read(&key)?.ok_or_else(|| ApiError::not_found(resource.target(context.name())))?;
        let live = context.present(&entry.value, entry.modified);
        let proposal = propose(context, &live)?;
        let (mut object, recorded) = match proposal {
            Proposal::Object(object) => (object, false),
            Proposal::Applied(object) => (object, true),
        };
        let conditional = check_identity(context, &live, &object)?;
        let now = core.now();
        reconcile(context, options, (&live, &mut object), recorded, &now)?;
        check(context, &object, &live)?;
        let step = step(context, &entry, (&live, object));
        let value = match &step {
            Step::Nothing => entry.value.clone(),
            Step::Update { value, .. } | Step::Delete { value } => value.clone(),
        };
        let expected = entry.modified;
        let (write, stored) = match step {
            Step::Nothing => return Ok(Changed { value, revision: expected }),
            _ if options.dry_run => return Ok(Changed { value, revision: expected }),
            Step::Update { value, stored } => {
                (Write::Update { key: key.clone(), value, expected }, Some(stored))
            }
            Step::Delete { value } => {
                (Write::Delete { key: key.clone(), expected: Some(expected), last: value }, None)
            }
        };
        match core.write(write).await {
            Ok(revision) => {
                if resource.rules.special == Special::CustomResourceDefinition {
                    match &stored {
                        Some(stored) => core.definition_written(stored, &value, revision),
                        None => core.definition_deleted(&live),
                    }
                }
                return Ok(Changed { value, revision });
            }
            Err(Some(error)) => return Err(error),
            Err(None) if conditional || attempt >= ATTEMPTS => {
                return Err(ApiError::stale(resource.target(context.name())));
            }
            Err(None) => {}
        }
    }
    Err(ApiError::stale(resource.target(context.name())))
}

/// Checks name, uid and resourceVersion; whether the client insists on the version it saw.
fn check_identity(context: &Context, live: &Value, object: &Value) -> ApiResult<bool> {
    let target = context.resource.target(context.name());
    let name = crate::object::name(object);
    if name != context.name() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            context.name()
        )));
    }
    let namespace = metadata_text(object, "namespace");
    if !namespace.is_empty() && Some(namespace) != context.namespace() {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let uid = metadata_text(object, "uid");
    let live_uid = metadata_text(live, "uid");
    if !uid.is_empty() && uid != live_uid {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {live_uid}");
        return Err(ApiError::conflict(target, &why));
    }
    let revision = metadata_text(object, "resourceVersion");
    let unconditional = revision.is_empty() || revision == "0";
    if !unconditional && revision != metadata_text(live, "resourceVersion") {
        return Err(ApiError::stale(target));
    }
    Ok(!unconditional && context.verb == Verb::Update)
}

/// Makes a proposal storable: keeps what the client cannot change, counts the generation, records managers.
fn reconcile(
    context: &Context,
    options: &WriteOptions,
    change: (&Value, &mut Value),
    recorded: bool,
    now: &str,
) -> ApiResult<()> {
    let (live, object) = change;
    let resource = &context.resource;
    crate::object::metadata::prepare_update(object, live);
    // Without one, an update of most built-in kinds, and any patch, is about the latest version.
    let implied = resource.rules.unconditional_update || context.verb == Verb::Patch;
    if implied && metadata_text(object, "resourceVersion").is_empty() {
        let latest = metadata_text(live, "resourceVersion").to_owned();
        metadata_mut(object).insert("resourceVersion".to_owned(), latest.into());
    }
    match context.subresource() {
        "status" => *object = with_status_of(live, object),
        "finalize" => *object = with_finalizers_of(live, object),
        _ => {
            if context.version().status && !kinds::keeps_status(resource) {
                copy_field(live, object, "status");
            }
        }
    }
    kinds::before_update(context, live, object, now)?;
    crate::object::metadata::bump_generation(object, live, resource.rules.generation);
    if !recorded {
        fields::own_update(context, &options.manager, (live, object), now);
    }
    Ok(())
}

/// The live object with the status, and the managers, of a proposal.
fn with_status_of(live: &Value, object: &mut Value) -> Value {
    let mut next = live.clone();
    copy_field(object, &mut next, "status");
    let managers = metadata(object).and_then(|metadata| metadata.get("managedFields")).cloned();
    let version = metadata_text(object, "resourceVersion").to_owned();
    let fields = metadata_mut(&mut next);
    match managers {
        Some(managers) => fields.insert("managedFields".to_owned(), managers),
        None => fields.shift_remove("managedFields"),
    };
    if !version.is_empty() {
        fields.insert("resourceVersion".to_owned(), version.into());
    }
    next
}

fn with_finalizers_of(live: &Value, object: &Value) -> Value {
    let mut next = live.clone();
    let kept = object.pointer("/spec/finalizers").cloned();
    if let Some(spec) = next.get_mut("spec").and_then(Value::as_object_mut) {
        match kept {
            Some(kept) => spec.insert("finalizers".to_owned(), kept),
            None => spec.shift_remove("finalizers"),
        };
    }
    next
}

fn copy_field(from: &Value, to: &mut Value, field: &str) {
    let Some(fields) = to.as_object_mut() else { return };
    match from.get(field) {
        Some(value) => {
            fields.insert(field.to_owned(), value.clone());
        }
        None => {
            fields.shift_remove(field);
        }
    }
}

fn check(context: &Context, object: &Value, live: &Value) -> ApiResult<()> {
    let resource = &context.resource;
    let (new, old) =
        (object.get("metadata").unwrap_or(&Value::Null), live.get("metadata").unwrap_or(&Value::Null));
    let found = check_update(new, old, "metadata");
    let mut causes: Vec<StatusCause> = found.into_iter().map(to_status_cause).collect();
    if let Some(schema) = context.version().schema.get() {
        let custom = matches!(resource.origin, Origin::Custom { .. });
        let status_only = custom && context.subresource() == "status";
        causes.extend(crate::schema::validate_update(schema, object, live, status_only));
    }
    if resource.rules.special == Special::CustomResourceDefinition {
        causes.extend(custom::check(object));
    }
    causes.extend(kinds::check(context, object, Some(live)));
    if causes.is_empty() {
        context.core.access.check_grant(&context.identity, object, Some(live))
    } else {
        Err(ApiError::invalid(&resource.group, &resource.kind, context.name(), causes))
    }
}

/// What a change comes down to.
enum Step {
    /// The object stays as it is stored: no write, no new revision.
    Nothing,
    Update {
        value: Bytes,
        stored: Value,
    },
    /// The last finalizer of an object that is being deleted is gone.
    Delete {
        value: Bytes,
    },
}

fn step(context: &Context, entry: &Entry, change: (&Value, Value)) -> Step {
    let (live, object) = change;
    let resource = &context.resource;
    let finished =
        is_terminating(&object) && finalizers(&object).is_empty() && kinds::is_finalized(resource, &object);
    // Compared as values: a client may send the same fields in another order.
    if !finished && resource.splices(context.version, entry.modified) && *live == object {
        return Step::Nothing;
    }
    let stored = convert::for_storage(resource, &object).unwrap_or(object);
    let value = encode::encode(&stored);
    if finished {
        Step::Delete { value }
    } else if value == entry.value {
        Step::Nothing
    } else {
        Step::Update { value, stored }
    }
}

/// Decodes, types and prunes the body of an update.
pub(crate) fn prepare(context: &mut Context, object: &mut Value) -> ApiResult<Vec<String>> {
    create::check_type(context, object)?;
    crate::object::metadata::normalize(object)?;
    Ok(create::normalize(context, object))
}
