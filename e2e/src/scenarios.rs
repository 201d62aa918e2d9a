//! Statements about the whole system, each decided by what the API servers hold.
//!
//! They share one environment and run in this order; each leaves the fleet as the next one expects it.

mod canary;
mod definitions;
mod deletion;
mod drain;
mod examples;
mod fleet;
mod gateway;
mod placement;
mod restart;
mod same_result;
mod scaling;
mod selectors;
mod stillness;
mod upgrade;
mod view;

use std::future::Future;
use std::pin::Pin;

use crate::environment::Environment;
use crate::failure::Outcome;

/// A scenario under way.
type Running<'e> = Pin<Box<dyn Future<Output = Outcome> + 'e>>;

/// A statement and how it is decided.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// What holds.
    pub statement: &'static str,
    /// Whether the others are meaningless without it.
    pub always: bool,
    /// Decides it.
    pub run: for<'e> fn(&'e mut Environment) -> Running<'e>,
}

macro_rules! scenario {
    ($statement:literal, $run:path) => {
        Scenario { statement: $statement, always: false, run: |environment| Box::pin($run(environment)) }
    };
    (always $statement:literal, $run:path) => {
        Scenario { always: true, ..scenario!($statement, $run) }
    };
}

/// All of them, in order.
pub const SCENARIOS: &[Scenario] = &[
    scenario!("every definition is established and serves all its rules", definitions::established),
    scenario!("every rule that a composite breaks is named in the refusal", definitions::rules_refuse),
    scenario!("every example is accepted", examples::accepted),
    scenario!("every example is composed as `modelplane render` prints it", same_result::as_rendered),
    scenario!("a composed gateway of our own serves, with no more rights than it needs", gateway::serves),
    scenario!(always "a fleet of two existing clusters becomes ready", fleet::becomes_ready),
    scenario!("a selector that DRA refuses is refused by us first", selectors::refused_by_us_first),
    scenario!(always "replicas are spread and their workloads arrive", placement::spread_over_clusters),
    scenario!(
        "kube-scheduler allocates the claims and binds pods to the pool we chose",
        placement::allocated
    ),
    scenario!("a settled fleet writes nothing", stillness::writes_nothing),
    scenario!("kubectl scale adds and removes replicas", scaling::up_and_down),
    scenario!("a canary's weights reach the HTTPRoute", canary::weights),
    scenario!("a tainted cluster is drained", drain::by_taint),
    scenario!("killing the function mid-reconcile loses nothing", restart::loses_nothing),
    scenario!("an upgrade from upstream's objects re-creates nothing", upgrade::recreates_nothing),
    scenario!("a cluster's deletion is held until its replicas are gone", deletion::held),
];
