//! All roles and bindings at one moment, and the decisions that follow from them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use modelplane_apimachinery::selector::LabelSelector;
use serde_json::{Map, Value};

use super::action::Action;
use super::rules::{GROUP, PolicyRule, rules_of};
use crate::identity::Identity;
use crate::object::{metadata, metadata_text, name};

/// Roles and bindings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    /// By namespace and name.
    roles: BTreeMap<(String, String), Arc<[PolicyRule]>>,
    cluster_roles: BTreeMap<String, ClusterRole>,
    /// By namespace (empty for cluster bindings) and name.
    bindings: BTreeMap<(String, String), Arc<Binding>>,
    /// The rules of the cluster roles that aggregate others.
    aggregated: HashMap<String, Arc<[PolicyRule]>>,
}

#[derive(Debug, Clone)]
struct ClusterRole {
    rules: Arc<[PolicyRule]>,
    labels: Map<String, Value>,
    /// The selectors of an aggregation rule, if there is one.
    aggregates: Option<Arc<[LabelSelector]>>,
}

#[derive(Debug)]
struct Binding {
    name: String,
    role: RoleRef,
    subjects: Vec<Subject>,
}

/// A role by kind and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RoleRef {
    /// `ClusterRole` or else `Role`.
    pub(crate) cluster: bool,
    pub(crate) name: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Subject {
    User(String),
    Group(String),
}

/// Whether something is allowed, and why (or why the roles could not tell).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    pub(crate) reason: String,
}

impl RoleRef {
    /// The `roleRef` of a binding.
    pub(crate) fn of(binding: &Value) -> RoleRef {
        let text =
            |field: &str| binding.pointer(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        RoleRef { cluster: text("/roleRef/kind") == "ClusterRole", name: text("/roleRef/name") }
    }

    fn kind(&self) -> &'static str {
        if self.cluster { "ClusterRole" } else { "Role" }
    }

    /// The plural of the role's kind.
    pub(crate) fn resource(&self) -> &'static str {
        if self.cluster { "clusterroles" } else { "roles" }
    }
}

impl Snapshot {
    /// Takes over an object's new state, or its removal (`None`), given the plural, namespace and name.
    pub(crate) fn set(&mut self, plural: &str, at: (&str, &str), object: Option<&Value>) {
        let key = (at.0.to_owned(), at.1.to_owned());
        match plural {
            "roles" => match object {
                Some(role) => drop(self.roles.insert(key, rules_of(role).into())),
                None => drop(self.roles.remove(&key)),
            },
            "rolebindings" | "clusterrolebindings" => match object {
                Some(binding) => drop(self.bindings.insert(key, Arc::new(Binding::of(binding)))),
                None => drop(self.bindings.remove(&key)),
            },
            "clusterroles" => {
                match object {
                    Some(role) => drop(self.cluster_roles.insert(key.1, ClusterRole::of(role))),
                    None => drop(self.cluster_roles.remove(&key.1)),
                }
                self.aggregate();
            }
            _ => {}
        }
    }

    /// Decides by the bindings of the cluster and then of the namespace.
    pub(crate) fn decide(&self, identity: &Identity, action: &Action<'_>) -> Decision {
        let mut trouble = Vec::new();
        for (place, binding) in self.bindings_for(action.place()) {
            let Some(subject) = binding.subject(identity) else { continue };
            match self.rules(&binding.role, place) {
                None => trouble.push(binding.role.not_found()),
                Some(rules) if rules.iter().any(|rule| rule.allows(action)) => {
                    let reason = binding.reason(place, &subject);
                    return Decision { allowed: true, reason };
                }
                Some(_) => {}
            }
        }
        trouble.dedup();
        let reason = if trouble.is_empty() { String::new() } else { format!("RBAC: {}", join(&trouble)) };
        Decision { allowed: false, reason }
    }

    /// All rules that apply to someone in a namespace (empty: cluster-wide only).
    pub(crate) fn rules_for(&self, identity: &Identity, namespace: &str) -> Vec<PolicyRule> {
        let mut found = Vec::new();
        for (place, binding) in self.bindings_for(namespace) {
            if binding.subject(identity).is_some() {
                found.extend(self.rules(&binding.role, place).into_iter().flatten().cloned());
            }
        }
        found
    }

    /// The rules of a role, if it exists.
    pub(crate) fn rules(&self, role: &RoleRef, namespace: &str) -> Option<&[PolicyRule]> {
        if !role.cluster {
            return self.roles.get(&(namespace.to_owned(), role.name.clone())).map(|rules| &**rules);
        }
        let found = self.cluster_roles.get(&role.name)?;
        Some(match self.aggregated.get(&role.name) {
            Some(rules) if found.aggregates.is_some() => rules,
            _ => &found.rules,
        })
    }

