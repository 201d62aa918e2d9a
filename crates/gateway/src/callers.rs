//! Who calls, what they may use, and how much of it.

pub(crate) mod limit;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, StatusCode};
use sha2::{Digest, Sha256};

use self::limit::Bucket;
use crate::endpoint::locked;
use crate::refusal::Refusal;
use crate::routes::config::{AllowedServices, CallerConfig};

/// Headers a key may come in, besides `Authorization: Bearer`: Anthropic's clients' and Azure's.
pub(crate) const KEY_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x-api-key"), HeaderName::from_static("api-key")];

/// Everyone who may call.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    by_digest: HashMap<[u8; 32], Arc<Caller>>,
}

/// Someone who may call.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Identity and rights.
    pub(crate) config: CallerConfig,
    /// What has been used up.
    state: Arc<CallerState>,
}

#[derive(Debug, Default)]
struct CallerState {
    requests: Mutex<Option<Bucket>>,
    tokens: Mutex<Option<Bucket>>,
    in_flight: AtomicU32,
    spent: AtomicU64,
}

/// A caller's place among its concurrent requests, given back when dropped.
#[derive(Debug)]
pub(crate) struct CallerLease {
    /// The caller.
    pub(crate) caller: Arc<Caller>,
}

impl Callers {
    /// The callers of a configuration, with what the same keys have used up before.
    pub(crate) fn build(configs: &[CallerConfig], previous: Option<&Self>) -> Self {
        let caller = |config: &CallerConfig| {
            let before = previous.and_then(|callers| callers.by_digest.get(&config.digest));
            let state = before.map_or_else(Arc::default, |before| before.state.clone());
            (config.digest, Arc::new(Caller { config: config.clone(), state }))
        };
        Self { by_digest: configs.iter().map(caller).collect() }
    }

    /// Whose key a request carries.
    ///
    /// Keys are looked up by their SHA-256, so what a lookup's timing reveals is about a hash nobody can steer.
    pub(crate) fn identify(&self, headers: &HeaderMap) -> Result<Arc<Caller>, Refusal> {
        let unauthorized = |code, message: &str| Refusal::new(StatusCode::UNAUTHORIZED, code, message);
        let key = key(headers).ok_or_else(|| {
            unauthorized(
                "missing_api_key",
                "no API key; send it as \"Authorization: Bearer <key>\" or \"x-api-key\"",
            )
        })?;
        let digest: [u8; 32] = Sha256::digest(key).into();
        let caller = self.by_digest.get(&digest).filter(|caller| is_equal(&caller.config.digest, &digest));
        caller.cloned().ok_or_else(|| unauthorized("invalid_api_key", "the API key is not known here"))
    }
}

/// The key in a request's headers.
fn key(headers: &HeaderMap) -> Option<&[u8]> {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.as_bytes().split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"bearer ").then(|| key.trim_ascii())
    });
    let other =
        || KEY_HEADERS.iter().find_map(|name| headers.get(name)).map(|value| value.as_bytes().trim_ascii());
    bearer.or_else(other).filter(|key| !key.is_empty())
}

/// Compares without stopping at the first difference.
fn is_equal(left: &[u8; 32], right: &[u8; 32]) -> bool {
    std::hint::black_box(
        left.iter().zip(right).fold(0, |different, (left, right)| different | (left ^ right)),
    ) == 0
}

impl Caller {
    /// Whether the caller may use a service.
    pub(crate) fn may_use(&self, service: &str) -> bool {
        match &self.config.services {
            AllowedServices::All => true,
            AllowedServices::Only(patterns) => patterns.iter().any(|pattern| covers(pattern, service)),
        }
    }

    /// Counts a request in, or says what stands against it.
    pub(crate) fn admit(self: &Arc<Self>, now: Instant) -> Result<CallerLease, Refusal> {
        let limits = &self.config.limits;
        let refuse = |code, message: String| Refusal::new(StatusCode::TOO_MANY_REQUESTS, code, message);
        if let Some(budget) = limits.budget_tokens
            && self.state.spent.load(Ordering::Relaxed) >= budget
        {
            return Err(refuse("insufficient_quota", format!("the budget of {budget} tokens is used up")));
        }
        if let Some(rate) = limits.tokens_per_minute {
            let mut bucket = locked(&self.state.tokens);
            let bucket = bucket.get_or_insert_with(|| Bucket::full(rate, now));
            bucket.set_rate(rate, now);
            if let Err(wait) = bucket.ready(now) {
                return Err(
                    refuse("tokens_per_minute", format!("more than {rate} tokens a minute")).after(wait)
                );
            }
        }
        // Counted last, so that a refused request uses nothing up.
        let before = self.state.in_flight.fetch_add(1, Ordering::Relaxed);
        let lease = CallerLease { caller: self.clone() };
        if let Some(most) = limits.concurrent_requests.filter(|most| before >= *most) {
            let wait = std::time::Duration::from_secs(1);
            return Err(
                refuse("concurrent_requests", format!("more than {most} requests at a time")).after(wait)
            );
        }
        if let Some(rate) = limits.requests_per_minute {
            let mut bucket = locked(&self.state.requests);
            let bucket = bucket.get_or_insert_with(|| Bucket::full(rate, now));
            bucket.set_rate(rate, now);
            if let Err(wait) = bucket.take(now) {
                return Err(
                    refuse("requests_per_minute", format!("more than {rate} requests a minute")).after(wait)
                );
            }
        }
        Ok(lease)
    }

