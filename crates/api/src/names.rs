//! Every name that Modelplane gives: how object names are derived, and, in the submodules, the keys of composed
//! resources and the labels.
//!
//! Derived names are part of the published behaviour: the same inputs give the names a running fleet already
//! has (spec scheduling §6, replica §2, cache §4.1, clusters §0.5). Where the published rule would give an
//! invalid name, which no API server ever accepted, a valid one is given instead.

use std::borrow::Cow;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

mod keys;
mod labels;

pub use keys::*;
pub use labels::*;

/// Longest name of an object whose name also appears as a DNS label or a label value.
pub const MAX_NAME: usize = 63;
/// Longest name of a gang's workload: its pods are called `<name>-<group>-<worker>` and carry
/// `<name>-<group>-<revision hash>` as a label value.
const MAX_GANG_NAME: usize = 49;
/// Hexadecimal digits of the hash in a derived name.
const HASH_DIGITS: usize = 5;

/// Namespace of Modelplane's own objects, on the control plane and on every cluster.
pub const SYSTEM_NAMESPACE: &str = "modelplane-system";
/// Namespace on a cluster in which models run.
pub const WORKLOAD_NAMESPACE: &str = "default";
/// Name of the one InferenceGateway of a fleet.
pub const DEFAULT_GATEWAY: &str = "default";
/// Name of the Gateway on the control plane.
pub const FLEET_GATEWAY: &str = "modelplane";
/// Name of the controller of GatewayClasses that Modelplane's own data plane serves.
pub const GATEWAY_CONTROLLER: &str = "modelplane.ai/gateway-controller";
/// Name of the workload of Modelplane's own data plane on the control plane, and of what belongs to it.
pub const GATEWAY_WORKLOAD: &str = "modelplane-gateway";
/// Name of the Gateway on each cluster.
pub const CLUSTER_GATEWAY: &str = "inference-gateway";
/// Name of the provider configuration with which the control plane installs on itself.
pub const IN_CLUSTER_PROVIDER_CONFIG: &str = "modelplane-in-cluster";

/// Joins the parts with `-` and appends a hash of the whole: `qwen`, `main` gives `qwen-main-` and 5 digits.
/// At most 63 characters whatever the parts.
pub fn child_name(parts: &[&str]) -> String {
    let joined = parts.join("-");
    hashed(&joined, &joined, MAX_NAME)
}

/// Name of a replica and of its endpoint, the same for both (spec scheduling §6). Unlike [`child_name`] it
/// shows only the deployment; cluster and index are in the hash.
pub fn replica_name(deployment: &str, cluster: &str, index: u32) -> String {
    hashed(deployment, &format!("{deployment}-{cluster}-{index}"), MAX_NAME)
}

/// Name of the Deployment of an engine (spec replica §2).
pub fn workload_name(replica: &str, engine: &str) -> String {
    child_name(&[replica, engine])
}

/// Name of the LeaderWorkerSet of an engine: [`workload_name`], but short enough that the names and labels
/// derived for its pods are valid too.
pub fn gang_name(replica: &str, engine: &str) -> String {
    let name = workload_name(replica, engine);
    if name.len() <= MAX_GANG_NAME {
        return name;
    }
    let joined = format!("{replica}-{engine}");
    hashed(&joined, &joined, MAX_GANG_NAME)
}

/// Name of the ResourceClaimTemplate of a member (spec replica §2).
pub fn claim_template_name(replica: &str, engine: &str, role: crate::template::MemberRole) -> String {
    child_name(&[replica, engine, role.lowercase(), "devices"])
}

/// Name of the InferencePool of a replica.
pub fn pool_name(replica: &str) -> String {
    format!("{replica}-pool")
}

/// Name of the endpoint picker of a replica and of everything that belongs to it. `<replica>-epp` where that
/// is a valid Service name, else a derived one.
pub fn picker_name(replica: &str) -> String {
    service_name(&format!("{replica}-epp"))
}

/// Name of the volume claim of a cache, the same on every cluster (spec cache §4.1).
pub fn cache_claim_name(namespace: &str, cache: &str) -> String {
    child_name(&["modelcache", namespace, cache])
}

