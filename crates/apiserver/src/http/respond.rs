//! Writing answers.

use axum::body::Body;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use serde_json::Value;

use super::negotiate::Format;
use crate::status::ApiError;

fn with_type(code: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// Finished JSON.
pub(crate) fn json_bytes(code: StatusCode, body: Bytes) -> Response<Body> {
    json(code, Body::from(body))
}

/// JSON.
pub(crate) fn json(code: StatusCode, body: Body) -> Response<Body> {
    with_type(code, Format::Json.content_type(), body)
}

/// Finished bytes of any media type.
pub(crate) fn bytes(code: StatusCode, content_type: &'static str, body: Bytes) -> Response<Body> {
    with_type(code, content_type, Body::from(body))
}

/// Plain text.
pub(crate) fn text(code: StatusCode, body: impl Into<Body>) -> Response<Body> {
    with_type(code, "text/plain; charset=utf-8", body.into())
}

/// A value in the negotiated format.
pub(crate) fn document(code: StatusCode, format: Format, value: &Value, pretty: bool) -> Response<Body> {
    let body = match format {
        Format::Json if pretty => {
            let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
            text.push('\n');
            text
        }
        Format::Json => value.to_string(),
        // JSON is YAML, for the values the YAML writer refuses.
        Format::Yaml => serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string()),
    };
    with_type(code, format.content_type(), Body::from(body))
}

/// An error as a Status.
pub(crate) fn error(error: &ApiError, format: Format) -> Response<Body> {
    let code = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = document(code, format, &error.to_status(), false);
    let seconds = error.details.as_ref().and_then(|details| details.retry_after_seconds);
    if let Some(seconds) = seconds.filter(|seconds| *seconds > 0) {
        response.headers_mut().insert(HeaderName::from_static("retry-after"), HeaderValue::from(seconds));
    }
    response
}
