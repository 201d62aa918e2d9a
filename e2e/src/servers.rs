//! etcd and Kubernetes: what makes a cluster.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome, until};
use crate::kube_api::{Credential, Kube};
use crate::manifests;
use crate::pki::{Authority, Identity};
use crate::process::{Process, Program, free_port};
use crate::tools::Tools;

/// Controllers that a control plane needs.
const CONTROL_CONTROLLERS: &str =
    "namespace-controller,garbage-collector-controller,serviceaccount-controller";

/// Controllers that run workloads; kwok only plays the nodes' kubelets.
const WORKLOAD_CONTROLLERS: &str = "namespace-controller,garbage-collector-controller,serviceaccount-controller,\
    root-ca-certificate-publisher-controller,deployment-controller,replicaset-controller,job-controller,\
    resourceclaim-controller,endpointslice-controller,node-lifecycle-controller";

/// What a cluster is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It holds composites; nothing runs on it.
    Control,
    /// Pods are scheduled on it.
    Workload,
    /// Only the API server runs, to compare behaviour with.
    Bare,
}

/// What the servers of a run share.
pub struct Site<'s> {
    /// The binaries.
    pub tools: &'s Tools,
    /// The run's folder.
    pub folder: &'s Path,
    /// The run's certificate authority.
    pub authority: &'s Authority,
    /// Who the harness is.
    pub administrator: &'s Identity,
}

/// The store of all API servers of a run; each has keys of its own in it.
#[derive(Debug)]
pub struct Etcd {
    url: String,
    process: Process,
}

/// A cluster: an API server and what runs around it.
pub struct Cluster {
    /// Its name, also its folder's.
    pub name: String,
    /// A client for it.
    pub kube: Kube,
    /// Where its API server is.
    pub url: String,
    processes: Vec<Process>,
}

impl Etcd {
    /// Starts it with a new, empty store that does not wait for the disk.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn start(site: &Site<'_>) -> Outcome<Self> {
        let (clients, peers) = (free_port()?, free_port()?);
        let (url, peer_url) = (format!("http://127.0.0.1:{clients}"), format!("http://127.0.0.1:{peers}"));
        let arguments = vec![
            format!("--data-dir={}", site.folder.join("etcd").display()),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            format!("--listen-peer-urls={peer_url}"),
            format!("--initial-advertise-peer-urls={peer_url}"),
            format!("--initial-cluster=default={peer_url}"),
            "--unsafe-no-fsync".to_owned(),
        ];
        let program =
            Program { name: "etcd", binary: site.tools.binary("etcd"), arguments, environment: Vec::new() };
        Ok(Self { url, process: program.start(site.folder)? })
    }
}

impl Cluster {
    /// Starts a cluster; it may not serve yet, see [`Self::serves`].
    ///
    /// # Errors
    ///
    /// If something cannot be started.
    pub async fn start(site: &Site<'_>, etcd: &Etcd, name: &str, role: Role) -> Outcome<Self> {
        let folder = site.folder.join(name);
        std::fs::create_dir_all(&folder).map_err(Failure::io("make a folder"))?;
        let port = free_port()?;
        let url = format!("https://127.0.0.1:{port}");
        let files = Files::write(site, &folder)?;
        let kube =
            Kube::connect(&url, site.authority, Credential::Certificate(site.administrator), &folder).await?;
        let apiserver = api_server(site, etcd, name, port, &files);
        let processes = vec![apiserver.start(&folder)?];
        let mut cluster = Self { name: name.to_owned(), kube, url, processes };
        if role != Role::Bare {
            cluster.serves().await?;
            let controllers = if role == Role::Control { CONTROL_CONTROLLERS } else { WORKLOAD_CONTROLLERS };
            cluster.processes.push(cluster.controller_manager(site, &files, controllers)?.start(&folder)?);
        }
        if role == Role::Workload {
            cluster.processes.push(cluster.scheduler(site)?.start(&folder)?);
            cluster.processes.push(cluster.kwok(site)?.start(&folder)?);
        }
        Ok(cluster)
    }

