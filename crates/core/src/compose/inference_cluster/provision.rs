//! The cluster itself: provisioned on a cloud, or one that exists (spec clusters §3.5 to §3.7, §3.8.3).

use modelplane_api::common::{ClusterSecret, SecretType};
use modelplane_api::names::SERVING_STACK_KEY;

use super::backend::Access;
use super::{PROVIDER_CONFIG_KEY, Pass, Provisioned};
use crate::compose::cluster::Provider;
use crate::compose::cluster::provider::{ChildError, ClusterRequest};
use crate::contract::{Ready, Resource};
use crate::document::Document;

/// Composes the cloud's own cluster kind; `None` if the source says nothing about that cloud.
///
/// A cluster that cannot be composed because of a pool or class stays as it is.
pub(super) fn compose(pass: &mut Pass<'_, '_>, provider: &'static Provider) -> Option<Provisioned> {
    let key = provider.child_key();
    let child = pass.observed.resources.get_key_value(key.as_str());
    let provisioned = observe(pass, provider, child.map(|(_, child)| child));
    let ready = Ready::when(provisioned.running);

    let pools = pass.classes.of_all(&pass.spec.node_pools);
    let composed = pools.map(|pools| {
        (provider.child)(&ClusterRequest { name: pass.name, source: &pass.spec.cluster, pools: &pools })
    });
    match composed {
        Some(Ok(body)) => pass.desired.add(key, body, ready),
        Some(Err(error @ ChildError::NoSource { .. })) => {
            pass.lacks_source(error.to_string());
            return None;
        }
        failed => {
            if let Some(Err(error)) = failed {
                pass.report(error.to_string());
            }
            match child {
                // Without this the composite would have nothing that is not ready.
                None => pass.desired.ready = Ready::False,
                Some((key, child)) => pass.desired.hold_as(key, child, ready),
            }
        }
    }
    Some(provisioned)
}

/// What the cloud's cluster says of itself.
///
/// It runs once it is ready and has said how to reach it. Should it later lose what it said, it still runs.
fn observe(pass: &Pass<'_, '_>, provider: &'static Provider, child: Option<&Resource<'_>>) -> Provisioned {
    let Some(child) = child else { return Provisioned::default() };
    let ready = child.is_true("Ready");
    let secrets = published_secrets(child);
    let lost_status = secrets.is_empty();
    let access = if ready { Access::published(secrets, provider.identity) } else { None };
    let known =
        access.is_some() || pass.observed.has(SERVING_STACK_KEY) || pass.observed.has(PROVIDER_CONFIG_KEY);
    let storage_class = ["status", "cache", "storageClassName"];
    let storage_class = match child.document.text_at(&storage_class) {
        None if lost_status => pass.observed.composite.document.text_at(&storage_class),
        published => published,
    };
    let waiting_for = (ready && !known).then(|| {
        let kind = provider.cluster.kind;
        format!(
            "{kind} {} is ready but has no {} in status.secrets",
            pass.name,
            SecretType::Kubeconfig.as_str()
        )
    });
    Provisioned {
        access,
        running: ready && known,
        waiting_for,
        storage_class: storage_class.map(str::to_owned),
    }
}

/// The secrets a cluster publishes; entries that cannot be read are left out.
fn published_secrets(child: &Resource<'_>) -> Vec<ClusterSecret> {
    let entries: Vec<Document<'_>> =
        child.document.decode_at(&["status", "secrets"]).ok().flatten().unwrap_or_default();
    entries.iter().filter_map(|entry| entry.decode().ok()).collect()
}

/// A cluster that exists: it always runs, and the source says how to reach it. `None` if it does not.
pub(super) fn existing(pass: &mut Pass<'_, '_>) -> Option<Provisioned> {
    let Some(existing) = &pass.spec.cluster.existing else {
        pass.lacks_source("spec.cluster.existing is missing, which source Existing needs".to_owned());
        return None;
    };
    let kubeconfig = ClusterSecret {
        type_: SecretType::Kubeconfig,
        name: existing.secret_ref.name.clone(),
        key: existing.secret_ref.key().to_owned(),
        namespace: None,
    };
    let identity = existing.identity_secret_ref.as_ref().map(|identity| ClusterSecret {
        type_: identity.type_or_default(),
        name: identity.name.clone(),
        key: identity.key().to_owned(),
        namespace: None,
    });
    let secrets = std::iter::once(kubeconfig.clone()).chain(identity.clone()).collect();
    Some(Provisioned {
        access: Some(Access { kubeconfig, identity, secrets }),
        running: true,
        waiting_for: None,
        storage_class: existing.cache.as_ref().and_then(|cache| cache.storage_class_name.clone()),
    })
}
