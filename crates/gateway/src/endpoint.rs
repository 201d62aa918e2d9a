//! An endpoint at run time: its configuration and the state that outlives configuration changes.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::balance::overflow::{Admission, Gate, Measures, MovingAverage};
use crate::callers::KEY_HEADERS;
use crate::health::{Health, State};
use crate::random;
use crate::routes::config::{Address, EndpointConfig, Outliers, Overflow};
use crate::upstream::pool::Pool;
use crate::upstream::tls::{TlsClient, TlsError};

/// One place that serves a model.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// `namespace/name`.
    pub(crate) id: Arc<str>,
    /// Stable hash of the id, for affinity.
    pub(crate) identity: u64,
    /// What was asked for.
    pub(crate) config: Arc<EndpointConfig>,
    /// What replaces a service's path prefix, if that can be part of a path.
    pub(crate) rewrite_path: Option<String>,
    /// Headers set on every request, `Host` among them.
    pub(crate) adds: HeaderMap,
    /// Headers of requests that do not reach the endpoint: callers' credentials where it has its own, what is to be
    /// removed, and what is set.
    pub(crate) drops: Vec<HeaderName>,
    /// Connections, health and load.
    pub(crate) live: Arc<Live>,
}

impl Endpoint {
    /// An endpoint on state of its own or taken over from an earlier table.
    pub(crate) fn new(config: Arc<EndpointConfig>, live: Arc<Live>) -> Self {
        let id: Arc<str> = config.id().into();
        let host = config.host_header.clone().unwrap_or_else(|| {
            HeaderValue::try_from(live.address.authority()).unwrap_or(HeaderValue::from_static("invalid"))
        });
        let mut adds = HeaderMap::new();
        let mut drops = Vec::new();
        if let Some(credential) = &config.credential {
            drops.extend([AUTHORIZATION, COOKIE]);
            drops.extend(KEY_HEADERS);
            adds.insert(credential.header.clone(), credential.value.clone());
        }
        for name in &config.remove_headers {
            drops.push(name.clone());
            adds.remove(name);
        }
        adds.insert(HOST, host);
        // What frames a message is nobody's to set.
        for (name, value) in config.add_headers.iter().filter(|(name, _)| !FRAMING.contains(name)) {
            adds.insert(name.clone(), value.clone());
        }
        drops.extend(adds.keys().cloned());
        let is_path =
            |path: &String| path.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#".contains(&byte));
        let rewrite_path =
            config.rewrite_path.clone().map(|path| if is_path(&path) { path } else { "/".to_owned() });
        Self { identity: random::hash(id.as_bytes()), id, config, rewrite_path, adds, drops, live }
    }

    /// Makes a request's headers those this endpoint is to get.
    pub(crate) fn adapt(&self, headers: &mut HeaderMap) {
        for name in &self.drops {
            headers.remove(name);
        }
        for (name, value) in &self.adds {
            headers.insert(name, value.clone());
        }
    }
}

/// Headers that say where a message ends.
const FRAMING: [HeaderName; 3] = [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING];

/// State of one address: connections, health, load.
#[derive(Debug)]
pub(crate) struct Live {
    /// Where to connect to.
    pub(crate) address: Address,
    /// TLS client, if the address has TLS.
    pub(crate) tls: Option<TlsClient>,
    pools: Box<[Mutex<Pool>]>,
    in_flight: AtomicU32,
    waiting: AtomicU32,
    /// Length of the engine's queue by its own metrics; `u32::MAX` if unknown.
    reported_queue: AtomicU32,
    /// Moving average of the time to the first byte, in microseconds; 0 before the first.
    latency: AtomicU64,
    /// False whenever `health` has something to say, so that the usual request takes no lock.
    healthy: AtomicBool,
    /// Whether the last request failed.
    failing: AtomicBool,
    health: Mutex<Health>,
    /// Whether the endpoint said that it is full, so that `gate` has something to say without limits.
    refusing: AtomicBool,
    gate: Mutex<(Gate, MovingAverage)>,
    /// What the endpoint calls its model, as far as it was asked.
    model: Mutex<Discovery>,
}

/// What an endpoint calls its model, and when it was asked last.
#[derive(Debug, Default, Clone)]
struct Discovery {
    name: Option<Arc<str>>,
    asked: Option<Instant>,
}

/// How long an answer about the model's name holds.
const DISCOVERY: Duration = Duration::from_secs(60);

impl Live {
    /// State for an address nobody has used yet.
    pub(crate) fn new(address: &Address, workers: usize) -> Result<Self, TlsError> {
        Ok(Self {
            address: address.clone(),
            tls: TlsClient::prepare(address)?,
            // One more, for what the gateway asks of its own accord.
            pools: (0..=workers).map(|_| Mutex::default()).collect(),
            in_flight: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            reported_queue: AtomicU32::new(u32::MAX),
            latency: AtomicU64::new(0),
            healthy: AtomicBool::new(true),
            failing: AtomicBool::new(false),
            health: Mutex::default(),
            refusing: AtomicBool::new(false),
            gate: Mutex::default(),
            model: Mutex::default(),
        })
    }