    /// Waits until the API server serves.
    ///
    /// # Errors
    ///
    /// If it never does, or ends.
    pub async fn serves(&mut self) -> Outcome {
        let statement = format!("the API server of {} is ready", self.name);
        until(&statement, async || match self.check() {
            Ok(()) => self.kube.ready().await.map(Ok),
            Err(ended) => Ok(Err(ended)),
        })
        .await?
    }

    /// Fails if one of its processes has ended.
    ///
    /// # Errors
    ///
    /// With the end of its log.
    pub fn check(&mut self) -> Outcome {
        self.processes.iter_mut().try_for_each(Process::check)
    }

    fn controller_manager<'p>(
        &self,
        site: &Site<'_>,
        files: &Files,
        controllers: &str,
    ) -> Outcome<Program<'p>> {
        let mut arguments = self.common_arguments()?;
        arguments.extend([
            format!("--controllers={controllers}"),
            format!("--service-account-private-key-file={}", files.key.display()),
            format!("--root-ca-file={}", files.authority.display()),
            // kwok's nodes become ready once and send no heartbeats.
            "--node-monitor-grace-period=24h".to_owned(),
        ]);
        Ok(program(site, "kube-controller-manager", arguments))
    }

    fn scheduler<'p>(&self, site: &Site<'_>) -> Outcome<Program<'p>> {
        Ok(program(site, "kube-scheduler", self.common_arguments()?))
    }

    fn common_arguments(&self) -> Outcome<Vec<String>> {
        Ok(vec![
            format!("--kubeconfig={}", self.kube.kubeconfig_file.display()),
            "--leader-elect=false".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", free_port()?),
        ])
    }

    fn kwok<'p>(&self, site: &Site<'_>) -> Outcome<Program<'p>> {
        let mut arguments = Vec::new();
        for stages in ["kwok-nodes", "kwok-pods"] {
            let files = manifests::entries(&site.tools.definitions(stages))?;
            arguments.extend(files.iter().map(|file| format!("--config={}", file.display())));
        }
        arguments.extend([
            format!("--kubeconfig={}", self.kube.kubeconfig_file.display()),
            "--manage-all-nodes=true".to_owned(),
            format!("--server-address=127.0.0.1:{}", free_port()?),
        ]);
        Ok(program(site, "kwok", arguments))
    }
}

impl Etcd {
    /// Fails if it has ended.
    ///
    /// # Errors
    ///
    /// With the end of its log.
    pub fn check(&mut self) -> Outcome {
        self.process.check()
    }
}

/// Certificates on disk.
struct Files {
    authority: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    fn write(site: &Site<'_>, folder: &Path) -> Outcome<Self> {
        let server = site.authority.server()?;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(Failure::io(format!("write {}", path.display())))?;
            Ok(path)
        };
        Ok(Self {
            authority: write("ca.crt", &site.authority.certificate())?,
            certificate: write("tls.crt", &server.certificate)?,
            key: write("tls.key", &server.key)?,
        })
    }
}

fn program<'p>(site: &Site<'_>, name: &'p str, arguments: Vec<String>) -> Program<'p> {
    Program { name, binary: site.tools.binary(name), arguments, environment: Vec::new() }
}

fn api_server<'p>(site: &Site<'_>, etcd: &Etcd, name: &str, port: u16, files: &Files) -> Program<'p> {
    let arguments = vec![
        format!("--etcd-servers={}", etcd.url),
        format!("--etcd-prefix=/{name}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        // A loopback address may not be an endpoint of the `kubernetes` Service, and nobody needs that.
        "--endpoint-reconciler-type=none".to_owned(),
        // Nobody dials it; left out, the program looks for a default route, which a closed machine lacks.
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--tls-cert-file={}", files.certificate.display()),
        format!("--tls-private-key-file={}", files.key.display()),
        format!("--client-ca-file={}", files.authority.display()),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-signing-key-file={}", files.key.display()),
        format!("--service-account-key-file={}", files.certificate.display()),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
    ];
    program(site, "kube-apiserver", arguments)
}
