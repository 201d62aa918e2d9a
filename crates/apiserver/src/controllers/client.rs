//! The controllers' way to the API: requests to the server itself, under a name of their own.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use crate::core::Core;
use crate::identity::Identity;
use crate::object::encode;
use crate::registry::Resource;
use crate::service::{Caller, handle};
use crate::status::REFUSED;

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// One controller's access to the API.
#[derive(Clone)]
pub(super) struct Client {
    core: Arc<Core>,
    name: &'static str,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {message}")]
pub(super) struct Failure {
    pub(super) code: u16,
    message: String,
    refused: bool,
}

impl Failure {
    /// Whether someone else was faster: the object is gone or has changed.
    pub(super) fn is_outdated(&self) -> bool {
        matches!(self.code, 404 | 409) && !self.refused
    }

    /// Whether the host protects the object from deletion.
    pub(super) fn is_refusal(&self) -> bool {
        self.refused
    }

    fn new(code: u16, message: String) -> Failure {
        Failure { code, message, refused: false }
    }
}

/// How a deletion treats dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// The resource of a store key, and the namespace and name in it.
pub(super) struct Location<'k> {
    pub(super) resource: Arc<Resource>,
    pub(super) namespace: Option<&'k str>,
    pub(super) name: &'k str,
}

impl Client {
    pub(super) fn new(core: Arc<Core>, name: &'static str) -> Client {
        Client { core, name }
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// What is at a key: the object, with its `resourceVersion`.
    pub(super) fn read(&self, key: &str) -> Option<Value> {
        let entry = self.core.store.get(key).ok()??;
        Some(encode::decode(&entry.value, entry.modified))
    }

    /// What a store key means; `None` for keys of resources that are not served.
    pub(super) fn locate<'k>(&self, key: &'k str) -> Option<Location<'k>> {
        let mut parts = key.splitn(3, '/');
        let group = parts.next().map(|group| if group == "core" { "" } else { group })?;
        let resource = Arc::clone(self.core.registry().resource(group, parts.next()?)?);
        let (namespace, name) = resource.split_key(key);
        Some(Location { resource, namespace, name })
    }

    /// Deletes the object at a key, if it still is the one meant.
    pub(super) async fn delete(&self, key: &str, uid: &str, propagation: Propagation) -> Result<(), Failure> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "propagationPolicy": format!("{propagation:?}"), "preconditions": {"uid": uid},
        });
        self.send(Method::DELETE, &self.path(key, "")?, JSON, &options).await
    }

    /// Merges a patch into the object at a key; give it a `resourceVersion` to change only what was seen.
    pub(super) async fn merge(&self, key: &str, patch: &Value) -> Result<(), Failure> {
        self.send(Method::PATCH, &self.path(key, "")?, MERGE_PATCH, patch).await
    }

    /// Replaces a subresource of the object at a key.
    pub(super) async fn replace(&self, key: &str, subresource: &str, object: &Value) -> Result<(), Failure> {
        self.send(Method::PUT, &self.path(key, subresource)?, JSON, object).await
    }

    fn path(&self, key: &str, subresource: &str) -> Result<String, Failure> {
        let gone = || Failure::new(404, format!("nothing serves {key}"));
        let Location { resource, namespace, name } = self.locate(key).ok_or_else(gone)?;
        let version = &resource.versions.first().ok_or_else(gone)?.api_version;
        let root = if resource.group.is_empty() { "api" } else { "apis" };
        let scope = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
        let end = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
        let name = name.replace('%', "%25");
        Ok(format!("/{root}/{version}/{scope}{}/{name}{end}", resource.plural))
    }

    async fn send(&self, method: Method, path: &str, kind: &str, body: &Value) -> Result<(), Failure> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{path}?fieldManager={}", self.name))
            .header(CONTENT_TYPE, kind)
            .body(Full::new(Bytes::from(body.to_string())))
            .map_err(|error| Failure::new(400, error.to_string()))?;
        let caller = Caller::Known(Identity::component(&format!("controller:{}", self.name)));
        let response = handle(Arc::clone(&self.core), caller, request).await;
        let code = response.status().as_u16();
        if code < 300 {
            return Ok(());
        }
        let body = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let status: Value = serde_json::from_slice(&body).unwrap_or_default();
        let message = status.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
        let cause = status.pointer("/details/causes/0/reason").and_then(Value::as_str);
        Err(Failure { refused: cause == Some(REFUSED), ..Failure::new(code, message) })
    }
}
