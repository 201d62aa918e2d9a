//! The worst-case static cost of an expression, with which Kubernetes decides whether to accept it.

mod calls;
mod estimator;
mod size;

pub(crate) use estimator::estimate;
