//! What each pool of a cluster says to the engines of one more replica.

use std::cell::OnceCell;

use crate::schedule::devices::{Claimable, DeviceFacts};
use crate::schedule::matching::Request;
use crate::schedule::problem::Problem;
use crate::schedule::solver::{ClusterIndex, Fit, Ledger, PoolIndex, ProfileIndex};

use super::{DeviceRejection, DeviceReport, EngineReport, Input, PoolRejection, PoolReport};

/// Explains pools; what is true of all pools with the same devices is worked out once.
pub(super) struct PoolExplainer<'e, 'p> {
    problem: &'e Problem<'p>,
    /// By member and profile: why the member does not fit.
    mismatches: Vec<OnceCell<Vec<PoolRejection>>>,
}

impl<'e, 'p> PoolExplainer<'e, 'p> {
    pub(super) fn new(problem: &'e Problem<'p>) -> Self {
        let cells = problem.matching.fits.table.len();
        Self { problem, mismatches: (0..cells).map(|_| OnceCell::new()).collect() }
    }

    /// Tries every engine on every pool, in the solver's order, each engine seeing what earlier ones took.
    /// Returns the first engine that finds no pool as well.
    pub(super) fn explain(&self, cluster: ClusterIndex, ledger: &Ledger) -> (Vec<PoolReport>, Option<usize>) {
        let facts = &self.problem.facts;
        let solver = self.problem.solver();
        let pools: Vec<PoolIndex> = facts.pools_of(cluster).collect();
        let mut free: Vec<i64> = pools.iter().map(|pool| ledger.free(*pool)).collect();
        let mut reports: Vec<PoolReport> = pools
            .iter()
            .map(|pool| PoolReport {
                name: facts.pool(*pool).name.to_owned(),
                nodes: facts.pool(*pool).nodes,
                free: ledger.free(*pool),
                defect: facts.devices.defect_of(facts.pool(*pool)).map(str::to_owned),
                engines: Vec::new(),
            })
            .collect();
        let mut unplaced = None;
        for engine in 0..self.problem.demand.engines.len() {
            let mut taken = None;
            for (slot, pool) in pools.iter().enumerate() {
                let cost = solver.cost(cluster, engine, *pool);
                let rejections = match cost {
                    None => self.unsuitable(cluster, engine, *pool),
                    Some(needed) if free[slot] < needed => vec![PoolRejection::TooFewNodes {
                        needed,
                        free: free[slot],
                        total: facts.pool(*pool).nodes,
                    }],
                    Some(needed) => {
                        taken.get_or_insert((slot, needed));
                        Vec::new()
                    }
                };
                let engine = self.problem.engine(engine).name.clone();
                reports[slot].engines.push(EngineReport { engine, rejections });
            }
            match taken {
                Some((slot, needed)) => free[slot] = free[slot].saturating_sub(needed),
                None => unplaced = unplaced.or(Some(engine)),
            }
        }
        (reports, unplaced)
    }

    /// Why the engine cannot run on the pool at any capacity.
    fn unsuitable(&self, cluster: ClusterIndex, engine: usize, pool: PoolIndex) -> Vec<PoolRejection> {
        let solver = self.problem.solver();
        let profile = self.problem.facts.pool(pool).profile;
        let mut rejections = Vec::new();
        for member in self.problem.demand.engines[engine].clone() {
            match self.problem.matching.fits.get(member, profile) {
                Fit::No => rejections.extend_from_slice(self.mismatch(member, profile)),
                Fit::Rides if solver.can_claim(cluster, member) => {
                    rejections.push(PoolRejection::Stranded { member: self.role(member) });
                }
                Fit::Rides | Fit::Claims => {}
            }
        }
        if rejections.is_empty() {
            rejections.push(PoolRejection::NothingToClaim);
        }
        rejections
    }

    fn role(&self, member: usize) -> &'static str {
        self.problem.member(member).1.role().as_str()
    }

    fn mismatch(&self, member: usize, profile: ProfileIndex) -> &[PoolRejection] {
        let cell = member * self.problem.matching.fits.profiles + profile.0 as usize;
        self.mismatches[cell].get_or_init(|| self.explain_mismatch(member, profile))
    }

    /// Goes through the requests as matching does, but past the first one that finds no device.
    fn explain_mismatch(&self, member: usize, profile: ProfileIndex) -> Vec<PoolRejection> {
        let devices = &self.problem.facts.devices;
        let profile = devices.profile(profile);
        let mut left: Vec<(&DeviceFacts<'_>, i64)> = profile
            .devices
            .iter()
            .map(|device| devices.device(*device))
            .map(|device| (device, device.count))
            .collect();
        let mut rejections = Vec::new();
        for request in &self.problem.requests.members[member] {
            let answers: Vec<Option<DeviceRejection>> =
                left.iter().map(|(device, left)| self.reject(request, device, *left)).collect();
            if let Some(slot) = answers.iter().position(Option::is_none) {
                left[slot].1 = left[slot].1.saturating_sub(request.count);
                continue;
            }
            let (member, request) = (self.role(member), request.name.to_owned());
            if left.is_empty() {
                rejections.push(PoolRejection::NoDevices { member, request });
                continue;
            }
            let named = left.iter().map(|(device, _)| device.name.to_owned()).zip(answers);
            let devices =
                named.filter_map(|(device, why)| Some(DeviceReport { device, why: why? })).collect();
            rejections.push(PoolRejection::NoMatch { member, request, devices });
        }
        rejections
    }

    /// Why the device does not satisfy the request; `None` if it does. What the device is comes before how
    /// many there are, because it says more.
    fn reject(&self, request: &Request<'_>, device: &DeviceFacts<'_>, left: i64) -> Option<DeviceRejection> {
        if device.claim == Claimable::Nothing {
            return Some(DeviceRejection::NoDeviceClass);
        }
        for selector in self.problem.requests.selectors(request) {
            let prepared = match &device.prepared {
                Ok(prepared) => prepared,
                Err(why) => return Some(DeviceRejection::Unreadable { why: why.clone() }),
            };
            let error = match selector.matches(prepared) {
                Ok(true) => continue,
                Ok(false) => None,
                Err(error) => Some(error.to_string()),
            };
            let inputs = selector.explain_inputs(prepared);
            let inputs = inputs.into_iter().map(|(path, value)| Input { path, value }).collect();
            return Some(DeviceRejection::Selector { selector: selector.text().to_owned(), inputs, error });
        }
        let (needed, total) = (request.count, device.count);
        (left < needed).then_some(DeviceRejection::TooFew { needed, left, total })
    }
}
