//! The engine against a real API server: etcd, kube-apiserver and the garbage collector of
//! kube-controller-manager from the folder in `MODELPLANE_E2E_BIN`. Without it these tests are skipped.

mod composites;
mod support;
