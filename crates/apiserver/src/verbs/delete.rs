//! Deleting: preconditions, propagation, finalizers, collections.

use axum::body::Body;
use bytes::Bytes;
use http::{Response, StatusCode};
use modelplane_store::{Revision, Write};
use serde_json::{Value, json};

use super::selection::Selection;
use super::{Context, convert, kinds, list, options};
use crate::guard::Deletion;
use crate::http::decode;
use crate::http::negotiate;
use crate::object::{encode, finalizers, is_terminating, metadata_mut, metadata_text};
use crate::registry::resource::Special;
use crate::status::{self, ApiError, ApiResult, StatusCause};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
const ATTEMPTS: usize = 10;

/// What happens to the objects that name this one as their owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Propagation {
    Background,
    Foreground,
    Orphan,
}

impl Propagation {
    fn as_str(self) -> &'static str {
        match self {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        }
    }
}

/// `DeleteOptions`, from the body and the query.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    propagation: Option<Propagation>,
    uid: Option<String>,
    revision: Option<String>,
    dry_run: bool,
    /// The deprecated `orphanDependents: false` was sent, which changes the answer's code.
    cascades: bool,
}

impl DeleteOptions {
    fn of(context: &Context, body: &[u8]) -> ApiResult<DeleteOptions> {
        let document = if body.is_empty() {
            Value::Null
        } else {
            decode::decode(body, negotiate::body_format(&context.headers)?)?.value
        };
        DeleteOptions::read(context, &document)
    }

    fn read(context: &Context, document: &Value) -> ApiResult<DeleteOptions> {
        if !document.is_null() && !document.is_object() {
            return Err(ApiError::bad_request("the body must be DeleteOptions"));
        }
        let text = |field: &str| {
            document
                .pointer(&format!("/{field}"))
                .and_then(Value::as_str)
                .or_else(|| context.query.get(field))
        };
        let propagation = match text("propagationPolicy") {
            None => None,
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                let cause = StatusCause {
                    reason: "FieldValueNotSupported".to_owned(),
                    message: format!(
                        "Unsupported value: {other:?}: supported values: \"Background\", \"Foreground\", \"Orphan\""
                    ),
                    field: "propagationPolicy".to_owned(),
                };
                return Err(ApiError::invalid("meta.k8s.io", "DeleteOptions", "", vec![cause]));
            }
        };
        let orphan = document
            .get("orphanDependents")
            .and_then(Value::as_bool)
            .or_else(|| context.query.optional_flag("orphanDependents"));
        let precondition = |field: &str| {
            document.pointer(&format!("/preconditions/{field}")).and_then(Value::as_str).map(str::to_owned)
        };
        let in_body = document.get("dryRun").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        Ok(DeleteOptions {
            propagation: propagation.or(match orphan {
                Some(true) => Some(Propagation::Orphan),
                Some(false) => Some(Propagation::Background),
                None => None,
            }),
            uid: precondition("uid"),
            revision: precondition("resourceVersion"),
            dry_run: in_body || options::dry_run(&context.query, "DeleteOptions")?,
            cascades: orphan == Some(false),
        })
    }

    fn check(&self, context: &Context, name: &str, live: &Value) -> ApiResult<()> {
        let pairs = [("UID", "uid", &self.uid), ("ResourceVersion", "resourceVersion", &self.revision)];
        for (title, field, wanted) in pairs {
            let found = metadata_text(live, field);
            if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != found) {
                let why = format!(
                    "Precondition failed: {title} in precondition: {wanted}, {title} in object meta: {found}"
                );
                return Err(ApiError::conflict(context.resource.target(name), &why));
            }
        }
        Ok(())
    }
}

/// What became of an object.
enum Deleted {
    /// It is gone; this was its last state.
    Now(Value),
    /// It waits for finalizers.
    Pending(Bytes, Revision),
}

/// `DELETE` of an object.
pub(crate) async fn delete(context: &mut Context, body: &[u8]) -> ApiResult<Response<Body>> {
    let options = DeleteOptions::of(context, body)?;
    delete_named(context, &options).await
}

/// Deletes the object in the path with the `DeleteOptions` of an eviction.
pub(crate) async fn evict(context: &mut Context, options: &Value) -> ApiResult<Response<Body>> {
    let options = DeleteOptions::read(context, options)?;
    delete_named(context, &options).await
}

async fn delete_named(context: &Context, options: &DeleteOptions) -> ApiResult<Response<Body>> {
    let key = context.key();
    let name = context.name().to_owned();
    match delete_one(context, options, &key, &name).await? {
        Deleted::Now(last) if context.resource.rules.special == Special::Pod => {
            Ok(context.answer_object(StatusCode::OK, last))
        }
        Deleted::Now(last) => {
            let status = status::success(context.resource.target(&name), metadata_text(&last, "uid"));
            Ok(context.answer_value(StatusCode::OK, &status))
        }
        Deleted::Pending(value, revision) => {
            let code = if options.cascades { StatusCode::ACCEPTED } else { StatusCode::OK };
            Ok(context.answer(code, &value, revision))
        }
    }
}