/// Name of the Job that downloads a cache.
pub fn cache_job_name(namespace: &str, cache: &str) -> String {
    child_name(&["modelcache", namespace, cache, "hydrate"])
}

/// Name of the Secret with the token to download a cache.
pub fn cache_secret_name(namespace: &str, cache: &str) -> String {
    child_name(&["modelcache", namespace, cache, "auth"])
}

/// Name of the ServingStack of a cluster (spec serving-stack §3).
pub fn serving_stack_name(cluster: &str) -> String {
    child_name(&[cluster, "serving-stack"])
}

/// Name of the kubeconfig Secret of a provisioned cluster and of the provider configurations that use it.
pub fn kubeconfig_name(cluster: &str) -> String {
    child_name(&[cluster, "kubeconfig"])
}

/// Name of the ClusterProviderConfig that reaches a cluster of the fleet.
pub fn cluster_kubeconfig_name(cluster: &str) -> String {
    child_name(&[cluster, "cluster-kubeconfig"])
}

/// Name of the provider configurations of a serving stack.
pub fn stack_provider_config_name(stack: &str) -> String {
    child_name(&[stack, "cluster"])
}

/// Path under which a replica, endpoint or service is reached on a gateway, with slashes at both ends.
pub fn route_path(namespace: &str, name: &str) -> String {
    format!("/{namespace}/{name}/")
}

/// The text itself if it is a valid Service name (RFC 1035 label), else a valid name derived from it.
pub fn service_name(text: &str) -> String {
    if is_rfc1035_label(text) {
        return text.to_owned();
    }
    let mut cleaned: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    if !cleaned.starts_with(|c: char| c.is_ascii_lowercase()) {
        cleaned.insert(0, 'x');
    }
    hashed(&cleaned, text, MAX_NAME)
}

/// The text itself if it is a valid label value, else a valid one derived from it.
pub fn label_value(text: &str) -> Cow<'_, str> {
    if is_label_value(text) {
        return Cow::Borrowed(text);
    }
    let cleaned: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' })
        .collect();
    Cow::Owned(hashed(cleaned.trim_start_matches(['-', '_', '.']), text, MAX_NAME))
}

/// Lower-case hexadecimal SHA-256 of a text, e.g. for checksum annotations.
pub fn sha256_hex(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Whether the text is a valid RFC 1035 label, as Service names must be.
pub fn is_rfc1035_label(text: &str) -> bool {
    text.len() <= MAX_NAME
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Whether the text is a valid RFC 1123 subdomain, as most object names must be.
pub fn is_rfc1123_subdomain(text: &str) -> bool {
    let edge = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.len() <= 253
        && text.split('.').all(|label| {
            let bytes = label.as_bytes();
            bytes.first().is_some_and(edge)
                && bytes.last().is_some_and(edge)
                && bytes.iter().all(|b| edge(b) || *b == b'-')
        })
}

/// Whether the text is a valid label value: empty, or up to 63 characters with a letter or digit at both ends.
pub fn is_label_value(text: &str) -> bool {
    let edge = |b: &u8| b.is_ascii_alphanumeric();
    let bytes = text.as_bytes();
    bytes.len() <= MAX_NAME
        && bytes.first().is_none_or(edge)
        && bytes.last().is_none_or(edge)
        && bytes.iter().all(|b| edge(b) || matches!(b, b'-' | b'_' | b'.'))
}

/// As much of `shown` as fits, `-`, and a hash of `identity`; at most `max` characters.
fn hashed(shown: &str, identity: &str, max: usize) -> String {
    let prefix: String = shown.chars().take(max - HASH_DIGITS - 1).collect();
    // A name must not have a dot beside a dash; the published rule strips only dashes, which leaves an
    // invalid name where the cut falls behind a dot.
    let prefix = prefix.trim_end_matches(['-', '.', '_']);
    let hash = sha256_hex(identity);
    let hash = &hash[..HASH_DIGITS];
    if prefix.is_empty() { hash.to_owned() } else { format!("{prefix}-{hash}") }
}
