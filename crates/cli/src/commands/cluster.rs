//! `modelplane cluster`: simulated clusters of a running `modelplane up`, and kubeconfigs of any cluster.

mod fault;
mod kubeconfig;
mod list;
mod remove;
mod simulate;

use clap::Subcommand;

use crate::outcome::CommandResult;

/// The kind of simulated clusters.
const SIMULATED: (&str, &str) =
    (modelplane_simulator::resource::API_VERSION, modelplane_simulator::resource::KIND);
/// The kind of clusters.
const CLUSTER: (&str, &str) = ("modelplane.ai/v1alpha1", "InferenceCluster");

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add a simulated cluster to the fleet
    Simulate(simulate::Arguments),
    /// List the simulated clusters
    List(list::Arguments),
    /// Make a simulated cluster fail, slow down, or lose its gateway or nodes
    Fault(fault::FaultArguments),
    /// End all faults of a simulated cluster
    Heal(fault::HealArguments),
    /// Print the kubeconfig with which the fleet reaches a cluster
    Kubeconfig(kubeconfig::Arguments),
    /// Remove a simulated cluster from the fleet
    Remove(remove::Arguments),
}

impl Command {
    pub(crate) fn run(self) -> CommandResult {
        crate::process::runtime()?.block_on(async {
            match self {
                Self::Simulate(arguments) => arguments.run().await,
                Self::List(arguments) => arguments.run().await,
                Self::Fault(arguments) => arguments.run().await,
                Self::Heal(arguments) => arguments.run().await,
                Self::Kubeconfig(arguments) => arguments.run().await,
                Self::Remove(arguments) => arguments.run().await,
            }
        })
    }
}
