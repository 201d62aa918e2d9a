//! The Crossplane adapter: RunFunction v1 requests in, responses out.
//!
//! [`run`] takes the wire bytes of a `RunFunctionRequest` and answers with those of a
//! `RunFunctionResponse`. The request is never decoded as a whole: resources stay slices of it until a
//! composition asks for a field, and what earlier pipeline steps want is copied through as bytes.
//! [`json`] translates both messages to and from protobuf JSON for files and tests. The core knows
//! nothing of all this.

pub mod json;
mod request;
mod response;
mod run;
pub mod server;
mod wire;

pub use request::{Capabilities, Capability, Request, RequestError};
pub use response::MAX_RESPONSE_BYTES;
pub use run::{Answer, Step, Timings, answer_request, run, run_step};