async fn delete_one(context: &Context, options: &DeleteOptions, key: &str, name: &str) -> ApiResult<Deleted> {
    let core = &context.core;
    let resource = &context.resource;
    let _held = core.hold_definitions(resource).await;
    for _ in 0..ATTEMPTS {
        let entry = core.read(key)?.ok_or_else(|| ApiError::not_found(resource.target(name)))?;
        let mut object = encode::decode(&entry.value, entry.modified);
        options.check(context, name, &object)?;
        if !is_terminating(&object) {
            ask_guard(context, options, key, &object)?;
        }
        let now = core.now();
        set_finalizers(&mut object, options.propagation);
        kinds::before_delete(context, &mut object, &now)?;
        let waits = !finalizers(&object).is_empty() || !kinds::is_finalized(resource, &object);
        if !is_terminating(&object) {
            let generation = crate::object::generation(&object);
            let metadata = metadata_mut(&mut object);
            if waits && generation > 0 {
                metadata.insert("generation".to_owned(), (generation + 1).into());
            }
            if waits {
                metadata.insert("deletionTimestamp".to_owned(), now.as_str().into());
                metadata.insert("deletionGracePeriodSeconds".to_owned(), 0.into());
            }
        }
        let value = encode::encode(&object);
        if waits && (value == entry.value || options.dry_run) {
            return Ok(Deleted::Pending(value, entry.modified));
        }
        if options.dry_run {
            return Ok(Deleted::Now(object));
        }
        let expected = entry.modified;
        let write = if waits {
            Write::Update { key: key.to_owned(), value: value.clone(), expected }
        } else {
            Write::Delete { key: key.to_owned(), expected: Some(expected), last: value.clone() }
        };
        match core.write(write).await {
            Ok(revision) if waits => return Ok(Deleted::Pending(value, revision)),
            Ok(revision) => {
                if resource.rules.special == Special::CustomResourceDefinition {
                    core.definition_deleted(&object);
                }
                return Ok(Deleted::Now(convert::present(resource, context.version, &value, revision)));
            }
            Err(Some(error)) => return Err(error),
            // Someone changed the object: look again, preconditions included.
            Err(None) => {}
        }
    }
    Err(ApiError::stale(resource.target(name)))
}

/// Lets the host refuse the deletion.
fn ask_guard(context: &Context, options: &DeleteOptions, key: &str, object: &Value) -> ApiResult<()> {
    let Some(guard) = &context.core.deletion_guard else { return Ok(()) };
    let resource = &context.resource;
    let (namespace, name) = resource.split_key(key);
    let refusal = guard.refusal(&Deletion {
        group: &resource.group,
        resource: &resource.plural,
        namespace,
        name,
        object,
        propagation: options.propagation.map(Propagation::as_str),
        identity: &context.identity,
        dry_run: options.dry_run,
    });
    match refusal {
        None => Ok(()),
        Some(message) => Err(ApiError::refused(resource.target(name), message)),
    }
}

/// Adds or removes the finalizers the garbage collector acts on.
fn set_finalizers(object: &mut Value, propagation: Option<Propagation>) {
    let Some(propagation) = propagation else { return };
    let before: Vec<String> = finalizers(object).into_iter().map(str::to_owned).collect();
    let mut names: Vec<String> =
        before.iter().filter(|name| !matches!(name.as_str(), ORPHAN | FOREGROUND)).cloned().collect();
    match propagation {
        Propagation::Background => {}
        Propagation::Foreground => names.push(FOREGROUND.to_owned()),
        Propagation::Orphan => names.push(ORPHAN.to_owned()),
    }
    if names == before {
        return;
    }
    let metadata = metadata_mut(object);
    if names.is_empty() {
        metadata.shift_remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), json!(names));
    }
}

/// `DELETE` of a collection.
pub(crate) async fn delete_collection(context: &mut Context, body: &[u8]) -> ApiResult<Response<Body>> {
    let options = DeleteOptions::of(context, body)?;
    let selection = Selection::of(context)?;
    let listed = list::read(context, &selection)?;
    let mut items = Vec::with_capacity(listed.entries.len());
    for entry in &listed.entries {
        let (_, name) = context.resource.split_key(&entry.key);
        match delete_one(context, &options, &entry.key, name).await {
            Ok(Deleted::Now(last)) => items.push(last),
            Ok(Deleted::Pending(value, revision)) => items.push(context.present(&value, revision)),
            // Gone in the meantime, which is what was asked for.
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    let list = json!({
        "kind": context.resource.list_kind, "apiVersion": context.version().api_version,
        "metadata": {"resourceVersion": context.core.store.revision().to_string()}, "items": items,
    });
    Ok(context.answer_value(StatusCode::OK, &list))
}
