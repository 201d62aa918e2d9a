//! End-to-end tests against real Kubernetes and Crossplane binaries.
