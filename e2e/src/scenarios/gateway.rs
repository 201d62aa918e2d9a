//! A gateway of our own, as it is composed: what is composed runs, may do what it has to, and serves.
//!
//! Pods of kwok's do not run anything. So the container's command is run beside them, on loopback, with a token of
//! the composed account; what it may read and write is up to the composed role, and the real API server.

use std::path::PathBuf;
use std::time::Duration;

use modelplane_api::inference_gateway::InferenceGateway;
use modelplane_api::kind::Object as _;
use modelplane_api::model_endpoint::ModelEndpoint;
use modelplane_api::model_service::ModelService;
use modelplane_api::names::{DEFAULT_GATEWAY, FLEET_GATEWAY, GATEWAY_WORKLOAD, SYSTEM_NAMESPACE};
use serde_json::{Value, json};

use crate::crossplane::create_namespace;
use crate::environment::{Environment, TEAM};
use crate::exchange::{Answer, HOST, ModelServer, Request, connect_tls, presented};
use crate::failure::{Failure, Outcome, ensure, not_yet, throughout, until};
use crate::kube_api::{Credential, Kube, Mode, Target, conditions, is_true, list, text};
use crate::pki::{Authority, Identity};
use crate::process::{Process, Program, free_port};
use crate::resources::{
    DEPLOYMENT, GATEWAY, GATEWAY_CLASS, HTTP_ROUTE, NODE, POD, Resource, SECRET, SERVICE, SERVICE_ACCOUNT,
};
use crate::tools;

const INFERENCE_GATEWAY: Resource = Resource::of(InferenceGateway::INFO);
const MODEL_SERVICE: Resource = Resource::of(ModelService::INFO);
const MODEL_ENDPOINT: Resource = Resource::of(ModelEndpoint::INFO);

/// The address that a cloud's load balancer would give the gateway's Service.
const ADDRESS: &str = "203.0.113.9";
const CERTIFICATE: &str = "gateway-tls";
const SERVICE_NAME: &str = "chat";
const CHAT: &str = "/ml-team/chat/v1/chat/completions";
const KEY: &str = "a-key-that-nobody-guesses";

/// Requests of which the share of each endpoint is exact.
const ROUND: usize = 20;

/// The composed gateway runs, is refused what it does not need, routes, and takes up what changes.
pub(super) async fn serves(environment: &mut Environment) -> Outcome {
    let (url, kube) = {
        let plane = environment.second().await?;
        (plane.url().to_owned(), plane.kube().clone())
    };
    create_namespace(&kube, TEAM).await?;
    let authority = environment.authority();
    apply_certificate(&kube, &authority.server()?).await?;
    kube.apply(&gateway(false)).await?;
    let deployment = composed_deployment(&kube).await?;

    let token = token(&kube).await?;
    let folder = environment.folder.join("gateway");
    std::fs::create_dir_all(&folder).map_err(Failure::io("make a folder"))?;
    let account = Kube::connect(&url, authority, Credential::Token(&token), &folder).await?;
    is_refused(&account).await?;

    let mut data_plane = DataPlane::start(&deployment, &account, folder)?;
    let end = decide(&kube, authority, &mut data_plane).await;
    // Why the process has ended, if it has, explains everything else.
    data_plane.process.check().and(end)?;
    data_plane.was_refused_nothing()?;
    drop(data_plane);
    remove(&kube).await?;
    environment.stop_second();
    Ok(())
}

async fn decide(kube: &Kube, authority: &Authority, data_plane: &mut DataPlane) -> Outcome {
    data_plane.is_ready().await?;
    reports(kube).await?;
    publishes(kube).await?;
    let (near, far) = (ModelServer::start("near").await?, ModelServer::start("far").await?);
    for (name, server) in [("near", &near), ("far", &far)] {
        kube.apply(&endpoint(name, &format!("{HOST}:{}", server.port), &format!("/{name}/"))).await?;
    }
    kube.apply(&service(SERVICE_NAME, [("near", 3), ("far", 1)])).await?;
    routes(data_plane, &near, &far).await?;
    takes_up_changes(kube, data_plane, &near, &far).await?;
    asks_for_keys(kube, data_plane).await?;
    presents_certificates(kube, authority, data_plane).await
}

/// What the Deployment's container runs, on this machine.
struct DataPlane {
    process: Process,
    log: PathBuf,
    http: u16,
    https: u16,
    admin: u16,
    readiness: String,
}

