//! A real control plane: etcd, kube-apiserver, and garbage collection.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;

const TOKEN: &str = "test-token";

/// The processes of a control plane; killed when dropped.
pub(crate) struct ControlPlane {
    children: Vec<Child>,
    folder: tempfile::TempDir,
    port: u16,
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The folder of the binaries; says loudly that a test is skipped if there is none.
pub(crate) fn binaries() -> Option<PathBuf> {
    match std::env::var_os("MODELPLANE_E2E_BIN") {
        Some(folder) if Path::new(&folder).join("kube-apiserver").exists() => Some(folder.into()),
        _ => {
            eprintln!("SKIPPED: MODELPLANE_E2E_BIN names no folder with kube-apiserver");
            None
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl ControlPlane {
    /// Starts one, garbage collection included.
    pub(crate) async fn start() -> Option<Self> {
        let binaries = binaries()?;
        let folder = tempfile::tempdir().unwrap();
        let (etcd, etcd_peer, port) = (free_port(), free_port(), free_port());
        let at = |name: &str| folder.path().join(name).display().to_string();
        let key = rcgen::KeyPair::generate().unwrap();
        std::fs::write(at("sa.key"), key.serialize_pem()).unwrap();
        std::fs::write(at("sa.pub"), key.public_key_pem()).unwrap();
        std::fs::write(at("tokens.csv"), format!("{TOKEN},admin,admin,system:masters\n")).unwrap();
        let spawn = |name: &str, arguments: &[String]| {
            let log = std::fs::File::create(at(&format!("{name}.log"))).unwrap();
            let mut command = Command::new(binaries.join(name));
            command.args(arguments).stdout(Stdio::from(log.try_clone().unwrap())).stderr(Stdio::from(log));
            command.spawn().unwrap()
        };
        let mut children = vec![spawn(
            "etcd",
            &[
                format!("--data-dir={}", at("etcd")),
                format!("--listen-client-urls=http://127.0.0.1:{etcd}"),
                format!("--advertise-client-urls=http://127.0.0.1:{etcd}"),
                format!("--listen-peer-urls=http://127.0.0.1:{etcd_peer}"),
                "--unsafe-no-fsync=true".to_owned(),
            ],
        )];
        children.push(spawn(
            "kube-apiserver",
            &[
                format!("--etcd-servers=http://127.0.0.1:{etcd}"),
                format!("--secure-port={port}"),
                "--bind-address=127.0.0.1".to_owned(),
                // Else it looks for a default route, which a closed machine lacks.
                "--advertise-address=127.0.0.1".to_owned(),
                "--endpoint-reconciler-type=none".to_owned(),
                format!("--cert-dir={}", at("certs")),
                format!("--token-auth-file={}", at("tokens.csv")),
                format!("--service-account-key-file={}", at("sa.pub")),
                format!("--service-account-signing-key-file={}", at("sa.key")),
                "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
                "--authorization-mode=AlwaysAllow".to_owned(),
                "--disable-admission-plugins=ServiceAccount".to_owned(),
                "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            ],
        ));
        let mut plane = Self { children, folder, port };
        plane.wait().await;
        let kubeconfig = plane.folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, plane.kubeconfig()).unwrap();
        let log = std::fs::File::create(plane.folder.path().join("kcm.log")).unwrap();
        let manager = Command::new(binaries.join("kube-controller-manager"))
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args(["--controllers=garbage-collector-controller,namespace-controller", "--leader-elect=false"])
            .arg("--secure-port=0")
            .stdout(Stdio::from(log.try_clone().unwrap()))
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap();
        plane.children.push(manager);
        Some(plane)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// How to reach it, as kubectl and drivers read it.
    pub(crate) fn kubeconfig(&self) -> String {
        let cluster =
            json!({"server": format!("https://{}", self.address()), "insecure-skip-tls-verify": true});
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        })
        .to_string()
    }

    /// A client.
    pub(crate) async fn client(&self) -> kube::Client {
        let kubeconfig = kube::config::Kubeconfig::from_yaml(&self.kubeconfig()).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
        kube::Client::try_from(config).unwrap()
    }

    async fn wait(&mut self) {
        let client = self.client().await;
        for _ in 0..600 {
            for child in &mut self.children {
                assert!(
                    child.try_wait().unwrap().is_none(),
                    "a component ended:\n{}",
                    tails(self.folder.path())
                );
            }
            let ready = client.request_text(http::Request::get("/readyz").body(Vec::new()).unwrap()).await;
            if ready.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the API server did not become ready");
    }
}

/// The ends of all logs.
fn tails(folder: &Path) -> String {
    let mut out = String::new();
    for name in ["etcd.log", "kube-apiserver.log", "kcm.log"] {
        let log = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(5).collect();
        out.push_str(&format!("{name}:\n{}\n", lines.into_iter().rev().collect::<Vec<_>>().join("\n")));
    }
    out
}
