//! The fleet scheduler: where the replicas of a deployment run.
//!
//! [`Problem`] reads a deployment, the clusters and everybody's replicas; [`solve`] answers with a [`Plan`].
//! Both are pure functions: the same inputs, in any order, give the same plan. The reconcile, dry runs,
//! `plan`, `explain` and simulations all call these functions. The policy is specified in spec/scheduling.
//! [`explain`] tells for every replica, cluster and pool why; [`capacity`] adds up the fleet.
//!
//! Inside, `wire` are borrowed views of documents, `fleet`, `devices`, `matching`, `charges` and `problem`
//! translate them into small integers, and `solver` works on those alone.

mod capacity;
mod charges;
mod devices;
mod fleet;
mod hash;
mod matching;
mod plan;
mod problem;
mod report;
mod solver;
mod wire;

pub use capacity::{Capacity, ClusterCapacity, DeviceCapacity, PoolCapacity, capacity};
pub(crate) use devices::Claimable;
pub use fleet::Note;
pub use matching::InvalidSelector;
pub use plan::{
    Claim, EnginePlacement, Kept, MemberPlacement, Placement, Plan, Removal, RemovalReason, solve,
};
pub(crate) use problem::composed_replicas;
pub use problem::{ClusterLabels, Inputs, NewReplicas, Problem};
pub use report::{
    ClusterRejection, ClusterReport, DeviceRejection, DeviceReport, EnginePool, EngineReport, Input,
    PoolRejection, PoolReport, ReplicaOutcome, ReplicaReport, Report, Verdict, explain,
};
pub(crate) use solver::PoolIndex;