    /// A worker's connections; beyond the last worker's, those of nobody in particular.
    pub(crate) fn pool(&self, worker: usize) -> MutexGuard<'_, Pool> {
        locked(&self.pools[worker.min(self.pools.len() - 1)])
    }

    /// Drops connections of all workers that are of no more use.
    pub(crate) fn sweep(&self, now: Instant) {
        for pool in &self.pools {
            locked(pool).sweep(now);
        }
    }

    /// Requests in flight.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Requests that wait for the first byte of their response.
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Moving average of the time to the first byte.
    pub(crate) fn latency(&self) -> Duration {
        Duration::from_micros(self.latency.load(Ordering::Relaxed))
    }

    /// Takes in the time to a first byte. Lost updates between threads do no harm to an average.
    pub(crate) fn observe_latency(&self, took: Duration) {
        let sample = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).clamp(1, u64::MAX / 8);
        let old = self.latency.load(Ordering::Relaxed);
        let new = if old == 0 { sample } else { (old * 7 + sample) / 8 };
        self.latency.store(new, Ordering::Relaxed);
    }

    /// The share of its usual requests the endpoint takes now, in percent.
    pub(crate) fn share(&self, now: Instant) -> u32 {
        if self.healthy.load(Ordering::Relaxed) {
            return 100;
        }
        let mut health = locked(&self.health);
        let share = health.share(now);
        if health.state(now) == State::In {
            self.healthy.store(true, Ordering::Relaxed);
        }
        share
    }

    /// Where the endpoint stands now.
    pub(crate) fn state(&self, now: Instant) -> State {
        locked(&self.health).state(now)
    }

    /// A request went well.
    pub(crate) fn succeeded(&self) {
        if self.failing.load(Ordering::Relaxed) {
            self.failing.store(false, Ordering::Relaxed);
            locked(&self.health).succeeded();
        }
    }

    /// A request failed. Returns whether that ejects the endpoint.
    pub(crate) fn failed(&self, limits: &Outliers, may_eject: bool, now: Instant) -> bool {
        let mut health = locked(&self.health);
        let ejected = health.failed(limits, may_eject, now);
        self.failing.store(true, Ordering::Relaxed);
        if ejected {
            self.healthy.store(false, Ordering::Relaxed);
        }
        ejected
    }

    /// What the endpoint may be given now.
    pub(crate) fn admission(&self, limits: &Overflow, now: Instant) -> Admission {
        let unlimited = limits.concurrent_requests.is_none()
            && limits.queue_depth.is_none()
            && limits.time_to_first_token.is_none();
        if unlimited && !self.refusing.load(Ordering::Relaxed) {
            return Admission::Open;
        }
        let (gate, first_token) = &mut *locked(&self.gate);
        if !gate.refuses(now) {
            self.refusing.store(false, Ordering::Relaxed);
        }
        let measures =
            Measures { in_flight: self.in_flight(), queued: self.queued(), first_token: first_token.value() };
        gate.admit(measures, limits, now)
    }

    /// The endpoint said that it is full.
    pub(crate) fn refused(&self, until: Instant) {
        locked(&self.gate).0.refused(until);
        self.refusing.store(true, Ordering::Relaxed);
    }

    /// For how long the endpoint's own word that it is full still holds.
    pub(crate) fn refuses_for(&self, now: Instant) -> Option<Duration> {
        locked(&self.gate).0.refuses_until(now).map(|until| until.saturating_duration_since(now))
    }

    /// Moving average of the time to first token, in seconds.
    pub(crate) fn first_token(&self) -> f64 {
        locked(&self.gate).1.value()
    }

    /// Takes in a time to first token.
    pub(crate) fn observe_first_token(&self, took: Duration, now: Instant) {
        locked(&self.gate).1.add(took.as_secs_f64(), now);
    }

    /// Requests waiting in the engine: as its metrics reported last, else as far as the gateway can tell.
    pub(crate) fn queued(&self) -> u32 {
        match self.reported_queue.load(Ordering::Relaxed) {
            u32::MAX => self.waiting(),
            reported => reported,
        }
    }

    /// Takes in the queue's length as the engine's metrics report it.
    pub(crate) fn observe_queue(&self, reported: Option<u32>) {
        self.reported_queue.store(reported.unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// What the endpoint calls its model, and whether it should be asked (again).
    pub(crate) fn model(&self, now: Instant) -> (Option<Arc<str>>, bool) {
        let mut model = locked(&self.model);
        let due = model.asked.is_none_or(|asked| now.saturating_duration_since(asked) >= DISCOVERY);
        if due {
            model.asked = Some(now);
        }
        (model.name.clone(), due)
    }

    /// The endpoint was asked what it calls its model.
    pub(crate) fn discovered(&self, name: Option<Arc<str>>) {
        let mut model = locked(&self.model);
        // An answer that failed changes nothing; the name is asked for again in time.
        model.name = name.or(model.name.take());
    }

    /// Counts a request in, unless that would exceed the limit.
    pub(crate) fn enter(self: &Arc<Self>, limit: Option<u32>) -> Option<Lease> {
        let before = self.in_flight.fetch_add(1, Ordering::Relaxed);
        if limit.is_some_and(|limit| before >= limit) {
            self.in_flight.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Some(Lease { live: self.clone(), waits: true })
    }
}

/// A request's place at an endpoint, given back when dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    live: Arc<Live>,
    waits: bool,
}

impl Lease {
    /// The endpoint's state.
    pub(crate) fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// The request no longer waits for its first byte.
    pub(crate) fn arrived(&mut self) {
        if std::mem::take(&mut self.waits) {
            self.live.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.arrived();
        self.live.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Locks a mutex. A thread that panicked while it held one leaves plain values behind, which stay usable.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
