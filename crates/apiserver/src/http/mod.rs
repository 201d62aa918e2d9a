//! HTTP in and out: what a request asks for, how its body is read, and how the answer is written.

pub(crate) mod body;
pub(crate) mod decode;
pub(crate) mod negotiate;
pub(crate) mod query;
pub(crate) mod request;
pub(crate) mod respond;
