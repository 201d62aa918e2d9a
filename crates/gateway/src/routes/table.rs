//! The immutable table requests are routed by, built from configuration and from the state of the table before it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::balance::rotation::Rotation;
use crate::callers::Callers;
use crate::endpoint::{Endpoint, Live, locked};
use crate::metrics::Series;
use crate::retry::Budget;
use crate::routes::config::{EndpointConfig, Problem, ServiceConfig, ServicePolicy, Snapshot};

/// Everything routed at one moment.
#[derive(Debug, Default)]
pub(crate) struct RouteTable {
    services: HashMap<Box<str>, Arc<Service>>,
    /// Host names that requests over HTTPS must be for. Empty accepts any.
    pub(crate) hostnames: Vec<String>,
    /// Who may call, if callers must identify themselves.
    pub(crate) callers: Option<Callers>,
    /// What could not be used.
    pub(crate) problems: Vec<Problem>,
}

/// One model behind one path prefix.
#[derive(Debug)]
pub(crate) struct Service {
    /// `namespace/name`.
    pub(crate) id: Arc<str>,
    /// How requests are spread.
    pub(crate) policy: ServicePolicy,
    /// Tiers, the preferred first.
    pub(crate) tiers: Vec<Tier>,
    /// Whether some endpoint knows the model by a name of its own.
    pub(crate) maps_model: bool,
    /// State that outlives tables.
    pub(crate) state: Arc<ServiceState>,
}

/// State of a service that outlives tables.
#[derive(Debug)]
pub(crate) struct ServiceState {
    /// What retries may be spent.
    pub(crate) budget: Mutex<Budget>,
    /// Counters by endpoint. Those of withdrawn endpoints stay, so that a returning one goes on counting.
    series: Mutex<BTreeMap<Arc<str>, Arc<Series>>>,
}

/// Entries of one priority.
#[derive(Debug)]
pub(crate) struct Tier {
    /// Priority: a lower one is used first.
    pub(crate) priority: u32,
    /// Groups of endpoints.
    pub(crate) entries: Vec<Entry>,
    /// Whose turn it is.
    pub(crate) rotation: Arc<Mutex<Rotation>>,
}

/// A group of endpoints with its share of its tier's traffic.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The share.
    pub(crate) weight: u32,
    /// Its endpoints that can take traffic at all.
    pub(crate) members: Vec<Member>,
}

/// An endpoint as one service sees it.
#[derive(Debug)]
pub(crate) struct Member {
    /// The endpoint.
    pub(crate) endpoint: Arc<Endpoint>,
    /// How far from being preferred by locality; 0 is best.
    pub(crate) rank: usize,
    /// Counters.
    pub(crate) series: Arc<Series>,
}

impl Service {
    /// Every endpoint with the entry's priority and weight.
    pub(crate) fn members(&self) -> impl Iterator<Item = (u32, u32, &Member)> {
        self.tiers.iter().flat_map(|tier| {
            tier.entries.iter().flat_map(move |entry| {
                entry.members.iter().map(move |member| (tier.priority, entry.weight, member))
            })
        })
    }

    /// Whether another endpoint may be ejected.
    pub(crate) fn may_eject(&self, now: Instant) -> bool {
        let outliers = &self.policy.outliers;
        let (count, ejected) = self.members().fold((0_usize, 0_usize), |(count, ejected), (_, _, member)| {
            (count + 1, ejected + usize::from(member.endpoint.live.share(now) == 0))
        });
        (ejected + 1) * 100 <= count * outliers.max_ejected_percent as usize
    }
}

impl RouteTable {
    /// Builds the table for a snapshot, with the connections, health and turns of the table before.
    pub(crate) fn build(snapshot: &Snapshot, previous: &Self, workers: usize) -> Self {
        let mut builder =
            Builder { known: previous.endpoints(), problems: snapshot.problems.clone(), workers };
        let service = |config| {
            let service = builder.service(config, previous);
            (service.id.as_ref().into(), Arc::new(service))
        };
        let services = snapshot.services.iter().map(service).collect();
        let callers =
            snapshot.callers.as_ref().map(|callers| Callers::build(callers, previous.callers.as_ref()));
        Self { services, callers, hostnames: snapshot.hostnames.clone(), problems: builder.problems }
    }

    /// The service of an id.
    pub(crate) fn service(&self, id: &str) -> Option<&Arc<Service>> {
        self.services.get(id)
    }

