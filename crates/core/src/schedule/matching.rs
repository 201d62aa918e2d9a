//! Which members go with which nodes (spec scheduling §4.3): every selector is compiled once, every pair of
//! selector and device is evaluated once, and every pair of member and profile is matched once.

use std::cell::Cell;

use modelplane_api::model_deployment::{Engine, ModelDeployment};
use modelplane_cel::CompileError;
use modelplane_cel::device::Selector;

use super::devices::{Claimable, DeviceIndex, Devices};
use super::hash::FastMap;
use super::solver::{Fit, Fits, ProfileIndex};

/// What every member asks for, with its selectors compiled.
#[derive(Debug, Default)]
pub(crate) struct Requests<'d> {
    /// Members of all engines, engine by engine.
    pub(crate) members: Vec<Vec<Request<'d>>>,
    selectors: Vec<Selector>,
}

/// One device request of a member.
#[derive(Debug)]
pub(crate) struct Request<'d> {
    pub(crate) name: &'d str,
    pub(crate) count: i64,
    /// The selectors as written.
    pub(crate) texts: Vec<&'d str>,
    /// The same, compiled.
    selectors: Vec<usize>,
}

/// A selector that does not compile.
#[derive(Debug, Clone, thiserror::Error)]
#[error("selector {selector:?} of request {request} in member {member} of engine {engine}: {source}")]
pub struct InvalidSelector {
    /// Name of the engine.
    pub engine: String,
    /// Position of the member in the engine.
    pub member: usize,
    /// Name of the device request.
    pub request: String,
    /// The expression.
    pub selector: String,
    /// What is wrong with it.
    pub source: Box<CompileError>,
}

/// A request and the device it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) request: usize,
    pub(crate) device: DeviceIndex,
}

/// How every member goes with every profile.
#[derive(Debug)]
pub(crate) struct Matching {
    pub(crate) fits: Fits,
    /// How many times a selector was evaluated on a device.
    pub(crate) evaluations: u64,
    /// Devices taken, request by request, where the member fits.
    taken: Vec<Option<Vec<Taken>>>,
}

impl<'d> Requests<'d> {
    /// Compiles what a deployment asks for.
    pub(crate) fn compile(deployment: &'d ModelDeployment) -> Result<Self, InvalidSelector> {
        let mut requests = Self::default();
        let mut known: FastMap<&'d str, usize> = FastMap::default();
        for engine in &deployment.spec.template.spec.engines {
            for member in 0..engine.members.len() {
                let compiled = requests.member(engine, member, &mut known)?;
                requests.members.push(compiled);
            }
        }
        Ok(requests)
    }

    fn member(
        &mut self,
        engine: &'d Engine,
        member: usize,
        known: &mut FastMap<&'d str, usize>,
    ) -> Result<Vec<Request<'d>>, InvalidSelector> {
        let mut requests = Vec::new();
        for request in engine.members[member].devices() {
            let texts: Vec<&str> = request.expressions().collect();
            let mut selectors = Vec::with_capacity(texts.len());
            for text in &texts {
                let selector = match known.get(text) {
                    Some(selector) => *selector,
                    None => {
                        let compiled = Selector::compile(text).map_err(|source| InvalidSelector {
                            engine: engine.name.clone(),
                            member,
                            request: request.name.clone(),
                            selector: (*text).to_owned(),
                            source: Box::new(source),
                        })?;
                        self.selectors.push(compiled);
                        known.insert(text, self.selectors.len() - 1);
                        self.selectors.len() - 1
                    }
                };
                selectors.push(selector);
            }
            requests.push(Request { name: &request.name, count: request.count(), texts, selectors });
        }
        Ok(requests)
    }

    /// Matches every member with every profile.
    pub(crate) fn matching(&self, devices: &Devices<'_>) -> Matching {
        let verdicts = Verdicts::new(self, devices);
        let profiles = devices.profiles.len();
        let cells = self.members.len() * profiles;
        let (mut table, mut all_taken) = (Vec::with_capacity(cells), Vec::with_capacity(cells));
        for requests in &self.members {
            for profile in &devices.profiles {
                let taken = take(requests, &profile.devices, &verdicts);
                table.push(match &taken {
                    None => Fit::No,
                    Some(taken) if taken.iter().any(|taken| devices.claims(*taken)) => Fit::Claims,
                    Some(_) => Fit::Rides,
                });
                all_taken.push(taken);
            }
        }
        let evaluations = verdicts.evaluations.get();
        Matching { fits: Fits { table, profiles }, evaluations, taken: all_taken }
    }

    /// The compiled selectors of a request.
    pub(crate) fn selectors(&self, request: &Request<'d>) -> impl Iterator<Item = &Selector> {
        request.selectors.iter().map(|selector| &self.selectors[*selector])
    }
}

impl Devices<'_> {
    fn claims(&self, taken: Taken) -> bool {
        matches!(self.device(taken.device).claim, Claimable::Through(_))
    }
}

impl Matching {
    /// The devices a member takes on nodes of a profile; `None` if it does not fit.
    pub(crate) fn taken(&self, member: usize, profile: ProfileIndex) -> Option<&[Taken]> {
        self.taken[member * self.fits.profiles + profile.0 as usize].as_deref()
    }
}

/// The first device with enough left for each request in turn; nothing is ever given back
/// (spec scheduling §4.3).
fn take(
    requests: &[Request<'_>],
    profile: &[DeviceIndex],
    verdicts: &Verdicts<'_, '_>,
) -> Option<Vec<Taken>> {
    let mut remaining: Vec<i64> =
        profile.iter().map(|device| verdicts.devices.device(*device).count).collect();
    let mut taken = Vec::with_capacity(requests.len());
    for (request, wanted) in requests.iter().enumerate() {
        let slot = profile
            .iter()
            .zip(&remaining)
            .position(|(device, left)| *left >= wanted.count && verdicts.suits(wanted, *device))?;
        remaining[slot] = remaining[slot].saturating_sub(wanted.count);
        taken.push(Taken { request, device: profile[slot] });
    }
    Some(taken)
}

/// Whether selectors hold for devices, each pair evaluated when first asked for.
struct Verdicts<'v, 'd> {
    requests: &'v Requests<'d>,
    devices: &'v Devices<'v>,
    table: Vec<Cell<Option<bool>>>,
    evaluations: Cell<u64>,
}

impl<'v, 'd> Verdicts<'v, 'd> {
    fn new(requests: &'v Requests<'d>, devices: &'v Devices<'v>) -> Self {
        let cells = requests.selectors.len() * devices.devices.len();
        Self { requests, devices, table: vec![Cell::new(None); cells], evaluations: Cell::new(0) }
    }

    /// Whether the request may take the device, numbers aside. A selector without a result excludes the
    /// device (spec cel §1).
    fn suits(&self, request: &Request<'_>, device: DeviceIndex) -> bool {
        let facts = self.devices.device(device);
        if facts.claim == Claimable::Nothing {
            return false;
        }
        let Ok(prepared) = &facts.prepared else { return request.selectors.is_empty() };
        request.selectors.iter().all(|selector| {
            let cell = &self.table[selector * self.devices.devices.len() + device.position()];
            cell.get().unwrap_or_else(|| {
                let holds = self.requests.selectors[*selector].matches(prepared) == Ok(true);
                cell.set(Some(holds));
                self.evaluations.set(self.evaluations.get() + 1);
                holds
            })
        })
    }
}
