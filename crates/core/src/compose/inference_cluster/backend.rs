//! The serving stack of a cluster, how it is reached, and what keeps the cluster until the stack is gone
//! (spec clusters §3.6, §3.8).

use modelplane_api::common::{ClusterSecret, SecretType};
use modelplane_api::kind::Object;
use modelplane_api::names::{
    SERVING_STACK_KEY, SYSTEM_NAMESPACE, cluster_kubeconfig_name, serving_stack_name,
};
use modelplane_api::serving_stack::{ServingStack, ServingStackSpec};

use super::{PROVIDER_CONFIG_KEY, Pass, Provisioned};
use crate::compose::cluster::{AccessSpec, Provider, SecretEntry};
use crate::compose::object::{KubernetesObject, Metadata, OBJECT_API_VERSION};
use crate::compose::usage::{UsedBy, usage};
use crate::contract::{Body, Ready, Severity};

/// How a cluster is reached.
#[derive(Debug, Clone)]
pub(super) struct Access {
    /// The kubeconfig.
    pub kubeconfig: ClusterSecret,
    /// The identity on top of it.
    pub identity: Option<ClusterSecret>,
    /// Everything the serving stack is given.
    pub secrets: Vec<ClusterSecret>,
}

impl Access {
    /// What a provisioned cluster publishes; `None` without a kubeconfig, which the stack cannot do without.
    pub(super) fn published(secrets: Vec<ClusterSecret>, identity: Option<SecretType>) -> Option<Self> {
        let find = |type_: SecretType| secrets.iter().find(|secret| secret.type_ == type_).cloned();
        let kubeconfig = find(SecretType::Kubeconfig)?;
        let identity = identity.and_then(find);
        Some(Self { kubeconfig, identity, secrets })
    }
}

/// Composes the provider config and the serving stack. Without access, what exists stays.
pub(super) fn compose(pass: &mut Pass<'_, '_>, provider: Option<&'static Provider>, cluster: &Provisioned) {
    provider_config(pass, cluster.access.as_ref());
    serving_stack(pass, provider, cluster.access.as_ref());
    let Some(provider) = provider else { return };
    if pass.desired.resources.contains_key(SERVING_STACK_KEY) {
        keep_cluster_for_stack(pass, provider);
    }
    if cluster.running && !pass.observed.has(SERVING_STACK_KEY) {
        let source = provider.source_name();
        let message = format!("the {source} cluster is ready; composing its serving stack");
        pass.desired.event(Severity::Normal, message);
    }
}

fn provider_config(pass: &mut Pass<'_, '_>, access: Option<&Access>) {
    let Some(access) = access else {
        if let Some((key, existing)) = pass.observed.resources.get_key_value(PROVIDER_CONFIG_KEY) {
            pass.desired.hold_as(key, existing, Ready::True);
        }
        return;
    };
    let mut spec = AccessSpec::kubeconfig(SecretEntry {
        // Published secrets are in the namespace of the cluster object, which is always this one.
        namespace: SYSTEM_NAMESPACE.into(),
        ..SecretEntry::published(&access.kubeconfig, SYSTEM_NAMESPACE)
    });
    if let Some(identity) = &access.identity {
        spec = spec.with_identity(identity.type_, SecretEntry::published(identity, SYSTEM_NAMESPACE));
    }
    let object = KubernetesObject::with_spec(OBJECT_API_VERSION, "ClusterProviderConfig", spec)
        .with_metadata(Metadata::named(cluster_kubeconfig_name(pass.name)));
    let body = Body::of(&object);
    pass.desired.add(PROVIDER_CONFIG_KEY, body, Ready::True);
}

fn serving_stack(pass: &mut Pass<'_, '_>, provider: Option<&'static Provider>, access: Option<&Access>) {
    let secrets = match access {
        Some(access) => access.secrets.clone(),
        None => existing_secrets(pass),
    };
    if secrets.is_empty() {
        if let Some((key, existing)) = pass.observed.resources.get_key_value(SERVING_STACK_KEY) {
            pass.desired.hold(key, existing);
        }
        return;
    }
    let spec = ServingStackSpec {
        secrets,
        nvidia_driver_root: provider.and_then(|cloud| cloud.nvidia_driver_root).map(str::to_owned),
        ..ServingStackSpec::default()
    };
    let metadata = Metadata::named(serving_stack_name(pass.name)).and_namespace(SYSTEM_NAMESPACE);
    let info = ServingStack::INFO;
    let object = KubernetesObject::with_spec(info.api_version(), info.kind, spec).with_metadata(metadata);
    let ready = pass.observed.is_ready(SERVING_STACK_KEY);
    pass.desired.add(SERVING_STACK_KEY, Body::of(&object), Ready::when(ready));
}

/// The secrets the stack was given before; none unless all of them can be read.
fn existing_secrets(pass: &Pass<'_, '_>) -> Vec<ClusterSecret> {
    let stack = pass.observed.resources.get(SERVING_STACK_KEY);
    let secrets = stack.and_then(|stack| stack.document.decode_at(&["spec", "secrets"]).ok().flatten());
    secrets.unwrap_or_default()
}

/// The cluster goes last: its stack needs it to uninstall what it installed.
fn keep_cluster_for_stack(pass: &mut Pass<'_, '_>, provider: &'static Provider) {
    let (cluster, stack) = (provider.cluster, ServingStack::INFO);
    let object = usage(
        UsedBy::sibling(cluster.api_version(), cluster.kind),
        UsedBy::sibling(stack.api_version(), stack.kind),
    );
    let body = Body::of(&object.with_metadata(Metadata::in_namespace(SYSTEM_NAMESPACE)));
    pass.desired.add(provider.usage_key(), body, Ready::True);
}
