//! A client for one API server, speaking JSON documents: what the servers really hold is what is asserted on.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::pki::{Authority, Identity};
use crate::resources::Resource;

/// Field manager of everything applied here.
const MANAGER: &str = "e2e";

/// One API server.
#[derive(Clone)]
pub struct Kube {
    client: Client,
    /// The kubeconfig that leads there, as text.
    pub kubeconfig: String,
    /// The same as a file.
    pub kubeconfig_file: PathBuf,
}

/// As whom to talk to a server.
#[derive(Debug, Clone, Copy)]
pub enum Credential<'c> {
    /// As the one of this certificate.
    Certificate(&'c Identity),
    /// As the one who was given this token.
    Token(&'c str),
}

/// Whether a request is only tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is carried out.
    Real,
    /// The server does everything but store the result.
    DryRun,
}

impl Kube {
    /// A client for the server at `url`; its kubeconfig is written into `folder`.
    ///
    /// # Errors
    ///
    /// If the kubeconfig cannot be written or used.
    pub async fn connect(
        url: &str,
        authority: &Authority,
        credential: Credential<'_>,
        folder: &Path,
    ) -> Outcome<Self> {
        let kubeconfig = kubeconfig(url, authority, credential);
        let kubeconfig_file = folder.join("kubeconfig");
        std::fs::write(&kubeconfig_file, &kubeconfig).map_err(Failure::io("write a kubeconfig"))?;
        let wrong = |error: &dyn std::fmt::Display| Failure::Wrong(format!("kubeconfig of {url}: {error}"));
        let parsed = Kubeconfig::from_yaml(&kubeconfig).map_err(|error| wrong(&error))?;
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(parsed, &options).await.map_err(|error| wrong(&error))?;
        let client = Client::try_from(config).map_err(|error| wrong(&error))?;
        Ok(Self { client, kubeconfig, kubeconfig_file })
    }

    /// An object.
    ///
    /// # Errors
    ///
    /// If there is none, or the server does not answer.
    pub async fn get(&self, resource: Resource, namespace: &str, name: &str) -> Outcome<Value> {
        self.send(Method::GET, &format!("{}/{name}", resource.path(namespace)), "", &Value::Null).await
    }

