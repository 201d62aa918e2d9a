//! Creating objects.

use axum::body::Body;
use http::{Response, StatusCode};
use modelplane_apimachinery::schema::metadata::{check_create, generated_name};
use modelplane_store::Write;
use serde_json::Value;

use super::options::WriteOptions;
use super::{Context, convert, fields, kinds};
use crate::http::decode;
use crate::http::negotiate;
use crate::object::metadata::{self, Birth};
use crate::object::{encode, metadata_mut, metadata_text};
use crate::registry::custom;
use crate::registry::resource::{Origin, Special};
use crate::schema::to_status_cause;
use crate::status::{ApiError, ApiResult, StatusCause};

/// How often a generated name may be taken.
const NAME_ATTEMPTS: usize = 8;

/// `POST` to a collection.
pub(crate) async fn create(context: &mut Context, body: &[u8]) -> ApiResult<Response<Body>> {
    if !context.resource.rules.special.is_stored() {
        return Err(ApiError::method_not_allowed());
    }
    let options = WriteOptions::of(context, "CreateOptions")?;
    let decoded = decode::decode_object(body, negotiate::body_format(&context.headers)?)?;
    let mut object = decoded.value;
    check_type(context, &mut object)?;
    metadata::normalize(&mut object)?;
    if !metadata_text(&object, "resourceVersion").is_empty() {
        return Err(ApiError::bad_request("resourceVersion should not be set on objects to be created"));
    }
    let unknown = normalize(context, &mut object);
    options.judge_fields(context, &unknown, &decoded.duplicates)?;
    finish(context, &options, object, Ownership::Update).await
}

/// How `managedFields` of the new object come about.
pub(crate) enum Ownership {
    /// The manager owns what it sent, as of a create.
    Update,
    /// Already set, by an apply.
    Applied,
}

/// Drops unknown fields and fills in defaults; names what was dropped.
pub(crate) fn normalize(context: &Context, object: &mut Value) -> Vec<String> {
    let Some(schema) = context.version().schema.get() else { return Vec::new() };
    let unknown = crate::schema::normalize(schema, object);
    if let Origin::BuiltIn(kind) = &context.resource.origin {
        kind.normalize(object);
    }
    unknown
}

/// Stores a decoded object of the requested version under a new name.
pub(crate) async fn finish(
    context: &Context,
    options: &WriteOptions,
    mut object: Value,
    ownership: Ownership,
) -> ApiResult<Response<Body>> {
    let core = &context.core;
    let resource = &context.resource;
    set_namespace(context, &mut object)?;
    let now = core.now();
    let birth = Birth { uid: core.uid()?, now: &now, generation: resource.rules.generation };
    metadata::prepare_create(&mut object, birth);
    if !resource.rules.status_on_create
        && let Some(fields) = object.as_object_mut()
    {
        fields.shift_remove("status");
    }
    let _held = core.hold_definitions(resource).await;
    kinds::before_create(context, &mut object, &now)?;
    if matches!(ownership, Ownership::Update) {
        fields::own_update(context, &options.manager, (&Value::Null, &mut object), &now);
    }
    let base = metadata_text(&object, "generateName").to_owned();
    let generated = crate::object::name(&object).is_empty() && !base.is_empty();
    for attempt in 0..NAME_ATTEMPTS {
        if generated {
            let name = generated_name(&base, &core.name_suffix()?);
            metadata_mut(&mut object).insert("name".to_owned(), name.into());
        }
        if attempt == 0 {
            check(context, &object)?;
        }
        let name = crate::object::name(&object).to_owned();
        let key = resource.key(context.namespace(), &name);
        let converted = convert::for_storage(resource, &object);
        let stored = converted.as_ref().unwrap_or(&object);
        if options.dry_run {
            if core.read(&key)?.is_some() && !generated {
                return Err(ApiError::already_exists(resource.target(&name)));
            }
            return Ok(context.answer_object(StatusCode::CREATED, object));
        }
        let value = encode::encode(stored);
        match core.write(Write::Create { key, value: value.clone() }).await {
            Ok(revision) => {
                if resource.rules.special == Special::CustomResourceDefinition {
                    core.definition_written(stored, &value, revision);
                }
                return Ok(context.answer(StatusCode::CREATED, &value, revision));
            }
            Err(Some(error)) => return Err(error),
            Err(None) if generated && attempt + 1 < NAME_ATTEMPTS => {}
            Err(None) => return Err(ApiError::already_exists(resource.target(&name))),
        }
    }
    Err(ApiError::internal("no free name was found"))
}

fn check(context: &Context, object: &Value) -> ApiResult<()> {
    let resource = &context.resource;
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let found = check_create(metadata, resource.rules.name, resource.namespaced, "metadata");
    let mut causes: Vec<StatusCause> = found.into_iter().map(to_status_cause).collect();
    if let Some(schema) = context.version().schema.get() {
        causes.extend(crate::schema::validate(schema, object));
    }
    if resource.rules.special == Special::CustomResourceDefinition {
        causes.extend(custom::check(object));
    }
    causes.extend(kinds::check(context, object, None));
    let name = crate::object::name(object);
    if !causes.is_empty() {
        return Err(ApiError::invalid(&resource.group, &resource.kind, name, causes));
    }
    context.core.access.check_grant(&context.identity, object, None)?;
    check_namespace(context, name)
}

fn check_namespace(context: &Context, name: &str) -> ApiResult<()> {
    let Some(namespace) = context.namespace() else { return Ok(()) };
    match context.core.namespace(namespace)? {
        None => {
            let target = crate::status::Target { group: "", resource: "namespaces", name: namespace };
            Err(ApiError::not_found(target))
        }
        Some(found) if found.deletion_timestamp.is_some() => {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            Err(ApiError::forbidden(context.resource.target(name), &why).with_cause(StatusCause {
                reason: "NamespaceTerminating".to_owned(),
                message: format!("namespace {namespace} is being terminated"),
                field: "metadata.namespace".to_owned(),
            }))
        }
        Some(_) => Ok(()),
    }
}

/// Checks `apiVersion` and `kind`; a built-in object may leave them out.
pub(crate) fn check_type(context: &Context, object: &mut Value) -> ApiResult<()> {
    let expected = [("apiVersion", context.version().api_version.as_str()), ("kind", &context.resource.kind)];
    let Some(fields) = object.as_object_mut() else {
        return Err(ApiError::bad_request("the body must be an object"));
    };
    for (field, wanted) in expected {
        let given = fields.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        if given == wanted {
            continue;
        }
        if !given.is_empty() {
            let what = if field == "kind" { "kind" } else { "API version" };
            return Err(ApiError::bad_request(format!(
                "the {what} in the data ({given}) does not match the expected {what} ({wanted})"
            )));
        }
        if matches!(context.resource.origin, Origin::Custom { .. }) {
            return Err(ApiError::bad_request(format!("the object has no {field}")));
        }
        fields.insert(field.to_owned(), wanted.into());
    }
    Ok(())
}

/// Checks the object's namespace against the path's and sets it.
pub(crate) fn set_namespace(context: &Context, object: &mut Value) -> ApiResult<()> {
    let given = metadata_text(object, "namespace").to_owned();
    match context.namespace() {
        Some(namespace) if given.is_empty() || given == namespace => {
            metadata_mut(object).insert("namespace".to_owned(), namespace.into());
            Ok(())
        }
        Some(_) => Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
        None => {
            metadata_mut(object).shift_remove("namespace");
            Ok(())
        }
    }
}
