//! `ServingStack`: everything a cluster needs to serve models (spec serving-stack).
//!
//! Two provider configs, eight Helm releases, the Inference Extension's definitions, a quota, the
//! cluster's gateway, and two usages that delete it from the inside out. The stack knows no cloud. The
//! usages of the provider configs are the next pipeline step's, [`super::usages`].
//!
//! Resources are composed once both provider configs exist, and for as long as they exist themselves:
//! nothing is withdrawn because a provider config is not observed for a while.

mod gateway;
mod parts;
mod releases;

use modelplane_api::common::{ClusterSecret, SecretType};
use modelplane_api::names::{RESOURCE_LABEL, stack_provider_config_name};
use modelplane_api::serving_stack::{ServingStack, ServingStackStatus, StackGatewayStatus};
use serde_json::json;

use super::cluster::{AccessSpec, SecretEntry, Tool};
use super::object::{KubernetesObject, Metadata, OBJECT_API_VERSION, RELEASE_API_VERSION, Spec};
use super::usage::{UsedBy, usage};
use crate::contract::{Body, ComposeError, Desired, Observed, Ready};
use crate::crds;
use crate::document::Document;
use parts::{Parts, Slot};

/// Value of [`RESOURCE_LABEL`] on the release of Envoy Gateway.
const ENVOY_GATEWAY: &str = "envoy-gateway";
/// Value of [`RESOURCE_LABEL`] on the EnvoyProxy, also its key.
const GATEWAY_PROXY: &str = "gateway-proxy";
/// Value of [`RESOURCE_LABEL`] on the GatewayClass, also its key.
const GATEWAY_CLASS: &str = "gateway-class";
/// Value of [`RESOURCE_LABEL`] on the Gateway, also its key.
const GATEWAY: &str = "gateway";
/// Keys of the DRA driver and of the quota its pods need: kept together.
const DRA_DRIVER: [&str; 2] = ["dra-driver", "dra-driver-critical-pods-quota"];

/// Composes a serving stack.
///
/// # Errors
///
/// If the composite cannot be read, has no name or namespace, or names no kubeconfig.
pub fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
    let stack: ServingStack = observed.decode_composite()?;
    let access = access(observed, &stack)?;
    let provider_config = stack_provider_config_name(&stack.metadata.name);

    let mut desired = Desired::starting_from(observed);
    for tool in [Tool::Kubernetes, Tool::Helm] {
        desired.add(
            tool.key(),
            Body::of(&tool.provider_config(&provider_config, access.clone())),
            Ready::True,
        );
    }
    let ungated = observed.has(Tool::Kubernetes.key()) && observed.has(Tool::Helm.key());
    let mut parts = Parts { observed, desired, ungated, provider_config: &provider_config };
    releases::compose(&mut parts, &stack.spec);
    definitions(&mut parts);
    critical_pods_quota(&mut parts);
    gateway::compose(&mut parts, &stack.spec);

    let mut desired = parts.desired;
    deletion_order(&mut desired);
    let address = address(observed).map(ToOwned::to_owned);
    let gateway = address.map(|address| StackGatewayStatus { address: Some(address) });
    desired.set_status(&ServingStackStatus { conditions: Vec::new(), gateway });
    Ok(desired)
}

/// How the cluster is reached: the first kubeconfig and, if there is one, the first identity.
fn access<'s>(observed: &Observed<'_>, stack: &'s ServingStack) -> Result<AccessSpec<'s>, ComposeError> {
    let missing = |message: &str, hint: &str| {
        let mut error = observed.error(message);
        error.hint = Some(hint.to_owned());
        error
    };
    if stack.metadata.name.is_empty() || stack.metadata.namespace().is_empty() {
        return Err(missing("metadata.name or metadata.namespace is empty", "a ServingStack is namespaced"));
    }
    let namespace = stack.metadata.namespace();
    let is_kubeconfig = |secret: &&ClusterSecret| secret.type_ == SecretType::Kubeconfig;
    let kubeconfig = stack.spec.secrets.iter().find(is_kubeconfig).ok_or_else(|| {
        missing("spec.secrets has no entry of type Kubeconfig", "add one that names the cluster's kubeconfig")
    })?;
    let access = AccessSpec::kubeconfig(SecretEntry {
        // The kubeconfig is always beside the stack, whatever its entry says (spec §5.1).
        namespace: namespace.into(),
        name: kubeconfig.name.as_str().into(),
        key: kubeconfig.key.as_str().into(),
    });
    Ok(match stack.spec.secrets.iter().find(|secret| !is_kubeconfig(secret)) {
        Some(identity) => access.with_identity(identity.type_, SecretEntry::published(identity, namespace)),
        None => access,
    })
}

/// The definitions of the Inference Extension, as objects so that Helm never owns them.
fn definitions(parts: &mut Parts<'_, '_, '_>) {
    for definition in crds::inference_extension() {
        let key = format!("gaie-crd-{}", definition.name);
        parts.object(Slot::new(key), None, || definition.document());
    }
}

/// Some clouds refuse system-critical pods in namespaces without such a quota; elsewhere it has no effect.
fn critical_pods_quota(parts: &mut Parts<'_, '_, '_>) {
    parts.object(Slot::new(DRA_DRIVER[1]).together_with(&DRA_DRIVER), None, || {
        let spec = json!({
            "hard": {"pods": "1000"},
            "scopeSelector": {"matchExpressions": [{
                "operator": "In",
                "scopeName": "PriorityClass",
                "values": ["system-node-critical", "system-cluster-critical"],
            }]},
        });
        let namespace = crate::versions::NVIDIA_DRA_DRIVER.namespace;
        KubernetesObject::with_spec("v1", "ResourceQuota", spec)
            .with_metadata(Metadata::named("allow-critical-pods").and_namespace(namespace))
    });
}

/// The Gateway goes before its class, and the class before Envoy Gateway, whose controller clears their
/// finalizers (spec §9).
fn deletion_order(desired: &mut Desired<'_>) {
    let object = |label| UsedBy::sibling(OBJECT_API_VERSION, "Object").labelled(RESOURCE_LABEL, label);
    let release = UsedBy::sibling(RELEASE_API_VERSION, "Release").labelled(RESOURCE_LABEL, ENVOY_GATEWAY);
    let class_by_gateway = usage(object(GATEWAY_CLASS), object(GATEWAY));
    let release_by_class = usage(release, object(GATEWAY_CLASS));
    desired.add("usage-gateway-class-by-gateway", Body::of(&class_by_gateway), Ready::True);
    desired.add("usage-envoy-gw-by-gateway-class", Body::of(&release_by_class), Ready::True);
}

/// The gateway's first address. While the provider does not report the Gateway at all, the address
/// published last stays, since replicas' endpoints are built on it.
fn address<'a>(observed: &Observed<'a>) -> Option<&'a str> {
    let gateway = observed.resources.get(GATEWAY).map(|resource| resource.document);
    let reported = gateway.and_then(|gateway| gateway.get(&["status", "atProvider", "manifest"]));
    let Some(reported) = reported else {
        return observed.composite.document.text_at(&["status", "gateway", "address"]);
    };
    let addresses: Option<Vec<Document<'a>>> = reported.decode_at(&["status", "addresses"]).ok().flatten();
    addresses?.first()?.text_at(&["value"])
}

/// A manifest with a spec, in or out of a namespace.
fn manifest<S>(api_version: &'static str, kind: &'static str, metadata: Metadata, spec: S) -> Manifest<S> {
    KubernetesObject::with_spec(api_version, kind, spec).with_metadata(metadata)
}

type Manifest<S> = KubernetesObject<'static, Spec<S>>;
