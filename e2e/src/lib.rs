//! End-to-end tests against real Kubernetes and Crossplane binaries.
//!
//! The harness starts, on loopback and in a fresh folder, a control plane (etcd, kube-apiserver,
//! kube-controller-manager, Crossplane, provider-kubernetes, our function server as a process) and workload
//! clusters (kube-apiserver, kube-controller-manager, kube-scheduler with Dynamic Resource Allocation, kwok's
//! nodes with GPUs). [`scenarios`] are statements about them, each decided by what the API servers hold.
//!
//! Two things are not real: nodes and pods are kwok's, and Helm charts are never fetched, since that needs
//! registries. [`stand_in`] says exactly what is stood in for.

pub mod crossplane;
pub mod definitions;
pub mod environment;
pub mod exchange;
pub mod failure;
pub mod function;
pub mod hardware;
pub mod kube_api;
pub mod manifests;
pub mod pki;
pub mod process;
pub mod rendered;
pub mod report;
pub mod resources;
pub mod scenarios;
pub mod second;
pub mod servers;
pub mod stand_in;
pub mod tools;
