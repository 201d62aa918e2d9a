//! A second control plane: real Kubernetes, real Crossplane and our function, but no provider.
//!
//! What providers would report is written by whoever uses it, so that a whole fleet can be composed whose clusters
//! do not exist. Pods are scheduled on it, onto a node of kwok's, because a gateway of our own runs there.

use modelplane_api::names::SYSTEM_NAMESPACE;

use crate::crossplane::{self, Crossplane, Installation, Provider};
use crate::failure::Outcome;
use crate::function::FunctionServer;
use crate::hardware;
use crate::kube_api::Kube;
use crate::process::free_port;
use crate::servers::{Cluster, Etcd, Role, Site};

/// The second control plane.
pub struct SecondPlane {
    cluster: Cluster,
    function: FunctionServer,
    crossplane: Crossplane,
}

impl SecondPlane {
    /// Starts it; under a new name it is a new, empty one.
    ///
    /// # Errors
    ///
    /// If something does not start.
    pub async fn start(site: &Site<'_>, etcd: &Etcd, name: &str) -> Outcome<Self> {
        let cluster = Cluster::start(site, etcd, name, Role::Workload).await?;
        let folder = site.folder.join(name);
        let kube = &cluster.kube;
        let installation =
            Installation { tools: site.tools, kube, folder: &folder, webhook_port: free_port()? };
        let certificates = installation.initialise().await?;
        let function = FunctionServer::start(&certificates, &folder)?;
        function.listens().await?;
        let crossplane = installation.start(&certificates, Provider::DefinitionsOnly).await?;
        crossplane::install_packages(kube, &function.endpoint()).await?;
        crossplane::create_namespace(kube, SYSTEM_NAMESPACE).await?;
        hardware::install_plain_node(kube).await?;
        Ok(Self { cluster, function, crossplane })
    }

    /// A client for it.
    pub fn kube(&self) -> &Kube {
        &self.cluster.kube
    }

    /// Where its API server is.
    pub fn url(&self) -> &str {
        &self.cluster.url
    }

    /// Fails if one of the processes has ended.
    ///
    /// # Errors
    ///
    /// With the end of its log.
    pub fn check(&mut self) -> Outcome {
        self.cluster.check()?;
        self.crossplane.check()?;
        self.function.check()
    }
}