impl DataPlane {
    fn start(deployment: &Value, account: &Kube, folder: PathBuf) -> Outcome<Self> {
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let (http, https, admin) = (free_port()?, free_port()?, free_port()?);
        let mut arguments = Vec::new();
        let mut option = "";
        for argument in list(container, "/args") {
            let argument = argument.as_str().unwrap_or_default();
            let port = match option {
                "--listen" => Some(http),
                "--listen-tls" => Some(https),
                "--admin-listen" => Some(admin),
                _ => None,
            };
            arguments.push(port.map_or_else(|| argument.to_owned(), |port| format!("127.0.0.1:{port}")));
            option = argument;
        }
        arguments.push(format!("--kubeconfig={}", account.kubeconfig_file.display()));
        let program =
            Program { name: "gateway", binary: tools::modelplane()?, arguments, environment: Vec::new() };
        Ok(Self {
            process: program.start(&folder)?,
            log: folder.join("gateway.log"),
            http,
            https,
            admin,
            readiness: text(container, "/readinessProbe/httpGet/path").to_owned(),
        })
    }

    /// Waits until the pod's own probe would call it ready.
    async fn is_ready(&mut self) -> Outcome {
        until("the data plane is ready", async || {
            if let Err(ended) = self.process.check() {
                return Ok(Err(ended));
            }
            let answer = Request::get(&self.readiness).send(self.admin).await.map_err(not_yet)?;
            if answer.status == 200 { Ok(Ok(())) } else { Err(format!("{answer:?}")) }
        })
        .await?
    }

    async fn chat(&self) -> Outcome<Answer> {
        Request::post(CHAT, &question()).send(self.http).await
    }

    /// Sends a round of requests, each of which has to be answered.
    async fn round(&self) -> Result<(), String> {
        for _ in 0..ROUND {
            let answer = self.chat().await.map_err(not_yet)?;
            if answer.status != 200 {
                return Err(format!("{answer:?}"));
            }
        }
        Ok(())
    }

    /// The log tells of every request that the API server refused.
    fn was_refused_nothing(&self) -> Outcome {
        let log = std::fs::read_to_string(&self.log).map_err(Failure::io("read the gateway's log"))?;
        let refused: Vec<&str> =
            log.lines().filter(|line| line.to_lowercase().contains("forbidden")).collect();
        ensure(refused.is_empty(), || format!("the composed role does not suffice:\n{}", refused.join("\n")))
    }
}

/// Waits until all of the gateway is composed and its pods run; returns the Deployment.
async fn composed_deployment(kube: &Kube) -> Outcome<Value> {
    let deployment = until("the gateway's Deployment is available", async || {
        let found = kube.get(DEPLOYMENT, SYSTEM_NAMESPACE, GATEWAY_WORKLOAD).await.map_err(not_yet)?;
        let arguments = list(&found, "/spec/template/spec/containers/0/args");
        let with_tls = arguments.iter().any(|argument| argument == "--listen-tls");
        if with_tls && is_true(&found, "Available") { Ok(found) } else { Err(conditions(&found)) }
    })
    .await?;
    let pods =
        kube.list(POD, SYSTEM_NAMESPACE, &format!("app.kubernetes.io/name={GATEWAY_WORKLOAD}")).await?;
    let wanted = deployment["spec"]["replicas"].as_u64();
    ensure(wanted == Some(pods.len() as u64), || format!("{} pods, not {wanted:?}", pods.len()))?;
    for pod in &pods {
        let placed = !text(pod, "/spec/nodeName").is_empty() && text(pod, "/status/phase") == "Running";
        let account = text(pod, "/spec/serviceAccountName");
        ensure(placed && account == GATEWAY_WORKLOAD, || format!("a pod is {}", pod["status"]))?;
    }
    for (resource, namespace, name) in [
        (SERVICE, SYSTEM_NAMESPACE, GATEWAY_WORKLOAD),
        (SERVICE_ACCOUNT, SYSTEM_NAMESPACE, GATEWAY_WORKLOAD),
        (GATEWAY_CLASS, "", FLEET_GATEWAY),
        (GATEWAY, SYSTEM_NAMESPACE, FLEET_GATEWAY),
    ] {
        until(&format!("{} {name} is composed", resource.kind), async || {
            kube.get(resource, namespace, name).await.map_err(not_yet)
        })
        .await?;
    }
    Ok(deployment)
}

