//! Which endpoint takes a request: the first tier with room, the nearest endpoints in it, then affinity or turns.
//!
//! Everything here is arithmetic over the table and the endpoints' counters: time and chance are arguments.

pub(crate) mod hashing;
pub(crate) mod overflow;
pub(crate) mod rotation;

use std::sync::Arc;
use std::time::Instant;

use self::hashing::Candidate;
use self::overflow::Admission;
use crate::endpoint::{Endpoint, Lease, locked};
use crate::metrics::Series;
use crate::random;
use crate::routes::config::Balancing;
use crate::routes::table::{Member, Service, Tier};

/// What the choice depends on besides the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draw<'d> {
    /// Now.
    pub(crate) now: Instant,
    /// Chance.
    pub(crate) random: u64,
    /// What keeps this request with others.
    pub(crate) affinity: Option<u64>,
    /// Endpoints that failed this request already.
    pub(crate) tried: &'d [Arc<Endpoint>],
}

/// A chosen endpoint.
#[derive(Debug)]
pub(crate) struct Choice {
    /// The endpoint.
    pub(crate) endpoint: Arc<Endpoint>,
    /// Counters of the service on it.
    pub(crate) series: Arc<Series>,
    /// The request's place there.
    pub(crate) lease: Lease,
    /// Whether a preferred tier was passed over.
    pub(crate) spilled: bool,
}

/// Why no endpoint was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoChoice {
    /// The service has no endpoints.
    Empty,
    /// Every endpoint has as many requests as it may.
    Full,
    /// Every endpoint has failed this request.
    Exhausted,
}

/// How hard to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Healthy endpoints with room.
    Fit,
    /// Any endpoint that may take one more: sending to a full or ejected one beats refusing.
    Any,
}

/// A full or returning endpoint's share of the requests it would otherwise get, in percent.
const TRICKLE: u32 = 5;

/// How much cheaper, as a factor, another endpoint must be to be taken out of turn.
const CLEARLY: f64 = 1.5;

/// Attempts to win a place under a limit against other threads.
const RACES: usize = 4;

/// Chooses an endpoint and takes a place there.
pub(crate) fn choose(service: &Service, draw: Draw<'_>) -> Result<Choice, NoChoice> {
    let limit = service.policy.overflow.concurrent_requests;
    for _ in 0..RACES {
        let Some((member, spilled)) = find(service, draw) else { break };
        if let Some(lease) = member.endpoint.live.enter(limit) {
            let (endpoint, series) = (member.endpoint.clone(), member.series.clone());
            return Ok(Choice { endpoint, series, lease, spilled });
        }
    }
    let mut members = service.members().peekable();
    if members.peek().is_none() {
        return Err(NoChoice::Empty);
    }
    let exhausted = members.all(|(_, _, member)| draw.has_tried(&member.endpoint));
    Err(if exhausted { NoChoice::Exhausted } else { NoChoice::Full })
}

fn find<'s>(service: &'s Service, draw: Draw<'_>) -> Option<(&'s Member, bool)> {
    for pass in [Pass::Fit, Pass::Any] {
        for (index, tier) in service.tiers.iter().enumerate() {
            let fits = |member: &Member| draw.fits(service, member, pass);
            if let Some(member) = find_in(service, tier, draw, &fits) {
                return Some((member, index > 0));
            }
        }
    }
    None
}

fn find_in<'s>(
    service: &Service,
    tier: &'s Tier,
    draw: Draw<'_>,
    fits: &dyn Fn(&Member) -> bool,
) -> Option<&'s Member> {
    if let [entry] = &tier.entries[..]
        && let [member] = &entry.members[..]
    {
        return fits(member).then_some(member);
    }
    let members = || tier.entries.iter().flat_map(|entry| &entry.members);
    let nearest = members().filter(|member| fits(member)).map(|member| member.rank).min()?;
    let fits = |member: &Member| member.rank == nearest && fits(member);
    if let (Some(affinity), Some(key)) = (&service.policy.affinity, draw.affinity) {
        return by_affinity(tier, key, f64::from(affinity.load_percent) / 100.0, &fits);
    }
    let mut rotation = locked(&tier.rotation);
    let weight = |index: usize| {
        let entry = &tier.entries[index];
        if entry.members.iter().any(&fits) { entry.weight } else { 0 }
    };
    let index = rotation.entry(weight)?;
    let members = &tier.entries[index].members;
    let turn = rotation.endpoint(index, members.len(), |member| fits(&members[member]))?;
    drop(rotation);
    let turn = &members[turn];
    let other = &members[(random::mix(draw.random) % members.len() as u64) as usize];
    let out_of_turn =
        service.policy.balancing == Balancing::LeastLoaded && fits(other) && is_cheaper(other, turn);
    Some(if out_of_turn { other } else { turn })
}

/// The endpoint a key belongs to. An entry's weight is shared by its endpoints that fit.
fn by_affinity<'s>(
    tier: &'s Tier,
    key: u64,
    bound: f64,
    fits: &dyn Fn(&Member) -> bool,
) -> Option<&'s Member> {
    let mut members = Vec::new();
    let mut candidates = Vec::new();
    for entry in &tier.entries {
        let fitting = entry.members.iter().filter(|member| fits(member));
        let weight = f64::from(entry.weight) / fitting.clone().count().max(1) as f64;
        for member in fitting {
            let endpoint = &member.endpoint;
            let in_flight = endpoint.live.in_flight();
            candidates.push(Candidate { identity: endpoint.identity, weight, in_flight });
            members.push(member);
        }
    }
    hashing::choose(key, &candidates, bound).map(|index| members[index])
}

/// Whether a member is clearly less loaded than the one whose turn it is: fewer requests, each answered sooner.
fn is_cheaper(other: &Member, turn: &Member) -> bool {
    let (other, turn) = (&other.endpoint.live, &turn.endpoint.live);
    let latencies = (other.latency().as_secs_f64(), turn.latency().as_secs_f64());
    let (fast, slow) = if latencies.0 == 0.0 || latencies.1 == 0.0 { (1.0, 1.0) } else { latencies };
    f64::from(other.in_flight() + 1) * fast * CLEARLY < f64::from(turn.in_flight() + 1) * slow
}

impl Draw<'_> {
    fn has_tried(&self, endpoint: &Arc<Endpoint>) -> bool {
        self.tried.iter().any(|tried| Arc::ptr_eq(&tried.live, &endpoint.live))
    }

    /// Whether a member can take the request. Chance enters by request and endpoint, so asking twice gives the same.
    fn fits(&self, service: &Service, member: &Member, pass: Pass) -> bool {
        let (endpoint, policy) = (&member.endpoint, &service.policy);
        if self.has_tried(endpoint) {
            return false;
        }
        if pass == Pass::Any {
            let limit = policy.overflow.concurrent_requests;
            return limit.is_none_or(|limit| endpoint.live.in_flight() < limit);
        }
        let share = endpoint.live.share(self.now);
        let share = match endpoint.live.admission(&policy.overflow, self.now) {
            Admission::Open => share,
            Admission::Trickle => share.min(TRICKLE),
            Admission::Full => 0,
        };
        share == 100 || random::mix(self.random ^ endpoint.identity) % 100 < u64::from(share)
    }
}

#[cfg(test)]
mod tests;
