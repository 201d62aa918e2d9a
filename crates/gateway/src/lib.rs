//! The OpenAI-compatible data plane: listener, ordered policies, endpoint choice, forwarding.
//!
//! [`Gateway::bind`] opens the listeners, [`Gateway::serve`] runs until told to stop and then drains. What is routed
//! comes from a [`RouteSource`]: [`source::kubernetes`] watches a control plane, a [`Snapshot`] is a source that
//! never changes. Every request reads one immutable table; publishing swaps it, and requests under way keep the
//! endpoints they were given.
//!
//! Deliberately absent: buffering of bodies (except a small beginning, to repeat a request or to read its model),
//! configuration of its own (everything is in the API's objects), any writing to the control plane.

mod admin;
mod balance;
mod body;
mod callers;
mod endpoint;
mod forward;
mod gateway;
mod headers;
mod health;
mod http1;
mod incoming;
pub mod json;
mod metrics;
mod model;
mod options;
mod policy;
mod probe;
mod random;
mod record;
mod refusal;
mod reply;
mod retry;
pub mod routes;
mod server;
pub mod source;
pub mod sse;
mod tls;
mod tunnel;
mod upstream;
pub mod usage;

pub use self::gateway::{BindError, Gateway};
#[doc(hidden)]
pub use self::http1::Malformed;
pub use self::options::{Options, Workers};
pub use self::routes::config::Snapshot;
#[doc(hidden)]
pub use self::server::http1::head::{Received, receive as decode_request};
pub use self::source::{RouteSink, RouteSource};
#[doc(hidden)]
pub use self::upstream::http1::{Decoded, decode as decode_response};
