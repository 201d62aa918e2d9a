//! What a composition answers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use super::observed::{Observed, Resource};
use crate::document::{Document, EncodeError, encode, without_server_fields};

/// Everything a composition wants.
#[derive(Debug, Default)]
pub struct Desired<'a> {
    /// Composed resources by key. Starts as what earlier pipeline steps want.
    pub resources: BTreeMap<Cow<'a, str>, DesiredResource<'a>>,
    /// The composite's status, if the composition writes one.
    pub status: Option<Body<'a>>,
    /// The composite's own readiness; unspecified means derived from the composed resources.
    pub ready: Ready,
    /// Resources to fetch before the next call, by key.
    pub requirements: BTreeMap<Cow<'a, str>, Requirement>,
    /// Conditions of the composite, in order.
    pub conditions: Vec<Condition>,
    /// Events on the composite, in order.
    pub events: Vec<Event>,
    /// What it took and what it came to, for metrics; no part of the answer.
    pub work: Work,
}

/// What a composition took and what it came to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Selectors evaluated on devices.
    pub selector_evaluations: u64,
    /// How the replicas of a ModelDeployment stand, if they were scheduled.
    pub replicas: Option<Scheduled>,
}

/// How the replicas of a ModelDeployment stand after scheduling.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Scheduled {
    /// Replicas with a place, running or about to be created.
    pub placed: u64,
    /// Replicas asked for that have no place.
    pub unplaced: u64,
}

/// One composed resource.
#[derive(Debug, Clone)]
pub struct DesiredResource<'a> {
    /// The object.
    pub body: Body<'a>,
    /// Whether it counts as ready.
    pub ready: Ready,
}

/// An object's wire bytes (`google.protobuf.Struct`): built here, or passed through untouched.
#[derive(Clone, PartialEq, Eq)]
pub struct Body<'a>(Cow<'a, [u8]>);

/// Readiness of a resource.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ready {
    /// Not said.
    #[default]
    Unspecified,
    /// Ready.
    True,
    /// Not ready.
    False,
}

/// What to fetch for a requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// `group/version`, or `v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace to look in; `None` means cluster-scoped objects, or all namespaces.
    pub namespace: Option<String>,
    /// Which objects.
    pub select: Match,
}

/// Which objects of a kind a requirement wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// All of them.
    All,
    /// The one of this name.
    Name(String),
    /// Those that carry all these labels.
    Labels(BTreeMap<String, String>),
}

/// A condition of the composite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Type; see `modelplane_api::conditions`.
    pub condition_type: Cow<'static, str>,
    /// Status.
    pub status: ConditionStatus,
    /// CamelCase reason.
    pub reason: Cow<'static, str>,
    /// One line for people.
    pub message: Option<String>,
}

/// A condition's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody can tell.
    Unknown,
}

/// An event on the composite (Crossplane: a result).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// How bad it is.
    pub severity: Severity,
    /// CamelCase reason, if it has one.
    pub reason: Option<Cow<'static, str>>,
    /// One line for people.
    pub message: String,
}

/// How bad an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// For information.
    Normal,
    /// Something needs attention.
    Warning,
}

impl<'a> Desired<'a> {
    /// The answer to start from: what earlier pipeline steps already want.
    pub fn starting_from(observed: &Observed<'a>) -> Self {
        let resources = observed
            .desired
            .iter()
            .map(|(key, resource)| {
                let body = Body::borrowed(resource.document);
                (Cow::Borrowed(*key), DesiredResource { body, ready: resource.ready })
            })
            .collect();
        let (status, ready) = match &observed.desired_composite {
            None => (None, Ready::Unspecified),
            Some(composite) => (composite.document.get(&["status"]).map(Body::borrowed), composite.ready),
        };
        Self { resources, status, ready, ..Self::default() }
    }

    /// Wants a resource.
    pub fn add(&mut self, key: impl Into<Cow<'a, str>>, body: Body<'a>, ready: Ready) {
        self.resources.insert(key.into(), DesiredResource { body, ready });
    }

    /// Keeps an observed resource as it is; its readiness is what its `Ready` condition says.
    ///
    /// Server-set metadata and status are left out, so applying the result changes nothing.
    pub fn hold(&mut self, key: &'a str, resource: &Resource<'a>) {
        let ready = if resource.is_true("Ready") { Ready::True } else { Ready::Unspecified };
        self.resources
            .entry(Cow::Borrowed(key))
            .or_insert_with(|| DesiredResource { body: Body::held(resource.document), ready });
    }

