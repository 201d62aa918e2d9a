//! The command line: one variant and one file per command.

mod catalog;
mod cel;
mod cluster;
mod completions;
mod convert;
mod explain;
mod function;
mod gateway;
mod package;
mod plan;
mod render;
mod status;
mod up;
mod validate;
mod xrds;

use clap::{Parser, Subcommand};

use crate::outcome::CommandResult;

/// Operates many Kubernetes clusters as one fleet for AI inference.
#[derive(Debug, Parser)]
#[command(name = "modelplane", version, propagate_version = true, subcommand_required = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a whole control plane in this process: API server, engine, gateway, simulated clusters
    Up(up::Arguments),
    /// Add, break and remove simulated clusters of a running control plane
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Run the gateway alone, beside any control plane
    Gateway(gateway::Arguments),
    /// Show everything that manifests lead to: composed objects, placements, URLs
    Render(render::Arguments),
    /// Show what applying manifests would change: placements, moves, capacity, routes
    Plan(plan::Arguments),
    /// Say why a deployment, cluster or other object is as it is, and what would help
    Explain(explain::Arguments),
    /// Show the fleet at a glance: clusters, pools, deployments, services
    Status(status::Arguments),
    /// Find mistakes in manifests: schema, rules, selectors, references
    Validate(validate::Arguments),
    /// Rewrite manifests to the newest published shape of the API
    Convert(convert::Arguments),
    /// List and print the default catalog of InferenceClasses
    #[command(subcommand)]
    Catalog(catalog::Command),
    /// Try the selector language: expressions on devices, quantities
    #[command(subcommand)]
    Cel(cel::Command),
    /// Print the API's definitions: XRDs, CRDs, Compositions
    Xrds(xrds::Arguments),
    /// Run Modelplane's compositions as a Crossplane composition function
    #[command(subcommand)]
    Function(function::Command),
    /// Build what Crossplane installs: packages, or plain manifests
    #[command(subcommand)]
    Package(package::Command),
    /// Print a completion script for a shell
    Completions(completions::Arguments),
}

impl CommandLine {
    pub(crate) fn run(self) -> CommandResult {
        match self.command {
            Command::Up(arguments) => arguments.run(),
            Command::Cluster(command) => command.run(),
            Command::Gateway(arguments) => arguments.run(),
            Command::Render(arguments) => arguments.run(),
            Command::Plan(arguments) => arguments.run(),
            Command::Explain(arguments) => arguments.run(),
            Command::Status(arguments) => arguments.run(),
            Command::Validate(arguments) => arguments.run(),
            Command::Convert(arguments) => arguments.run(),
            Command::Catalog(command) => command.run(),
            Command::Cel(command) => command.run(),
            Command::Xrds(arguments) => arguments.run(),
            Command::Function(command) => command.run(),
            Command::Package(command) => command.run(),
            Command::Completions(arguments) => arguments.run(),
        }
    }
}
