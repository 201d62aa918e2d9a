//! The typed API of Modelplane: every kind, its defaults and validation rules, and every name, label,
//! condition type and reason of the system, each written down once.
//!
//! * One module per kind holds its Rust types; [`common`] and [`template`] hold what several kinds share.
//! * [`names`] and [`conditions`] hold the vocabulary the compositions write and read.
//! * [`kind`] is the table of kinds; [`schema`] and [`xrd`] derive the published definitions from the types.
//! * [`validate`] checks a document against its schema and [`normalize`] rewrites the earlier published
//!   shape of the API to the newer one.
//!
//! Everything here is pure: no runtime, client, clock, randomness, environment or file access, and no
//! evaluation of CEL (the rules are data; `modelplane-cel` runs them).

pub mod common;
pub mod conditions;
pub mod defaults;
mod device;
pub mod duration;
mod either;
pub mod field_path;
pub mod kind;
pub mod names;
pub mod normalize;
pub mod schema;
pub mod template;
pub mod traffic;
pub mod validate;
pub mod wire;
pub mod xrd;

pub mod aks_cluster;
pub mod doks_cluster;
pub mod eks_cluster;
pub mod gke_cluster;
pub mod inference_class;
pub mod inference_cluster;
pub mod inference_gateway;
pub mod llm_inference;
pub mod model_cache;
pub mod model_deployment;
pub mod model_endpoint;
pub mod model_replica;
pub mod model_service;
pub mod nebius_cluster;
pub mod serving_stack;
pub mod vultr_cluster;

pub use defaults::apply_defaults;
pub use validate::{Problem, validate};
