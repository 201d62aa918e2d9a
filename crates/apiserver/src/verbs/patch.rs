//! `PATCH`: JSON patch, merge patch, strategic merge patch, server-side apply.

use axum::body::Body;
use http::{Response, StatusCode};
use modelplane_apimachinery::patch::{self, PatchError};
use serde_json::Value;

use super::modify::{Proposal, modify, prepare};
use super::options::{FieldValidation, WriteOptions};
use super::{Context, create, fields};
use crate::http::decode::{self, Decoded};
use crate::http::negotiate::{self, BodyFormat};
use crate::object::{metadata_mut, metadata_text};
use crate::registry::resource::Origin;
use crate::status::{ApiError, ApiResult, StatusCause};

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// The kinds of patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchKind {
    /// From the content type; strategic merge patches only exist for built-in kinds.
    pub(crate) fn of(context: &Context) -> ApiResult<PatchKind> {
        let custom = matches!(context.resource.origin, Origin::Custom { .. });
        match negotiate::content_type(&context.headers) {
            JSON => Ok(PatchKind::Json),
            MERGE => Ok(PatchKind::Merge),
            STRATEGIC if !custom => Ok(PatchKind::Strategic),
            APPLY | "application/apply-patch+json" => Ok(PatchKind::Apply),
            _ => {
                let all = [JSON, MERGE, STRATEGIC, APPLY];
                let accepted: Vec<&str> =
                    all.into_iter().filter(|kind| !custom || *kind != STRATEGIC).collect();
                Err(ApiError::unsupported_media_type(&accepted.join(", ")))
            }
        }
    }

    /// Decodes the body.
    pub(crate) fn decode(self, body: &[u8]) -> ApiResult<Decoded> {
        let format = if self == PatchKind::Apply { BodyFormat::Yaml } else { BodyFormat::Json };
        // An apply is usually JSON, which is YAML; the JSON decoder is faster and names repeated keys.
        if format == BodyFormat::Yaml
            && let Ok(decoded) = decode::decode(body, BodyFormat::Json)
        {
            return Ok(decoded);
        }
        decode::decode(body, format)
    }

    /// What the patch makes of an object.
    pub(crate) fn patched(self, context: &Context, live: &Value, patch: &Value) -> ApiResult<Value> {
        let mut object = live.clone();
        let outcome = match self {
            PatchKind::Json => patch::json_patch(&mut object, patch),
            PatchKind::Merge => patch::merge_patch(&mut object, patch.clone()),
            PatchKind::Strategic => match context.version().schema.get() {
                Some(schema) => patch::strategic_merge_patch(schema, &mut object, patch.clone()),
                None => patch::merge_patch(&mut object, patch.clone()),
            },
            PatchKind::Apply => return Err(ApiError::internal("an apply is no plain patch")),
        };
        outcome.map_err(refused)?;
        Ok(object)
    }
}

fn refused(error: PatchError) -> ApiError {
    let message = error.to_string();
    match error.status() {
        400 => ApiError::bad_request(message),
        413 => ApiError::too_large(message),
        422 => ApiError::unprocessable(message),
        _ => ApiError::failed(message),
    }
}

/// `PATCH` of an object or its status.
pub(crate) async fn patch(context: &mut Context, body: &[u8]) -> ApiResult<Response<Body>> {
    let kind = PatchKind::of(context)?;
    let options = WriteOptions::of(context, "PatchOptions")?;
    let decoded = kind.decode(body)?;
    if kind != PatchKind::Apply && options.force {
        let cause = StatusCause {
            reason: "FieldValueForbidden".to_owned(),
            message: "Forbidden: may not be specified for non-apply patch".to_owned(),
            field: "force".to_owned(),
        };
        return Err(ApiError::invalid("meta.k8s.io", "PatchOptions", "", vec![cause]));
    }
    if kind == PatchKind::Apply {
        return apply(context, &options, decoded).await;
    }
    let changed = modify(context, &options, |context, live| {
        let mut object = kind.patched(context, live, &decoded.value)?;
        let unknown = prepare(context, &mut object)?;
        // What a patch repeats in its own text is judged here too, so that it is refused or warned about once.
        options.judge_fields(context, &unknown, &decoded.duplicates)?;
        Ok(Proposal::Object(object))
    })
    .await?;
    Ok(context.answer(StatusCode::OK, &changed.value, changed.revision))
}

async fn apply(context: &mut Context, options: &WriteOptions, decoded: Decoded) -> ApiResult<Response<Body>> {
    let applied = checked(context, options, decoded)?;
    if context.core.read(&context.key())?.is_none() && context.subresource().is_empty() {
        if !metadata_text(&applied, "resourceVersion").is_empty()
            || !metadata_text(&applied, "uid").is_empty()
        {
            return Err(ApiError::conflict(
                context.resource.target(context.name()),
                "the object does not exist; please apply without resourceVersion and uid",
            ));
        }
        let now = context.core.now();
        let mut object = fields::apply(context, None, &applied, options, &now)?;
        create::normalize(context, &mut object);
        match create::finish(context, options, object, create::Ownership::Applied).await {
            // Someone else was faster: apply on what they created.
            Err(error) if error.reason == "AlreadyExists" => {}
            other => return other,
        }
    }
    let changed = modify(context, options, |context, live| {
        let now = context.core.now();
        let mut object = fields::apply(context, Some(live), &applied, options, &now)?;
        create::normalize(context, &mut object);
        Ok(Proposal::Applied(object))
    })
    .await?;
    Ok(context.answer(StatusCode::OK, &changed.value, changed.revision))
}

/// Checks an applied configuration before it is merged.
fn checked(context: &mut Context, options: &WriteOptions, decoded: Decoded) -> ApiResult<Value> {
    if context.query.get("fieldManager").is_none() {
        let why = "is required for apply patch";
        let cause = StatusCause::required("fieldManager", why);
        return Err(ApiError::invalid("meta.k8s.io", "PatchOptions", "", vec![cause]));
    }
    let mut applied = decoded.value;
    if !applied.is_object() {
        return Err(ApiError::bad_request("the body of an apply must be an object"));
    }
    create::check_type(context, &mut applied)?;
    let name = crate::object::name(&applied).to_owned();
    if name.is_empty() {
        metadata_mut(&mut applied).insert("name".to_owned(), context.name().into());
    } else if name != context.name() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            context.name()
        )));
    }
    create::set_namespace(context, &mut applied)?;
    let mut known = applied.clone();
    crate::object::metadata::normalize(&mut known)?;
    let unknown: Vec<String> = match context.version().schema.get() {
        Some(schema) => schema.prune(&mut known).iter().map(ToString::to_string).collect(),
        None => Vec::new(),
    };
    options.judge_fields(context, &unknown, &decoded.duplicates)?;
    // The merge itself refuses fields it has no type for; the other modes drop them.
    Ok(if options.validation == FieldValidation::Strict || !unknown.is_empty() { known } else { applied })
}