/// A token of the composed account, as a kubelet would ask for.
async fn token(kube: &Kube) -> Outcome<String> {
    let account = Target::new(SERVICE_ACCOUNT, SYSTEM_NAMESPACE, GATEWAY_WORKLOAD);
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600},
    });
    let granted = kube.create_subresource(account, "token", &request).await?;
    Ok(text(&granted, "/status/token").to_owned())
}

/// The account may not do what the data plane has no use for.
async fn is_refused(account: &Kube) -> Outcome {
    let patch = json!({"metadata": {"labels": {"changed": "yes"}}});
    let gateway = Target::new(INFERENCE_GATEWAY, "", DEFAULT_GATEWAY);
    let deployment = Target::new(DEPLOYMENT, SYSTEM_NAMESPACE, GATEWAY_WORKLOAD);
    let secret = Target::new(SECRET, SYSTEM_NAMESPACE, CERTIFICATE);
    let of_gateway_api = Target::new(GATEWAY, SYSTEM_NAMESPACE, FLEET_GATEWAY);
    let tried = [
        ("list pods", account.list(POD, "", "").await.map(drop)),
        ("list nodes", account.list(NODE, "", "").await.map(drop)),
        ("list Deployments", account.list(DEPLOYMENT, SYSTEM_NAMESPACE, "").await.map(drop)),
        ("change a Deployment", account.merge(deployment, "", &patch).await.map(drop)),
        ("change a Secret", account.merge(secret, "", &patch).await.map(drop)),
        ("delete a Secret", account.delete(secret).await),
        ("change the InferenceGateway", account.merge(gateway, "", &patch).await.map(drop)),
        ("write the InferenceGateway's status", account.merge(gateway, "status", &patch).await.map(drop)),
        ("change the Gateway beyond its status", account.merge(of_gateway_api, "", &patch).await.map(drop)),
        (
            "make a ModelService",
            account.create(&service("more", [("near", 1)]), Mode::DryRun).await.map(drop),
        ),
        ("make a token", token(account).await.map(drop)),
    ];
    for (what, outcome) in tried {
        match outcome {
            Err(Failure::Api { code: 403, .. }) => {}
            Err(other) => {
                return Err(Failure::Wrong(format!(
                    "to {what} is not refused, but fails: {}",
                    other.describe()
                )));
            }
            Ok(()) => return Err(Failure::Wrong(format!("the composed account may {what}"))),
        }
    }
    Ok(())
}

/// The data plane keeps the statuses of the Gateway API, and so the composite becomes ready with an address.
async fn reports(kube: &Kube) -> Outcome {
    // A cloud would do this.
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}}});
    kube.merge(Target::new(SERVICE, SYSTEM_NAMESPACE, GATEWAY_WORKLOAD), "status", &status).await?;
    until("the InferenceGateway is ready", async || {
        let found = kube.get(INFERENCE_GATEWAY, "", DEFAULT_GATEWAY).await.map_err(not_yet)?;
        let ready = is_true(&found, "Ready") && text(&found, "/status/address") == ADDRESS;
        if ready { Ok(()) } else { Err(format!("{}; {}", found["status"]["address"], conditions(&found))) }
    })
    .await
}

/// A service is ready, with an address, once the data plane has accepted its route.
///
/// Its endpoint is elsewhere: Kubernetes refuses an EndpointSlice that leads to this machine, so the endpoints that
/// requests are sent to below never become ready. The data plane does not mind; it reads their URLs.
async fn publishes(kube: &Kube) -> Outcome {
    kube.apply(&endpoint("elsewhere", "203.0.113.20:8000", "/")).await?;
    is_ready(kube, MODEL_ENDPOINT, "elsewhere").await?;
    kube.apply(&service("published", [("elsewhere", 1)])).await?;
    let found = is_ready(kube, MODEL_SERVICE, "published").await?;
    let published = text(&found, "/status/address");
    let wanted = format!("https://{HOST}/ml-team/published");
    ensure(published.trim_end_matches('/') == wanted, || format!("the service's address is {published:?}"))?;
    kube.delete(Target::new(MODEL_SERVICE, TEAM, "published")).await?;
    kube.delete(Target::new(MODEL_ENDPOINT, TEAM, "elsewhere")).await
}

