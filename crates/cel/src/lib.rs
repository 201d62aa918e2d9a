//! cel
