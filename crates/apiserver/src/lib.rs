//! A Kubernetes-API-compatible server over the embedded store; it knows no Modelplane kind.
//!
//! `kubectl`, `kube` and the other clients work against it unmodified: discovery, OpenAPI, create, get, list,
//! watch, update, patch, server-side apply, delete, status and scale, tables, for built-in kinds and for whatever
//! CustomResourceDefinitions define. Requests come over TLS ([`ApiServer::serve`]) or, without a socket, through a
//! tower service ([`ApiServer::in_process`]).
//!
//! Deliberately absent: protobuf answers (protobuf bodies of built-in kinds are read), conversion and admission
//! webhooks (a host may refuse deletions, see [`DeletionGuard`]), API aggregation, quotas, pod subresources that need
//! a kubelet (`exec`, `log`, `portforward`).
//!
//! A request goes through `service` (identity, permission, negotiation), one file of `verbs`, and `store` keys made
//! by `registry`. Objects are stored as JSON without `resourceVersion`; answers splice it in (`object::encode`).

mod access;
mod audit;
mod certificates;
mod controllers;
mod core;
mod discovery;
mod error;
mod guard;
mod http;
mod identity;
mod metrics;
mod object;
mod options;
mod profile;
mod registry;
mod reviews;
mod schema;
mod server;
mod service;
mod status;
mod verbs;

pub use error::StartError;
pub use guard::{Deletion, DeletionGuard};
pub use identity::Identity;
pub use options::{DataLocation, Options, Profile};
pub use server::{ApiServer, InProcess};
