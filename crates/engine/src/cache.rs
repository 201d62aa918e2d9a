//! Objects of watched kinds, always current: read here, written to the API server.
//!
//! A kind is watched from the first time somebody asks for it. What the engine writes is put in at once, so
//! it reads its own writes; the watch later brings the same revision and changes nothing. Listeners hear of
//! every change that is one, outside of any lock.

mod kind;
mod reflector;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use modelplane_core::simulate::ObjectKey;
use tokio::sync::watch;

pub use self::kind::{Change, Keep, KindCache};
use crate::client::{ApiClient, ClientError, Resource};
use crate::metrics::{Metrics, count};
use crate::object::{Stored, group};

/// Somebody who wants to hear of changes; must not block.
pub trait Listener: Send + Sync {
    /// An object appeared, changed or went.
    fn changed(&self, change: &Change);

    /// The API server does not answer, or does not accept who asks.
    fn failing(&self, error: &ClientError) {
        let _ = error;
    }
}

/// The kinds of one API server.
pub struct Caches {
    api: ApiClient,
    keep: Keep,
    listener: Arc<dyn Listener>,
    kinds: Mutex<HashMap<(String, String), Arc<KindCache>>>,
    metrics: Arc<Metrics>,
    stop: watch::Sender<bool>,
}

/// A kind could not be made available.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The API server could not say what serves the kind.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The kind cannot be listed.
    #[error("{kind} of {api_version} cannot be listed: {problem}")]
    Failing {
        /// `group/version`, or `v1`.
        api_version: String,
        /// Kind.
        kind: String,
        /// What the API server said last.
        problem: String,
    },
    /// The first list did not come in time.
    #[error("{kind} of {api_version} could not be listed in time")]
    Slow {
        /// `group/version`, or `v1`.
        api_version: String,
        /// Kind.
        kind: String,
    },
}

/// How long the first list of a kind may take.
const FIRST_LIST: Duration = Duration::from_secs(30);

impl Caches {
    /// Watches nothing yet.
    pub fn new(api: ApiClient, keep: Keep, listener: Arc<dyn Listener>, metrics: Arc<Metrics>) -> Self {
        let (stop, _) = watch::channel(false);
        Self { api, keep, listener, kinds: Mutex::default(), metrics, stop }
    }

    /// The API server's client.
    pub fn api(&self) -> &ApiClient {
        &self.api
    }

    /// The cache of a kind, once its first list is in.
    ///
    /// # Errors
    ///
    /// If the kind is not served, or cannot be listed.
    pub async fn kind(&self, api_version: &str, kind: &str) -> Result<Arc<KindCache>, CacheError> {
        let cache = self.start(api_version, kind).await?;
        let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
        match tokio::time::timeout(FIRST_LIST, cache.listed()).await {
            Ok(Ok(())) => Ok(cache),
            Ok(Err(problem)) => Err(CacheError::Failing { api_version, kind, problem }),
            Err(_) => Err(CacheError::Slow { api_version, kind }),
        }
    }

    /// The cache of a kind, which may not have listed it yet.
    ///
    /// # Errors
    ///
    /// If the kind is not served.
    pub async fn start(&self, api_version: &str, kind: &str) -> Result<Arc<KindCache>, CacheError> {
        let id = (group(api_version).to_owned(), kind.to_owned());
        if let Some(known) = self.known(&id) {
            return Ok(known);
        }
        match self.api.resource(api_version, kind).await {
            Ok(resource) => Ok(self.insert(id, resource)),
            Err(error) => {
                if error.fault().is_some() {
                    self.listener.failing(&error);
                }
                Err(error.into())
            }
        }
    }

    fn insert(&self, id: (String, String), resource: Resource) -> Arc<KindCache> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = kinds.entry(id).or_insert_with(|| {
            count(&self.metrics.watches);
            let cache = Arc::new(KindCache::new(resource, self.keep, Arc::clone(&self.listener)));
            tokio::spawn(reflector::run(self.api.clone(), Arc::clone(&cache), self.stop.subscribe()));
            cache
        });
        Arc::clone(entry)
    }

    fn known(&self, id: &(String, String)) -> Option<Arc<KindCache>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// An object of a kind that is being watched already.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Stored>> {
        self.known(&(key.group.clone(), key.kind.clone()))?.get(&key.namespace, &key.name)
    }

    /// The cache of a kind that is being watched already.
    pub fn watched(&self, group: &str, kind: &str) -> Option<Arc<KindCache>> {
        self.known(&(group.to_owned(), kind.to_owned()))
    }

    /// The objects that the owner of that uid controls, of all kinds being watched.
    pub fn controlled_by(&self, uid: &str) -> Vec<Arc<Stored>> {
        let kinds: Vec<Arc<KindCache>> =
            self.kinds.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        let objects = kinds.iter().flat_map(|kind| kind.list(None));
        objects.filter(|object| object.controller().is_some_and(|owner| owner.uid == uid)).collect()
    }

    /// Puts in what the API server answered to a write.
    pub fn put(&self, written: serde_json::Value) -> Option<Arc<Stored>> {
        let stored = Arc::new(Stored::from_value(written)?);
        if let Some(cache) = self.known(&(stored.key.group.clone(), stored.key.kind.clone())) {
            cache.put(Arc::clone(&stored));
        }
        Some(stored)
    }

    /// Ends all watches.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }
}

impl Drop for Caches {
    fn drop(&mut self) {
        self.stop();
    }
}
