//! The Kubernetes API as this engine uses it: any kind, objects as JSON trees, one request per call.
//!
//! Which resource serves a kind is discovered once per group and version and remembered; a kind that is not
//! served is looked up again at the next call, because definitions come and go. Nothing here retries.

mod events;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::Stream;
use kube::core::WatchEvent;
use modelplane_core::simulate::ObjectKey;
use serde_json::{Value, json};

/// A resource of an API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// `group/version`, or `v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name in URLs.
    pub plural: String,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
}

/// A request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The API server serves no such kind.
    #[error("{kind} of {api_version} is not served by the API server")]
    NotServed {
        /// `group/version`, or `v1`.
        api_version: String,
        /// Kind.
        kind: String,
    },
    /// The API server said no, or could not be reached.
    #[error("{}", api_message(.0))]
    Kube(#[source] Box<kube::Error>),
    /// The request could not be built.
    #[error("cannot build the request for {0}")]
    Request(String),
    /// No answer came in time.
    #[error("no answer within {} s", PATIENCE.as_secs())]
    Slow,
    /// The object cannot be handled.
    #[error("{0}")]
    Malformed(String),
}

/// How long a request may take; a watch may take longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a failure says about the server rather than about what was asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It does not answer.
    Unreachable,
    /// It does not accept who asks.
    Unauthorized,
}

/// How to write an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write<'a> {
    /// Server-side apply by a field manager that takes over what others own.
    Apply(&'a str),
    /// Merge patch (RFC 7386).
    Merge,
    /// JSON patch (RFC 6902).
    Json,
}

/// How dependents of a deleted object go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// After it.
    Background,
    /// Before it.
    Foreground,
}

/// What a list or watch asks for.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    /// Most items of a page.
    pub limit: Option<usize>,
    /// Where the page starts, as the page before said.
    pub continue_token: Option<String>,
    /// Label selector.
    pub labels: Option<String>,
}

/// A client for objects of any kind.
#[derive(Clone)]
pub struct ApiClient {
    client: kube::Client,
    resources: Arc<Mutex<HashMap<String, Arc<Vec<Resource>>>>>,
}

impl std::fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiClient")
    }
}

fn api_message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        kube::Error::Service(error) => with_causes(error.as_ref()),
        other => with_causes(other),
    }
}

/// An error and what caused it: a failed connection says only at the very end why it failed.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

impl From<kube::Error> for ClientError {
    fn from(error: kube::Error) -> Self {
        Self::Kube(Box::new(error))
    }
}

impl ClientError {
    /// The HTTP status the API server answered with, if it did.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Kube(error) => match error.as_ref() {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Whether the object changed meanwhile, exists already, or may not be deleted now.
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// Whether the object was refused for what it is: trying again without a change is pointless.
    pub fn is_invalid(&self) -> bool {
        matches!(self.code(), Some(400 | 422))
    }

    /// What is wrong with the server, if that is what made the request fail.
    pub fn fault(&self) -> Option<Fault> {
        match (self, self.code()) {
            (_, Some(401)) => Some(Fault::Unauthorized),
            (_, Some(_)) => None,
            (Self::Slow, _) => Some(Fault::Unreachable),
            (Self::Kube(error), _) if !matches!(error.as_ref(), kube::Error::SerdeError(_)) => {
                Some(Fault::Unreachable)
            }
            _ => None,
        }
    }

    /// Whether the kind is not served.
    pub fn is_not_served(&self) -> bool {
        matches!(self, Self::NotServed { .. })
    }
}

impl Resource {
    /// A resource that is known without asking.
    pub fn new(api_version: &str, kind: &str, plural: &str, namespaced: bool) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            namespaced,
        }
    }

    fn collection(&self, namespace: &str) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        match (self.namespaced, namespace) {
            (true, namespace) if !namespace.is_empty() => {
                format!("/{root}/{}/namespaces/{namespace}/{}", self.api_version, self.plural)
            }
            _ => format!("/{root}/{}/{}", self.api_version, self.plural),
        }
    }

    fn item(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.collection(namespace))
    }
}

impl ApiClient {
    /// A client that knows no resource yet.
    pub fn new(client: kube::Client) -> Self {
        Self { client, resources: Arc::default() }
    }

    /// The client underneath.
    pub fn kube(&self) -> &kube::Client {
        &self.client
    }

