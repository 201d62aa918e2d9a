//! What an evaluation may spend: cost units as Kubernetes meters them, and work that Kubernetes does not meter.

use regex::Regex;

use super::value::Value;
use crate::library::regex::{LazyPattern, MAXIMUM_WEIGHT};

/// The evaluation has to end without a value; nothing absorbs this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// The cost limit of Kubernetes.
    Cost,
    /// Kubernetes' own failure: a call is metered by an operand that is a fault, or a value that cannot be hashed is
    /// looked up in a constant list.
    Internal,
    /// Our own bound on copying and comparing, of which some is free of cost in Kubernetes.
    Work,
}

/// Spent and allowed cost and work.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) cost: u64,
    limit: u64,
    work: u64,
    /// Patterns that are not constant, compiled once per evaluation.
    patterns: Vec<(Box<str>, Result<Regex, String>)>,
}

impl Budget {
    /// Steps of copying and comparing in one evaluation; some tens of milliseconds.
    const WORK: u64 = 1_500_000;

    /// The work that compiling one pattern counts as.
    const PATTERN_WORK: usize = 20_000;

    pub(crate) fn new(limit: u64) -> Self {
        Self { cost: 0, limit, work: Self::WORK, patterns: Vec::new() }
    }

    /// Charges one observed step.
    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), Exhausted> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(Exhausted::Cost) } else { Ok(()) }
    }

    /// Charges several steps of one unit each; the first that exceeds the limit is the last.
    pub(crate) fn charge_units(&mut self, units: u64) -> Result<(), Exhausted> {
        self.cost = (self.cost + units).min(self.limit + 1);
        if self.cost > self.limit { Err(Exhausted::Cost) } else { Ok(()) }
    }

    /// Whether a cost could still be charged.
    pub(crate) fn affords(&self, cost: u64) -> bool {
        self.cost.saturating_add(cost) <= self.limit
    }

    /// A pattern that is only known now.
    pub(crate) fn regex(&mut self, pattern: &str) -> Result<Result<Regex, String>, Exhausted> {
        if let Some((_, regex)) = self.patterns.iter().find(|(own, _)| **own == *pattern) {
            return Ok(regex.clone());
        }
        self.work(Self::PATTERN_WORK)?;
        let compiled = match LazyPattern::new(pattern) {
            Ok(lazy) if lazy.weight() > MAXIMUM_WEIGHT => Err("the pattern is too large".to_owned()),
            Ok(lazy) => {
                self.work(lazy.weight() as usize * 10)?;
                lazy.get().cloned().map_err(str::to_owned)
            }
            Err(error) => Err(error),
        };
        self.patterns.push((pattern.into(), compiled.clone()));
        Ok(compiled)
    }

    /// Accounts for unmetered steps.
    pub(crate) fn work(&mut self, steps: usize) -> Result<(), Exhausted> {
        match self.work.checked_sub(steps as u64) {
            Some(left) => {
                self.work = left;
                Ok(())
            }
            None => Err(Exhausted::Work),
        }
    }
}

/// The size that costs are computed from: code points, bytes, elements or entries; 1 for everything else.
pub(crate) fn runtime_size(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => characters(text.as_str()),
        Value::Bytes(bytes) => bytes.len() as u64,
        Value::List(list) => list.len() as u64,
        Value::Map(map) => map.len() as u64,
        Value::Ip(ip) => {
            if ip.family() == 4 {
                4
            } else {
                16
            }
        }
        Value::Cidr(cidr) => (cidr.prefix_length().max(0) as u64).div_ceil(8),
        _ => 1,
    }
}

fn characters(text: &str) -> u64 {
    if text.is_ascii() { text.len() as u64 } else { text.chars().count() as u64 }
}
