//! Clusters over the network: our own API server and a real one, reached by the kubeconfig in a Secret.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use modelplane_apiserver::{ApiServer, Identity, Options, Profile};
use modelplane_engine::client::ApiClient;
use modelplane_engine::clusters::{ClusterConnector, Network};
use modelplane_engine::drivers::helm::HelmRunner;
use modelplane_engine::drivers::simulated_helm::SimulatedHelm;
use modelplane_engine::{Config, Engine};
use serde_json::{Value, json};

use crate::fleet::deployment;
use crate::player::Player;
use crate::real;
use crate::relay::Relay;
use crate::support::{
    MODELPLANE, OBJECTS, SYSTEM, apply, client, condition, delete, eventually, example, get, list, namespace,
    one_at_a_time, server,
};

const CLUSTER: &str = "dc-west";
const KUBECONFIG_SECRET: &str = "dc-west-kubeconfig";

/// A cluster behind a relay, and a control plane that drives it over the network.
struct Site {
    /// The control plane.
    api: ApiClient,
    engine: Engine,
    /// The cluster, past the relay.
    cluster: ApiClient,
    relay: Relay,
    kubeconfig: String,
    _control_plane: ApiServer,
    _players: [Player; 2],
}

impl Site {
    /// `kubeconfig` is for the server at `target`, whose URL in it is `original`.
    async fn start(target: std::net::SocketAddr, kubeconfig: &str, original: &str) -> Self {
        let relay = Relay::to(target).await;
        let kubeconfig = kubeconfig.replace(original, &relay.url());
        let direct = kubeconfig.replace(&relay.url(), original);
        let cluster = ApiClient::new(Network.connect(&direct).await.unwrap().client);
        let control_plane = server().await;
        let client = client(&control_plane);
        let api = ApiClient::new(client.clone());
        namespace(&api, SYSTEM).await;
        namespace(&api, "ml-team").await;
        apply(&api, secret(&kubeconfig)).await;
        let mut config = Config::new(client);
        // Charts come from registries, which a test must not need.
        config.helm = Arc::new(SimulatedHelm) as Arc<dyn HelmRunner>;
        config.simulate_control_plane = true;
        let engine = Engine::start(config).await.unwrap();
        let players = [Player::start(api.clone()), Player::start(cluster.clone())];
        Self { api, engine, cluster, relay, kubeconfig, _control_plane: control_plane, _players: players }
    }

    async fn platform(&self) {
        for object in example("canary") {
            if object["kind"] != "ModelDeployment" && object["kind"] != "ModelService" {
                apply(&self.api, object).await;
            }
        }
    }

    /// The deployments of engines on the cluster.
    async fn workloads(&self) -> Vec<Value> {
        let mut found = list(&self.cluster, "apps/v1", "Deployment").await;
        found.retain(|deployment| deployment.to_string().contains("vllm-openai"));
        found
    }

    async fn ready(&self, kind: &str, namespace: &str, name: &str) -> Value {
        eventually(&format!("{kind} {name} is ready"), || async {
            let object = get(&self.api, MODELPLANE, kind, namespace, name).await?;
            (condition(&object, "Ready") == "True").then_some(object)
        })
        .await
    }

    /// What all objects of the cluster say about `Synced`, if it is one and the same.
    async fn verdict(&self) -> Option<(String, String)> {
        let objects = list(&self.api, OBJECTS, "Object").await;
        // Each names its own provider config; they all lead to the same Secret.
        let mut verdicts: Vec<(String, String)> = objects
            .iter()
            .map(synced)
            .map(|(status, message)| match message.split_once(" (named by ") {
                Some((start, rest)) => {
                    (status, format!("{start}{}", rest.split_once(')').unwrap_or_default().1))
                }
                None => (status, message),
            })
            .collect();
        verdicts.sort();
        verdicts.dedup();
        (verdicts.len() == 1).then(|| verdicts.swap_remove(0))
    }

    async fn becomes_unsynced(&self, what: &str) -> String {
        for _ in 0..300 {
            if let Some((status, message)) = self.verdict().await
                && status == "False"
            {
                return message;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let verdicts: Vec<_> = list(&self.api, OBJECTS, "Object").await.iter().map(synced).collect();
        panic!("not in time: {what}: {verdicts:#?}");
    }

    async fn becomes_synced(&self, what: &str) {
        eventually(what, || async { self.verdict().await.filter(|(status, _)| status == "True") }).await;
    }
}

fn secret(kubeconfig: &str) -> Value {
    let data = base64::engine::general_purpose::STANDARD.encode(kubeconfig);
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": KUBECONFIG_SECRET, "namespace": SYSTEM},
        "data": {"kubeconfig": data},
    })
}

fn synced(object: &Value) -> (String, String) {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == "Synced");
    let text = |field: &str| found.and_then(|found| found[field].as_str()).unwrap_or_default().to_owned();
    (text("status"), text("message"))
}