    /// The resource that serves a kind.
    ///
    /// # Errors
    ///
    /// If the kind is not served, or the server cannot be asked.
    pub async fn resource(&self, api_version: &str, kind: &str) -> Result<Resource, ClientError> {
        if let Some(known) = self.known(api_version).and_then(|list| find(&list, kind)) {
            return Ok(known);
        }
        let path = if api_version.contains('/') { "apis" } else { "api" };
        let request = request("GET", &format!("/{path}/{api_version}"), "", None)?;
        let listed = match self.send(request).await {
            Ok(answer) => resources_of(api_version, &answer),
            Err(error) if error.is_not_found() => Vec::new(),
            Err(error) => return Err(error),
        };
        let found = find(&listed, kind);
        let mut resources = self.resources.lock().unwrap_or_else(PoisonError::into_inner);
        resources.insert(api_version.to_owned(), Arc::new(listed));
        found.ok_or_else(|| ClientError::NotServed {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        })
    }

    /// Forgets which resources a group and version has, as when a definition came or went.
    pub fn forget_resources(&self, api_version: &str) {
        self.resources.lock().unwrap_or_else(PoisonError::into_inner).remove(api_version);
    }

    fn known(&self, api_version: &str) -> Option<Arc<Vec<Resource>>> {
        self.resources.lock().unwrap_or_else(PoisonError::into_inner).get(api_version).cloned()
    }

