//! How to run a server.

use std::path::PathBuf;
use std::sync::Arc;

use crate::guard::DeletionGuard;

/// Where objects are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataLocation {
    /// In memory: everything is gone when the server stops.
    Memory,
    /// In this store file, with the certificates.
    File(PathBuf),
}

/// Which built-in kinds are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Namespaces, configuration, access and definitions: a control plane without workloads.
    ControlPlane,
    /// The same and everything that runs on a cluster: nodes, pods, deployments, device claims, …
    Workload,
}

/// How to run a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where objects are kept.
    pub data: DataLocation,
    /// Which built-in kinds are served.
    pub profile: Profile,
    /// Host names and addresses the server's certificate is valid for, beside the loopback ones.
    pub hosts: Vec<String>,
    /// API groups whose objects the `admin`, `edit` and `view` roles cover.
    pub groups: Vec<String>,
    /// Where to append one JSON line per request; `None` for no audit log.
    pub audit_log: Option<PathBuf>,
    /// Asked before each deletion; `None` lets all objects go.
    pub deletion_guard: Option<Arc<dyn DeletionGuard>>,
    /// About how much memory past versions of objects may take, for watchers that come back late.
    pub history_bytes: usize,
    /// Whether `/debug/profile` tells authorized callers what the process and the server are doing.
    pub debug_profile: bool,
}

impl Options {
    /// A server that keeps nothing.
    pub fn in_memory(profile: Profile) -> Options {
        Options {
            data: DataLocation::Memory,
            profile,
            hosts: Vec::new(),
            groups: Vec::new(),
            audit_log: None,
            deletion_guard: None,
            history_bytes: 16 * 1024 * 1024,
            debug_profile: false,
        }
    }

    /// A server whose data is in a file.
    pub fn in_file(file: impl Into<PathBuf>, profile: Profile) -> Options {
        Options { data: DataLocation::File(file.into()), ..Options::in_memory(profile) }
    }
}
