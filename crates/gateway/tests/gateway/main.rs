//! The gateway over loopback: real sockets, endpoints in the same process.

mod callers;
mod external;
mod malformed;
mod metering;
mod parity;
mod resilience;
mod support;
