//! The composition controller and the drivers of the embedded control plane, over any Kubernetes API server.
