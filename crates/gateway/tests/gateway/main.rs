//! The gateway over loopback: real sockets, endpoints in the same process.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod callers;
mod chaos;
mod external;
mod http1;
mod kubernetes;
mod malformed;
mod metering;
mod parity;
mod resilience;
mod shapes;
mod support;
