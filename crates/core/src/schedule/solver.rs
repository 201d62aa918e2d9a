//! The solver: which cluster and pools a new replica takes, and which surplus replica goes
//! (spec scheduling §4.4, §4.5, §5.2, §5.4).
//!
//! It works on small integers only. Clusters are numbered in the order of their names and the pools of a
//! cluster in published order, so comparing numbers *is* the tie-break the policy asks for. It knows
//! nothing of documents, names, labels, taints or selectors: its neighbours translate those into
//! [`Fleet`], [`Demand`] and [`Fit`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// A cluster, numbered in the order of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClusterIndex(pub(crate) u32);

/// A pool of the fleet; the pools of one cluster are consecutive and in published order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PoolIndex(pub(crate) u32);

/// What the nodes of a pool have; pools with equal devices share a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ProfileIndex(pub(crate) u32);

/// Clusters and pools.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    pub(crate) clusters: Vec<Cluster>,
    pub(crate) pools: Vec<Pool>,
}

/// A cluster as the solver sees it.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    /// Its pools.
    pub(crate) pools: Range<u32>,
    /// Whether new replicas may go there at all: ready, with a gateway, and no taint in the way.
    pub(crate) accepts: bool,
}

/// A pool as the solver sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pool {
    /// What its nodes have.
    pub(crate) profile: ProfileIndex,
    /// How many nodes it publishes.
    pub(crate) nodes: i64,
}

/// What one replica asks for, and how many are wanted.
#[derive(Debug, Clone)]
pub(crate) struct Demand {
    /// Members of every engine, engine by engine.
    pub(crate) engines: Vec<Range<usize>>,
    /// Nodes each member takes if it claims anything: pods times copies.
    pub(crate) member_nodes: Vec<i64>,
    /// Replicas wanted.
    pub(crate) wanted: usize,
}

/// How a member goes with the nodes of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Some request finds no device.
    No,
    /// All requests find a device, and there is nothing to claim: the member rides on its engine's pool
    /// and costs no node.
    Rides,
    /// All requests find a device, and at least one of them is claimed.
    Claims,
}

/// [`Fit`] of every member on every profile.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fits {
    pub(crate) table: Vec<Fit>,
    pub(crate) profiles: usize,
}

/// Free nodes of every pool; negative where more is charged than published.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ledger(pub(crate) Vec<i64>);

/// A replica that has a cluster and an index there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Seat {
    pub(crate) cluster: ClusterIndex,
    pub(crate) index: u32,
}

/// A new replica: where it sits, and the pool of each engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) seat: Seat,
    pub(crate) pools: Vec<PoolIndex>,
}

/// Which cluster a new replica prefers: the least, as the derived order compares the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FillPreference {
    our_replicas: usize,
    cluster: ClusterIndex,
}

/// Which replica goes when there are too many: the greatest, as the derived order compares the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RemovalPreference {
    our_replicas: usize,
    cluster: ClusterIndex,
    index: u32,
}

/// Everything the solver needs to find pools for engines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Solver<'s> {
    pub(crate) fleet: &'s Fleet,
    pub(crate) demand: &'s Demand,
    pub(crate) fits: &'s Fits,
}

/// The seats to give up, in order, so that at most `wanted` remain (spec scheduling §5.2).
pub(crate) fn surplus(seats: &[Seat], wanted: usize) -> Vec<Seat> {
    let mut remaining = seats.to_vec();
    let mut removed = Vec::new();
    while remaining.len() > wanted {
        let loads = |cluster| remaining.iter().filter(|seat| seat.cluster == cluster).count();
        let victim = remaining
            .iter()
            .enumerate()
            .max_by_key(|(_, seat)| RemovalPreference {
                our_replicas: loads(seat.cluster),
                cluster: seat.cluster,
                index: seat.index,
            })
            .map(|(position, _)| position);
        let Some(position) = victim else { break };
        removed.push(remaining.swap_remove(position));
    }
    removed
}

