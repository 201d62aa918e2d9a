//! Who may do what: tokens (and certificates, which TLS verifies) say who someone is, role-based access control
//! what they may do.
//!
//! Roles and bindings are ordinary objects; [`Access`] follows them in the store, reading what is new before
//! each decision, so that a grant holds from the moment it was acknowledged. The hashes of the tokens are in
//! the store too, under a prefix that no resource path reaches. There are no webhooks and no anonymous requests.

mod action;
pub(crate) mod bootstrap;
mod escalation;
mod follow;
mod impersonation;
pub(crate) mod reviews;
mod rules;
mod snapshot;
mod tokens;
pub(crate) mod validation;

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use modelplane_store::{Store, WriteError};
use serde_json::Value;

pub(crate) use action::Action;
pub(crate) use impersonation::{identity_of_service_account, impersonate};
pub(crate) use rules::{GROUP, rules_of};
pub(crate) use snapshot::{Decision, Snapshot};
pub(crate) use tokens::{Bound, Tokens};

use self::follow::Follower;
use crate::core::Core;
use crate::identity::Identity;
use crate::status::{ApiError, ApiResult};

/// Every authenticated user is in this group.
const AUTHENTICATED: &str = "system:authenticated";

/// Members may do everything, whatever the roles say.
const MASTERS: &str = "system:masters";

/// Authentication and authorization of one server.
pub(crate) struct Access {
    tokens: Tokens,
    follower: Follower,
}

/// Why access control could not start or issue a token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccessError {
    /// The record of the tokens in the store is unreadable.
    #[error("the store's record of the access tokens is unreadable")]
    Record,
    /// The store could not be written.
    #[error(transparent)]
    Store(#[from] WriteError),
    /// The operating system gave no randomness.
    #[error("the operating system gave no randomness")]
    Randomness,
    /// Too many tokens are valid.
    #[error("{limit} tokens have not run out yet, which is the limit")]
    TooManyTokens {
        /// The limit.
        limit: usize,
    },
}

impl Access {
    /// Reads the tokens, and starts to follow the roles.
    pub(crate) fn open(store: &Store) -> Result<Access, AccessError> {
        Ok(Access { tokens: Tokens::open(store)?, follower: Follower::new(store.clone()) })
    }

    /// The bearer tokens.
    pub(crate) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Who sent a request: the bearer of a token or else of a certificate that TLS has verified. Wrong
    /// credentials, and none, are 401.
    pub(crate) fn authenticate(
        &self,
        certificate: Option<&Identity>,
        headers: &HeaderMap,
    ) -> ApiResult<Identity> {
        let identity = match headers.get(AUTHORIZATION) {
            Some(header) => {
                let token = header.to_str().ok().and_then(bearer);
                token.and_then(|token| self.tokens.identity(token))
            }
            None => certificate.cloned(),
        };
        let mut identity = identity.ok_or_else(ApiError::unauthorized)?;
        if !identity.is_in(AUTHENTICATED) {
            identity.groups.push(AUTHENTICATED.to_owned());
        }
        Ok(identity)
    }

    /// Whether someone may do something, and why.
    pub(crate) fn decide(&self, identity: &Identity, action: &Action<'_>) -> Decision {
        if identity.is_in(MASTERS) {
            return Decision { allowed: true, reason: String::new() };
        }
        self.follower.snapshot().decide(identity, action)
    }

    /// Whether a request may go on, or else why not, as Kubernetes words it.
    pub(crate) fn authorize(&self, identity: &Identity, action: &Action<'_>) -> Result<(), String> {
        let Decision { allowed, reason } = self.decide(identity, action);
        let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        if allowed { Ok(()) } else { Err(format!("{}{why}", action.denial(&identity.user))) }
    }

    /// The roles and bindings as of now.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.follower.snapshot()
    }

    /// Checks a write of a role or binding for what its author may grant; other kinds pass.
    pub(crate) fn check_grant(
        &self,
        identity: &Identity,
        object: &Value,
        old: Option<&Value>,
    ) -> ApiResult<()> {
        if identity.is_in(MASTERS) {
            return Ok(());
        }
        escalation::check(&self.follower.snapshot(), identity, object, old)
    }
}

/// Who sent a request over the network.
pub(crate) fn authenticate(
    core: &Core,
    certificate: Option<&Identity>,
    headers: &HeaderMap,
) -> ApiResult<Identity> {
    core.access.authenticate(certificate, headers)
}

/// Whether a request may go on, or else why not.
pub(crate) fn authorize(core: &Core, identity: &Identity, action: &Action<'_>) -> Result<(), String> {
    core.access.authorize(identity, action)
}

fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

#[cfg(test)]
mod tests;
