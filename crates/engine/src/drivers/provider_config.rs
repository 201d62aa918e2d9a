//! Provider configs: kept as long as an `Object` or `Release` needs them, as Crossplane's providers keep
//! theirs. Without one, nothing could be taken off a cluster any more.

use std::sync::Arc;
use std::time::Duration;

use modelplane_core::compose::object::{OBJECT_API_VERSION, RELEASE_API_VERSION};
use modelplane_core::simulate::ObjectKey;

use super::status::add_finalizer;
use super::{OBJECT_GROUP, RELEASE_GROUP};
use crate::cache::Caches;
use crate::clusters::provider_config_of;
use crate::composite::remove_finalizer;
use crate::controller::{Controller, Next, ReconcileError};
use crate::metrics::{ControllerMetrics, Metrics};
use crate::object::Stored;
use crate::queue::WorkQueue;

/// Finalizer of provider configs.
const FINALIZER: &str = "in-use.crossplane.io";
/// How soon a provider config that is held is looked at without a reason.
const SOON: Duration = Duration::from_secs(30);

/// Keeps provider configs that are needed.
pub struct ProviderConfigController {
    pub(crate) caches: Arc<Caches>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) queue: WorkQueue,
}

impl Controller for ProviderConfigController {
    const NAME: &'static str = "providerconfig";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(config) = self.caches.get(key) else { return Ok(Next::OnChange) };
        if !config.is_deleting() {
            add_finalizer(&self.caches, &config, FINALIZER).await?;
            return Ok(Next::OnChange);
        }
        if !config.finalizers().contains(&FINALIZER) {
            return Ok(Next::OnChange);
        }
        if let Some(user) = self.user_of(key).await? {
            tracing::debug!(config = %key, user = %user.key, "held until nothing needs it");
            return Ok(Next::After(SOON));
        }
        remove_finalizer(self.caches.api(), &config, FINALIZER).await?;
        Ok(Next::OnChange)
    }

    fn metrics(&self) -> &ControllerMetrics {
        &self.metrics.provider_configs
    }
}

impl ProviderConfigController {
    /// Some object that needs the provider config.
    async fn user_of(&self, config: &ObjectKey) -> Result<Option<Arc<Stored>>, ReconcileError> {
        let (api_version, kind) = match config.group.as_str() {
            OBJECT_GROUP => (OBJECT_API_VERSION, "Object"),
            RELEASE_GROUP => (RELEASE_API_VERSION, "Release"),
            _ => return Ok(None),
        };
        let users = self.caches.kind(api_version, kind).await;
        let users = users.map_err(|error| ReconcileError::Other(error.to_string()))?;
        let namespace = Some(config.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        Ok(users.list(namespace).into_iter().find(|user| provider_config_of(user) == *config))
    }
}