impl Solver<'_> {
    /// New replicas until `wanted` are seated or no cluster takes another one (spec scheduling §5.4).
    ///
    /// Placing a replica changes the free nodes of its own cluster only, so a cluster that cannot take
    /// one now never can, and the heap never has to look at it again.
    pub(crate) fn fill(&self, seats: &[Seat], ledger: &mut Ledger) -> Vec<Placed> {
        let mut seats = seats.to_vec();
        let mut loads = vec![0usize; self.fleet.clusters.len()];
        for seat in &seats {
            loads[seat.cluster.0 as usize] += 1;
        }
        let mut candidates: BinaryHeap<Reverse<FillPreference>> = (0u32..)
            .zip(&self.fleet.clusters)
            .filter(|(_, cluster)| cluster.accepts)
            .map(|(number, _)| {
                let our_replicas = loads[number as usize];
                Reverse(FillPreference { our_replicas, cluster: ClusterIndex(number) })
            })
            .collect();
        let mut placed = Vec::new();
        while seats.len() < self.demand.wanted {
            let Some(Reverse(FillPreference { our_replicas, cluster })) = candidates.pop() else { break };
            let Some(pools) = self.place(cluster, ledger) else { continue };
            let seat = Seat { cluster, index: free_index(&seats, cluster) };
            seats.push(seat);
            placed.push(Placed { seat, pools });
            candidates.push(Reverse(FillPreference { our_replicas: our_replicas + 1, cluster }));
        }
        placed
    }

    /// A pool for every engine of one replica on `cluster`, charged to the ledger; `None`, and nothing
    /// charged, if an engine finds none (spec scheduling §4.5).
    pub(crate) fn place(&self, cluster: ClusterIndex, ledger: &mut Ledger) -> Option<Vec<PoolIndex>> {
        let mut pools = Vec::new();
        let mut charged: Vec<(PoolIndex, i64)> = Vec::new();
        for engine in 0..self.demand.engines.len() {
            let found = self.fleet.pools_of(cluster).find_map(|pool| {
                let cost = self.cost(cluster, engine, pool)?;
                (ledger.free(pool) >= cost).then_some((pool, cost))
            });
            let Some((pool, cost)) = found else {
                for (pool, cost) in charged {
                    ledger.charge(pool, cost.saturating_neg());
                }
                return None;
            };
            ledger.charge(pool, cost);
            charged.push((pool, cost));
            pools.push(pool);
        }
        Some(pools)
    }

    /// Nodes that `engine` takes on `pool`; `None` if it cannot run there at any capacity
    /// (spec scheduling §4.4).
    ///
    /// A member that could claim elsewhere on the cluster must claim here, so an engine of which no
    /// member claims on this pool has either a stranded member or nothing to claim anywhere.
    pub(crate) fn cost(&self, cluster: ClusterIndex, engine: usize, pool: PoolIndex) -> Option<i64> {
        let profile = self.fleet.pool(pool).profile;
        let mut cost: Option<i64> = None;
        for member in self.demand.engines[engine].clone() {
            match self.fits.get(member, profile) {
                Fit::No => return None,
                Fit::Rides if self.can_claim(cluster, member) => return None,
                Fit::Rides => {}
                Fit::Claims => {
                    cost = Some(cost.unwrap_or(0).saturating_add(self.demand.member_nodes[member]));
                }
            }
        }
        cost
    }

    /// Whether any pool of the cluster lets the member claim something, capacity aside.
    pub(crate) fn can_claim(&self, cluster: ClusterIndex, member: usize) -> bool {
        self.fleet
            .pools_of(cluster)
            .any(|pool| self.fits.get(member, self.fleet.pool(pool).profile) == Fit::Claims)
    }
}

/// The smallest index none of our replicas on the cluster uses.
fn free_index(seats: &[Seat], cluster: ClusterIndex) -> u32 {
    let used = |index| seats.contains(&Seat { cluster, index });
    (0..).find(|index| !used(*index)).unwrap_or_default()
}

impl Fleet {
    /// The pools of a cluster, in published order.
    pub(crate) fn pools_of(&self, cluster: ClusterIndex) -> impl Iterator<Item = PoolIndex> + use<> {
        self.clusters[cluster.0 as usize].pools.clone().map(PoolIndex)
    }

    /// A pool.
    #[inline]
    pub(crate) fn pool(&self, pool: PoolIndex) -> &Pool {
        &self.pools[pool.0 as usize]
    }

    /// A ledger on which nothing is charged yet.
    pub(crate) fn ledger(&self) -> Ledger {
        Ledger(self.pools.iter().map(|pool| pool.nodes).collect())
    }
}

impl Fits {
    /// How `member` goes with `profile`.
    #[inline]
    pub(crate) fn get(&self, member: usize, profile: ProfileIndex) -> Fit {
        self.table[member * self.profiles + profile.0 as usize]
    }
}

impl Ledger {
    /// Free nodes of a pool.
    #[inline]
    pub(crate) fn free(&self, pool: PoolIndex) -> i64 {
        self.0[pool.0 as usize]
    }

    /// Takes nodes of a pool.
    #[inline]
    pub(crate) fn charge(&mut self, pool: PoolIndex, nodes: i64) {
        let free = &mut self.0[pool.0 as usize];
        *free = free.saturating_sub(nodes);
    }
}
