//! Whether a failed attempt is repeated: only while nothing has reached the client, only where repeating does no harm,
//! and only as often as the budget allows, so that retries cannot double the load of a fleet in trouble.

use http::{Method, StatusCode};

/// What an attempt came to, as far as repeating it is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Nothing was sent.
    Unsent,
    /// The endpoint said that it did not handle the request: 429 or 503.
    Refused,
    /// The request may have been handled: the connection broke, time ran out, or a gateway on the way gave up.
    Unknown,
}

impl Failure {
    /// The failure a status stands for, if it stands for one worth another attempt.
    pub(crate) fn of(status: StatusCode) -> Option<Self> {
        match status.as_u16() {
            429 | 503 => Some(Self::Refused),
            502 | 504 => Some(Self::Unknown),
            _ => None,
        }
    }

    /// Whether repeating the request does no harm.
    pub(crate) fn is_safe(self, method: &Method, path: &str) -> bool {
        match self {
            Self::Unsent | Self::Refused => true,
            Self::Unknown => is_repeatable(method, path),
        }
    }
}

/// APIs that compute an answer and change nothing, though they are POSTs. `/v1/responses` is not one: it stores.
const PURE: [&str; 9] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/messages",
    "/v1/rerank",
    "/v1/score",
    "/v1/moderations",
    "/tokenize",
    "/detokenize",
];

/// Whether a request may be handled twice without harm (RFC 9110 §9.2.2, and the inference calls).
fn is_repeatable(method: &Method, path: &str) -> bool {
    method.is_idempotent() || (*method == Method::POST && PURE.iter().any(|suffix| path.ends_with(suffix)))
}

/// What retries may be spent: a share of the requests, and a little in reserve for services with few.
#[derive(Debug)]
pub(crate) struct Budget {
    /// In hundredths of a retry.
    saved: u32,
}

/// Retries in reserve.
const RESERVE: u32 = 10 * 100;

impl Default for Budget {
    fn default() -> Self {
        Self { saved: RESERVE }
    }
}

impl Budget {
    /// A request came in.
    pub(crate) fn earn(&mut self, percent: u32) {
        self.saved = (self.saved + percent).min(RESERVE.max(percent));
    }

    /// Whether a retry may be made; if so, it is paid for.
    pub(crate) fn spend(&mut self) -> bool {
        let pays = self.saved >= 100;
        if pays {
            self.saved -= 100;
        }
        pays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_requests_are_repeated_when_their_fate_is_unknown() {
        let cases = [
            (Method::GET, "/v1/models", true),
            (Method::DELETE, "/v1/files/1", true),
            (Method::POST, "/v1/chat/completions", true),
            (Method::POST, "/team/chat/v1/embeddings", true),
            (Method::POST, "/v1/responses", false),
            (Method::POST, "/v1/files", false),
            (Method::PATCH, "/v1/chat/completions", false),
        ];
        for (method, path, want) in cases {
            assert_eq!(Failure::Unknown.is_safe(&method, path), want, "{method} {path}");
            assert!(Failure::Unsent.is_safe(&method, path));
            assert!(Failure::Refused.is_safe(&method, path));
        }
    }

    #[test]
    fn retries_are_a_share_of_requests_once_the_reserve_is_spent() {
        let mut budget = Budget::default();
        let reserve = std::iter::from_fn(|| budget.spend().then_some(())).count();
        assert_eq!(reserve, 10);
        let mut retries = 0;
        for _ in 0..1_000 {
            budget.earn(20);
            retries += u32::from(budget.spend());
        }
        assert_eq!(retries, 200);
    }

    #[test]
    fn no_budget_means_only_the_reserve() {
        let mut budget = Budget { saved: 0 };
        budget.earn(0);
        assert!(!budget.spend());
    }
}