/// Names and last observations of everything composed.
async fn observations(api: &ApiClient) -> Vec<(String, Value)> {
    let objects = list(api, OBJECTS, "Object").await;
    let observed = objects.iter().map(|object| {
        let manifest = &object["status"]["atProvider"]["manifest"];
        (object["metadata"]["name"].to_string(), json!([manifest["kind"], manifest["metadata"]["uid"]]))
    });
    observed.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_api_server_is_driven_over_the_network() {
    let server = Arc::new(ApiServer::start(Options::in_memory(Profile::Workload)).await.unwrap());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let url = format!("https://{address}");
    let kubeconfig = server.kubeconfig(&Identity::admin(), &url).unwrap();
    let serving = tokio::spawn(async move { server.serve(listener, std::future::pending()).await });
    driven(Site::start(address, &kubeconfig, &url).await).await;
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_api_server_is_driven_over_the_network() {
    let _one = one_at_a_time().await;
    let Some(plane) = real::ControlPlane::start().await else { return };
    let address = plane.address();
    driven(Site::start(address, &plane.kubeconfig(), &format!("https://{address}")).await).await;
}

async fn driven(mut site: Site) {
    site.platform().await;
    apply(&site.api, deployment(2)).await;
    site.ready("InferenceCluster", "", CLUSTER).await;
    site.ready("ModelDeployment", "ml-team", "qwen-stable").await;
    assert_eq!(site.workloads().await.len(), 2, "objects arrive");
    drift_is_put_back(&site).await;
    withdrawn_replicas_go(&site).await;
    being_unreachable_is_reported_and_heals(&mut site).await;
    useless_kubeconfigs_are_explained(&site).await;
    site.engine.shutdown().await;
}

async fn drift_is_put_back(site: &Site) {
    let workload = site.workloads().await.swap_remove(0);
    let (namespace, name) = (&workload["metadata"]["namespace"], &workload["metadata"]["name"]);
    let image = workload["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    let container = &workload["spec"]["template"]["spec"]["containers"][0]["name"];
    let mut changed = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "selector": workload["spec"]["selector"],
            "template": {"spec": {"containers": [{"name": container, "image": "other:1"}]}},
        },
    });
    changed["spec"]["template"]["metadata"]["labels"] =
        workload["spec"]["template"]["metadata"]["labels"].clone();
    apply(&site.cluster, changed).await;
    eventually("drift is put back", || async {
        let found = site.workloads().await;
        let found = found.iter().find(|found| found["metadata"]["name"] == *name)?;
        (found["spec"]["template"]["spec"]["containers"][0]["image"] == image).then_some(())
    })
    .await;
}

async fn withdrawn_replicas_go(site: &Site) {
    apply(&site.api, deployment(1)).await;
    eventually("a withdrawn replica is deleted", || async {
        (site.workloads().await.len() == 1).then_some(())
    })
    .await;
    site.ready("ModelDeployment", "ml-team", "qwen-stable").await;
}

async fn being_unreachable_is_reported_and_heals(site: &mut Site) {
    site.becomes_synced("all is well").await;
    let before = observations(&site.api).await;
    site.relay.cut();
    let message = site.becomes_unsynced("the cluster's objects say that it is unreachable").await;
    for part in
        ["cannot be reached", "Secret modelplane-system/dc-west-kubeconfig", "\"kubeconfig\"", "refused"]
    {
        assert!(message.contains(part), "{part:?} in {message}");
    }
    assert_eq!(observations(&site.api).await, before, "nothing observed is dropped");
    // What is asked for meanwhile is done when the cluster is back.
    apply(&site.api, deployment(2)).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(list(&site.api, MODELPLANE, "ModelReplica").await.len(), 2);
    site.relay.restore().await;
    site.becomes_synced("it heals").await;
    eventually("what was asked for meanwhile arrives", || async {
        (site.workloads().await.len() == 2).then_some(())
    })
    .await;
    site.ready("ModelDeployment", "ml-team", "qwen-stable").await;
    let after = observations(&site.api).await;
    assert!(before.iter().all(|one| after.contains(one)), "everything is still the same object");
}

async fn useless_kubeconfigs_are_explained(site: &Site) {
    let before = observations(&site.api).await;
    let wrong_token = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": site.relay.url(), "insecure-skip-tls-verify": true}}],
        "users": [{"name": "u", "user": {"token": "not-the-token"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    })
    .to_string();
    let remedy = "replace it, for example with the output of `kubectl config view --raw --minify --flatten`";
    for (name, kubeconfig, says) in [
        ("wrong credentials", wrong_token.as_str(), "does not accept the credentials"),
        ("malformed", "{apiVersion: v1, clusters: [", "no usable kubeconfig"),
        ("empty", "\n", "no usable kubeconfig"),
        (
            "no such context",
            "{apiVersion: v1, kind: Config, current-context: missing, clusters: [], users: [], contexts: []}",
            "no usable kubeconfig",
        ),
    ] {
        apply(&site.api, secret(kubeconfig)).await;
        let message = eventually(&format!("{name}: it is said"), || async {
            let (status, message) = site.verdict().await?;
            (status == "False" && message.contains(says)).then_some(message)
        })
        .await;
        for part in ["Secret modelplane-system/dc-west-kubeconfig", "key \"kubeconfig\"", remedy] {
            assert!(message.contains(part), "{name}: {part:?} in {message}");
        }
        assert_eq!(observations(&site.api).await, before, "{name}: nothing observed is dropped");
        apply(&site.api, secret(&site.kubeconfig)).await;
        site.becomes_synced("the right kubeconfig heals").await;
    }
    delete(&site.api, "v1", "Secret", SYSTEM, KUBECONFIG_SECRET).await;
    let message = site.becomes_unsynced("a missing Secret is reported").await;
    assert!(message.contains("Secret modelplane-system/dc-west-kubeconfig"), "{message}");
    assert_eq!(observations(&site.api).await, before, "nothing observed is dropped");
    apply(&site.api, secret(&site.kubeconfig)).await;
    site.becomes_synced("it heals").await;
}
