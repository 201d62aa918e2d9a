//! `modelplane up --demo`: from nothing to an answer, on simulated clusters.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use modelplane_engine::client::{ApiClient, ClientError, Target, Write};
use modelplane_simulator::resource;
use serde_json::{Value, json};

use super::control_plane::ControlPlane;
use super::http;
use crate::outcome::{CommandError, with_causes};
use crate::output::{print, table};

/// The fleet, as a platform team would write it.
const PLATFORM: &str = include_str!("../../../../../examples/demo/platform.yaml");
/// The model, as an ML team would write it.
const MODEL: &str = include_str!("../../../../../examples/demo/model.yaml");
/// Namespace of the model.
const TEAM: &str = "ml-team";
/// Field manager of what the demonstration applies.
const MANAGER: &str = "modelplane-demo";
/// Longest the demonstration waits for a step.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(50);
/// What the demonstration asks.
const QUESTION: &str = "Which GPU am I talking to?";

/// Applies the fleet and the model, waits until it is served, asks it something, and unless it is to end then, shows
/// how to go on.
pub(super) async fn run(
    control_plane: &ControlPlane,
    kubeconfig: &Path,
    once: bool,
) -> Result<(), CommandError> {
    let demo = Demo { api: ApiClient::new(control_plane.client()), started: Instant::now() };
    demo.apply_namespace().await?;
    demo.apply_all(PLATFORM).await?;
    demo.milestone("InferenceCluster", "", "dc-east", "cluster dc-east (4 nodes, one L4 each) serves")
        .await?;
    demo.milestone("InferenceCluster", "", "dc-west", "cluster dc-west (1 node, 8 H100) serves").await?;
    demo.milestone("InferenceGateway", "", "default", "the gateway has an address").await?;
    // Once both clusters have room, so that the replicas are spread.
    demo.apply_all(MODEL).await?;
    demo.milestone("ModelDeployment", TEAM, "qwen", "both replicas of model qwen are ready").await?;
    let service = demo.milestone("ModelService", TEAM, "chat", "service chat routes to them").await?;
    demo.placement().await?;
    let address = service["status"]["address"].as_str().unwrap_or_default().to_owned();
    ask(&address).await?;
    if once { Ok(()) } else { print(&farewell(&address, kubeconfig)) }
}

struct Demo {
    api: ApiClient,
    started: Instant,
}

