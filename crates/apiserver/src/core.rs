//! What every request shares: the store, the registry, the clock and randomness.

use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use modelplane_store::{Entry, ListRequest, ReadError, Store, Write, WriteError};
use rustls::crypto::CryptoProvider;
use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard, watch};

use crate::access::Access;
use crate::audit::AuditLog;
use crate::guard::DeletionGuard;
use crate::metrics::Metrics;
use crate::object::encode;
use crate::options::Profile;
use crate::registry::resource::Special;
use crate::registry::{Registry, Resource, builtin, custom};
use crate::status::{ApiError, ApiResult};

/// The server's state.
pub(crate) struct Core {
    pub(crate) store: Store,
    pub(crate) access: Access,
    pub(crate) audit: Option<AuditLog>,
    pub(crate) deletion_guard: Option<Arc<dyn DeletionGuard>>,
    /// Whether `/debug/profile` is served.
    pub(crate) debug_profile: bool,
    pub(crate) metrics: Metrics,
    registry: RwLock<Arc<Registry>>,
    /// Held while a CustomResourceDefinition changes, so that the registry follows the store.
    definitions: Mutex<()>,
    /// Becomes true when the server stops; watches end.
    pub(crate) stopping: watch::Sender<bool>,
    provider: CryptoProvider,
}

const NAME_SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The group and plural of CustomResourceDefinitions.
pub(crate) const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

impl Core {
    /// State over a store, with the kinds of the profile and of the stored definitions.
    pub(crate) fn new(store: Store, profile: Profile) -> ApiResult<Core> {
        let core = Core {
            access: Access::open(&store).map_err(ApiError::internal)?,
            audit: None,
            deletion_guard: None,
            debug_profile: false,
            metrics: Metrics::new(),
            registry: RwLock::new(Arc::new(Registry::new(
                builtin::resources(profile).into_iter().map(Arc::new),
            ))),
            definitions: Mutex::new(()),
            stopping: watch::Sender::new(false),
            provider: rustls::crypto::ring::default_provider(),
            store,
        };
        core.load_definitions()?;
        Ok(core)
    }

    fn load_definitions(&self) -> ApiResult<()> {
        let prefix = crate::registry::resource::prefix(DEFINITIONS.0, DEFINITIONS.1);
        let page =
            self.store.list(ListRequest { prefix: &prefix, ..ListRequest::default() }).map_err(read_error)?;
        let custom = page.entries.iter().filter_map(|entry| {
            let definition: Value = serde_json::from_slice(&entry.value).ok()?;
            let established = custom::is_established(&definition);
            established.then(|| custom::resource(&definition, &entry.value, entry.modified)).flatten()
        });
        let builtin = self.registry().resources().into_iter().cloned().collect::<Vec<_>>();
        self.set_registry(Registry::new(builtin.into_iter().chain(custom.map(Arc::new))));
        Ok(())
    }

    /// The current snapshot of what is served.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn set_registry(&self, registry: Registry) {
        *self.registry.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(registry);
    }

    /// Keeps definitions from changing until the guard is dropped; `None` for other kinds.
    pub(crate) async fn hold_definitions(&self, resource: &Resource) -> Option<MutexGuard<'_, ()>> {
        if resource.rules.special == Special::CustomResourceDefinition {
            Some(self.definitions.lock().await)
        } else {
            None
        }
    }

    /// Serves what a definition says from now on. The caller holds the definitions.
    pub(crate) fn definition_written(&self, definition: &Value, stored: &Bytes, revision: u64) {
        if !custom::is_established(definition) {
            return;
        }
        let (group, plural) = custom::group_and_plural(definition);
        let registry = self.registry();
        let before = registry.resource(&group, &plural);
        let made = custom::resource(definition, stored, revision);
        // A change of the status alone leaves the resource, and the watches on it, as they are.
        if let (Some(before), Some(made)) = (before, &made)
            && before.origin.generation() == made.origin.generation()
        {
            return;
        }
        if let Some(before) = before {
            before.closed.send_replace(true);
        }
        self.set_registry(match made {
            Some(resource) => registry.with(Arc::new(resource)),
            None => registry.without(&group, &plural),
        });
    }

    /// Serves a definition's resource no more. The caller holds the definitions.
    pub(crate) fn definition_deleted(&self, definition: &Value) {
        let (group, plural) = custom::group_and_plural(definition);
        let registry = self.registry();
        if let Some(before) = registry.resource(&group, &plural) {
            before.closed.send_replace(true);
        }
        self.set_registry(registry.without(&group, &plural));
    }

    /// Reads one stored object.
    pub(crate) fn read(&self, key: &str) -> ApiResult<Option<Entry>> {
        self.store.get(key).map_err(read_error)
    }

    /// Makes a change; `Err(None)` means that the object is not as expected and the caller should look again.
    pub(crate) async fn write(&self, write: Write) -> Result<u64, Option<ApiError>> {
        match self.store.write(write).await {
            Ok(written) => Ok(written.revision),
            Err(WriteError::Exists { .. } | WriteError::NotFound { .. } | WriteError::Conflict { .. }) => {
                Err(None)
            }
            Err(error) => Err(Some(ApiError::internal(error))),
        }
    }

    /// The time now, as Kubernetes writes times.
    pub(crate) fn now(&self) -> String {
        let now = jiff::Timestamp::now();
        now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    fn random(&self, bytes: &mut [u8]) -> ApiResult<()> {
        self.provider
            .secure_random
            .fill(bytes)
            .map_err(|_| ApiError::internal("the operating system gave no randomness"))
    }

    /// A random (version 4) UUID.
    pub(crate) fn uid(&self) -> ApiResult<String> {
        let mut bytes = [0; 16];
        self.random(&mut bytes)?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let mut text = String::with_capacity(36);
        for (index, byte) in bytes.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(digit), 16).expect("a nibble is a hexadecimal digit"));
            }
        }
        Ok(text)
    }

    /// The random end of a generated name.
    pub(crate) fn name_suffix(&self) -> ApiResult<String> {
        let mut bytes = [0; 5];
        self.random(&mut bytes)?;
        let letter =
            |byte: u8| char::from(NAME_SUFFIX_ALPHABET[usize::from(byte) % NAME_SUFFIX_ALPHABET.len()]);
        Ok(bytes.into_iter().map(letter).collect())
    }

    /// A fraction in 0..1, for jitter.
    pub(crate) fn fraction(&self) -> f64 {
        let mut bytes = [0; 2];
        // Without randomness there is no jitter, which harms nothing.
        let _ = self.random(&mut bytes);
        f64::from(u16::from_le_bytes(bytes)) / f64::from(u16::MAX)
    }

    /// A namespace as stored.
    pub(crate) fn namespace(&self, name: &str) -> ApiResult<Option<encode::Glance>> {
        let entry = self.read(&format!("core/namespaces/{name}"))?;
        Ok(entry.map(|entry| encode::Glance::of(&entry.value)))
    }
}

/// A failed read as the client sees it.
pub(crate) fn read_error(error: ReadError) -> ApiError {
    match error {
        ReadError::Compacted(compacted) => ApiError::expired(format!(
            "The resourceVersion for the provided list is too old: {} ({})",
            compacted.requested, compacted.oldest
        )),
        ReadError::Future { requested, current } => ApiError::future_revision(requested, current),
        other => ApiError::internal(other),
    }
}
