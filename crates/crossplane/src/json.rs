//! Protobuf JSON of the two messages, for files and tests.

mod request;
mod response;

pub use request::{JsonError, request_from_json};
pub use response::{ResponseError, response_to_json};
