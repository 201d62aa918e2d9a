//! The clusters that drivers work on: provider configs turned into clients.
//!
//! A provider config names a kubeconfig in a Secret. Provider configs with the same kubeconfig share one
//! [`Cluster`], hence one client and one set of watches; when the Secret changes, a new one takes its
//! place. Cloud identities on top of a kubeconfig need the cloud's own sign-in, which Crossplane's providers
//! have and this program has not: that is an error people can read, except on simulated clusters.
//! Whether a cluster answers at all is looked at in one place ([`health`]), not by every object on it.

mod health;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_util::future::BoxFuture;
use modelplane_core::simulate::ObjectKey;
use sha2::{Digest, Sha256};

use self::health::Health;
pub use self::health::Trouble;
use crate::cache::{Caches, Change, Keep, Listener};
use crate::client::{ApiClient, ClientError};
use crate::composite::secret_data;
use crate::metrics::Metrics;
use crate::object::{Stored, key};
use crate::queue::WorkQueue;

/// Makes clients of kubeconfigs.
pub trait ClusterConnector: Send + Sync {
    /// A client for the current context of a kubeconfig; the error says what is wrong with it.
    fn connect<'a>(&'a self, kubeconfig: &'a str) -> BoxFuture<'a, Result<Connection, String>>;
}

/// A client and what it leads to.
#[derive(Clone)]
pub struct Connection {
    /// The client.
    pub client: kube::Client,
    /// Whether the cluster is simulated: charts are only recorded there.
    pub simulated: bool,
}

/// Connects over the network, as kubectl would; programs in a kubeconfig (`exec`) are not run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Network;

/// A cluster that drivers work on.
pub struct Cluster {
    /// Its objects, as far as drivers keep them.
    pub caches: Caches,
    /// How it is reached; none for the control plane itself.
    pub kubeconfig: Option<String>,
    /// Whether it is simulated.
    pub simulated: bool,
    users: Arc<Users>,
    health: Arc<Health>,
}

/// Where a provider config has its kubeconfig from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The provider config.
    pub object: ObjectKey,
    /// The Secret; none if it means the control plane itself.
    pub secret: Option<ObjectKey>,
    /// Its key.
    pub entry: String,
}

/// Why a cluster cannot be worked on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// There is no such provider config.
    #[error("{0} does not exist")]
    NoProviderConfig(ObjectKey),
    /// The provider config cannot be used.
    #[error("{object}: {problem}")]
    Malformed {
        /// The provider config.
        object: ObjectKey,
        /// What is wrong with it.
        problem: String,
    },
    /// The kubeconfig is not there (yet).
    #[error("{} has no kubeconfig: put one there", .0)]
    NoKubeconfig(Box<Source>),
    /// The cluster wants a sign-in that only Crossplane's providers have.
    #[error(
        "{object}: identity {identity} needs Crossplane and its provider; the embedded engine signs in by kubeconfig only"
    )]
    NeedsCrossplane {
        /// The provider config.
        object: ObjectKey,
        /// Type of the identity.
        identity: String,
    },
    /// No client could be made.
    #[error("{kubeconfig} holds no usable kubeconfig: {problem}; {REPLACE_KUBECONFIG}")]
    Connect {
        /// Where the kubeconfig is.
        kubeconfig: Box<Source>,
        /// What is wrong with it.
        problem: String,
    },
    /// The cluster does not answer.
    #[error(
        "the cluster cannot be reached with the kubeconfig in {kubeconfig}: {problem}; it is tried again until it answers"
    )]
    Unreachable {
        /// Where the kubeconfig is.
        kubeconfig: Box<Source>,
        /// What happens.
        problem: String,
    },
    /// The cluster does not accept the credentials.
    #[error(
        "the cluster does not accept the credentials of the kubeconfig in {kubeconfig}: {problem}; {REPLACE_KUBECONFIG}"
    )]
    Unauthorized {
        /// Where the kubeconfig is.
        kubeconfig: Box<Source>,
        /// What it says.
        problem: String,
    },
}

/// What to do about a kubeconfig that is of no use.
const REPLACE_KUBECONFIG: &str =
    "replace it, for example with the output of `kubectl config view --raw --minify --flatten`";

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.secret {
            Some(secret) => write!(f, "{secret}, key {:?} (named by {})", self.entry, self.object),
            None => write!(f, "{} (this control plane)", self.object),
        }
    }
}

/// All clusters.
pub struct Clusters {
    control_plane: Arc<Caches>,
    connector: Arc<dyn ClusterConnector>,
    simulate_control_plane: bool,
    metrics: Arc<Metrics>,
    inner: Arc<Mutex<Inner>>,
}