    /// Every service, in no order.
    pub(crate) fn services(&self) -> impl Iterator<Item = &Arc<Service>> {
        self.services.values()
    }

    /// Every endpoint by id.
    pub(crate) fn endpoints(&self) -> HashMap<Arc<str>, Arc<Endpoint>> {
        self.services
            .values()
            .flat_map(|service| service.members())
            .map(|(_, _, member)| (member.endpoint.id.clone(), member.endpoint.clone()))
            .collect()
    }
}

struct Builder {
    /// Endpoints by id: those of the table before, then those built here.
    known: HashMap<Arc<str>, Arc<Endpoint>>,
    problems: Vec<Problem>,
    workers: usize,
}

impl Builder {
    fn service(&mut self, config: &ServiceConfig, previous: &RouteTable) -> Service {
        let id: Arc<str> = config.id().into();
        let before = previous.service(&id);
        let state: Arc<ServiceState> = before.map_or_else(Arc::default, |before| before.state.clone());
        let mut tiers: Vec<Tier> = Vec::new();
        for entry in &config.entries {
            let members: Vec<Member> = entry
                .endpoints
                .iter()
                .filter_map(|endpoint| self.endpoint(endpoint))
                .map(|endpoint| Member {
                    rank: rank(&config.policy, &endpoint.config),
                    series: locked(&state.series).entry(endpoint.id.clone()).or_default().clone(),
                    endpoint,
                })
                .collect();
            let group = Entry { weight: entry.weight, members };
            match tiers.iter_mut().find(|tier| tier.priority == entry.tier) {
                Some(tier) => tier.entries.push(group),
                None => {
                    tiers.push(Tier { priority: entry.tier, entries: vec![group], rotation: Arc::default() })
                }
            }
        }
        tiers.sort_by_key(|tier| tier.priority);
        for tier in &mut tiers {
            tier.rotation = rotation(tier, before);
        }
        let maps_model =
            config.entries.iter().flat_map(|entry| &entry.endpoints).any(|endpoint| endpoint.model.is_some());
        Service { id, policy: config.policy.clone(), tiers, maps_model, state }
    }

    /// The endpoint of a configuration, if it can take traffic.
    fn endpoint(&mut self, config: &Arc<EndpointConfig>) -> Option<Arc<Endpoint>> {
        let id = config.id();
        let known = self.known.get(id.as_str()).filter(|known| known.live.address == config.address);
        if let Some(known) = known.filter(|known| Arc::ptr_eq(&known.config, config)) {
            return config.problem.is_none().then(|| known.clone());
        }
        let problem = |reason: String| Problem { object: format!("ModelEndpoint {id}"), reason };
        if let Some(reason) = &config.problem {
            self.problems.push(problem(reason.clone()));
            return None;
        }
        let live = match known {
            Some(known) => known.live.clone(),
            None => match Live::new(&config.address, self.workers) {
                Ok(live) => Arc::new(live),
                Err(error) => {
                    self.problems.push(problem(error.to_string()));
                    return None;
                }
            },
        };
        let endpoint = Arc::new(Endpoint::new(config.clone(), live));
        self.known.insert(endpoint.id.clone(), endpoint.clone());
        Some(endpoint)
    }
}

/// The rotation of the same tier before, if its entries and weights are the same, so that shares stay exact while
/// endpoints come and go.
fn rotation(tier: &Tier, before: Option<&Arc<Service>>) -> Arc<Mutex<Rotation>> {
    let weights = |tier: &Tier| tier.entries.iter().map(|entry| entry.weight).collect::<Vec<_>>();
    before
        .and_then(|before| before.tiers.iter().find(|other| other.priority == tier.priority))
        .filter(|other| weights(other) == weights(tier))
        .map_or_else(
            || Arc::new(Mutex::new(Rotation::new(tier.entries.len()))),
            |other| other.rotation.clone(),
        )
}

/// How far from being preferred an endpoint is.
fn rank(policy: &ServicePolicy, endpoint: &EndpointConfig) -> usize {
    let Some(locality) = &policy.locality else { return 0 };
    let value = endpoint.labels.get(&locality.label);
    value
        .and_then(|value| locality.preferred.iter().position(|preferred| preferred == value))
        .unwrap_or(locality.preferred.len())
}

impl Default for ServiceState {
    fn default() -> Self {
        Self { budget: Mutex::new(Budget::default()), series: Mutex::default() }
    }
}
