//! The environment of DRA device selectors: one variable, `device`, and a result of bool.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::compile::{Compiled, compile};
use crate::env::{DeclaredSize, Environment, Field, NEWEST, Object, Results, Variable};
use crate::error::{CompileError, EvaluationError};
use crate::eval::{Handle, Map, Text, Value, run};
use crate::plan::Input;
use crate::quantity::Quantity;
use crate::semver::Semver;
use crate::types::{Shape, Type};

/// The cost at which Kubernetes stops an evaluation, and above which it rejects a selector.
pub const COST_LIMIT: u64 = 1_000_000;

/// Limits of the DRA API that the estimator counts with (`k8s.io/api/resource/v1`).
const LONGEST_DOMAIN: u64 = 63;
const LONGEST_IDENTIFIER: u64 = 32;
const LONGEST_DRIVER: u64 = 63;
const LONGEST_VALUE: u64 = 64;
const MOST_ENTRIES: u64 = 32;

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

/// The attributes or capacities of one domain.
#[derive(Debug, Clone, Default)]
pub(crate) struct Domain<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) hash: u64,
    pub(crate) entries: Vec<Entry<'a>>,
}

/// One attribute or capacity.
#[derive(Debug, Clone)]
pub(crate) struct Entry<'a> {
    pub(crate) name: Cow<'a, str>,
    hash: u64,
    value: Value<'a>,
}

static EMPTY: Domain<'static> = Domain { name: Cow::Borrowed(""), hash: 0, entries: Vec::new() };

impl<'a> Domain<'a> {
    /// What an unknown domain reads as.
    pub(crate) const EMPTY: &'static Domain<'static> = &EMPTY;

    pub(crate) fn find_hashed(&self, name: &str, hash: u64) -> Option<&Value<'a>> {
        self.entries.iter().find(|entry| entry.hash == hash && entry.name == name).map(|entry| &entry.value)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Value<'a>> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| &entry.value)
    }
}

/// A quick hash (FNV-1a) that spares most comparisons of names.
pub(crate) fn hash_name(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A device with versions and quantities parsed and domains split, ready for many evaluations.
#[derive(Debug, Clone)]
pub struct PreparedDevice<'a> {
    pub(crate) driver: Cow<'a, str>,
    pub(crate) attributes: Vec<Domain<'a>>,
    pub(crate) capacity: Vec<Domain<'a>>,
    pub(crate) allow_multiple_allocations: bool,
}

impl<'a> PreparedDevice<'a> {
    /// Parses every value once; fails on a malformed version or quantity.
    pub fn new(device: Device<'a>) -> Result<Self, DeviceError> {
        let mut prepared = Self {
            driver: device.driver,
            attributes: Vec::with_capacity(1),
            capacity: Vec::with_capacity(1),
            allow_multiple_allocations: device.allow_multiple_allocations,
        };
        for (name, attribute) in device.attributes {
            let value = match attribute {
                Attribute::String(Cow::Borrowed(text)) => Value::String(Text::Borrowed(text)),
                Attribute::String(Cow::Owned(text)) => Value::text(text),
                Attribute::Bool(value) => Value::Bool(value),
                Attribute::Int(value) => Value::Int(value),
                Attribute::Version(text) => match Semver::parse(&text) {
                    Ok(version) => Value::Semver(Handle::Shared(Arc::new(version))),
                    Err(error) => return Err(DeviceError::new("attribute", &name, &error)),
                },
            };
            insert(&mut prepared.attributes, &prepared.driver, name, value);
        }
        for (name, text) in device.capacity {
            let value = match Quantity::parse(&text) {
                Ok(quantity) => Value::quantity(quantity),
                Err(error) => return Err(DeviceError::new("capacity", &name, &error)),
            };
            insert(&mut prepared.capacity, &prepared.driver, name, value);
        }
        Ok(prepared)
    }

    pub(crate) fn attribute_domain(&self, name: &str) -> &Domain<'a> {
        self.attributes.iter().find(|domain| domain.name == name).unwrap_or(Domain::EMPTY)
    }

    pub(crate) fn capacity_domain(&self, name: &str) -> &Domain<'a> {
        self.capacity.iter().find(|domain| domain.name == name).unwrap_or(Domain::EMPTY)
    }
}