/// Requests arrive under the endpoint's own path, in the shares of the weights, also by the model's name.
async fn routes(data_plane: &DataPlane, near: &ModelServer, far: &ModelServer) -> Outcome {
    shares_are(data_plane, (near, 15), (far, 5)).await?;
    let question = question();
    let answer = Request::post(CHAT, &question).send(data_plane.http).await?;
    ensure(answer.status == 200 && answer.body.contains("chat.completion"), || format!("{answer:?}"))?;
    let received: Vec<_> = near.take().into_iter().chain(far.take()).collect();
    let [received] = received.as_slice() else {
        return Err(Failure::Wrong(format!("one request arrived {} times", received.len())));
    };
    let path = ["near", "far"].map(|name| format!("POST /{name}/v1/chat/completions"));
    ensure(path.contains(&received.target), || format!("it arrived as {}", received.target))?;
    let arrived: Value = serde_json::from_slice(&received.body).unwrap_or_default();
    ensure(arrived == question, || format!("of {question} arrived {arrived}"))?;

    let by_name = json!({"model": "ml-team/chat", "messages": []});
    let answer = Request::post("/v1/chat/completions", &by_name).send(data_plane.http).await?;
    ensure(answer.status == 200, || format!("by the model's name: {answer:?}"))?;
    let unknown =
        Request::post("/ml-team/other/v1/chat/completions", &question).send(data_plane.http).await?;
    ensure(unknown.status == 404, || format!("a service that does not exist: {unknown:?}"))?;
    drop((near.take(), far.take()));
    Ok(())
}

/// Weights, paths and endpoints that change are followed.
async fn takes_up_changes(
    kube: &Kube,
    data_plane: &DataPlane,
    near: &ModelServer,
    far: &ModelServer,
) -> Outcome {
    kube.apply(&service(SERVICE_NAME, [("near", 1), ("far", 3)])).await?;
    shares_are(data_plane, (near, 5), (far, 15)).await?;
    kube.apply(&endpoint("far", &format!("{HOST}:{}", far.port), "/moved/")).await?;
    until("requests arrive under the new path", async || {
        data_plane.chat().await.map_err(not_yet)?;
        drop(near.take());
        match far.take().first() {
            Some(one) if one.target == "POST /moved/v1/chat/completions" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    kube.delete(Target::new(MODEL_ENDPOINT, TEAM, "near")).await?;
    until("all requests go to the endpoint that is left", async || {
        drop((near.take(), far.take()));
        data_plane.round().await?;
        match far.take().len() {
            ROUND => Ok(()),
            count => Err(format!("{count} of {ROUND}")),
        }
    })
    .await
}

/// With keys required, only callers who have one are let through, and only as long as it exists.
async fn asks_for_keys(kube: &Kube, data_plane: &DataPlane) -> Outcome {
    kube.apply(&gateway(true)).await?;
    answers(data_plane, None, 401).await?;
    let secret = json!({
        "apiVersion": SECRET.api_version(),
        "kind": SECRET.kind,
        "metadata": {"name": "alice", "namespace": TEAM, "labels": {"modelplane.ai/caller-key": "true"}},
        "stringData": {"key": KEY},
    });
    kube.apply(&secret).await?;
    answers(data_plane, Some(KEY), 200).await?;
    throughout("another key is refused", Duration::from_secs(1), async || {
        let answer = ask_with(data_plane, Some("another")).await.map_err(not_yet)?;
        if answer.status == 401 { Ok(()) } else { Err(format!("{answer:?}")) }
    })
    .await?;
    kube.delete(Target::new(SECRET, TEAM, "alice")).await?;
    answers(data_plane, Some(KEY), 401).await?;
    kube.apply(&gateway(false)).await?;
    answers(data_plane, None, 200).await
}

async fn answers(data_plane: &DataPlane, key: Option<&str>, status: u16) -> Outcome {
    until(&format!("with key {key:?} the answer is {status}"), async || {
        let answer = ask_with(data_plane, key).await.map_err(not_yet)?;
        if answer.status == status { Ok(()) } else { Err(format!("{answer:?}")) }
    })
    .await
}

async fn ask_with(data_plane: &DataPlane, key: Option<&str>) -> Outcome<Answer> {
    let question = question();
    let request = Request::post(CHAT, &question);
    let request = match key {
        Some(key) => request.with_key(key),
        None => request,
    };
    request.send(data_plane.http).await
}

/// New connections get the certificate that the Secret holds now.
async fn presents_certificates(kube: &Kube, authority: &Authority, data_plane: &DataPlane) -> Outcome {
    let trusted = authority.certificate();
    let first = presented(&connect_tls(data_plane.https, &trusted).await?);
    let mut kept = connect_tls(data_plane.https, &trusted).await?;
    apply_certificate(kube, &authority.server()?).await?;
    let mut fresh = until("another certificate is presented", async || {
        let stream = connect_tls(data_plane.https, &trusted).await.map_err(not_yet)?;
        if presented(&stream) == first { Err("it is the first".to_owned()) } else { Ok(stream) }
    })
    .await?;
    for (which, stream) in [("the new", &mut fresh), ("the old", &mut kept)] {
        let question = question();
        let answer = Request::post(CHAT, &question).send_over(stream).await;
        let answer = answer.map_err(Failure::io(format!("ask over {which} connection")))?;
        ensure(answer.status == 200, || format!("over {which} connection: {answer:?}"))?;
    }
    Ok(())
}

/// Waits until that many of a round of requests arrive at each.
async fn shares_are(
    data_plane: &DataPlane,
    (near, to_near): (&ModelServer, usize),
    (far, to_far): (&ModelServer, usize),
) -> Outcome {
    until(
        &format!("of {ROUND} requests {to_near} arrive at one endpoint and {to_far} at the other"),
        async || {
            drop((near.take(), far.take()));
            data_plane.round().await?;
            let found = (near.take().len(), far.take().len());
            if found == (to_near, to_far) { Ok(()) } else { Err(format!("{found:?}")) }
        },
    )
    .await
}

async fn is_ready(kube: &Kube, resource: Resource, name: &str) -> Outcome<Value> {
    until(&format!("{} {name} is ready", resource.kind), async || {
        let found = kube.get(resource, TEAM, name).await.map_err(not_yet)?;
        if is_true(&found, "Ready") { Ok(found) } else { Err(conditions(&found)) }
    })
    .await
}

async fn remove(kube: &Kube) -> Outcome {
    kube.delete(Target::new(MODEL_SERVICE, TEAM, SERVICE_NAME)).await?;
    kube.delete(Target::new(MODEL_ENDPOINT, TEAM, "far")).await?;
    until("nothing routes any more", async || {
        match kube.list(HTTP_ROUTE, TEAM, "").await.map_err(not_yet)?.len() {
            0 => Ok(()),
            count => Err(format!("{count} HTTPRoutes")),
        }
    })
    .await?;
    kube.delete(Target::new(INFERENCE_GATEWAY, "", DEFAULT_GATEWAY)).await?;
    until("the gateway's Deployment is gone", async || {
        match kube.find(DEPLOYMENT, SYSTEM_NAMESPACE, GATEWAY_WORKLOAD).await.map_err(not_yet)? {
            None => Ok(()),
            Some(_) => Err("it exists".to_owned()),
        }
    })
    .await
}

fn question() -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "hello"}]})
}

