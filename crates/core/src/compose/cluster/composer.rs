//! What every cluster composition does the same way: credentials, readiness, access, holding, status.

use modelplane_api::common::{CacheStatus, ClusterSecret, Credentials, SecretType};
use modelplane_api::names;
use serde::Serialize;

use super::access::{AccessSpec, KUBECONFIG_KEY, SecretEntry, Tool};
use super::fields::Fields;
use super::managed::{Managed, ORPHAN};
use super::storage_class::StorageClass;
use crate::compose::object::{KubernetesObject, Metadata, ProviderConfigRef, Readiness};
use crate::contract::{Body, ComposeError, Desired, Observed, Ready, Required, Requirement, Severity};
use crate::versions::Chart;

/// One pass over one cluster: what is observed, what is desired so far, and the names everything uses.
#[derive(Debug)]
pub struct Composer<'r, 'a> {
    /// What is observed.
    pub observed: &'r Observed<'a>,
    /// What is desired so far.
    pub desired: Desired<'a>,
    /// Name of the composite.
    pub name: &'a str,
    /// Namespace of the composite.
    pub namespace: &'a str,
    /// Name of the kubeconfig Secret, which the cluster's own provider configs share (clusters §0.7 `KC`).
    pub kubeconfig: String,
    credentials: ProviderConfigRef<'static>,
}

/// The status every cluster kind publishes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClusterStatus<'s> {
    secrets: &'s [ClusterSecret],
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<CacheStatus>,
}

impl<'r, 'a> Composer<'r, 'a> {
    /// Starts a pass with the cloud credentials the composite names.
    ///
    /// # Errors
    ///
    /// If the composite has no name or no namespace, from which every other name derives.
    pub fn new(observed: &'r Observed<'a>, credentials: Option<&Credentials>) -> Result<Self, ComposeError> {
        let identity = observed.composite.identity();
        for (field, value) in [("name", identity.name), ("namespace", identity.namespace)] {
            if value.is_empty() {
                return Err(observed.error(format!("metadata.{field} is missing")));
            }
        }
        let fallback = Credentials::default();
        let credentials = credentials.unwrap_or(&fallback);
        Ok(Self {
            observed,
            desired: Desired::starting_from(observed),
            name: identity.name,
            namespace: identity.namespace,
            kubeconfig: names::kubeconfig_name(identity.name),
            credentials: ProviderConfigRef {
                kind: credentials.type_or_default().as_str().into(),
                name: credentials.name_or_default().to_owned().into(),
            },
        })
    }

    /// The provider config of the cloud, as `Kind name`.
    pub fn credentials(&self) -> String {
        format!("{} {}", self.credentials.kind, self.credentials.name)
    }

    /// A stable name below the composite's (clusters §0.5).
    pub fn child(&self, part: &str) -> String {
        names::child_name(&[self.name, part])
    }

    /// Asks for the provider config of the cloud under `key` and says whether it is known.
    pub fn require_provider_config(&mut self, key: &'static str, api_version: &str) -> Required<'r, 'a> {
        let requirement = Requirement::named(api_version, &self.credentials.kind, &self.credentials.name);
        let namespaced = self.credentials.kind == "ProviderConfig";
        let requirement = if namespaced { requirement.in_namespace(self.namespace) } else { requirement };
        self.desired.require(key, requirement);
        self.observed.required(key)
    }

    /// Composes a cloud resource; it is ready once it is observed so.
    pub fn managed(&mut self, key: impl Into<String>, resource: Managed<'_>) {
        let key = key.into();
        let ready = self.observed.is_ready(&key);
        let body = Body::of(&resource.object(self.credentials.clone()));
        self.desired.add(key, body, Ready::when(ready));
    }

    /// Composes an object that counts as ready as soon as it is composed.
    pub fn ready_object<C: Serialize>(&mut self, key: &'static str, object: &KubernetesObject<'_, C>) {
        let body = Body::of(object);
        self.desired.add(key, body, Ready::True);
    }

    /// Composes the provider config by which `tool` reaches the cluster: with the kubeconfig and, on some
    /// clouds, an identity; secrets are in the composite's namespace unless they say otherwise.
    pub fn provider_config(&mut self, tool: Tool, identity: Option<&ClusterSecret>) {
        let body = Body::of(&tool.provider_config(&self.kubeconfig, self.access(identity)));
        self.desired.add(tool.key(), body, Ready::True);
    }

