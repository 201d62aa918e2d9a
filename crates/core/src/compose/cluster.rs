//! The compositions of cloud clusters: one shared path, and one file per cloud with what differs.
//!
//! * [`Composer`] is a pass over one cluster: credentials, cloud resources, access, holding, status.
//! * [`Managed`], [`Fields`] and [`Selector`] build cloud resources; [`StorageClass`] and
//!   [`Composer::release`] build what goes inside the cluster; [`node_pool`] holds what pools share.
//! * A cloud is one file: it composes its own cluster kind, and turns the node pools of an
//!   InferenceCluster into the spec of that kind.
//!
//! Data comes from the cluster composite, its observed composed resources and, on some clouds, the
//! provider config. Nothing here decides where models run.

pub mod aks;
pub mod doks;
pub mod eks;
pub mod gke;
pub mod nebius;
pub mod vultr;

mod access;
mod address_range;
mod composer;
mod fields;
mod managed;
pub mod node_pool;
pub mod provider;
mod selector;
mod storage_class;

pub use access::{AccessSpec, KUBECONFIG_KEY, SecretEntry, Tool};
pub use address_range::AddressRange;
pub use composer::{Composer, held_status, stand_still};
pub(crate) use fields::fields;
pub use fields::{FieldValue, Fields};
pub use managed::{Managed, ManagedKind, ManagedSpec, OBSERVE, ORPHAN, SEED};
pub use provider::{Cloud, Provider};
pub use selector::Selector;
pub use storage_class::StorageClass;
