//! Acting as someone else (`kubectl --as`): the headers `Impersonate-User`, `-Group`, `-Uid` and `-Extra-…`.
//!
//! The caller needs the verb `impersonate` on each thing they claim to be: `users`, `groups` and `serviceaccounts`
//! of the legacy group, `uids` and `userextras/<key>` of authentication.k8s.io (Kubernetes, "User impersonation").
//! Uids and extras are checked and then dropped, since no rule depends on them.

use http::{HeaderMap, HeaderName};

use super::{AUTHENTICATED, Access, Action};
use crate::http::query;
use crate::identity::Identity;
use crate::status::{ApiError, ApiResult, Target};

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
const UID: HeaderName = HeaderName::from_static("impersonate-uid");
const EXTRA: &str = "impersonate-extra-";

const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// Whom a request with these headers is from: the caller, or who they may act as.
pub(crate) fn impersonate(access: &Access, caller: Identity, headers: &HeaderMap) -> ApiResult<Identity> {
    let texts = |name: &HeaderName| headers.get_all(name).iter().map(text).collect::<ApiResult<Vec<_>>>();
    let user = headers.get(USER).map(text).transpose()?.filter(|user| !user.is_empty());
    let groups = texts(&GROUP)?;
    let uid = headers.get(UID).map(text).transpose()?;
    let extras = extras(headers)?;
    let Some(user) = user else {
        if groups.is_empty() && uid.is_none() && extras.is_empty() {
            return Ok(caller);
        }
        return Err(ApiError::bad_request(
            "the request impersonates groups, a uid or extra fields without a user in Impersonate-User",
        ));
    };
    let account = service_account(user);
    let check = |action: Action<'_>| permit(access, &caller, &Action { verb: "impersonate", ..action });
    match account {
        Some((namespace, name)) => {
            check(Action { resource: "serviceaccounts", namespace, name, ..Action::default() })?;
        }
        None => check(Action { resource: "users", name: user, ..Action::default() })?,
    }
    for group in &groups {
        check(Action { resource: "groups", name: group, ..Action::default() })?;
    }
    let of_authentication = Action { group: "authentication.k8s.io", ..Action::default() };
    if let Some(uid) = uid {
        check(Action { resource: "uids", name: uid, ..of_authentication })?;
    }
    for (key, value) in &extras {
        check(Action { resource: "userextras", subresource: key, name: value, ..of_authentication })?;
    }
    Ok(assumed(user, account, groups))
}

/// The identity itself: service accounts have their groups, and everybody one of the two groups of everybody.
fn assumed(user: &str, account: Option<(&str, &str)>, groups: Vec<&str>) -> Identity {
    let mut identity = Identity::new(user, groups);
    if let (Some((namespace, _)), true) = (account, identity.groups.is_empty()) {
        identity.groups = service_account_groups(namespace);
    }
    let everybody = if user == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
    if !identity.is_in(UNAUTHENTICATED) && !identity.is_in(AUTHENTICATED) {
        identity.groups.push(everybody.to_owned());
    }
    identity
}

/// The groups of the service accounts of a namespace.
fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![SERVICE_ACCOUNTS.to_owned(), format!("{SERVICE_ACCOUNTS}:{namespace}")]
}

/// A service account as a user.
pub(crate) fn identity_of_service_account(namespace: &str, name: &str) -> Identity {
    Identity::new(format!("system:serviceaccount:{namespace}:{name}"), service_account_groups(namespace))
}

/// Namespace and name of the service account that a user name stands for.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

fn permit(access: &Access, caller: &Identity, action: &Action<'_>) -> ApiResult<()> {
    access.authorize(caller, action).map_err(|why| {
        let target = Target { group: action.group, resource: action.resource, name: action.name };
        ApiError::forbidden(target, &why)
    })
}

fn text(value: &http::HeaderValue) -> ApiResult<&str> {
    value.to_str().map_err(|_| ApiError::bad_request("an Impersonate- header is not plain text"))
}

/// Key and value of each extra field; keys are percent-encoded.
fn extras(headers: &HeaderMap) -> ApiResult<Vec<(String, &str)>> {
    let extras = headers.iter().filter_map(|(name, value)| Some((name.as_str().strip_prefix(EXTRA)?, value)));
    extras.map(|(key, value)| Ok((query::decode(key, false), text(value)?))).collect()
}