    /// Charges tokens to the caller.
    pub(crate) fn charge(&self, tokens: u64, now: Instant) {
        self.state.spent.fetch_add(tokens, Ordering::Relaxed);
        if let Some(bucket) = &mut *locked(&self.state.tokens) {
            bucket.charge(tokens, now);
        }
    }
}

impl Drop for CallerLease {
    fn drop(&mut self) {
        self.caller.state.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether a pattern covers a service: `namespace/name`, `namespace/*`, `*`.
fn covers(pattern: &str, service: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some("") => true,
        Some(prefix) if prefix.ends_with('/') => service.starts_with(prefix),
        _ => pattern == service,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::config::CallerLimits;

    fn caller(services: AllowedServices, limits: CallerLimits) -> CallerConfig {
        CallerConfig { id: "team/key".to_owned(), digest: Sha256::digest("secret").into(), services, limits }
    }

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        [(HeaderName::from_static(name), value.parse().unwrap())].into_iter().collect()
    }

    #[test]
    fn a_key_is_known_in_whichever_header_it_comes() {
        let callers = Callers::build(&[caller(AllowedServices::All, CallerLimits::default())], None);
        for (name, value) in [
            ("authorization", "Bearer secret"),
            ("authorization", "bearer  secret "),
            ("x-api-key", "secret"),
            ("api-key", "secret"),
        ] {
            assert_eq!(
                callers.identify(&headers(name, value)).unwrap().config.id,
                "team/key",
                "{name}: {value}"
            );
        }
        for (name, value, code) in [
            ("authorization", "Bearer wrong", "invalid_api_key"),
            ("authorization", "Basic secret", "missing_api_key"),
            ("authorization", "Bearer ", "missing_api_key"),
            ("x-other", "secret", "missing_api_key"),
        ] {
            assert_eq!(callers.identify(&headers(name, value)).unwrap_err().code, code, "{name}: {value}");
        }
    }

    #[test]
    fn patterns_cover_whole_names_only() {
        let cases = [
            ("*", "a/b", true),
            ("a/*", "a/b", true),
            ("a/*", "ab/b", false),
            ("a/b", "a/b", true),
            ("a/b", "a/bc", false),
            ("a*", "a/b", false),
            ("", "a/b", false),
        ];
        for (pattern, service, want) in cases {
            assert_eq!(covers(pattern, service), want, "{pattern} {service}");
        }
    }

    #[test]
    fn limits_refuse_with_the_time_to_wait_and_outlive_a_rebuilt_table() {
        let now = Instant::now();
        let limits = CallerLimits {
            requests_per_minute: Some(2),
            concurrent_requests: Some(1),
            budget_tokens: Some(100),
            ..CallerLimits::default()
        };
        let config = caller(AllowedServices::All, limits);
        let callers = Callers::build(std::slice::from_ref(&config), None);
        let caller = callers.by_digest[&config.digest].clone();
        let first = caller.admit(now).unwrap();
        assert_eq!(caller.admit(now).unwrap_err().code, "concurrent_requests");
        drop(first);
        drop(caller.admit(now).unwrap());
        let callers = Callers::build(std::slice::from_ref(&config), Some(&callers));
        let caller = callers.by_digest[&config.digest].clone();
        let refusal = caller.admit(now).unwrap_err();
        assert_eq!((refusal.code, refusal.retry_after.unwrap().as_secs()), ("requests_per_minute", 29));
        let later = now + std::time::Duration::from_secs(30);
        drop(caller.admit(later).unwrap());
        caller.charge(100, later);
        assert_eq!(
            caller.admit(later + std::time::Duration::from_secs(60)).unwrap_err().code,
            "insufficient_quota"
        );
    }
}
