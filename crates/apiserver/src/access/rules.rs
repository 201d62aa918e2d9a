//! Policy rules: what they match, and whether some cover another (rbac.authorization.k8s.io/v1).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::action::Action;

/// The API group of roles and bindings.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

const ALL: &str = "*";

/// One rule of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PolicyRule {
    pub(crate) verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub(crate) api_groups: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub(crate) resources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub(crate) resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub(crate) non_resource_urls: Vec<String>,
}

/// A list that may be `null`.
fn list<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The rules of a role; unreadable ones grant nothing.
pub(crate) fn rules_of(role: &Value) -> Vec<PolicyRule> {
    let rules = role.get("rules").and_then(Value::as_array).into_iter().flatten();
    rules.filter_map(|rule| PolicyRule::deserialize(rule).ok()).collect()
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|found| found == wanted || found == ALL)
}

fn has_resource(list: &[String], resource: &str, subresource: &str) -> bool {
    list.iter().any(|found| {
        if found == ALL {
            return true;
        }
        match found.split_once('/') {
            None => subresource.is_empty() && found == resource,
            Some((of, sub)) => sub == subresource && !sub.is_empty() && (of == resource || of == ALL),
        }
    })
}

fn has_url(list: &[String], path: &str) -> bool {
    list.iter().any(|found| match found.strip_suffix(ALL) {
        Some(start) => path.starts_with(start),
        None => found == path,
    })
}

impl PolicyRule {
    /// Whether the rule allows a request.
    pub(crate) fn allows(&self, wanted: &Action<'_>) -> bool {
        if !wanted.is_about_objects() {
            return has(&self.verbs, wanted.verb) && has_url(&self.non_resource_urls, wanted.path);
        }
        has(&self.verbs, wanted.verb)
            && has(&self.api_groups, wanted.group)
            && has_resource(&self.resources, wanted.resource, wanted.subresource)
            && (self.resource_names.is_empty() || self.resource_names.iter().any(|name| name == wanted.name))
    }

    /// Splits a rule into rules that have one verb and one group and resource, name or URL each.
    fn atoms(&self) -> Vec<Atom<'_>> {
        let mut atoms = Vec::new();
        for verb in &self.verbs {
            for group in &self.api_groups {
                for resource in &self.resources {
                    let names = self.resource_names.iter().map(|name| Some(name.as_str()));
                    let unnamed = self.resource_names.is_empty().then_some(None);
                    atoms.extend(names.chain(unnamed).map(|name| Atom::Resource {
                        verb,
                        group,
                        resource,
                        name,
                    }));
                }
            }
            atoms.extend(self.non_resource_urls.iter().map(|url| Atom::Url { verb, url }));
        }
        atoms
    }
}

/// The smallest grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Atom<'a> {
    Resource { verb: &'a str, group: &'a str, resource: &'a str, name: Option<&'a str> },
    Url { verb: &'a str, url: &'a str },
}

impl Atom<'_> {
    fn is_covered_by(&self, rule: &PolicyRule) -> bool {
        match *self {
            Atom::Resource { verb, group, resource, name } => {
                let (of, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                has(&rule.verbs, verb)
                    && has(&rule.api_groups, group)
                    && (rule.resources.iter().any(|found| found == resource)
                        || has_resource(&rule.resources, of, subresource))
                    && (rule.resource_names.is_empty()
                        || name.is_some_and(|name| rule.resource_names.iter().any(|found| found == name)))
            }
            Atom::Url { verb, url } => has(&rule.verbs, verb) && has_url(&rule.non_resource_urls, url),
        }
    }
}

/// How many grants one role is split into at most; a role beyond that counts as more than anyone has.
const MAX_ATOMS: usize = 100_000;

/// What verbs apply to: group, resource and name, or a URL without a group.
type Objects<'a> = (Option<&'a str>, &'a str, Option<&'a str>);

/// What of `wanted` is not in `held`, with the verbs for the same objects joined.
pub(crate) fn missing(held: &[PolicyRule], wanted: &[PolicyRule]) -> Vec<PolicyRule> {
    let size = |rule: &PolicyRule| {
        let objects = rule.api_groups.len() * rule.resources.len() * rule.resource_names.len().max(1);
        rule.verbs.len() * (objects + rule.non_resource_urls.len())
    };
    if wanted.iter().map(size).sum::<usize>() > MAX_ATOMS {
        return wanted.to_vec();
    }
    let mut verbs: BTreeMap<Objects<'_>, Vec<String>> = BTreeMap::new();
    for atom in wanted.iter().flat_map(PolicyRule::atoms) {
        if held.iter().any(|rule| atom.is_covered_by(rule)) {
            continue;
        }
        let (key, verb) = match atom {
            Atom::Resource { verb, group, resource, name } => ((Some(group), resource, name), verb),
            Atom::Url { verb, url } => ((None, url, None), verb),
        };
        let known = verbs.entry(key).or_default();
        if !known.iter().any(|found| found == verb) {
            known.push(verb.to_owned());
        }
    }
    let rule = |((group, of, name), verbs): (Objects<'_>, Vec<String>)| match group {
        Some(group) => PolicyRule {
            verbs,
            api_groups: vec![group.to_owned()],
            resources: vec![of.to_owned()],
            resource_names: name.map(str::to_owned).into_iter().collect(),
            ..PolicyRule::default()
        },
        None => PolicyRule { verbs, non_resource_urls: vec![of.to_owned()], ..PolicyRule::default() },
    };
    verbs.into_iter().map(rule).collect()
}

impl fmt::Display for PolicyRule {
    /// The compact form Kubernetes uses in messages: `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let shown: Vec<String> = parts
            .iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(name, list)| format!("{name}:{}", quoted(list)))
            .collect();
        write!(formatter, "{{{}}}", shown.join(", "))
    }
}

/// A list of strings as Go prints it with `%q`.
pub(crate) fn quoted(list: &[String]) -> String {
    let items: Vec<String> = list.iter().map(|item| format!("{item:?}")).collect();
    format!("[{}]", items.join(" "))
}
