//! Everything of a run: started once, shared by all scenarios, gone when dropped.

use std::path::PathBuf;

use modelplane_api::names::SYSTEM_NAMESPACE;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::crossplane::{self, Crossplane, Installation, Provider};
use crate::failure::{Failure, Outcome};
use crate::function::FunctionServer;
use crate::hardware;
use crate::kube_api::{Kube, name};
use crate::manifests;
use crate::pki::{Authority, Identity};
use crate::process::free_port;
use crate::resources::SECRET;
use crate::second::SecondPlane;
use crate::servers::{Cluster, Etcd, Role, Site};
use crate::stand_in::StandIn;
use crate::tools::Tools;

/// The workload clusters, with the addresses their load balancers would have.
pub const CLUSTERS: [(&str, &str); 2] = [("west", "203.0.113.11"), ("east", "203.0.113.12")];

/// Namespace of the models.
pub const TEAM: &str = "ml-team";

/// A control plane and the workload clusters.
pub struct Environment {
    /// Where logs and data are.
    pub folder: PathBuf,
    /// The control plane.
    pub control: Cluster,
    /// The workload clusters, as in [`CLUSTERS`].
    pub workloads: Vec<Cluster>,
    /// Our function server.
    pub function: FunctionServer,
    crossplane: Crossplane,
    stand_in: JoinHandle<()>,
    second: Option<SecondPlane>,
    /// How many second control planes there have been.
    seconds: usize,
    etcd: Etcd,
    tools: Tools,
    authority: Authority,
    administrator: Identity,
    /// Removes the folder when dropped, after everything that writes into it.
    _temporary: Option<tempfile::TempDir>,
}

/// The folder of a run.
pub struct Workspace {
    path: PathBuf,
    temporary: Option<tempfile::TempDir>,
}

impl Workspace {
    /// A fresh folder; kept afterwards if asked to.
    ///
    /// # Errors
    ///
    /// If it cannot be made.
    pub fn new(keep: bool) -> Outcome<Self> {
        let folder = tempfile::Builder::new().prefix("modelplane-e2e-").tempdir();
        let folder = folder.map_err(Failure::io("make a folder"))?;
        let path = folder.path().to_owned();
        if keep {
            return Ok(Self { path: folder.keep(), temporary: None });
        }
        Ok(Self { path, temporary: Some(folder) })
    }

    /// Where it is.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }
}

impl Environment {
    /// Starts everything; `say` is told how far it is. Needs a `LocalSet`.
    ///
    /// # Errors
    ///
    /// If something does not start.
    pub async fn start(tools: &Tools, workspace: Workspace, say: impl Fn(&str)) -> Outcome<Self> {
        let folder = workspace.path.clone();
        let (authority, administrator) = identities()?;
        let site = Site { tools, folder: &folder, authority: &authority, administrator: &administrator };
        say("etcd, the control plane and two workload clusters");
        let etcd = Etcd::start(&site)?;
        let control = Cluster::start(&site, &etcd, "control", Role::Control).await?;
        let mut workloads = Vec::new();
        for (name, _) in CLUSTERS {
            let cluster = Cluster::start(&site, &etcd, name, Role::Workload).await?;
            workloads.push(cluster);
        }
        say("Crossplane's definitions, webhooks and certificates");
        let installation =
            Installation { tools, kube: &control.kube, folder: &folder, webhook_port: free_port()? };
        let certificates = installation.initialise().await?;
        say("the function server, Crossplane and provider-kubernetes");
        let function = FunctionServer::start(&certificates, &folder)?;
        function.listens().await?;
        let crossplane = installation.start(&certificates, Provider::Kubernetes).await?;
        say("our definitions and compositions");
        crossplane::install_packages(&control.kube, &function.endpoint()).await?;
        crossplane::create_namespace(&control.kube, TEAM).await?;
        let stand_in = tokio::task::spawn_local(stand_in(&control, &workloads).run());
        let mut environment = Self {
            folder,
            control,
            workloads,
            function,
            crossplane,
            stand_in,
            second: None,
            seconds: 0,
            etcd,
            tools: tools.clone(),
            authority,
            administrator,
            _temporary: workspace.temporary,
        };
        environment.check()?;
        Ok(environment)
    }

