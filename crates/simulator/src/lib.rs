//! Simulated clusters: an API server each, nodes with devices, pods that become ready, and inference engines that
//! answer over HTTP.
//!
//! A simulated cluster is driven through its kubeconfig exactly as a real one. What stands behind it is decided by
//! one pure function, [`plan::Planner::plan`], from the objects on its API server, its [`settings::Settings`] and how
//! long each pod has been there; [`cluster`] carries the decisions out, [`edge`] plays the cluster's gateway and
//! [`inference`] the engines. [`controller`] runs the clusters that `SimulatedCluster` objects ask for.
//!
//! It deliberately does not: account for CPU or memory, pull images, run probes, or roll pods one by one. Everything
//! it makes up is labelled `modelplane.ai/simulated`.

pub mod cluster;
pub mod controller;
pub mod edge;
pub mod inference;
pub mod plan;
pub mod resource;
pub mod settings;
mod world;

pub use cluster::{Cluster, StartError};
pub use settings::{Faults, Pool, Settings};
pub use world::World;
