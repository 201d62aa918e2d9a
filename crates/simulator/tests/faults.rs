//! Every fault of a simulated cluster, by what the fleet and its users see of it.

#![expect(clippy::unwrap_used, reason = "tests fail loudly")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use modelplane_apiserver::{ApiServer, Identity, Options, Profile};
use modelplane_engine::client::{ApiClient, Target, Write};
use modelplane_engine::clusters::{ClusterConnector, Connection, Network};
use modelplane_engine::{Config, Engine};
use modelplane_simulator::controller::{self, Clusters, Controller, client_for};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const MODELPLANE: &str = "modelplane.ai/v1alpha1";
const SIMULATION: &str = "simulation.modelplane.ai/v1alpha1";
const OBJECTS: &str = "kubernetes.m.crossplane.io/v1alpha1";
const CLUSTER: &str = "dc";

struct Connector(Clusters);

impl ClusterConnector for Connector {
    fn connect<'a>(&'a self, kubeconfig: &'a str) -> BoxFuture<'a, Result<Connection, String>> {
        Box::pin(async move {
            let parsed =
                kube::config::Kubeconfig::from_yaml(kubeconfig).map_err(|error| error.to_string())?;
            let server = parsed.clusters[0].cluster.as_ref().unwrap().server.clone().unwrap();
            let client = client_for(&self.0, &server).ok_or("no such cluster")?;
            Ok(Connection { client, simulated: true })
        })
    }
}

/// A fleet of one simulated cluster with two nodes and a model on one of them.
struct Fleet {
    api: ApiClient,
    simulated: Controller,
    engine: Engine,
    _server: ApiServer,
}

fn manifests() -> Vec<Value> {
    let device = json!({
        "name": "gpu", "driver": "gpu.nvidia.com", "deviceClassName": "gpu.nvidia.com", "count": 1,
        "capacity": {"memory": {"value": "80Gi"}},
    });
    let selector =
        json!({"cel": "device.capacity[\"gpu.nvidia.com\"].memory.compareTo(quantity(\"40Gi\")) >= 0"});
    let member = json!({
        "role": "Standalone",
        "nodeSelector": {"devices": [{"name": "gpu", "count": 1, "selectors": [selector]}]},
        "template": {"spec": {"containers": [{"name": "engine", "image": "vllm/vllm-openai:v0.23.0", "args": ["--model=m"]}]}},
    });
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml-team"}}),
        json!({"apiVersion": MODELPLANE, "kind": "InferenceClass", "metadata": {"name": "h100"}, "spec": {"devices": [device]}}),
        json!({
            "apiVersion": SIMULATION, "kind": "SimulatedCluster", "metadata": {"name": CLUSTER},
            "spec": {"readyAfter": "10ms"},
        }),
        json!({
            "apiVersion": MODELPLANE, "kind": "InferenceCluster", "metadata": {"name": CLUSTER},
            "spec": {
                "cluster": {"source": "Existing", "existing": {"secretRef": {"name": "dc-kubeconfig"}}},
                "nodePools": [{"name": "h100", "className": "h100", "nodeCount": 2}],
            },
        }),
        json!({
            "apiVersion": MODELPLANE, "kind": "ModelDeployment", "metadata": {"name": "m", "namespace": "ml-team"},
            "spec": {"replicas": 1, "template": {"spec": {"engines": [{"name": "engine", "members": [member]}]}}},
        }),
    ]
}

impl Fleet {
    async fn start() -> Self {
        let server = ApiServer::start(Options::in_memory(Profile::Workload)).await.unwrap();
        let client = kube::Client::new(server.in_process(Identity::admin()), "default");
        let simulated = Controller::start(client.clone(), controller::Options { serve: true, clouds: false })
            .await
            .unwrap();
        let mut config = Config::new(client.clone());
        config.connector = Arc::new(Connector(simulated.clusters()));
        config.simulate_control_plane = true;
        let engine = Engine::start(config).await.unwrap();
        let fleet = Self { api: ApiClient::new(client), simulated, engine, _server: server };
        for object in manifests() {
            fleet.apply(&object).await;
        }
        fleet.deployment_is("True", "the model is served").await;
        fleet
    }

    async fn apply(&self, object: &Value) {
        let (api_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let resource = self.api.resource(api_version, kind).await.unwrap();
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let target = Target::named(text("namespace"), text("name"));
        self.api.write(&resource, &target, Write::Apply("user"), object).await.unwrap();
    }

    /// Sets what is wrong with the cluster, as `modelplane cluster fault` does; null heals.
    async fn fault(&self, faults: Value) {
        let resource = self.api.resource(SIMULATION, "SimulatedCluster").await.unwrap();
        let body = json!({"spec": {"faults": faults}});
        self.api.write(&resource, &Target::named("", CLUSTER), Write::Merge, &body).await.unwrap();
    }

    async fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let resource = self.api.resource(api_version, kind).await.unwrap();
        self.api.get(&resource, namespace, name).await.unwrap()
    }