type Fingerprint = [u8; 32];

#[derive(Default)]
struct Inner {
    /// By the kubeconfig's digest.
    clusters: HashMap<Fingerprint, Weak<Cluster>>,
    /// The cluster in use of each provider config, which keeps it alive.
    configs: HashMap<ObjectKey, (Fingerprint, Arc<Cluster>)>,
    /// Who uses a provider config, and with which queue to wake them.
    users: HashMap<ObjectKey, HashMap<ObjectKey, WorkQueue>>,
    /// Which provider configs take something from a Secret.
    secrets: HashMap<ObjectKey, BTreeSet<ObjectKey>>,
}

/// Who is to hear of changes of an object on a cluster.
#[derive(Default)]
struct Users(Mutex<HashMap<ObjectKey, HashMap<ObjectKey, WorkQueue>>>);

/// Tells users what changes on their cluster, and the health check what fails there.
struct Ears {
    users: Arc<Users>,
    health: Arc<Health>,
}

/// A user of a cluster: an `Object` or a `Release`.
#[derive(Debug, Clone, Copy)]
pub struct User<'a> {
    /// The object.
    pub object: &'a Stored,
    /// The queue it is worked on from.
    pub queue: &'a WorkQueue,
}

impl ClusterConnector for Network {
    fn connect<'a>(&'a self, kubeconfig: &'a str) -> BoxFuture<'a, Result<Connection, String>> {
        Box::pin(async move {
            let kubeconfig =
                kube::config::Kubeconfig::from_yaml(kubeconfig).map_err(|error| error.to_string())?;
            refuse_local(&kubeconfig)?;
            let options = kube::config::KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options);
            let config = config.await.map_err(|error| error.to_string())?;
            let client = kube::Client::try_from(config).map_err(|error| error.to_string())?;
            Ok(Connection { client, simulated: false })
        })
    }
}

/// A Secret must not be able to start programs here, nor to have files of this machine sent elsewhere.
fn refuse_local(kubeconfig: &kube::config::Kubeconfig) -> Result<(), String> {
    for user in kubeconfig.auth_infos.iter().filter_map(|user| user.auth_info.as_ref()) {
        if user.exec.is_some() || user.auth_provider.is_some() {
            return Err("users with exec or auth-provider are not supported".to_owned());
        }
        let files = [&user.token_file, &user.client_certificate, &user.client_key];
        if files.into_iter().any(Option::is_some) {
            return Err(
                "users with credentials in files are not supported, they have to be embedded".to_owned()
            );
        }
    }
    let mut clusters = kubeconfig.clusters.iter().filter_map(|cluster| cluster.cluster.as_ref());
    if clusters.any(|cluster| cluster.certificate_authority.is_some()) {
        return Err("a certificate-authority in a file is not supported, it has to be embedded".to_owned());
    }
    Ok(())
}

impl Listener for Ears {
    fn changed(&self, change: &Change) {
        let Some(object) = change.key() else { return };
        let users = self.users.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (user, queue) in users.get(object).into_iter().flatten() {
            queue.add(user.clone());
        }
    }

    fn failing(&self, _: &ClientError) {
        self.health.suspect();
    }
}

impl Cluster {
    /// What is wrong with the cluster as a whole, if anything is.
    pub fn trouble(&self) -> Option<Trouble> {
        self.health.trouble()
    }

    /// Has the cluster looked at, as after a failure that may be its own.
    pub(crate) fn suspect(&self) {
        self.health.suspect();
    }

    /// Has the cluster looked at if a failed request is its fault.
    pub(crate) fn note<T>(&self, answer: Result<T, ClientError>) -> Result<T, ClientError> {
        if let Err(error) = &answer
            && error.fault().is_some()
        {
            self.health.suspect();
        }
        answer
    }

    /// Wakes a user on changes of an object from now on.
    pub fn follow(&self, object: &ObjectKey, user: &ObjectKey, queue: &WorkQueue) {
        let mut users = self.users.0.lock().unwrap_or_else(PoisonError::into_inner);
        users.entry(object.clone()).or_default().insert(user.clone(), queue.clone());
    }

    /// Wakes a user no longer; the object is no longer kept if that was the last.
    pub fn unfollow(&self, object: &ObjectKey, user: &ObjectKey) {
        let mut users = self.users.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(of_object) = users.get_mut(object) else { return };
        of_object.remove(user);
        if of_object.is_empty() {
            users.remove(object);
            drop(users);
            if let Some(kind) = self.caches.watched(&object.group, &object.kind) {
                kind.unsubscribe(&object.namespace, &object.name);
            }
        }
    }
}

