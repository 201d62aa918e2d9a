//! The driver of releases with the real Helm, a chart repository on loopback, and a real API server.
//!
//! Helm is the program that `MODELPLANE_HELM` names, or `helm` on the path; without one the tests are skipped.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use base64::Engine as _;
use modelplane_engine::client::ApiClient;
use modelplane_engine::drivers::helm::HelmProgram;
use modelplane_engine::{Config, Engine};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinHandle;

use crate::real;
use crate::support::{
    RELEASES, SYSTEM, apply, client, condition, delete, eventually, get, namespace, one_at_a_time, server,
};

fn helm() -> Option<PathBuf> {
    let named = std::env::var_os("MODELPLANE_HELM").map_or_else(|| PathBuf::from("helm"), PathBuf::from);
    if Command::new(&named).arg("version").output().is_ok_and(|output| output.status.success()) {
        return Some(named);
    }
    eprintln!("SKIPPED: {} is no Helm; name one in MODELPLANE_HELM", named.display());
    None
}

/// A repository with two versions of one chart.
struct Repository {
    url: String,
    serving: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl Drop for Repository {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

const CONFIG_MAP: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-settings
data:
  version: {{ .Chart.Version | quote }}
  colour: {{ .Values.colour | quote }}
  size: {{ .Values.nested.size | quote }}
";

/// Nothing runs pods here, so whoever waits for this one waits in vain.
const NEVER_READY: &str = "{{- if .Values.never }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-never
spec:
  selector: {matchLabels: {app: never}}
  template:
    metadata: {labels: {app: never}}
    spec: {containers: [{name: c, image: none}]}
{{- end }}
";

impl Repository {
    async fn start(helm: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let packages = folder.path().join("packages");
        std::fs::create_dir(&packages).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        for version in ["1.0.0", "1.1.0"] {
            let chart = folder.path().join(format!("chart-{version}"));
            std::fs::create_dir_all(chart.join("templates")).unwrap();
            let metadata = format!("{{apiVersion: v2, name: small, version: {version}}}");
            std::fs::write(chart.join("Chart.yaml"), metadata).unwrap();
            std::fs::write(chart.join("values.yaml"), "{colour: red, nested: {size: 1}, never: false}")
                .unwrap();
            std::fs::write(chart.join("templates/settings.yaml"), CONFIG_MAP).unwrap();
            std::fs::write(chart.join("templates/never.yaml"), NEVER_READY).unwrap();
            run(
                helm,
                &["package", &chart.display().to_string(), "--destination", &packages.display().to_string()],
            );
        }
        run(helm, &["repo", "index", &packages.display().to_string(), "--url", &url]);
        let serving = tokio::spawn(serve(listener, packages));
        Self { url, serving, _folder: folder }
    }
}

fn run(helm: &Path, arguments: &[&str]) {
    let output = Command::new(helm).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Serves the files of a folder, one request for each connection.
async fn serve(listener: tokio::net::TcpListener, folder: PathBuf) {
    while let Ok((mut connection, _)) = listener.accept().await {
        let mut request = Vec::new();
        while !request.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut chunk = [0; 1024];
            match connection.read(&mut chunk).await {
                Ok(read @ 1..) => request.extend_from_slice(&chunk[..read]),
                _ => break,
            }
        }
        let request = String::from_utf8_lossy(&request);
        let path = request.split_whitespace().nth(1).unwrap_or("/");
        let name = path.rsplit('/').next().unwrap_or_default();
        let answer = match std::fs::read(folder.join(name)) {
            Ok(content) => {
                let mut head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    content.len()
                )
                .into_bytes();
                head.extend(content);
                head
            }
            Err(_) => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
        };
        let _ = connection.write_all(&answer).await;
        let _ = connection.shutdown().await;
    }
}

/// A control plane with an engine, and the kubeconfig of a cluster.
struct Site {
    api: ApiClient,
    engine: Engine,
    repository: String,
    _server: modelplane_apiserver::ApiServer,
}

impl Site {
    async fn start(program: &Path, kubeconfig: &str, repository: &str) -> Self {
        let server = server().await;
        let client = client(&server);
        let api = ApiClient::new(client.clone());
        namespace(&api, SYSTEM).await;
        apply(
            &api,
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kubeconfig", "namespace": SYSTEM},
                "data": {"kubeconfig": base64::engine::general_purpose::STANDARD.encode(kubeconfig)},
            }),
        )
        .await;
        let mut config = Config::new(client);
        config.helm = Arc::new(HelmProgram::new(program));
        let engine = Engine::start(config).await.unwrap();
        let secret = json!({"namespace": SYSTEM, "name": "kubeconfig", "key": "kubeconfig"});
        apply(
            &api,
            json!({
                "apiVersion": RELEASES, "kind": "ClusterProviderConfig", "metadata": {"name": "one"},
                "spec": {"credentials": {"source": "Secret", "secretRef": secret}},
            }),
        )
        .await;
        Self { api, engine, repository: repository.to_owned(), _server: server }
    }

    /// Asks for a version of the chart with more than that in `spec.forProvider`.
    async fn ask(&self, version: &str, more: Value) {
        let mut release = json!({
            "apiVersion": RELEASES, "kind": "Release", "metadata": {"name": "small", "namespace": "default"},
            "spec": {
                "providerConfigRef": {"kind": "ClusterProviderConfig", "name": "one"},
                "forProvider": {
                    "chart": {"name": "small", "repository": self.repository, "version": version},
                    "namespace": "charts",
                },
            },
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            release["spec"]["forProvider"][key] = value.clone();
        }
        apply(&self.api, release).await;
    }

    async fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        for _ in 0..900 {
            last = get(&self.api, RELEASES, "Release", "default", "small").await.unwrap_or_default();
            if holds(&last) {
                return last;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        panic!("not in time: {what}: {}", last["status"])
    }

    async fn deployed(&self, what: &str, revision: i64) -> Value {
        let is_deployed = |release: &Value| {
            condition(release, "Ready") == "True"
                && condition(release, "Synced") == "True"
                && release["status"]["atProvider"]["revision"] == revision
        };
        self.until(what, is_deployed).await
    }
}

fn message(release: &Value) -> &str {
    let conditions = release["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == "Synced");
    found.and_then(|condition| condition["message"].as_str()).unwrap_or_default()
}

async fn settings(cluster: &ApiClient) -> Option<Value> {
    let found = get(cluster, "v1", "ConfigMap", "charts", "small-settings").await?;
    Some(found["data"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_is_installed_upgraded_rolled_back_and_uninstalled() {
    let Some(helm) = helm() else { return };
    let _one = one_at_a_time().await;
    let Some(plane) = real::ControlPlane::start().await else { return };
    let cluster = ApiClient::new(plane.client().await);
    let repository = Repository::start(&helm).await;
    let site = Site::start(&helm, &plane.kubeconfig(), &repository.url).await;

    site.ask("1.0.0", json!({"values": {"colour": "blue"}})).await;
    let release = site.deployed("it is installed", 1).await;
    assert_eq!(release["status"]["atProvider"]["state"], "deployed");
    assert_eq!(settings(&cluster).await, Some(json!({"version": "1.0.0", "colour": "blue", "size": "1"})));

    site.ask("1.0.0", json!({"values": {"colour": "green"}, "set": [{"name": "nested.size", "value": "7"}]}))
        .await;
    site.deployed("it is upgraded by changed values", 2).await;
    assert_eq!(settings(&cluster).await, Some(json!({"version": "1.0.0", "colour": "green", "size": "7"})));

    let wait = json!({"wait": true, "waitTimeout": "60s"});
    site.ask("1.1.0", wait).await;
    site.deployed("it is upgraded to another version, waiting", 3).await;
    let third = Some(json!({"version": "1.1.0", "colour": "red", "size": "1"}));
    assert_eq!(settings(&cluster).await, third);

    let never = json!({"wait": true, "waitTimeout": "2s", "values": {"never": true, "colour": "black"}});
    site.ask("1.1.0", never).await;
    let failed =
        |release: &Value| condition(release, "Synced") == "False" && message(release).contains("is deployed");
    let release = site.until("a failure is rolled back and reported", failed).await;
    assert!(message(&release).contains("helm upgrade:"), "{}", message(&release));
    assert!(message(&release).contains("Rollback to 3"), "{}", message(&release));
    assert_eq!(condition(&release, "Ready"), "True", "what was there before runs: {}", release["status"]);
    assert_eq!(settings(&cluster).await, third);

    site.ask("9.9.9", json!({})).await;
    let no_such =
        |release: &Value| condition(release, "Synced") == "False" && message(release).contains("9.9.9");
    site.until("a version that does not exist is reported", no_such).await;
    site.ask("1.0.0", json!({"valuesFrom": [{"secretKeyRef": {"name": "x"}}]})).await;
    let unsupported = |release: &Value| message(release).contains("valuesFrom is not supported");
    site.until("what is not supported is said", unsupported).await;

    delete(&site.api, RELEASES, "Release", "default", "small").await;
    eventually("it is uninstalled", || async { settings(&cluster).await.is_none().then_some(()) }).await;
    eventually("and gone", || async {
        get(&site.api, RELEASES, "Release", "default", "small").await.is_none().then_some(())
    })
    .await;
    site.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_helm_that_is_missing_is_said() {
    let missing = Path::new("no-such-helm");
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": true}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    });
    // Nobody answers there, which is said second: first there is no Helm to find that out.
    let site = Site::start(missing, &kubeconfig.to_string(), "https://charts.invalid").await;
    site.ask("1.0.0", json!({})).await;
    let said = |release: &Value| {
        condition(release, "Synced") == "False"
            && message(release).contains("cannot start no-such-helm")
            && message(release).contains("install Helm 3 or 4")
    };
    site.until("it is said that there is no Helm", said).await;
    site.engine.shutdown().await;
}
