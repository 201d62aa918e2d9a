//! Answers the gateway gives itself instead of an endpoint's: JSON errors as OpenAI's and Anthropic's clients read them.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};

use crate::reply::ReplyBody;

/// A request that is answered with an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{status}: {message}")]
pub(crate) struct Refusal {
    /// Status.
    pub(crate) status: StatusCode,
    /// `error.code`: stable, for programs.
    pub(crate) code: &'static str,
    /// `error.message`: for people.
    pub(crate) message: String,
    /// When to try again.
    pub(crate) retry_after: Option<Duration>,
}

impl Refusal {
    /// A refusal without a time to try again.
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), retry_after: None }
    }

    /// The request is not well-formed.
    pub(crate) fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// Nothing is served there.
    pub(crate) fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    /// No endpoint can take the request now.
    pub(crate) fn unavailable(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            retry_after: Some(Duration::from_secs(1)),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message)
        }
    }

    /// When to try again.
    #[must_use]
    pub(crate) fn after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// `error.type`, which follows from the status as in OpenAI's API.
    fn kind(&self) -> &'static str {
        match self.status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            400..=499 => "invalid_request_error",
            503 => "overloaded_error",
            504 => "timeout_error",
            _ => "api_error",
        }
    }

    /// The body. `type: error` beside the error object is what Anthropic's clients look for.
    fn body(&self) -> Bytes {
        let error = serde_json::json!({
            "type": "error",
            "error": { "message": self.message, "type": self.kind(), "param": null, "code": self.code },
        });
        error.to_string().into()
    }

    /// The answer.
    pub(crate) fn response(&self) -> Response<ReplyBody> {
        let mut response = Response::new(ReplyBody::full(self.body()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(wait) = self.retry_after {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_shape_clients_read() {
        let refusal = Refusal::not_found("model_not_found", "no service \"a/b\"");
        let body: serde_json::Value = serde_json::from_slice(&refusal.body()).unwrap();
        assert_eq!(body["error"]["type"], "not_found_error");
        assert_eq!(body["error"]["code"], "model_not_found");
        assert_eq!(body["error"]["message"], "no service \"a/b\"");
        assert_eq!(body["type"], "error");
    }

    #[test]
    fn the_time_to_wait_is_rounded_up_to_seconds() {
        for (wait, want) in [(0, "1"), (1, "1"), (1_000, "1"), (1_001, "2"), (59_500, "60")] {
            let refusal = Refusal::unavailable("x", "y").after(Duration::from_millis(wait));
            assert_eq!(refusal.response().headers()[RETRY_AFTER], want);
        }
    }
}