    /// An object, if it exists.
    ///
    /// # Errors
    ///
    /// If the server says anything but that it is not there.
    pub async fn get(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClientError> {
        let request = request("GET", &resource.item(namespace, name), "", None)?;
        match self.send(request).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// One page of a list, in all namespaces.
    ///
    /// # Errors
    ///
    /// Whatever the server says.
    pub async fn list(&self, resource: &Resource, query: &ListQuery) -> Result<Value, ClientError> {
        let mut text = String::new();
        let mut add = |key: &str, value: &str| {
            text.push(if text.is_empty() { '?' } else { '&' });
            text.push_str(key);
            text.push('=');
            text.push_str(&escape(value));
        };
        if let Some(limit) = query.limit {
            add("limit", &limit.to_string());
        }
        if let Some(token) = &query.continue_token {
            add("continue", token);
        }
        if let Some(labels) = &query.labels {
            add("labelSelector", labels);
        }
        let request = request("GET", &resource.collection(""), &text, None)?;
        self.send(request).await
    }

    /// Events after a revision, in all namespaces, with bookmarks.
    ///
    /// # Errors
    ///
    /// If the watch cannot be started; later errors are in the stream.
    pub async fn watch(
        &self,
        resource: &Resource,
        after: u64,
        seconds: u64,
    ) -> Result<impl Stream<Item = Result<WatchEvent<Value>, kube::Error>> + use<>, ClientError> {
        let query =
            format!("?watch=true&allowWatchBookmarks=true&resourceVersion={after}&timeoutSeconds={seconds}");
        let request = request("GET", &resource.collection(""), &query, None)?;
        match tokio::time::timeout(PATIENCE, self.client.request_stream(request)).await {
            Ok(started) => Ok(events::events(started?)),
            Err(_) => Err(ClientError::Slow),
        }
    }

    /// Creates an object.
    ///
    /// # Errors
    ///
    /// Whatever the server says.
    pub async fn create(&self, resource: &Resource, object: &Value) -> Result<Value, ClientError> {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let request = request("POST", &resource.collection(namespace), "", Some((JSON, object)))?;
        self.send(request).await
    }

    /// Writes an object, or what `subresource` holds of it.
    ///
    /// # Errors
    ///
    /// Whatever the server says.
    pub async fn write(
        &self,
        resource: &Resource,
        target: &Target<'_>,
        write: Write<'_>,
        body: &Value,
    ) -> Result<Value, ClientError> {
        let mut path = resource.item(target.namespace, target.name);
        if let Some(subresource) = target.subresource {
            path.push('/');
            path.push_str(subresource);
        }
        let (content_type, query) = match write {
            Write::Apply(manager) => (APPLY, format!("?force=true&fieldManager={}", escape(manager))),
            Write::Merge => ("application/merge-patch+json", format!("?fieldManager={MANAGER}")),
            Write::Json => ("application/json-patch+json", format!("?fieldManager={MANAGER}")),
        };
        let request = request("PATCH", &path, &query, Some((content_type, body)))?;
        self.send(request).await
    }

    /// Deletes an object if it still is the one of that uid; an object that is gone is fine.
    ///
    /// # Errors
    ///
    /// Whatever else the server says.
    pub async fn delete(
        &self,
        resource: &Resource,
        target: &Target<'_>,
        uid: Option<&str>,
        propagation: Propagation,
    ) -> Result<(), ClientError> {
        let policy = match propagation {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
        };
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
        if let Some(uid) = uid.filter(|uid| !uid.is_empty()) {
            options["preconditions"] = json!({"uid": uid});
        }
        let path = resource.item(target.namespace, target.name);
        let request = request("DELETE", &path, "", Some((JSON, &options)))?;
        match self.send(request).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether the server answers and accepts who asks.
    ///
    /// # Errors
    ///
    /// If it does not, [`ClientError::fault`] says in which way.
    pub async fn probe(&self) -> Result<(), ClientError> {
        match self.send(request("GET", "/version", "", None)?).await {
            Err(error) if error.fault().is_some() => Err(error),
            _ => Ok(()),
        }
    }

    async fn send(&self, request: http::Request<Vec<u8>>) -> Result<Value, ClientError> {
        match tokio::time::timeout(PATIENCE, self.client.request(request)).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(ClientError::Slow),
        }
    }
}

/// Which object, and which part of it.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
    /// `status`, for example.
    pub subresource: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// An object.
    pub fn of(key: &'a ObjectKey) -> Self {
        Self { namespace: &key.namespace, name: &key.name, subresource: None }
    }

    /// An object by namespace and name.
    pub fn named(namespace: &'a str, name: &'a str) -> Self {
        Self { namespace, name, subresource: None }
    }

    /// Its status.
    #[must_use]
    pub fn status(self) -> Self {
        Self { subresource: Some("status"), ..self }
    }
}

/// Field manager of what is not applied.
const MANAGER: &str = "modelplane";
const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";

fn request(
    method: &str,
    path: &str,
    query: &str,
    body: Option<(&str, &Value)>,
) -> Result<http::Request<Vec<u8>>, ClientError> {
    let builder = http::Request::builder().method(method).uri(format!("{path}{query}"));
    let built = match body {
        None => builder.body(Vec::new()),
        Some((content_type, body)) => {
            let bytes = serde_json::to_vec(body).map_err(|_| ClientError::Request(path.to_owned()))?;
            builder.header(http::header::CONTENT_TYPE, content_type).body(bytes)
        }
    };
    built.map_err(|_| ClientError::Request(path.to_owned()))
}

/// A query value with everything but unreserved characters (RFC 3986 §2.3) escaped.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

fn find(list: &[Resource], kind: &str) -> Option<Resource> {
    list.iter().find(|resource| resource.kind == kind).cloned()
}

/// The resources of an `APIResourceList`, without subresources.
fn resources_of(api_version: &str, list: &Value) -> Vec<Resource> {
    let entries = list["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
    let resources = entries.iter().filter_map(|entry| {
        let (plural, kind) = (entry["name"].as_str()?, entry["kind"].as_str()?);
        let namespaced = entry["namespaced"].as_bool().unwrap_or_default();
        (!plural.contains('/')).then(|| Resource::new(api_version, kind, plural, namespaced))
    });
    resources.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_follow_the_scope_of_the_resource() {
        let pods = Resource::new("v1", "Pod", "pods", true);
        let nodes = Resource::new("v1", "Node", "nodes", false);
        let routes = Resource::new("g.io/v1", "Route", "routes", true);
        for (resource, namespace, name, expected) in [
            (&pods, "a", "b", "/api/v1/namespaces/a/pods/b"),
            (&nodes, "", "b", "/api/v1/nodes/b"),
            (&nodes, "ignored", "b", "/api/v1/nodes/b"),
            (&routes, "a", "b", "/apis/g.io/v1/namespaces/a/routes/b"),
        ] {
            assert_eq!(resource.item(namespace, name), expected);
        }
        assert_eq!(routes.collection(""), "/apis/g.io/v1/routes");
    }

    #[test]
    fn query_values_are_escaped() {
        assert_eq!(escape("a/b c=d~"), "a%2Fb%20c%3Dd~");
    }

    #[test]
    fn subresources_are_no_resources() {
        let list = json!({"resources": [
            {"name": "pods", "kind": "Pod", "namespaced": true},
            {"name": "pods/status", "kind": "Pod", "namespaced": true},
        ]});
        assert_eq!(resources_of("v1", &list), [Resource::new("v1", "Pod", "pods", true)]);
    }
}