    async fn list(&self, api_version: &str, kind: &str) -> Vec<Value> {
        let resource = self.api.resource(api_version, kind).await.unwrap();
        let list = self.api.list(&resource, &Default::default()).await.unwrap();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    async fn deployment_is(&self, ready: &str, what: &str) {
        eventually(what, || async {
            let found = self.get(MODELPLANE, "ModelDeployment", "ml-team", "m").await?;
            (condition(&found, "Ready").0 == ready).then_some(())
        })
        .await;
    }

    /// Where the cluster's gateway and API server listen.
    fn addresses(&self) -> (std::net::SocketAddr, String) {
        let clusters = self.simulated.clusters();
        let clusters = clusters.lock().unwrap();
        (clusters[CLUSTER].edge(), clusters[CLUSTER].kubeconfig().to_owned())
    }

    /// Sends a chat request through the cluster's gateway: status line, or why there is none.
    async fn ask(&self) -> Result<String, std::io::Error> {
        let endpoint = self.list(MODELPLANE, "ModelEndpoint").await.swap_remove(0);
        let url = endpoint["spec"]["url"].as_str().unwrap();
        let path = url.splitn(4, '/').nth(3).unwrap().trim_end_matches('/').to_owned();
        let body = json!({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).to_string();
        let mut stream = TcpStream::connect(self.addresses().0).await?;
        let request = format!(
            "POST /{path}/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer.lines().next().unwrap_or_default().to_owned())
    }
}

/// Status and message of a condition.
fn condition(object: &Value, condition_type: &str) -> (String, String) {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == condition_type);
    let text = |field: &str| found.and_then(|found| found[field].as_str()).unwrap_or_default().to_owned();
    (text("status"), text("message"))
}

async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut check: impl FnMut() -> F) -> T {
    for _ in 0..900 {
        if let Some(found) = check().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("not in time: {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_is_felt_and_ends() {
    let fleet = Fleet::start().await;
    eventually("it answers", || async { fleet.ask().await.ok().filter(|line| line.contains("200")) }).await;
    overloaded(&fleet).await;
    slow(&fleet).await;
    gateway_down(&fleet).await;
    nodes_lost(&fleet).await;
    unreachable(&fleet).await;
    fleet.engine.shutdown().await;
}

async fn overloaded(fleet: &Fleet) {
    fleet.fault(json!({"overloaded": true})).await;
    eventually("engines answer 503", || async { fleet.ask().await.ok().filter(|line| line.contains("503")) })
        .await;
    fleet.deployment_is("True", "engines that are busy still run").await;
    fleet.fault(Value::Null).await;
    eventually("they answer again", || async { fleet.ask().await.ok().filter(|line| line.contains("200")) })
        .await;
}

async fn slow(fleet: &Fleet) {
    fleet.fault(json!({"slowdown": "700ms"})).await;
    eventually("answers take longer", || async {
        let begun = Instant::now();
        let answer = fleet.ask().await.ok()?;
        (begun.elapsed() >= Duration::from_millis(700) && answer.contains("200")).then_some(())
    })
    .await;
    fleet.fault(Value::Null).await;
}

async fn gateway_down(fleet: &Fleet) {
    fleet.fault(json!({"gatewayDown": true})).await;
    let refused = || async {
        let answer = fleet.ask().await;
        (answer.is_err() || answer.is_ok_and(|line| line.is_empty())).then_some(())
    };
    eventually("the gateway answers nobody", refused).await;
    let programmed = |status: &'static str| async move {
        let objects = fleet.list(OBJECTS, "Object").await;
        let manifests = objects.iter().map(|object| &object["status"]["atProvider"]["manifest"]);
        let mut gateways = manifests.filter(|manifest| manifest["kind"] == "Gateway");
        gateways.any(|gateway| condition(gateway, "Programmed").0 == status).then_some(())
    };
    eventually("the control plane sees that its Gateway is not programmed", || programmed("False")).await;
    fleet.fault(Value::Null).await;
    eventually("it heals", || programmed("True")).await;
    eventually("it answers again", || async { fleet.ask().await.ok().filter(|line| line.contains("200")) })
        .await;
}

async fn nodes_lost(fleet: &Fleet) {
    fleet.fault(json!({"lostNodes": {"h100": 2}})).await;
    fleet.deployment_is("False", "its replica is not ready without nodes").await;
    // One node is enough for it: its pods come up there.
    fleet.fault(json!({"lostNodes": {"h100": 1}})).await;
    fleet.deployment_is("True", "it comes up on the node that is left").await;
    fleet.fault(Value::Null).await;
}

async fn unreachable(fleet: &Fleet) {
    let outside = ApiClient::new(Network.connect(&fleet.addresses().1).await.unwrap().client);
    outside.probe().await.unwrap();
    let deployments = outside.resource("apps/v1", "Deployment").await.unwrap();
    let count = |list: Value| list["items"].as_array().map(Vec::len);
    let before = count(outside.list(&deployments, &Default::default()).await.unwrap());
    fleet.fault(json!({"unreachable": true})).await;
    eventually("nobody gets through to its API server", || async { outside.probe().await.err() }).await;
    eventually("its objects say so", || async {
        let objects = fleet.list(OBJECTS, "Object").await;
        objects.iter().map(|object| condition(object, "Synced").1).find(|text| text.contains("unreachable"))
    })
    .await;
    fleet.deployment_is("True", "what runs there is not given up").await;
    assert_eq!(fleet.list(MODELPLANE, "ModelReplica").await.len(), 1);
    fleet.fault(Value::Null).await;
    eventually("its API server answers again", || async { outside.probe().await.ok() }).await;
    eventually("its objects are looked after again", || async {
        let objects = fleet.list(OBJECTS, "Object").await;
        objects.iter().all(|object| condition(object, "Synced").0 == "True").then_some(())
    })
    .await;
    assert_eq!(
        count(outside.list(&deployments, &Default::default()).await.unwrap()),
        before,
        "nothing was lost"
    );
}
