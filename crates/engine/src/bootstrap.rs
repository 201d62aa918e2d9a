//! What has to be served before anything can be composed: definitions of our kinds, of the drivers' and of
//! usages, and the system's namespace.
//!
//! Kinds of clouds are defined as they are first composed or asked for, without a schema: what a cloud's
//! provider accepts is not known here, and most fleets use one cloud at most.

mod clouds;
mod drivers;

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use modelplane_api::names::SYSTEM_NAMESPACE;
use modelplane_api::{kind, xrd};
use serde_json::{Value, json};

use crate::client::{ApiClient, ClientError, Resource, Target, Write};

/// Field manager of definitions.
const MANAGER: &str = "modelplane-engine";
/// Definitions written at the same time.
const AT_ONCE: usize = 8;
/// How long the API server may take to serve a new definition.
const PATIENCE: Duration = Duration::from_secs(30);
/// Annotation with the digest of an installed definition.
const DIGEST_ANNOTATION: &str = "modelplane.ai/definition-digest";

/// The definitions an engine needs.
#[derive(Debug)]
pub struct Definitions {
    api: ApiClient,
    /// Clouds' kinds known to be served.
    served: Mutex<HashSet<String>>,
}

/// The API server could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// A request failed.
    #[error("cannot install {name}: {source}")]
    Install {
        /// The definition or namespace.
        name: String,
        /// What the API server said.
        source: ClientError,
    },
    /// The API server does not serve a definition.
    #[error("{name} was installed but is not served after {} s: {detail}", PATIENCE.as_secs())]
    NotServed {
        /// The definition.
        name: String,
        /// What its conditions say.
        detail: String,
    },
}

impl Definitions {
    /// For an API server.
    pub fn new(api: ApiClient) -> Self {
        Self { api, served: Mutex::default() }
    }

    /// Installs everything that has to be there from the start.
    ///
    /// # Errors
    ///
    /// If something cannot be installed or is not served in time.
    pub async fn install(&self) -> Result<(), BootstrapError> {
        let definitions: Vec<Value> =
            kind::ALL.iter().map(|info| xrd::crd(info)).chain(drivers::definitions()).collect();
        let writes: Vec<_> =
            definitions.iter().map(|definition| self.install_one(definition).boxed()).collect();
        let results: Vec<_> = futures_util::stream::iter(writes).buffer_unordered(AT_ONCE).collect().await;
        results.into_iter().collect::<Result<Vec<()>, _>>()?;
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}});
        let namespaces = Resource::new("v1", "Namespace", "namespaces", false);
        let target = Target::named("", SYSTEM_NAMESPACE);
        let written = self.api.write(&namespaces, &target, Write::Apply(MANAGER), &namespace).await;
        written.map_err(|source| BootstrapError::Install {
            name: format!("namespace {SYSTEM_NAMESPACE}"),
            source,
        })?;
        Ok(())
    }

    /// Makes sure that a kind of a cloud is served; other kinds are left to whoever brings them.
    ///
    /// # Errors
    ///
    /// If it cannot be installed.
    pub async fn ensure(&self, api_version: &str, kind: &str) -> Result<(), BootstrapError> {
        let Some(definition) = clouds::definition(api_version, kind) else { return Ok(()) };
        let name = format!("{kind} of {api_version}");
        if self.served.lock().unwrap_or_else(PoisonError::into_inner).contains(&name) {
            return Ok(());
        }
        match self.api.resource(api_version, kind).await {
            Ok(_) => {}
            Err(error) if error.is_not_served() => {
                tracing::info!(kind, api_version, "defining a kind of a cloud");
                self.install_one(&definition).await?;
            }
            Err(source) => return Err(BootstrapError::Install { name, source }),
        }
        self.served.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
        Ok(())
    }

    /// Installs a definition unless it is there already, and waits until it is served.
    async fn install_one(&self, definition: &Value) -> Result<(), BootstrapError> {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        install_definition(&self.api, definition, MANAGER)
            .await
            .map_err(|source| BootstrapError::Install { name: name.to_owned(), source })?;
        wait_established(&self.api, name).await
    }
}

/// Whether the engine's managed-resource driver stands in for a kind.
pub fn is_cloud_kind(group: &str, kind: &str) -> bool {
    clouds::is_cloud_group(group) && !clouds::is_provider_config(kind)
}

/// Applies a definition unless exactly this one was applied before.
pub(crate) async fn install_definition(
    api: &ApiClient,
    definition: &Value,
    manager: &str,
) -> Result<(), ClientError> {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    let digest = modelplane_api::names::sha256_hex(&definition.to_string());
    let target = Target::named("", name);
    let installed = api.get(&definitions(), "", name).await?;
    let same = |installed: &Value| installed["metadata"]["annotations"][DIGEST_ANNOTATION] == digest.as_str();
    if installed.is_some_and(|installed| same(&installed)) {
        return Ok(());
    }
    let mut definition = definition.clone();
    definition["metadata"]["annotations"][DIGEST_ANNOTATION] = json!(digest);
    api.write(&definitions(), &target, Write::Apply(manager), &definition).await?;
    Ok(())
}

/// Waits until a definition is established and its resources can be discovered.
pub(crate) async fn wait_established(api: &ApiClient, name: &str) -> Result<(), BootstrapError> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(5);
    loop {
        let found = api.get(&definitions(), "", name).await;
        let found = found.map_err(|source| BootstrapError::Install { name: name.to_owned(), source })?;
        let found = found.unwrap_or_default();
        if is_served(api, &found).await {
            return Ok(());
        }
        if tokio::time::Instant::now() > deadline {
            let detail = found["status"]["conditions"].to_string();
            return Err(BootstrapError::NotServed { name: name.to_owned(), detail });
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}

async fn is_served(api: &ApiClient, definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let established = conditions
        .iter()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    let spec = &definition["spec"];
    let (group, version) = (spec["group"].as_str(), spec["versions"][0]["name"].as_str());
    let (Some(group), Some(version), Some(kind)) = (group, version, spec["names"]["kind"].as_str()) else {
        return false;
    };
    established && api.resource(&format!("{group}/{version}"), kind).await.is_ok()
}

fn definitions() -> Resource {
    Resource::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false)
}

/// A definition whose objects may hold anything beside their metadata.
pub(crate) fn open_definition(resource: &Resource, categories: &[&str]) -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"spec": anything, "status": anything}});
    definition(resource, categories, &schema, &[("READY", "Ready"), ("SYNCED", "Synced")])
}

/// A definition with a status subresource; `columns` are headings and the conditions they show.
pub(crate) fn definition(
    resource: &Resource,
    categories: &[&str],
    schema: &Value,
    columns: &[(&str, &str)],
) -> Value {
    let (group, version) = resource.api_version.split_once('/').unwrap_or(("", &resource.api_version));
    let Resource { kind, plural, namespaced, .. } = resource;
    let columns: Vec<Value> = columns
        .iter()
        .map(|(name, condition)| {
            let path = format!(".status.conditions[?(@.type=='{condition}')].status");
            json!({"name": name, "type": "string", "jsonPath": path})
        })
        .chain([json!({"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"})])
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": if *namespaced { "Namespaced" } else { "Cluster" },
            "names": {
                "kind": kind, "plural": plural, "singular": kind.to_lowercase(),
                "listKind": format!("{kind}List"), "categories": categories,
            },
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": {"status": {}},
                "additionalPrinterColumns": columns,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}
