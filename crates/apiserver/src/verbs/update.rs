//! `PUT`: replacing an object, its status, or a namespace's finalizers.

use axum::body::Body;
use http::{Response, StatusCode};

use super::modify::{Proposal, modify, prepare};
use super::options::WriteOptions;
use super::{Context, create};
use crate::http::{decode, negotiate};
use crate::object::metadata_mut;
use crate::status::{ApiError, ApiResult};

/// `PUT` to an object.
pub(crate) async fn update(context: &mut Context, body: &[u8]) -> ApiResult<Response<Body>> {
    let options = WriteOptions::of(context, "UpdateOptions")?;
    let decoded = decode::decode_object(body, negotiate::body_format(&context.headers)?)?;
    let mut object = decoded.value;
    if crate::object::name(&object).is_empty() && object.get("metadata").is_some() {
        return Err(ApiError::bad_request("name must be provided"));
    }
    let unknown = prepare(context, &mut object)?;
    options.judge_fields(context, &unknown, &decoded.duplicates)?;
    if context.resource.rules.create_on_update
        && context.subresource().is_empty()
        && context.core.read(&context.key())?.is_none()
    {
        metadata_mut(&mut object).shift_remove("resourceVersion");
        return create::finish(context, &options, object, create::Ownership::Update).await;
    }
    let changed = modify(context, &options, |_, _| Ok(Proposal::Object(object.clone()))).await?;
    Ok(context.answer(StatusCode::OK, &changed.value, changed.revision))
}
