//! What the gateway routes: plain configuration ([`config`]) and the immutable table requests read ([`table`]).
//!
//! Configuration comes from a [`RouteSource`](crate::source::RouteSource) and knows nothing of connections or
//! counters. The table joins it with the state that outlives configuration changes: in-flight requests, health,
//! pooled connections.

pub mod config;
pub(crate) mod path;
pub(crate) mod table;