impl Clusters {
    /// No clusters yet.
    pub fn new(
        control_plane: Arc<Caches>,
        connector: Arc<dyn ClusterConnector>,
        simulate_control_plane: bool,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self { control_plane, connector, simulate_control_plane, metrics, inner: Arc::default() }
    }

    /// The cluster of a user's provider config; the user is woken when that changes.
    ///
    /// # Errors
    ///
    /// Why it cannot be worked on.
    pub async fn of(&self, user: &User<'_>) -> Result<Arc<Cluster>, AccessError> {
        let config_key = provider_config_of(user.object);
        self.lock()
            .users
            .entry(config_key.clone())
            .or_default()
            .insert(user.object.key.clone(), user.queue.clone());
        let config = self
            .control_plane
            .get(&config_key)
            .ok_or_else(|| AccessError::NoProviderConfig(config_key.clone()))?;
        let source = self.source(&config)?;
        let kubeconfig = self.kubeconfig(&source)?;
        let fingerprint: Fingerprint =
            Sha256::digest(kubeconfig.as_deref().unwrap_or_default().as_bytes()).into();
        let known = self.known(&config_key, &fingerprint);
        let cluster = match known {
            Some(cluster) => cluster,
            None => self.connect(&source, fingerprint, kubeconfig).await?,
        };
        if let Some(identity) = config.text_at(&["spec", "identity", "type"])
            && !cluster.simulated
        {
            let identity = identity.to_owned();
            return Err(AccessError::NeedsCrossplane { object: config_key, identity });
        }
        let source = Box::new(source);
        match cluster.trouble() {
            None => Ok(cluster),
            Some(Trouble::Unreachable(problem)) => {
                Err(AccessError::Unreachable { kubeconfig: source, problem })
            }
            Some(Trouble::Unauthorized(problem)) => {
                Err(AccessError::Unauthorized { kubeconfig: source, problem })
            }
        }
    }

    /// Where a provider config has its kubeconfig from.
    fn source(&self, config: &Stored) -> Result<Source, AccessError> {
        let object = config.key.clone();
        let credentials = |field: &str| config.text_at(&["spec", "credentials", field]);
        match credentials("source") {
            Some("InjectedIdentity") => return Ok(Source { object, secret: None, entry: String::new() }),
            Some("Secret") => {}
            other => {
                let problem =
                    format!("spec.credentials.source {:?} is not supported", other.unwrap_or_default());
                return Err(AccessError::Malformed { object, problem });
            }
        }
        let reference = |field: &str| config.text_at(&["spec", "credentials", "secretRef", field]);
        let (Some(name), Some(entry)) = (reference("name"), reference("key")) else {
            let problem = "spec.credentials.secretRef has no name or no key".to_owned();
            return Err(AccessError::Malformed { object, problem });
        };
        let namespace = reference("namespace").unwrap_or(&config.key.namespace);
        let secret = key("", "Secret", namespace, name);
        self.lock().secrets.entry(secret.clone()).or_default().insert(object.clone());
        Ok(Source { object, secret: Some(secret), entry: entry.to_owned() })
    }

    /// The kubeconfig of a source; none if it means the control plane itself.
    fn kubeconfig(&self, source: &Source) -> Result<Option<String>, AccessError> {
        let Some(secret) = &source.secret else { return Ok(None) };
        let data = self.control_plane.get(secret).map(|secret| secret_data(&secret)).unwrap_or_default();
        let found = data.into_iter().find(|(name, _)| *name == source.entry).map(|(_, value)| value);
        match found.map(String::from_utf8) {
            None => Err(AccessError::NoKubeconfig(Box::new(source.clone()))),
            Some(Ok(kubeconfig)) => Ok(Some(kubeconfig)),
            Some(Err(_)) => {
                let problem = "it is not UTF-8".to_owned();
                Err(AccessError::Connect { kubeconfig: Box::new(source.clone()), problem })
            }
        }
    }

    fn known(&self, config: &ObjectKey, fingerprint: &Fingerprint) -> Option<Arc<Cluster>> {
        let mut inner = self.lock();
        if let Some((known, cluster)) = inner.configs.get(config)
            && known == fingerprint
        {
            return Some(Arc::clone(cluster));
        }
        let cluster = inner.clusters.get(fingerprint)?.upgrade()?;
        inner.configs.insert(config.clone(), (*fingerprint, Arc::clone(&cluster)));
        Some(cluster)
    }

