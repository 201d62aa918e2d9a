//! Control planes to run engines on, clusters for them to drive, and helpers to talk to both.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use futures_util::future::BoxFuture;
use modelplane_apiserver::{ApiServer, Identity, Options, Profile};
use modelplane_engine::client::{ApiClient, Propagation, Target, Write};
use modelplane_engine::clusters::{ClusterConnector, Connection};
use modelplane_engine::{Config, Engine};
use serde_json::{Value, json};
use tokio::sync::MutexGuard;

use crate::player::Player;
use crate::real;

pub(crate) const MODELPLANE: &str = "modelplane.ai/v1alpha1";
pub(crate) const INFRASTRUCTURE: &str = "infrastructure.modelplane.ai/v1alpha1";
pub(crate) const OBJECTS: &str = "kubernetes.m.crossplane.io/v1alpha1";
pub(crate) const RELEASES: &str = "helm.m.crossplane.io/v1beta1";
pub(crate) const USAGES: &str = "protection.crossplane.io/v1beta1";
pub(crate) const SYSTEM: &str = "modelplane-system";
pub(crate) const RESOURCE_NAME: &str = "crossplane.io/composition-resource-name";

/// Each test has its own control plane; this keeps real ones from running all at once.
pub(crate) async fn one_at_a_time() -> MutexGuard<'static, ()> {
    static LOCK: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    LOCK.lock().await
}

/// An API server in this process.
pub(crate) async fn server() -> ApiServer {
    ApiServer::start(Options::in_memory(Profile::Workload)).await.unwrap()
}

/// A client of an API server in this process.
pub(crate) fn client(server: &ApiServer) -> kube::Client {
    kube::Client::new(server.in_process(Identity::admin()), "default")
}

/// A control plane that collects garbage: a real one.
pub(crate) async fn collecting() -> Option<(real::ControlPlane, kube::Client)> {
    let plane = real::ControlPlane::start().await?;
    let client = plane.client().await;
    Some((plane, client))
}

/// Simulated clusters by the URL of their kubeconfig.
#[derive(Clone, Default)]
pub(crate) struct Clusters(Arc<Mutex<HashMap<String, kube::Client>>>);

impl ClusterConnector for Clusters {
    fn connect<'a>(&'a self, kubeconfig: &'a str) -> BoxFuture<'a, Result<Connection, String>> {
        let clusters = self.0.lock().unwrap();
        let found = clusters.iter().find(|(url, _)| kubeconfig.contains(url.as_str()));
        let found = found.map(|(_, client)| Connection { client: client.clone(), simulated: true });
        Box::pin(std::future::ready(found.ok_or_else(|| "no such cluster".to_owned())))
    }
}

/// A cluster that stays as long as this is kept.
pub(crate) struct Cluster {
    _server: ApiServer,
    _player: Player,
    pub(crate) api: ApiClient,
}

impl Clusters {
    fn url(name: &str) -> String {
        format!("https://{name}.invalid")
    }

    /// What leads to the cluster of that name.
    pub(crate) fn kubeconfig(name: &str) -> String {
        format!("server: {}", Self::url(name))
    }

    /// Starts a cluster and puts its kubeconfig into the Secret that an InferenceCluster of that name uses.
    pub(crate) async fn start(&self, control_plane: &ApiClient, name: &str) -> Cluster {
        let server = server().await;
        let client = client(&server);
        self.0.lock().unwrap().insert(Self::url(name), client.clone());
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": format!("{name}-kubeconfig"), "namespace": SYSTEM},
            "data": {"kubeconfig": base64::engine::general_purpose::STANDARD.encode(Self::kubeconfig(name))},
        });
        namespace(control_plane, SYSTEM).await;
        apply(control_plane, secret).await;
        let api = ApiClient::new(client);
        Cluster { _server: server, _player: Player::start(api.clone()), api }
    }
}

/// A configuration with quick reactions, over simulated clusters.
pub(crate) fn config(client: &kube::Client, clusters: &Clusters) -> Config {
    let mut config = Config::new(client.clone());
    config.connector = Arc::new(clusters.clone());
    config.simulate_control_plane = true;
    config
}

/// An engine.
pub(crate) async fn engine(config: Config) -> Engine {
    Engine::start(config).await.unwrap()
}

fn examples_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// The names of all examples, in order.
pub(crate) fn examples() -> Vec<String> {
    let entries = std::fs::read_dir(examples_folder()).unwrap().map(Result::unwrap);
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let mut names: Vec<String> =
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The objects of an example.
pub(crate) fn example(name: &str) -> Vec<Value> {
    let folder = examples_folder().join(name);
    let files =
        ["platform.yaml", "model.yaml"].map(|file| std::fs::read_to_string(folder.join(file)).unwrap());
    files.iter().flat_map(|text| serde_saphyr::from_multiple::<Value>(text).unwrap()).collect()
}

/// Creates a namespace.
pub(crate) async fn namespace(api: &ApiClient, name: &str) {
    apply(api, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
}

/// Applies an object as a user would.
pub(crate) async fn apply(api: &ApiClient, object: Value) -> Value {
    let (namespace, name) = place(&object);
    let resource =
        api.resource(object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap()).await.unwrap();
    api.write(&resource, &Target::named(&namespace, &name), Write::Apply("user"), &object).await.unwrap()
}

fn place(object: &Value) -> (String, String) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

/// An object, if it exists.
pub(crate) async fn get(
    api: &ApiClient,
    api_version: &str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Option<Value> {
    let resource = api.resource(api_version, kind).await.ok()?;
    api.get(&resource, namespace, name).await.unwrap()
}

/// Deletes an object.
pub(crate) async fn delete(api: &ApiClient, api_version: &str, kind: &str, namespace: &str, name: &str) {
    let resource = api.resource(api_version, kind).await.unwrap();
    api.delete(&resource, &Target::named(namespace, name), None, Propagation::Background).await.unwrap();
}

/// All objects of a kind.
pub(crate) async fn list(api: &ApiClient, api_version: &str, kind: &str) -> Vec<Value> {
    let Ok(resource) = api.resource(api_version, kind).await else { return Vec::new() };
    let list = api.list(&resource, &Default::default()).await.unwrap();
    list["items"].as_array().cloned().unwrap_or_default()
}

/// The status of a condition.
pub(crate) fn condition<'v>(object: &'v Value, condition_type: &str) -> &'v str {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == condition_type);
    found.and_then(|condition| condition["status"].as_str()).unwrap_or("")
}

/// Waits until `check` has something to say; `what` names it when that takes too long.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut check: impl FnMut() -> F,
) -> T {
    for _ in 0..600 {
        if let Some(found) = check().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("not in time: {what}");
}

/// What is still there of a kind, and why as far as it says.
pub(crate) async fn leftovers(api: &ApiClient, api_version: &str, kind: &str) -> Vec<String> {
    let objects = list(api, api_version, kind).await;
    let explain = |object: &Value| {
        let metadata = &object["metadata"];
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let messages: Vec<String> =
            conditions.map(|c| format!("{}={} {}", c["type"], c["status"], c["message"])).collect();
        format!(
            "{kind} {} deleting={} finalizers={} {}",
            metadata["name"],
            metadata.get("deletionTimestamp").is_some(),
            metadata["finalizers"],
            messages.join("; "),
        )
    };
    objects.iter().map(explain).collect()
}
