//! The whole fleet of a running control plane, as a simulation that goes on from it.
//!
//! Read are all objects of Modelplane's kinds, what they compose, and, for a plan, what their compositions ask for.
//! Nothing is written.

use std::collections::BTreeSet;

use modelplane_api::kind;
use modelplane_core::contract::{Match, Requirement};
use modelplane_core::simulate::{ObjectKey, Options, Simulation};
use modelplane_engine::client::{ClientError, ListQuery, Resource};
use serde_json::Value;

use super::{Live, explain};
use crate::outcome::CommandError;

/// Items of a page.
const PAGE: usize = 500;
/// Compositions that ask for more once they have what they asked for are followed this far.
const MAX_ROUNDS: usize = 5;
/// Label of everything a composite composes.
const COMPOSED: &str = "crossplane.io/composite";

impl Live {
    /// The fleet as it is, to be looked at.
    pub(crate) async fn fleet(&self, options: Options) -> Result<Simulation, CommandError> {
        Ok(Simulation::of_observed(self.objects().await?, options))
    }

    /// The fleet as it is with what its compositions ask for, to be simulated further.
    pub(crate) async fn fleet_to_plan_on(&self, options: Options) -> Result<Simulation, CommandError> {
        let mut objects = self.objects().await?;
        self.add_required(&mut objects).await?;
        Ok(Simulation::of_observed(objects, options))
    }

    /// All objects of our kinds, and what they compose.
    async fn objects(&self) -> Result<Vec<Value>, CommandError> {
        let mut objects = Vec::new();
        for info in kind::ALL {
            objects.extend(self.read(&info.api_version(), info.kind, None).await.map_err(explain)?);
        }
        let mut listed: BTreeSet<(String, String)> =
            kind::ALL.iter().map(|info| (info.api_version(), info.kind.to_owned())).collect();
        for (api_version, kind) in composed_kinds(&objects) {
            if listed.insert((api_version.clone(), kind.clone())) {
                let composed = self.read(&api_version, &kind, Some(COMPOSED)).await.map_err(explain)?;
                objects.extend(composed);
            }
        }
        Ok(objects)
    }

    /// Adds what compositions ask for beyond what is there.
    async fn add_required(&self, objects: &mut Vec<Value>) -> Result<(), CommandError> {
        let options = Options { assume_inputs: false, ..Options::default() };
        let mut asked: Vec<Requirement> = Vec::new();
        for _ in 0..MAX_ROUNDS {
            let mut probe = Simulation::of_observed(objects.iter().cloned(), options.clone());
            probe.step();
            let requirements = probe.latest().values().flat_map(|reconciled| &reconciled.requirements);
            let new: Vec<Requirement> = requirements
                .filter(|requirement| kind::find(&requirement.api_version, &requirement.kind).is_none())
                .filter(|requirement| !asked.contains(requirement))
                .cloned()
                .collect();
            if new.is_empty() {
                break;
            }
            let mut known: BTreeSet<ObjectKey> = objects.iter().map(ObjectKey::of).collect();
            for requirement in new {
                if !asked.contains(&requirement) {
                    let found = self.required(&requirement).await.map_err(explain)?;
                    objects.extend(found.into_iter().filter(|object| known.insert(ObjectKey::of(object))));
                    asked.push(requirement);
                }
            }
        }
        Ok(())
    }

    /// The objects a requirement selects.
    async fn required(&self, requirement: &Requirement) -> Result<Vec<Value>, ClientError> {
        let labels = match &requirement.select {
            Match::Name(name) => {
                let resource = match self.api.resource(&requirement.api_version, &requirement.kind).await {
                    Err(error) if error.is_not_served() => return Ok(Vec::new()),
                    resource => resource?,
                };
                let namespace = requirement.namespace.as_deref().unwrap_or_default();
                return match self.api.get(&resource, namespace, name).await {
                    // Who may not read Secrets can plan all the same: what they hold is then assumed.
                    Err(error) if error.code() == Some(403) => Ok(Vec::new()),
                    found => Ok(found?.into_iter().collect()),
                };
            }
            Match::Labels(labels) => {
                labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
            }
            Match::All => String::new(),
        };
        let selector = (!labels.is_empty()).then_some(labels.as_str());
        let mut found = self.read(&requirement.api_version, &requirement.kind, selector).await?;
        if let Some(namespace) = &requirement.namespace {
            found.retain(|object| object["metadata"]["namespace"] == namespace.as_str());
        }
        Ok(found)
    }

    /// All objects of a kind; none if the control plane does not serve it.
    async fn read(
        &self,
        api_version: &str,
        kind: &str,
        labels: Option<&str>,
    ) -> Result<Vec<Value>, ClientError> {
        let resource = match self.api.resource(api_version, kind).await {
            Err(error) if error.is_not_served() => return Ok(Vec::new()),
            resource => resource?,
        };
        self.pages(&resource, labels).await
    }

    /// All objects of a resource, page by page.
    pub(super) async fn pages(
        &self,
        resource: &Resource,
        labels: Option<&str>,
    ) -> Result<Vec<Value>, ClientError> {
        let mut query =
            ListQuery { limit: Some(PAGE), labels: labels.map(str::to_owned), ..ListQuery::default() };
        let mut objects = Vec::new();
        loop {
            let mut page = self.api.list(resource, &query).await?;
            let items = page["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
            objects.extend(items.into_iter().map(|mut item| {
                // Lists leave out what all their items share.
                item["apiVersion"] = resource.api_version.as_str().into();
                item["kind"] = resource.kind.as_str().into();
                item
            }));
            match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
                Some(token) => query.continue_token = Some(token.to_owned()),
                None => return Ok(objects),
            }
        }
    }
}

/// The kinds that composites say they compose.
fn composed_kinds(objects: &[Value]) -> BTreeSet<(String, String)> {
    let references = objects
        .iter()
        .filter_map(|object| object.pointer("/spec/crossplane/resourceRefs").and_then(Value::as_array))
        .flatten();
    references
        .filter_map(|reference| {
            Some((reference["apiVersion"].as_str()?.to_owned(), reference["kind"].as_str()?.to_owned()))
        })
        .collect()
}