fn gateway(require_key: bool) -> Value {
    json!({
        "apiVersion": INFERENCE_GATEWAY.api_version(),
        "kind": INFERENCE_GATEWAY.kind,
        "metadata": {"name": DEFAULT_GATEWAY},
        "spec": {"backend": "Modelplane", "modelplane": {
            "tls": {"hostname": HOST, "certificateSecrets": [CERTIFICATE]},
            "callers": {"requireKey": require_key},
        }},
    })
}

fn endpoint(name: &str, host_port: &str, path: &str) -> Value {
    json!({
        "apiVersion": MODEL_ENDPOINT.api_version(),
        "kind": MODEL_ENDPOINT.kind,
        "metadata": {"name": name, "namespace": TEAM, "labels": {"place": name}},
        "spec": {"url": format!("http://{host_port}/"), "rewritePath": path},
    })
}

fn service<const N: usize>(name: &str, weights: [(&str, u64); N]) -> Value {
    let entry = |(place, weight): (&str, u64)| json!({"weight": weight, "selector": {"matchLabels": {"place": place}}});
    let endpoints: Vec<Value> = weights.into_iter().map(entry).collect();
    json!({
        "apiVersion": MODEL_SERVICE.api_version(),
        "kind": MODEL_SERVICE.kind,
        "metadata": {"name": name, "namespace": TEAM},
        "spec": {"endpoints": endpoints},
    })
}

async fn apply_certificate(kube: &Kube, identity: &Identity) -> Outcome {
    let secret = json!({
        "apiVersion": SECRET.api_version(),
        "kind": SECRET.kind,
        "type": "kubernetes.io/tls",
        "metadata": {"name": CERTIFICATE, "namespace": SYSTEM_NAMESPACE},
        "stringData": {"tls.crt": identity.certificate, "tls.key": identity.key},
    });
    kube.apply(&secret).await.map(drop)
}
