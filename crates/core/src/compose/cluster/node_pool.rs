//! Node pools: the labels and the taint that nodes carry on every cloud.

use modelplane_api::common::PoolRole;
use modelplane_api::names::{GPU_LABEL, POOL_LABEL};

use super::{Fields, fields};

/// Key of the taint on nodes with accelerators; engines tolerate it (spec replica §3).
pub const GPU_TAINT_KEY: &str = "nvidia.com/gpu";
/// Value of the taint.
pub const GPU_TAINT_VALUE: &str = "true";

/// The accelerators of a pool's nodes: only of a pool of role `GPU` that says which.
pub fn accelerators<G>(role: PoolRole, gpu: Option<&G>) -> Option<&G> {
    gpu.filter(|_| role == PoolRole::Gpu)
}

/// The labels of a pool's nodes: the pool, by which replicas are bound to it, and the cloud's name of the
/// accelerator.
pub fn labels<'p>(pool: &'p str, accelerator: Option<&'p str>) -> Vec<(&'static str, &'p str)> {
    let gpu = accelerator.map(|type_| (GPU_LABEL, type_));
    std::iter::once((POOL_LABEL, pool)).chain(gpu).collect()
}

/// The taint of nodes with accelerators, as an object; clouds spell the effect differently.
pub fn gpu_taint(effect: &'static str) -> Fields<'static> {
    fields! { "key": GPU_TAINT_KEY, "value": GPU_TAINT_VALUE, "effect": effect }
}

/// What DaemonSets need to run on nodes with accelerators too.
pub fn gpu_tolerations() -> [Fields<'static>; 1] {
    [fields! { "key": GPU_TAINT_KEY, "operator": "Exists", "effect": "NoSchedule" }]
}
