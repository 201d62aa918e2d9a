//! Kubernetes object semantics without a server: structural schemas, server-side apply, patches, selectors.
//!
//! Pure: no I/O, no clock, no randomness. Objects are [`serde_json::Value`]s. Behaviour follows Kubernetes 1.36.

pub mod apply;
pub mod builtin;
pub mod patch;
pub mod protobuf;
pub mod schema;
pub mod selector;