    /// Fails if one of the processes has ended.
    ///
    /// # Errors
    ///
    /// With the end of its log.
    pub fn check(&mut self) -> Outcome {
        self.etcd.check()?;
        self.control.check()?;
        self.workloads.iter_mut().try_for_each(Cluster::check)?;
        self.crossplane.check()?;
        self.second.as_mut().map_or(Ok(()), SecondPlane::check)?;
        self.function.check()
    }

    /// The second control plane; started when first asked for.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub async fn second(&mut self) -> Outcome<&SecondPlane> {
        let plane = match self.second.take() {
            Some(plane) => plane,
            None => {
                self.seconds += 1;
                let Self { tools, authority, administrator, .. } = &*self;
                let site = Site { tools, folder: &self.folder, authority, administrator };
                SecondPlane::start(&site, &self.etcd, &format!("second-{}", self.seconds)).await?
            }
        };
        Ok(self.second.insert(plane))
    }

    /// The certificate authority of the run.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Stops the second control plane, if it runs. The next one knows nothing of it.
    pub fn stop_second(&mut self) {
        self.second = None;
    }

    /// A client for the control plane.
    pub fn control(&self) -> &Kube {
        &self.control.kube
    }

    /// A client for a workload cluster.
    ///
    /// # Errors
    ///
    /// If there is none of that name.
    pub fn workload(&self, name: &str) -> Outcome<&Kube> {
        let found = self.workloads.iter().find(|cluster| cluster.name == name);
        found.map(|cluster| &cluster.kube).ok_or_else(|| Failure::Wrong(format!("no cluster {name:?}")))
    }

    /// Applies one of this crate's manifests to the control plane.
    ///
    /// # Errors
    ///
    /// If it is refused.
    pub async fn apply(&self, manifest: &str) -> Outcome {
        for document in manifests::own(manifest)? {
            self.control().apply(&document).await?;
        }
        Ok(())
    }

    /// Gives the workload clusters their nodes, and the control plane their kubeconfigs.
    ///
    /// # Errors
    ///
    /// If something is refused.
    pub async fn install_hardware(&self, fleet: &[Value]) -> Outcome {
        let of = |kind: &'static str| fleet.iter().filter(move |document| document["kind"] == kind);
        let classes: Vec<Value> = of("InferenceClass").cloned().collect();
        for cluster in of("InferenceCluster") {
            let name = name(cluster);
            let kube = self.workload(name)?;
            hardware::install(kube, cluster, &classes).await?;
            let secret = json!({
                "apiVersion": SECRET.api_version(),
                "kind": SECRET.kind,
                "metadata": {"name": format!("{name}-kubeconfig"), "namespace": SYSTEM_NAMESPACE},
                "stringData": {"kubeconfig": kube.kubeconfig},
            });
            self.control().apply(&secret).await?;
        }
        Ok(())
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        self.stand_in.abort();
    }
}

/// The certificate authority of a run and who the harness is.
///
/// # Errors
///
/// If no keys can be made.
pub fn identities() -> Outcome<(Authority, Identity)> {
    let authority = Authority::new()?;
    let administrator = authority.administrator()?;
    Ok((authority, administrator))
}

fn stand_in(control: &Cluster, workloads: &[Cluster]) -> StandIn {
    let with_address = |(cluster, (name, address)): (&Cluster, (&str, &str))| {
        (name.to_owned(), address.to_owned(), cluster.kube.clone())
    };
    StandIn {
        control: control.kube.clone(),
        clusters: workloads.iter().zip(CLUSTERS).map(with_address).collect(),
    }
}