/// Files a value under its domain, which is the part before the first slash or the driver.
///
/// The driver's domain comes first, then the others by name, and entries come in the order of their
/// hashes, so that iterating does not depend on the order of publication.
#[expect(clippy::ptr_arg, reason = "a borrowed name stays borrowed when it is cloned")]
fn insert<'a>(domains: &mut Vec<Domain<'a>>, driver: &Cow<'a, str>, name: Cow<'a, str>, value: Value<'a>) {
    let (domain, identifier) = match name {
        Cow::Borrowed(name) => match name.split_once('/') {
            Some((domain, identifier)) => (Cow::Borrowed(domain), Cow::Borrowed(identifier)),
            None => (driver.clone(), Cow::Borrowed(name)),
        },
        Cow::Owned(name) => match name.split_once('/') {
            Some((domain, identifier)) => (Cow::Owned(domain.to_owned()), Cow::Owned(identifier.to_owned())),
            None => (driver.clone(), Cow::Owned(name)),
        },
    };
    let rank = |name: &str| (*name != **driver, name.to_owned());
    let found = domains.binary_search_by_key(&rank(&domain), |known| rank(&known.name));
    let position = found.unwrap_or_else(|position| {
        domains.insert(position, Domain { hash: hash_name(&domain), name: domain, entries: Vec::new() });
        position
    });
    let entries = &mut domains[position].entries;
    let hash = hash_name(&identifier);
    match entries.binary_search_by(|entry| (entry.hash, &entry.name).cmp(&(hash, &identifier))) {
        Ok(position) => entries[position].value = value,
        Err(position) => {
            entries.insert(position, Entry { hash, name: identifier, value });
        }
    }
}

/// Why a device cannot be evaluated at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceError {
    message: String,
}

impl DeviceError {
    fn new(kind: &str, name: &str, cause: &dyn fmt::Display) -> Self {
        Self { message: format!("{kind} {name}: {cause}") }
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for DeviceError {}

/// What a selector may use: the libraries of one Kubernetes version and the feature gates.
#[derive(Debug, Clone)]
pub struct DeviceEnvironment {
    environment: Arc<Environment>,
}

/// The version and the feature gates of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceFeatures {
    /// The minor version of Kubernetes 1.x, from 31; functions introduced later are unknown.
    pub kubernetes_minor: u8,
    /// The gate `DRAConsumableCapacity`: the field `allowMultipleAllocations`.
    pub consumable_capacity: bool,
    /// The gate `DRAListTypeAttributes`: attributes are `dyn` and have `includes`.
    pub list_attributes: bool,
    /// The `math` library, which no Kubernetes version offers to selectors.
    pub math: bool,
}

impl Default for DeviceFeatures {
    /// A default cluster of Kubernetes 1.36.
    fn default() -> Self {
        Self { kubernetes_minor: NEWEST, consumable_capacity: true, list_attributes: false, math: false }
    }
}

static DEFAULT: LazyLock<DeviceEnvironment> =
    LazyLock::new(|| DeviceEnvironment::new(DeviceFeatures::default()));

impl Default for DeviceEnvironment {
    fn default() -> Self {
        DEFAULT.clone()
    }
}

impl DeviceEnvironment {
    /// The environment of a cluster with these features.
    pub fn new(features: DeviceFeatures) -> Self {
        let (results, attribute) = match features.list_attributes {
            true => (Results::BoolOrDyn, Type::DYN),
            false => (Results::BoolOrAny, Type::ANY),
        };
        let mut environment = Environment::new(features.kubernetes_minor, results);
        environment.math = features.math;
        environment.list_attributes = features.list_attributes;
        let inner_attributes = environment.add_type(Shape::Map(Type::STRING, attribute));
        let attributes = environment.add_type(Shape::Map(Type::STRING, inner_attributes));
        let inner_capacity = environment.add_type(Shape::Map(Type::STRING, Type::QUANTITY));
        let capacity = environment.add_type(Shape::Map(Type::STRING, inner_capacity));
        let mut fields = vec![("driver", Type::STRING), ("attributes", attributes), ("capacity", capacity)];
        if features.consumable_capacity {
            fields.push(("allowMultipleAllocations", Type::BOOL));
        }
        environment.objects.push(Object {
            name: "device".to_owned(),
            fields: fields.into_iter().map(|(name, kind)| Field { name: name.to_owned(), kind }).collect(),
        });
        let kind = environment.add_type(Shape::Object(0));
        let size = Some(sizes(&mut environment));
        environment.variables.push(Variable { name: "device".to_owned(), kind, size });
        Self { environment: Arc::new(environment) }
    }
}

/// Declares the sizes of a device's parts; the root is last.
fn sizes(environment: &mut Environment) -> u32 {
    let mut leaf = |maximum| environment.add_size(DeclaredSize { maximum, ..DeclaredSize::default() });
    let (domain, identifier, driver) = (leaf(LONGEST_DOMAIN), leaf(LONGEST_IDENTIFIER), leaf(LONGEST_DRIVER));
    let (value, quantity, multiple) = (leaf(LONGEST_VALUE), leaf(0), leaf(1));
    let mut map = |keys, elements, open_fields| {
        environment.add_size(DeclaredSize {
            maximum: MOST_ENTRIES,
            keys: Some(keys),
            elements: Some(elements),
            open_fields,
            fields: Vec::new(),
        })
    };
    let inner_attributes = map(identifier, value, true);
    let attributes = map(domain, inner_attributes, false);
    let inner_capacity = map(identifier, quantity, false);
    let capacity = map(domain, inner_capacity, false);
    let fields = [
        ("driver", driver),
        ("attributes", attributes),
        ("capacity", capacity),
        ("allowMultipleAllocations", multiple),
    ];
    environment.add_size(DeclaredSize {
        fields: fields.map(|(name, size)| (name.to_owned(), size)).to_vec(),
        ..DeclaredSize::default()
    })
}

/// A compiled selector; cheap to clone and to share between threads.
#[derive(Debug, Clone)]
pub struct Selector {
    text: Arc<str>,
    compiled: Arc<Compiled>,
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
        Self::compile_in(&DEFAULT, text)
    }