    /// The cluster roles with an aggregation rule, and the rules that follow from it.
    pub(crate) fn aggregated(&self) -> impl Iterator<Item = (&str, &[PolicyRule])> {
        self.aggregated.iter().map(|(name, rules)| (name.as_str(), &**rules))
    }

    fn bindings_for(&self, namespace: &str) -> impl Iterator<Item = (&str, &Arc<Binding>)> {
        let within = |place: &str| {
            let (place, start) = (place.to_owned(), (place.to_owned(), String::new()));
            let here = move |(key, _): &(&(String, String), &Arc<Binding>)| key.0 == place;
            self.bindings.range(start..).take_while(here)
        };
        let local = (!namespace.is_empty()).then(|| within(namespace));
        within("").chain(local.into_iter().flatten()).map(|((place, _), binding)| (place.as_str(), binding))
    }

    /// Works out what the aggregating roles hold. A role is aggregated with its own rules, or, where it
    /// aggregates others itself, with theirs: as often as roles nest, and no more than there are roles.
    fn aggregate(&mut self) {
        let mut aggregated: HashMap<String, Arc<[PolicyRule]>> = HashMap::new();
        for _ in 0..=self.cluster_roles.len() {
            let mut next = HashMap::new();
            for (name, role) in &self.cluster_roles {
                let Some(selectors) = &role.aggregates else { continue };
                let mut rules = Vec::new();
                let mut seen = BTreeSet::new();
                for (other, candidate) in &self.cluster_roles {
                    let selected = selectors.iter().any(|selector| selector.matches(Some(&candidate.labels)));
                    if other == name || !selected {
                        continue;
                    }
                    let held = match &candidate.aggregates {
                        Some(_) => aggregated.get(other).cloned().unwrap_or_else(|| Arc::from([])),
                        None => Arc::clone(&candidate.rules),
                    };
                    rules.extend(held.iter().filter(|rule| seen.insert((*rule).clone())).cloned());
                }
                next.insert(name.clone(), Arc::from(rules));
            }
            let settled = next == aggregated;
            aggregated = next;
            if settled {
                break;
            }
        }
        self.aggregated = aggregated;
    }
}

impl ClusterRole {
    fn of(role: &Value) -> ClusterRole {
        let labels = metadata(role).and_then(|metadata| metadata.get("labels")).and_then(Value::as_object);
        let selectors = role.get("aggregationRule").filter(|rule| !rule.is_null()).map(|rule| {
            let list = rule.get("clusterRoleSelectors").and_then(Value::as_array).into_iter().flatten();
            list.filter_map(|selector| LabelSelector::from_object(selector).ok()).collect()
        });
        ClusterRole {
            rules: rules_of(role).into(),
            labels: labels.cloned().unwrap_or_default(),
            aggregates: selectors,
        }
    }
}

impl Binding {
    fn of(binding: &Value) -> Binding {
        let namespace = metadata_text(binding, "namespace");
        let subjects = binding.get("subjects").and_then(Value::as_array).into_iter().flatten();
        Binding {
            name: name(binding).to_owned(),
            role: RoleRef::of(binding),
            subjects: subjects.filter_map(|subject| Subject::of(subject, namespace)).collect(),
        }
    }

    fn subject(&self, identity: &Identity) -> Option<String> {
        self.subjects.iter().find_map(|subject| match subject {
            Subject::User(user) => (*user == identity.user).then(|| format!("User {user:?}")),
            Subject::Group(group) => identity.is_in(group).then(|| format!("Group {group:?}")),
        })
    }

    fn reason(&self, namespace: &str, subject: &str) -> String {
        let role = format!("{} {:?}", self.role.kind(), self.role.name);
        let name = &self.name;
        if namespace.is_empty() {
            format!("RBAC: allowed by ClusterRoleBinding {name:?} of {role} to {subject}")
        } else {
            format!("RBAC: allowed by RoleBinding \"{name}/{namespace}\" of {role} to {subject}")
        }
    }
}

impl Subject {
    fn of(subject: &Value, namespace: &str) -> Option<Subject> {
        let text = |field: &str| subject.get(field).and_then(Value::as_str).unwrap_or_default();
        let name = text("name").to_owned();
        match text("kind") {
            "User" => Some(Subject::User(name)),
            "Group" => Some(Subject::Group(name)),
            "ServiceAccount" => {
                let place = if text("namespace").is_empty() { namespace } else { text("namespace") };
                Some(Subject::User(format!("system:serviceaccount:{place}:{name}")))
            }
            _ => None,
        }
    }
}

impl RoleRef {
    fn not_found(&self) -> String {
        let kind = self.kind().to_lowercase();
        format!("{kind}.{GROUP} {:?} not found", self.name)
    }
}

fn join(messages: &[String]) -> String {
    match messages {
        [only] => only.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}