    async fn connect(
        &self,
        source: &Source,
        fingerprint: Fingerprint,
        kubeconfig: Option<String>,
    ) -> Result<Arc<Cluster>, AccessError> {
        let connection =
            match &kubeconfig {
                None => Connection {
                    client: self.control_plane.api().kube().clone(),
                    simulated: self.simulate_control_plane,
                },
                Some(kubeconfig) => self.connector.connect(kubeconfig).await.map_err(|problem| {
                    AccessError::Connect { kubeconfig: Box::new(source.clone()), problem }
                })?,
            };
        let users = Arc::new(Users::default());
        let api = ApiClient::new(connection.client);
        let wake = {
            let inner = Arc::downgrade(&self.inner);
            move || {
                if let Some(inner) = inner.upgrade() {
                    inner.lock().unwrap_or_else(PoisonError::into_inner).wake(&fingerprint);
                }
            }
        };
        let health = Arc::new(Health::new(api.clone(), Box::new(wake)));
        let listener = Arc::new(Ears { users: Arc::clone(&users), health: Arc::clone(&health) });
        let caches = Caches::new(api, Keep::Subscribed, listener, Arc::clone(&self.metrics));
        let cluster =
            Arc::new(Cluster { caches, kubeconfig, simulated: connection.simulated, users, health });
        let mut inner = self.lock();
        // Somebody else may have connected meanwhile; one set of watches is enough.
        let cluster = inner.clusters.get(&fingerprint).and_then(Weak::upgrade).unwrap_or(cluster);
        inner.clusters.retain(|_, cluster| cluster.strong_count() > 0);
        inner.clusters.insert(fingerprint, Arc::downgrade(&cluster));
        inner.configs.insert(source.object.clone(), (fingerprint, Arc::clone(&cluster)));
        Ok(cluster)
    }

    /// Forgets a user.
    pub fn forget(&self, user: &ObjectKey) {
        let mut inner = self.lock();
        inner.users.retain(|_, users| {
            users.remove(user);
            !users.is_empty()
        });
    }

    /// Wakes those whose provider config, or whose Secret, has changed.
    pub(crate) fn route(&self, change: &Change) {
        let Some(object) = change.key() else { return };
        let mut inner = self.lock();
        let configs: Vec<ObjectKey> = match object.kind.as_str() {
            "Secret" if object.group.is_empty() => {
                inner.secrets.get(object).into_iter().flatten().cloned().collect()
            }
            "ProviderConfig" | "ClusterProviderConfig" => {
                if change.new.is_none() {
                    inner.configs.remove(object);
                }
                vec![object.clone()]
            }
            _ => return,
        };
        for config in configs {
            for (user, queue) in inner.users.get(&config).into_iter().flatten() {
                queue.add(user.clone());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Wakes everybody who uses a cluster.
    fn wake(&self, cluster: &Fingerprint) {
        let configs = self.configs.iter().filter(|(_, (fingerprint, _))| fingerprint == cluster);
        for (user, queue) in configs.filter_map(|(config, _)| self.users.get(config)).flatten() {
            queue.add(user.clone());
        }
    }
}

/// The provider config of an `Object` or `Release`.
pub fn provider_config_of(object: &Stored) -> ObjectKey {
    let reference = |field: &str| object.text_at(&["spec", "providerConfigRef", field]);
    let kind = reference("kind").unwrap_or("ClusterProviderConfig");
    let namespace = if kind == "ProviderConfig" { object.key.namespace.as_str() } else { "" };
    key(&object.key.group, kind, namespace, reference("name").unwrap_or("default"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_kubeconfig_cannot_start_programs() {
        let kubeconfig = "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: 'https://x'}}], \
             contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {exec: {command: touch}}}]}";
        let error = Network.connect(kubeconfig).await.err();
        assert_eq!(error.as_deref(), Some("users with exec or auth-provider are not supported"));
        assert!(Network.connect(": not yaml").await.is_err());
    }

    #[tokio::test]
    async fn a_kubeconfig_cannot_have_files_of_this_machine_sent_elsewhere() {
        let with = |user: &str, cluster: &str| {
            format!(
                "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{server: 'https://x'{cluster}}}}}], \
                 contexts: [{{name: c, context: {{cluster: c, user: u}}}}], users: [{{name: u, user: {{{user}}}}}]}}"
            )
        };
        for (name, user, cluster) in [
            ("a token", "tokenFile: /dev/null", ""),
            ("a certificate", "client-certificate: /dev/null", ""),
            ("a key", "client-key: /dev/null", ""),
            ("an authority", "token: t", ", certificate-authority: /dev/null"),
        ] {
            let error = Network.connect(&with(user, cluster)).await.err().unwrap_or_default();
            assert!(error.ends_with("to be embedded"), "{name}: {error}");
        }
        assert_eq!(Network.connect(&with("token: t", "")).await.err(), None);
    }
}