impl Demo {
    async fn apply_namespace(&self) -> Result<(), CommandError> {
        self.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})).await
    }

    /// Applies manifests, and simulates the clusters among them.
    async fn apply_all(&self, manifests: &str) -> Result<(), CommandError> {
        for document in documents(manifests)? {
            if document["kind"] == "InferenceCluster" {
                self.apply(&json!({
                    "apiVersion": resource::API_VERSION, "kind": resource::KIND,
                    "metadata": {"name": document["metadata"]["name"]}, "spec": {},
                }))
                .await?;
            }
            self.apply(&document).await?;
        }
        Ok(())
    }

    async fn apply(&self, object: &Value) -> Result<(), CommandError> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let applied = async {
            let resource = self.api.resource(text("/apiVersion"), text("/kind")).await?;
            self.api.write(&resource, &Target::named(namespace, name), Write::Apply(MANAGER), object).await
        };
        applied.await.map(drop).map_err(|error: ClientError| with_causes(error))
    }

    /// Waits until an object is ready and says so with the time it took; gives the object.
    async fn milestone(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        what: &str,
    ) -> Result<Value, CommandError> {
        let resource = self.api.resource("modelplane.ai/v1alpha1", kind).await.map_err(with_causes)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let object =
                self.api.get(&resource, namespace, name).await.map_err(with_causes)?.unwrap_or_default();
            if is_ready(&object) && address(&object).is_none_or(|address| !address.is_empty()) {
                print(&format!("  {:>5.1} s  {what}\n", self.started.elapsed().as_secs_f64()))?;
                return Ok(object);
            }
            if Instant::now() > deadline {
                return Err(CommandError::new(format!(
                    "{kind} {name} is not ready after {} s: {}",
                    PATIENCE.as_secs(),
                    object["status"]["conditions"]
                )));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Which replica runs where.
    async fn placement(&self) -> Result<(), CommandError> {
        let resource =
            self.api.resource("modelplane.ai/v1alpha1", "ModelReplica").await.map_err(with_causes)?;
        let list = self.api.list(&resource, &Default::default()).await.map_err(with_causes)?;
        let rows = list["items"].as_array().into_iter().flatten().map(|replica| {
            let text = |pointer: &str| {
                let value = replica.pointer(pointer).and_then(Value::as_str);
                value.unwrap_or("-").to_owned()
            };
            let ready = if is_ready(replica) { "True" } else { "False" };
            vec![text("/metadata/name"), text("/spec/clusterName"), pools(replica), ready.to_owned()]
        });
        print(&format!("\n{}\n", table(&["REPLICA", "CLUSTER", "NODE POOL", "READY"], rows)))
    }
}

/// The node pools of a replica's pods.
fn pools(replica: &Value) -> String {
    let engines = replica["spec"]["engines"].as_array().into_iter().flatten();
    let members = engines.flat_map(|engine| engine["members"].as_array().into_iter().flatten());
    let names: BTreeSet<&str> = members.filter_map(|member| member["nodePoolName"].as_str()).collect();
    if names.is_empty() { "-".to_owned() } else { names.into_iter().collect::<Vec<_>>().join(", ") }
}

/// The address that objects of a kind publish, empty while this one does not; none for kinds without one.
fn address(object: &Value) -> Option<&str> {
    let pointer = match object["kind"].as_str()? {
        "InferenceGateway" | "ModelService" => "/status/address",
        "InferenceCluster" => "/status/gateway/address",
        _ => return None,
    };
    Some(object.pointer(pointer).and_then(Value::as_str).unwrap_or_default())
}

fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn documents(text: &str) -> Result<Vec<Value>, CommandError> {
    let parsed: Result<Vec<Value>, _> = serde_saphyr::from_multiple(text);
    parsed
        .map_err(|error| CommandError::new(format!("the demonstration's manifests cannot be read: {error}")))
}

/// Sends one chat request and shows request and answer.
async fn ask(address: &str) -> Result<(), CommandError> {
    let url = format!("{address}/v1/chat/completions");
    let body = json!({"model": "qwen", "messages": [{"role": "user", "content": QUESTION}]});
    print(&format!("\nPOST {url}\n  {QUESTION}\n"))?;
    let began = Instant::now();
    let (status, answer) = http::post(&url, &body)
        .await
        .map_err(|error| CommandError::new(format!("the gateway does not answer: {error}")))?;
    let text = answer["choices"][0]["message"]["content"].as_str();
    let Some(text) = text.filter(|_| status == 200) else {
        return Err(CommandError::new(format!("the gateway answered {status}: {answer}")));
    };
    print(&format!("{status} after {:.1} ms\n  {text}\n", began.elapsed().as_secs_f64() * 1e3))
}

/// How to go on.
fn farewell(address: &str, kubeconfig: &Path) -> String {
    format!(
        "\nThe fleet stays up until Ctrl-C. In another terminal:\n\
         \n  export KUBECONFIG={}\
         \n  kubectl -n {TEAM} get modeldeployments,modelreplicas,modelendpoints,modelservices\
         \n  kubectl -n {TEAM} scale modeldeployment qwen --replicas=5\
         \n  modelplane cluster fault dc-east --lose-nodes l4=4     # watch traffic go elsewhere\
         \n  curl {address}/v1/chat/completions -H 'content-type: application/json' \\\
         \n    -d '{{\"model\": \"qwen\", \"stream\": true, \"messages\": [{{\"role\": \"user\", \"content\": \"hi\"}}]}}'\n\n",
        kubeconfig.display(),
    )
}
