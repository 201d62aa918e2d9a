//! How the engine reaches clusters: simulated ones without a connection, all others by their kubeconfig.

use futures_util::future::BoxFuture;
use kube::config::Kubeconfig;
use modelplane_engine::clusters::{ClusterConnector, Connection, Network};
use modelplane_simulator::controller::{Clusters, client_for};

/// Knows the simulated clusters of this process.
pub(super) struct Connector {
    clusters: Clusters,
}

impl Connector {
    pub(super) fn new(clusters: Clusters) -> Self {
        Self { clusters }
    }
}

impl ClusterConnector for Connector {
    fn connect<'a>(&'a self, kubeconfig: &'a str) -> BoxFuture<'a, Result<Connection, String>> {
        Box::pin(async move {
            let parsed = Kubeconfig::from_yaml(kubeconfig).map_err(|error| error.to_string())?;
            let servers =
                parsed.clusters.iter().filter_map(|named| named.cluster.as_ref()?.server.as_deref());
            let mut simulated = servers.filter_map(|server| client_for(&self.clusters, server));
            match simulated.next() {
                Some(client) => Ok(Connection { client, simulated: true }),
                None => Network.connect(kubeconfig).await,
            }
        })
    }
}
