//! Which resources are served: built-in kinds of the profile, and custom ones as their definitions say.
//!
//! A [`Registry`] is an immutable snapshot; a change to a CustomResourceDefinition makes a new one before its
//! request is answered, so a kind can be used as soon as its definition was accepted.

pub(crate) mod builtin;
pub(crate) mod custom;
pub(crate) mod resource;
pub(crate) mod versions;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
pub(crate) use resource::{Resource, Version};

/// A snapshot of everything that is served.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    groups: HashMap<String, HashMap<String, Arc<Resource>>>,
    /// Documents derived from the snapshot, made when first asked for.
    documents: std::sync::Mutex<HashMap<String, Bytes>>,
    versions: OnceLock<BTreeMap<String, Vec<String>>>,
}

impl Registry {
    /// A snapshot of these resources.
    pub(crate) fn new(resources: impl IntoIterator<Item = Arc<Resource>>) -> Registry {
        let mut registry = Registry::default();
        for resource in resources {
            registry
                .groups
                .entry(resource.group.clone())
                .or_default()
                .insert(resource.plural.clone(), resource);
        }
        registry
    }

    /// The resource of a request, if that version of it is served.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<(&Arc<Resource>, usize)> {
        let resource = self.groups.get(group)?.get(plural)?;
        let index = resource.versions.iter().position(|served| served.name == version)?;
        Some((resource, index))
    }

    /// A resource by group and plural.
    pub(crate) fn resource(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.groups.get(group)?.get(plural)
    }

    /// A resource by group and kind.
    pub(crate) fn kind(&self, group: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.groups.get(group)?.values().find(|resource| resource.kind == kind)
    }

    /// Everything served, in order of group and plural.
    pub(crate) fn resources(&self) -> Vec<&Arc<Resource>> {
        let mut resources: Vec<_> = self.groups.values().flat_map(HashMap::values).collect();
        resources.sort_by(|a, b| (&a.group, &a.plural).cmp(&(&b.group, &b.plural)));
        resources
    }

    /// Each group's versions, the preferred one first.
    pub(crate) fn group_versions(&self) -> &BTreeMap<String, Vec<String>> {
        self.versions.get_or_init(|| {
            let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for resource in self.groups.values().flat_map(HashMap::values) {
                let versions = found.entry(resource.group.clone()).or_default();
                for version in &resource.versions {
                    if !versions.contains(&version.name) {
                        versions.push(version.name.clone());
                    }
                }
            }
            for versions in found.values_mut() {
                versions.sort_by_key(|version| std::cmp::Reverse(versions::priority(version)));
            }
            found
        })
    }

    /// The resources of one group and version with the version's index, in order of plural.
    pub(crate) fn in_version(&self, group: &str, version: &str) -> Vec<(&Arc<Resource>, usize)> {
        let Some(resources) = self.groups.get(group) else { return Vec::new() };
        let mut found: Vec<_> = resources
            .values()
            .filter_map(|resource| {
                let index = resource.versions.iter().position(|served| served.name == version)?;
                Some((resource, index))
            })
            .collect();
        found.sort_by(|a, b| a.0.plural.cmp(&b.0.plural));
        found
    }

    /// The same with one resource added or replaced.
    pub(crate) fn with(&self, added: Arc<Resource>) -> Registry {
        let same =
            |resource: &&Arc<Resource>| resource.group == added.group && resource.plural == added.plural;
        let kept: Vec<_> = self.resources().into_iter().filter(|resource| !same(resource)).cloned().collect();
        Registry::new(kept.into_iter().chain([added]))
    }

    /// The same with one resource removed.
    pub(crate) fn without(&self, group: &str, plural: &str) -> Registry {
        let kept =
            self.resources().into_iter().filter(|found| found.group != group || found.plural != plural);
        Registry::new(kept.cloned().collect::<Vec<_>>())
    }

    /// A document derived from the snapshot, made once per name.
    pub(crate) fn document(&self, name: &str, make: impl FnOnce() -> Bytes) -> Bytes {
        let kept = |documents: &HashMap<String, Bytes>| documents.get(name).cloned();
        if let Some(document) = kept(&self.documents.lock().unwrap_or_else(|error| error.into_inner())) {
            return document;
        }
        let document = make();
        let mut documents = self.documents.lock().unwrap_or_else(|error| error.into_inner());
        documents.insert(name.to_owned(), document.clone());
        document
    }
}