    /// An object, if there is one.
    ///
    /// # Errors
    ///
    /// If the server does not answer.
    pub async fn find(&self, resource: Resource, namespace: &str, name: &str) -> Outcome<Option<Value>> {
        match self.get(resource, namespace, name).await {
            Ok(object) => Ok(Some(object)),
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// All objects of a namespace, or of all if that is empty, with these labels (`key=value,…`).
    ///
    /// # Errors
    ///
    /// If the server does not know the kind or does not answer.
    pub async fn list(&self, resource: Resource, namespace: &str, labels: &str) -> Outcome<Vec<Value>> {
        let selector = labels.replace('=', "%3D").replace(',', "%2C").replace('/', "%2F");
        let path = format!("{}?labelSelector={selector}", resource.path(namespace));
        let list = self.send(Method::GET, &path, "", &Value::Null).await?;
        let Some(items) = list["items"].as_array() else { return Ok(Vec::new()) };
        Ok(items.clone())
    }

    /// The kinds that the server serves of a group and version; none if it does not know that.
    ///
    /// # Errors
    ///
    /// If the server does not answer.
    pub async fn kinds(&self, api_version: &str) -> Outcome<Vec<Resource>> {
        let (path, group, version) = match api_version.split_once('/') {
            Some((group, version)) => (format!("/apis/{api_version}"), group, version),
            None => (format!("/api/{api_version}"), "", api_version),
        };
        let served = match self.send(Method::GET, &path, "", &Value::Null).await {
            Err(failure) if failure.is_not_found() => return Ok(Vec::new()),
            answer => answer?,
        };
        let kinds = list(&served, "/resources").iter().filter(|one| !text(one, "/name").contains('/'));
        let resource = |one: &Value| {
            let namespaced = one["namespaced"] == true;
            Resource::served(group, version, text(one, "/kind"), text(one, "/name"), namespaced)
        };
        Ok(kinds.map(resource).collect())
    }

    /// Creates an object; unknown fields are refused.
    ///
    /// # Errors
    ///
    /// If the server refuses it.
    pub async fn create(&self, manifest: &Value, mode: Mode) -> Outcome<Value> {
        self.create_as(Resource::of_manifest(manifest)?, manifest, mode).await
    }

    /// Creates an object of a kind that this crate does not know by itself.
    ///
    /// # Errors
    ///
    /// If the server refuses it.
    pub async fn create_as(&self, resource: Resource, manifest: &Value, mode: Mode) -> Outcome<Value> {
        let namespace = manifest["metadata"]["namespace"].as_str().unwrap_or_default();
        let dry_run = if mode == Mode::DryRun { "&dryRun=All" } else { "" };
        let path =
            format!("{}?fieldValidation=Strict&fieldManager={MANAGER}{dry_run}", resource.path(namespace));
        self.send(Method::POST, &path, "application/json", manifest).await
    }

    /// Creates an object unless there is one of that name.
    ///
    /// # Errors
    ///
    /// If the server refuses it.
    pub async fn create_or_keep(&self, manifest: &Value) -> Outcome {
        match self.create(manifest, Mode::Real).await {
            Err(Failure::Api { code: 409, .. }) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Applies an object server-side.
    ///
    /// # Errors
    ///
    /// If the server refuses it.
    pub async fn apply(&self, manifest: &Value) -> Outcome<Value> {
        let resource = Resource::of_manifest(manifest)?;
        let text = |field: &str| manifest["metadata"][field].as_str().unwrap_or_default();
        let path = format!(
            "{}/{}?fieldManager={MANAGER}&force=true&fieldValidation=Strict",
            resource.path(text("namespace")),
            text("name")
        );
        self.send(Method::PATCH, &path, "application/apply-patch+yaml", manifest).await
    }

    /// Merges a patch into an object, or into one of its subresources.
    ///
    /// # Errors
    ///
    /// If the server refuses it.
    pub async fn merge(&self, object: Target<'_>, subresource: &str, patch: &Value) -> Outcome<Value> {
        let mut path = object.path();
        if !subresource.is_empty() {
            path = format!("{path}/{subresource}");
        }
        let path = format!("{path}?fieldManager={MANAGER}");
        self.send(Method::PATCH, &path, "application/merge-patch+json", patch).await
    }

    /// Deletes an object in the background.
    ///
    /// # Errors
    ///
    /// If the server refuses it.
    pub async fn delete(&self, object: Target<'_>) -> Outcome {
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
        self.send(Method::DELETE, &object.path(), "application/json", &options).await.map(drop)
    }

    /// A subresource of an object, such as `scale`.
    ///
    /// # Errors
    ///
    /// If there is none, or the server does not answer.
    pub async fn subresource(&self, object: Target<'_>, subresource: &str) -> Outcome<Value> {
        self.send(Method::GET, &format!("{}/{subresource}", object.path()), "", &Value::Null).await
    }

    /// Creates a subresource of an object, such as `token`.
    ///
    /// # Errors
    ///
    /// If the server refuses it.
    pub async fn create_subresource(
        &self,
        object: Target<'_>,
        subresource: &str,
        body: &Value,
    ) -> Outcome<Value> {
        self.send(Method::POST, &format!("{}/{subresource}", object.path()), "application/json", body).await
    }

    /// Whether the server says of itself that it is ready.
    ///
    /// # Errors
    ///
    /// If it does not.
    pub async fn ready(&self) -> Result<(), String> {
        let request = Request::get("/readyz").body(Vec::new()).map_err(|error| error.to_string())?;
        self.client.request_text(request).await.map(drop).map_err(|error| error.to_string())
    }

    async fn send(&self, method: Method, path: &str, content: &str, body: &Value) -> Outcome<Value> {
        let action = format!("{method} {path}");
        let wrong = |code, message: String| Failure::Api { action: action.clone(), code, message };
        let mut request = Request::builder().method(method.clone()).uri(path);
        let mut bytes = Vec::new();
        if !body.is_null() {
            request = request.header("content-type", content);
            bytes = serde_json::to_vec(body).map_err(|error| wrong(0, error.to_string()))?;
        }
        let request = request.body(bytes).map_err(|error| wrong(0, error.to_string()))?;
        self.client.request(request).await.map_err(|error| match error {
            kube::Error::Api(status) => wrong(status.code, status.message),
            other => wrong(0, other.to_string()),
        })
    }
}

/// One object of a server.
#[derive(Debug, Clone, Copy)]
pub struct Target<'t> {
    /// Its kind.
    pub resource: Resource,
    /// Its namespace; empty if it lives in none.
    pub namespace: &'t str,
    /// Its name.
    pub name: &'t str,
}

impl<'t> Target<'t> {
    /// The object of that name.
    pub fn new(resource: Resource, namespace: &'t str, name: &'t str) -> Self {
        Self { resource, namespace, name }
    }

    /// An object that a server returned.
    pub fn of(resource: Resource, object: &'t Value) -> Self {
        Self { resource, namespace: text(object, "/metadata/namespace"), name: name(object) }
    }

    fn path(&self) -> String {
        format!("{}/{}", self.resource.path(self.namespace), self.name)
    }
}

/// The text at a JSON pointer; empty if there is none.
pub fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// An object's name.
pub fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// An object's unique id.
pub fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// An object's label.
pub fn label<'v>(object: &'v Value, key: &str) -> &'v str {
    object["metadata"]["labels"][key].as_str().unwrap_or_default()
}

/// The list at a JSON pointer; empty if there is none.
pub fn list<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A condition of an object.
pub fn condition<'v>(object: &'v Value, type_: &str) -> Option<&'v Value> {
    list(object, "/status/conditions").iter().find(|condition| condition["type"] == type_)
}

/// Whether a condition of an object is true.
pub fn is_true(object: &Value, type_: &str) -> bool {
    condition(object, type_).is_some_and(|condition| condition["status"] == "True")
}

/// An object's conditions in one line, for messages.
pub fn conditions(object: &Value) -> String {
    let one = |condition: &Value| {
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        format!("{}={} {} {}", text("type"), text("status"), text("reason"), text("message"))
    };
    let all: Vec<String> = list(object, "/status/conditions").iter().map(one).collect();
    if all.is_empty() { "no conditions".to_owned() } else { all.join("; ") }
}

fn kubeconfig(url: &str, authority: &Authority, credential: Credential<'_>) -> String {
    let encoded = |text: &str| STANDARD.encode(text);
    let user = match credential {
        Credential::Certificate(identity) => json!({
            "client-certificate-data": encoded(&identity.certificate),
            "client-key-data": encoded(&identity.key),
        }),
        Credential::Token(token) => json!({ "token": token }),
    };
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": {
            "server": url,
            "certificate-authority-data": encoded(&authority.certificate()),
        }}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "user"}}],
        "current-context": "e2e",
    });
    config.to_string()
}