    /// How the cluster is reached, for a provider config.
    pub fn access<'s>(&'s self, identity: Option<&'s ClusterSecret>) -> AccessSpec<'s> {
        let (namespace, key) = (self.namespace.into(), KUBECONFIG_KEY.into());
        let access =
            AccessSpec::kubeconfig(SecretEntry { namespace, name: self.kubeconfig.as_str().into(), key });
        match identity {
            None => access,
            Some(secret) => {
                access.with_identity(secret.type_, SecretEntry::published(secret, self.namespace))
            }
        }
    }

    /// Composes the release of a chart inside the cluster; it is ready once it is observed so and stays
    /// behind when the cluster goes.
    pub fn release(&mut self, key: &'static str, chart: &Chart, values: Fields<'_>) {
        let config = ProviderConfigRef::namespaced(self.kubeconfig.as_str());
        let mut object = KubernetesObject::release(config, chart, chart.version, Some(values))
            .with_metadata(Metadata::in_namespace(self.namespace));
        object.content.spec.management_policies = ORPHAN;
        let body = Body::of(&object);
        self.desired.add(key, body, Ready::when(self.observed.is_ready(key)));
    }

    /// Composes the StorageClass inside the cluster; it is ready as soon as it is composed and stays
    /// behind when the cluster goes.
    pub fn storage_class(&mut self, key: &'static str, class: StorageClass<'_>) {
        let config = ProviderConfigRef::namespaced(self.kubeconfig.as_str());
        let object = KubernetesObject::provider_object(config, Some(Readiness::SuccessfulCreate), class)
            .with_management_policies(ORPHAN)
            .with_metadata(Metadata::in_namespace(self.namespace));
        let body = Body::of(&object);
        self.desired.add(key, body, Ready::True);
    }

    /// Keeps what exists under `key` although the input it is made from is missing; `Ready::True` counts it
    /// as ready without looking, for what is always ready.
    pub fn hold(&mut self, key: &str, ready: Ready) {
        match (self.observed.resources.get_key_value(key), ready) {
            (None, _) => {}
            (Some((key, resource)), Ready::True) => self.desired.hold_as(key, resource, ready),
            (Some((key, resource)), _) => self.desired.hold(key, resource),
        }
    }

    /// The name the cloud gave an observed resource, if it is known yet.
    pub fn external_name(&self, key: &str) -> Option<&'a str> {
        let resource = self.observed.resources.get(key)?;
        resource.document.text_at(&["metadata", "annotations", names::EXTERNAL_NAME_ANNOTATION])
    }

    /// The kubeconfig as the status publishes it.
    pub fn kubeconfig_secret(&self) -> ClusterSecret {
        ClusterSecret {
            type_: SecretType::Kubeconfig,
            name: self.kubeconfig.clone(),
            key: KUBECONFIG_KEY.to_owned(),
            namespace: None,
        }
    }

    /// Writes the status: the secrets that give access, and the StorageClass for model weights.
    pub fn publish(&mut self, secrets: &[ClusterSecret], storage_class: Option<&str>) {
        let cache = storage_class.map(|name| CacheStatus { storage_class_name: Some(name.to_owned()) });
        self.desired.set_status(&ClusterStatus { secrets, cache });
    }

    /// Waits for an input without which nothing can be composed.
    pub fn wait(mut self, severity: Severity, message: impl Into<String>) -> Desired<'a> {
        self.desired.event(severity, message);
        stand_still(&mut self.desired, self.observed);
        self.desired
    }
}

/// Keeps everything there is, and keeps the composite from looking ready with nothing composed: the answer
/// when nothing can be composed.
pub fn stand_still<'a>(desired: &mut Desired<'a>, observed: &Observed<'a>) {
    desired.hold_all(observed);
    desired.ready = Ready::False;
    if desired.status.is_none() {
        desired.status = held_status(observed);
    }
}

/// The status the composite has, without the conditions, which are not the composition's to write.
pub fn held_status<'a>(observed: &Observed<'a>) -> Option<Body<'a>> {
    let status: serde_json::Map<String, serde_json::Value> =
        observed.composite.document.decode_at(&["status"]).ok().flatten()?;
    let ours: serde_json::Map<_, _> =
        status.into_iter().filter(|(field, _)| field != "conditions" && field != "crossplane").collect();
    (!ours.is_empty()).then(|| Body::of(&ours))
}