    /// Compiles in a chosen environment.
    pub fn compile_in(environment: &DeviceEnvironment, text: &str) -> Result<Selector, CompileError> {
        let compiled = compile(&environment.environment, text, true).map_err(|error| *error)?;
        Ok(Selector { text: text.into(), compiled: Arc::new(compiled) })
    }

    /// Whether the device matches.
    pub fn matches(&self, device: &PreparedDevice<'_>) -> Result<bool, EvaluationError> {
        self.evaluate(device).result
    }

    /// Evaluates and reports the cost as well.
    pub fn evaluate(&self, device: &PreparedDevice<'_>) -> Evaluation {
        let variables = [Value::Map(Map::Device(device))];
        let evaluated = run(&self.compiled.program, &variables, COST_LIMIT, EvaluationError::truth);
        let result = evaluated.outcome.unwrap_or_else(|exhausted| Err(exhausted.into()));
        Evaluation { result, cost: evaluated.cost }
    }

    /// The worst-case static cost; Kubernetes rejects claims above 1,000,000.
    pub fn estimated_cost(&self) -> u64 {
        self.compiled.estimate
    }

    /// The text the selector was compiled from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Every device field the selector reads, as a dotted path, with its value or `absent`.
    pub fn explain_inputs(&self, device: &PreparedDevice<'_>) -> Vec<(String, String)> {
        let inputs = &self.compiled.program.inputs;
        // A path that others continue says nothing that they do not.
        let continued = |input: &Input| {
            inputs
                .iter()
                .any(|other| other.keys.len() > input.keys.len() && other.keys.starts_with(&input.keys))
        };
        let read = inputs.iter().filter(|input| !continued(input)).map(|input| {
            let mut value = Some(Value::Map(Map::Device(device)));
            for key in &input.keys {
                value = match value {
                    Some(Value::Map(map)) => map.field(key),
                    _ => None,
                };
            }
            let shown = match value {
                // An unknown domain reads as an empty map, which is no news to anyone.
                Some(Value::Map(map)) if map.len() == 0 => "absent".to_owned(),
                Some(value) => value.to_string(),
                None => "absent".to_owned(),
            };
            (input.text.clone(), shown)
        });
        read.collect()
    }
}
