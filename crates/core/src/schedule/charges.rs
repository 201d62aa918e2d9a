//! Who holds how many nodes of which pool (spec scheduling §5.3).
//!
//! Every replica of every deployment counts, with what it was stamped with. A charge to a pool that is not
//! published is nobody's: its pods wait for a node label that no node carries.

use super::fleet::{FleetFacts, Note};
use super::solver::PoolIndex;
use super::wire;
use crate::document::Document;

/// Nodes held on pools.
#[derive(Debug, Default)]
pub(super) struct Charges {
    /// Pool and nodes, one entry per member with claims.
    pub(super) entries: Vec<(PoolIndex, i64)>,
    pub(super) notes: Vec<Note>,
}

impl Charges {
    /// The charges of replicas, each given as the whole object and its spec.
    pub(super) fn of_replicas<'a>(
        fleet: &FleetFacts<'_>,
        replicas: impl ExactSizeIterator<Item = (Document<'a>, Option<Document<'a>>)>,
    ) -> Self {
        let mut charges = Self::default();
        charges.entries.reserve(replicas.len());
        for (replica, spec) in replicas {
            match spec.map(|spec| spec.decode()) {
                Some(Ok(spec)) => charges.add(fleet, &spec),
                None => {}
                Some(Err(error)) => {
                    let error = error.below(&["spec"]);
                    let message = format!("{error}; the nodes it holds are not counted");
                    charges.notes.push(Note::about_replica(replica, message));
                }
            }
        }
        charges
    }

    /// Adds what one replica holds.
    pub(super) fn add(&mut self, fleet: &FleetFacts<'_>, spec: &wire::ReplicaSpec<'_>) {
        let Some(cluster) = spec.cluster_name.and_then(|name| fleet.cluster_named(name)) else { return };
        for (pool, nodes) in spec.engines.iter().flatten().flat_map(wire::Engine::charges) {
            if let Some(pool) = fleet.pool_named(cluster, pool) {
                self.entries.push((pool, nodes));
            }
        }
    }
}
