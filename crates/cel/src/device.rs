//! The environment of DRA device selectors: one variable, `device`, and a result of bool.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::error::{CompileError, EvaluationError};

/// One device as its driver publishes it; names and values are borrowed where possible.
#[derive(Debug, Clone, Default)]
pub struct Device<'a> {
    /// The driver's name, also the domain of names without one.
    pub driver: Cow<'a, str>,
    /// Attributes by qualified name (`domain/identifier`, or `identifier` alone).
    pub attributes: Vec<(Cow<'a, str>, Attribute<'a>)>,
    /// Quantity texts by qualified name.
    pub capacity: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Whether several claims may share the device.
    pub allow_multiple_allocations: bool,
}

/// The one typed value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribute<'a> {
    /// Any text.
    String(Cow<'a, str>),
    /// A truth value.
    Bool(bool),
    /// A 64-bit number.
    Int(i64),
    /// The text of a semantic version.
    Version(Cow<'a, str>),
}

/// A device with versions and quantities parsed and domains split, ready for many evaluations.
#[derive(Debug, Clone)]
pub struct PreparedDevice<'a> {
    marker: PhantomData<&'a str>,
}

impl<'a> PreparedDevice<'a> {
    /// Parses every value once; fails on a malformed version or quantity.
    pub fn new(_device: Device<'a>) -> Result<Self, DeviceError> {
        Ok(Self { marker: PhantomData })
    }
}

/// Why a device cannot be evaluated at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceError {
    message: String,
}

impl fmt::Display for DeviceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for DeviceError {}

/// What a selector may use: the libraries of one Kubernetes version and the feature gates.
#[derive(Debug, Clone, Default)]
pub struct DeviceEnvironment {}

/// A compiled selector; cheap to clone and to share between threads.
#[derive(Debug, Clone)]
pub struct Selector {
    text: Arc<str>,
}

/// The outcome of one evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// Whether the device matches.
    pub result: Result<bool, EvaluationError>,
    /// Cost units spent, as Kubernetes counts them.
    pub cost: u64,
}

impl Selector {
    /// Compiles in the environment of a default Kubernetes 1.36 cluster.
    pub fn compile(text: &str) -> Result<Selector, CompileError> {
        Self::compile_in(&DeviceEnvironment::default(), text)
    }

    /// Compiles in a chosen environment.
    pub fn compile_in(_environment: &DeviceEnvironment, text: &str) -> Result<Selector, CompileError> {
        Err(CompileError::at(text, 0, "selectors are not supported yet".into(), None))
    }

    /// Whether the device matches.
    pub fn matches(&self, device: &PreparedDevice<'_>) -> Result<bool, EvaluationError> {
        self.evaluate(device).result
    }

    /// Evaluates and reports the cost as well.
    pub fn evaluate(&self, _device: &PreparedDevice<'_>) -> Evaluation {
        Evaluation { result: Err(EvaluationError::new("selectors are not supported yet")), cost: 0 }
    }

    /// The worst-case static cost; Kubernetes rejects claims above 1,000,000.
    pub fn estimated_cost(&self) -> u64 {
        0
    }

    /// The text the selector was compiled from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Every device field the selector reads, as a dotted path, with its value or `absent`.
    pub fn explain_inputs(&self, _device: &PreparedDevice<'_>) -> Vec<(String, String)> {
        Vec::new()
    }
}