    /// Keeps an observed resource like [`Self::hold`], but with the readiness given.
    pub fn hold_as(&mut self, key: &'a str, resource: &Resource<'a>, ready: Ready) {
        self.hold(key, resource);
        if let Some(held) = self.resources.get_mut(key) {
            held.ready = ready;
        }
    }

    /// Keeps every observed resource that is not desired yet: the answer when an input is unusable.
    pub fn hold_all(&mut self, observed: &Observed<'a>) {
        for (key, resource) in &observed.resources {
            self.hold(key, resource);
        }
    }

    /// Asks for resources to be fetched.
    pub fn require(&mut self, key: impl Into<Cow<'a, str>>, requirement: Requirement) {
        self.requirements.insert(key.into(), requirement);
    }

    /// Sets a condition.
    pub fn condition(&mut self, condition: Condition) {
        self.conditions.push(condition);
    }

    /// Sends an event.
    pub fn event(&mut self, severity: Severity, message: impl Into<String>) {
        self.events.push(Event { severity, reason: None, message: message.into() });
    }

    /// Writes the composite's status.
    ///
    /// # Panics
    ///
    /// Never for the typed statuses of this system; see [`Body::of`].
    pub fn set_status<T: Serialize + ?Sized>(&mut self, status: &T) {
        self.status = Some(Body::of(status));
    }
}

impl<'a> Body<'a> {
    /// The object `value` serialises to.
    ///
    /// # Panics
    ///
    /// If `value` does not serialise to an object, which is a defect of the type, not of any input;
    /// values made from input go through [`Body::try_of`].
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Self {
        Self::try_of(value).expect("types written by compositions serialise to objects")
    }

    /// The object `value` serialises to.
    ///
    /// # Errors
    ///
    /// If `value` is not an object, or is nested too deeply.
    pub fn try_of<T: Serialize + ?Sized>(value: &T) -> Result<Self, EncodeError> {
        encode(value).map(|bytes| Self(Cow::Owned(bytes)))
    }

    /// An object passed on unread; anything but an object becomes an empty one.
    pub fn borrowed(document: Document<'a>) -> Self {
        Self(Cow::Borrowed(document.as_struct_bytes().unwrap_or_default()))
    }

    /// Encoded bytes made once and shared, such as a bundled definition.
    pub const fn from_static(bytes: &'static [u8]) -> Body<'static> {
        Body(Cow::Borrowed(bytes))
    }

    /// An observed object reduced to what somebody may want of it.
    fn held(document: Document<'a>) -> Self {
        Self(Cow::Owned(without_server_fields(document)))
    }

    /// The object, to be read.
    pub fn document(&self) -> Document<'_> {
        Document::from_struct(&self.0)
    }

    /// The wire bytes of its `google.protobuf.Struct`.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.document().fmt(f)
    }
}

impl Condition {
    /// A condition that holds.
    pub fn is_true(condition_type: &'static str, reason: &'static str) -> Self {
        Self::new(condition_type, ConditionStatus::True, reason)
    }

    /// A condition that does not hold.
    pub fn is_false(condition_type: &'static str, reason: &'static str) -> Self {
        Self::new(condition_type, ConditionStatus::False, reason)
    }

    fn new(condition_type: &'static str, status: ConditionStatus, reason: &'static str) -> Self {
        Self { condition_type: condition_type.into(), status, reason: reason.into(), message: None }
    }

    /// The same with a message.
    #[must_use]
    pub fn because(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }
}

impl Requirement {
    /// One object by name.
    pub fn named(api_version: &str, kind: &str, name: &str) -> Self {
        Self::new(api_version, kind, Match::Name(name.to_owned()))
    }

    /// All objects of a kind.
    pub fn all(api_version: &str, kind: &str) -> Self {
        Self::new(api_version, kind, Match::All)
    }

    /// Objects with labels; all of them if there are no labels.
    pub fn labelled(api_version: &str, kind: &str, labels: BTreeMap<String, String>) -> Self {
        let select = if labels.is_empty() { Match::All } else { Match::Labels(labels) };
        Self::new(api_version, kind, select)
    }

    fn new(api_version: &str, kind: &str, select: Match) -> Self {
        Self { api_version: api_version.to_owned(), kind: kind.to_owned(), namespace: None, select }
    }

    /// The same within one namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }
}

impl Ready {
    /// `True` if `ready`, else unspecified: what most compositions say of a composed resource.
    pub fn when(ready: bool) -> Self {
        if ready { Self::True } else { Self::Unspecified }
    }
}
