//! A Kubernetes-API-compatible server over the embedded store; it knows no Modelplane kind.
