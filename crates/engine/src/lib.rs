//! The composition controller and the drivers of the embedded control plane, over any Kubernetes API server.
//!
//! [`Engine`] does what Crossplane and its providers do for the Crossplane mode: it composes composites
//! ([`composite`]), keeps objects in use from being deleted ([`usage`]), and puts objects and charts onto
//! clusters. What is to be composed is decided by `modelplane-core` alone; the same compositions run
//! in the Crossplane function and in `render`. Everything the engine knows it reads from the API
//! server it is given; nothing is lost if it stops at any moment.

pub mod bootstrap;
pub mod cache;
pub mod client;
pub mod clusters;
pub mod composite;
pub mod conditions;
pub mod controller;
pub mod drivers;
mod engine;
pub mod events;
pub mod gateway_api;
pub mod metrics;
pub mod object;
pub mod queue;
pub mod requirements;
pub mod usage;

pub use engine::{Config, Engine, StartError};
