//! The same manifests give the same objects in Crossplane and in `modelplane render`.
//!
//! Every example is applied to a control plane without providers. What a provider would report of an object is the
//! status that `render` prints for it, written once Crossplane has composed it; so both sides observe the same, and
//! what is composed, and the status of every composite, has to be the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use modelplane_api::kind;
use modelplane_api::names::{EXTERNAL_NAME_ANNOTATION, SYSTEM_NAMESPACE};
use serde_json::{Value, json};

use crate::crossplane::{create_namespace, install_definitions};
use crate::definitions::permissive;
use crate::environment::Environment;
use crate::failure::{Failure, Outcome, ensure, not_yet, throughout, until};
use crate::kube_api::{Kube, Mode, Target, list, name, text};
use crate::manifests;
use crate::rendered::{
    Identity, Objects, Rendered, WAKE_ANNOTATION, differences, resource_key, under_rendered_names,
};
use crate::report::say;
use crate::resources::{CLUSTER_USAGE, OBJECT, RELEASE, Resource};
use crate::tools::repository;

/// Long enough for one event to lead to the next.
const A_PAUSE: Duration = Duration::from_secs(3);

/// Crossplane does not watch what a composition requires, so composites that are not yet right are told to look again.
const WAKE_AFTER: Duration = Duration::from_secs(2);

/// Differences that are shown of one example.
const SHOWN: usize = 12;

/// Where a status comes from: these are written by what runs on the control plane, not by a provider.
const REAL_STATUS: [&str; 4] = ["CustomResourceDefinition", "Deployment", "Usage", "ClusterUsage"];

/// Every example is composed as rendered, and everything composed is gone when its manifests are.
pub(super) async fn as_rendered(environment: &mut Environment) -> Outcome {
    let outcome = every_example(environment).await;
    if outcome.is_err() {
        // What is left behind is in nobody's way.
        environment.stop_second();
    }
    outcome
}

async fn every_example(environment: &mut Environment) -> Outcome {
    let kube = environment.second().await?.kube().clone();
    let folders = manifests::entries(&repository().join("examples"))?;
    let folders: Vec<_> = folders.into_iter().filter(|path| path.is_dir()).collect();
    ensure(!folders.is_empty(), || "there are no examples".to_owned())?;
    for folder in folders {
        let example = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let done = Example::prepare(&kube, &folder).await?.decide().await;
        done.map_err(|failure| Failure::Wrong(format!("{example}: {}", failure.describe())))
            .map(|done| say(&format!("    {example}: {done}")))?;
    }
    Ok(())
}

/// An example on a control plane.
struct Example<'k> {
    kube: &'k Kube,
    rendered: Rendered,
    /// What `render` prints, with the defaults of the control plane's own definitions.
    expected: Objects,
    /// What has been given its defaults.
    defaulted: BTreeSet<Identity>,
    kinds: BTreeMap<(String, String), Resource>,
    /// Kinds without a real definition.
    undefined: usize,
    woken: usize,
    /// Usages that Crossplane would never have given up; see [`Self::release`].
    released: usize,
}

impl<'k> Example<'k> {
    /// Renders it, and makes everything that it needs to be applied.
    async fn prepare(kube: &'k Kube, folder: &Path) -> Outcome<Self> {
        let rendered = Rendered::of(folder)?;
        let expected = rendered.expected.clone();
        let (defaulted, kinds) = (BTreeSet::new(), BTreeMap::new());
        let mut example =
            Self { kube, rendered, expected, defaulted, kinds, undefined: 0, woken: 0, released: 0 };
        example.discover().await?;
        let composed_definitions =
            example.expected.iter().filter(|(one, _)| one.kind == "CustomResourceDefinition");
        let groups: Vec<&str> = composed_definitions.map(|(_, object)| text(object, "/spec/group")).collect();
        let is_unknown = |identity: &&Identity| {
            let group = identity.api_version.split('/').next().unwrap_or_default();
            example.resource(identity).is_none() && !groups.contains(&group)
        };
        let assumed: Vec<Identity> = example.rendered.assumed.iter().map(Identity::of).collect();
        let definitions = permissive(example.expected.keys().chain(&assumed).filter(is_unknown));
        install_definitions(kube, &definitions).await?;
        example.undefined = definitions.len();
        let namespaces = example.expected.keys().map(|identity| identity.namespace.as_str());
        for namespace in
            namespaces.chain([SYSTEM_NAMESPACE]).filter(|name| !name.is_empty()).collect::<BTreeSet<_>>()
        {
            create_namespace(kube, namespace).await?;
        }
        example.discover().await?;
        Ok(example)
    }

    async fn decide(mut self) -> Outcome<String> {
        let begun = Instant::now();
        // Where replicas go depends on which clusters are there already, so those come first.
        let (models, platform): (Vec<Value>, Vec<Value>) =
            self.rendered.applied.iter().cloned().partition(|object| object["kind"] == "ModelDeployment");
        for object in self.rendered.assumed.iter().chain(&platform) {
            self.apply(object).await?;
        }
        self.comes_about("its clusters are as rendered", |identity| identity.kind == "InferenceCluster")
            .await?;
        for object in &models {
            self.apply(object).await?;
        }
        self.comes_about("everything is as rendered", |_| true).await?;
        throughout("everything is as rendered", A_PAUSE, async || {
            let found = self.found().await.map_err(not_yet)?;
            let left = differences(&self.expected, &under_rendered_names(&found, &self.expected));
            if left.is_empty() { Ok(()) } else { Err(shown(&left)) }
        })
        .await?;
        let composed = begun.elapsed();
        self.remove().await?;
        Ok(format!(
            "{} objects as rendered after {:.0} s, gone after {:.0} s more; {} kinds without their own \
             definition, {} usages released by hand",
            self.expected.len(),
            composed.as_secs_f64(),
            (begun.elapsed() - composed).as_secs_f64(),
            self.undefined,
            self.released,
        ))
    }

    /// Plays the providers until what is found of the objects meant is as expected.
    async fn comes_about(&mut self, statement: &str, meant: impl Fn(&Identity) -> bool) -> Outcome {
        let mut woken = Instant::now();
        until(statement, async || {
            self.discover().await.map_err(not_yet)?;
            self.default_expected().await.map_err(not_yet)?;
            let found = self.found().await.map_err(not_yet)?;
            let renamed = under_rendered_names(&found, &self.expected);
            self.report(&renamed, &found).await.map_err(not_yet)?;
            let mut left = differences(&self.expected, &renamed);
            left.retain(|identity, _| meant(identity));
            if left.is_empty() {
                return Ok(());
            }
            if woken.elapsed() > WAKE_AFTER {
                self.wake(&found).await.map_err(not_yet)?;
                woken = Instant::now();
            }
            Err(shown(&left))
        })
        .await
    }

    fn resource(&self, identity: &Identity) -> Option<Resource> {
        self.kinds.get(&(identity.api_version.clone(), identity.kind.clone())).copied()
    }

    fn resource_of(&self, object: &Value) -> Outcome<Resource> {
        let identity = Identity::of(object);
        self.resource(&identity).ok_or_else(|| Failure::Wrong(format!("{identity} is of a kind not served")))
    }

    /// Learns how the kinds that are looked at are addressed, as far as that is not known yet.
    async fn discover(&mut self) -> Outcome {
        let ours = kind::ALL.iter().map(|info| (info.api_version(), info.kind.to_owned()));
        let theirs = [OBJECT, RELEASE, CLUSTER_USAGE].map(|one| (one.api_version(), one.kind.to_owned()));
        let usage = (CLUSTER_USAGE.api_version(), "Usage".to_owned());
        let assumed: Vec<Identity> = self.rendered.assumed.iter().map(Identity::of).collect();
        let expected =
            self.expected.keys().chain(&assumed).map(|one| (one.api_version.clone(), one.kind.clone()));
        let wanted: BTreeSet<(String, String)> = ours.chain(theirs).chain([usage]).chain(expected).collect();
        let unknown: BTreeSet<&String> = wanted
            .iter()
            .filter(|kind| !self.kinds.contains_key(*kind))
            .map(|(api_version, _)| api_version)
            .collect();
        for api_version in unknown {
            for resource in self.kube.kinds(api_version).await? {
                let kind = (api_version.clone(), resource.kind.to_owned());
                if wanted.contains(&kind) {
                    self.kinds.insert(kind, resource);
                }
            }
        }
        Ok(())
    }

    async fn apply(&self, object: &Value) -> Outcome {
        let resource = self.resource_of(object)?;
        self.kube.create_as(resource, object, Mode::Real).await.map(drop)
    }

    /// Lets the API server default what `render` prints, and so says whether it would accept that.
    async fn default_expected(&mut self) -> Outcome {
        for (identity, object) in &self.rendered.expected {
            // A definition's name follows from its content, so that there cannot be a second one to try.
            if self.defaulted.contains(identity) || identity.kind == "CustomResourceDefinition" {
                continue;
            }
            let Some(resource) = self.resource(identity) else { continue };
            let mut tried = object.clone();
            tried["metadata"]["name"] = json!(format!("tried-{}", self.defaulted.len()));
            let mut accepted = self.kube.create_as(resource, &tried, Mode::DryRun).await?;
            for own in ["metadata", "status"] {
                accepted[own] = object[own].clone();
            }
            self.expected.insert(identity.clone(), accepted);
            self.defaulted.insert(identity.clone());
        }
        Ok(())
    }

    /// All objects that are composed, and those of the manifests.
    async fn found(&self) -> Outcome<Vec<Value>> {
        let mut found = Vec::new();
        for ((api_version, kind), resource) in &self.kinds {
            let objects = match self.kube.list(*resource, "", "").await {
                // Definitions come and go with what composes them.
                Err(failure) if failure.is_not_found() => continue,
                objects => objects?,
            };
            for mut object in objects {
                object["apiVersion"] = json!(api_version);
                object["kind"] = json!(kind);
                let of_manifest =
                    self.rendered.applied.iter().any(|one| Identity::of(one) == Identity::of(&object));
                if of_manifest || resource_key(&object).is_some() {
                    found.push(object);
                }
            }
        }
        self.overlooks_nothing(&found)?;
        Ok(found)
    }

    /// What composites refer to is all there is: nothing may be composed in a kind nobody looks at.
    fn overlooks_nothing(&self, found: &[Value]) -> Outcome {
        let references = found.iter().flat_map(|object| list(object, "/spec/crossplane/resourceRefs"));
        for reference in references {
            let kind = (text(reference, "/apiVersion").to_owned(), text(reference, "/kind").to_owned());
            let is_due = self.expected.keys().any(|one| one.api_version == kind.0 && one.kind == kind.1);
            ensure(is_due || self.kinds.contains_key(&kind), || format!("`render` composes no {kind:?}"))?;
        }
        Ok(())
    }

    /// Reports of what is composed what `render` says that a provider reports: a status, and a cloud's own name.
    async fn report(&self, renamed: &Objects, found: &[Value]) -> Outcome {
        let by_uid: BTreeMap<&str, &Value> =
            found.iter().map(|object| (text(object, "/metadata/uid"), object)).collect();
        for (identity, object) in renamed {
            if identity.is_composite() || REAL_STATUS.contains(&identity.kind.as_str()) {
                continue;
            }
            let Some(real) = by_uid.get(text(object, "/metadata/uid")) else { continue };
            let target = Target::of(self.resource_of(real)?, real);
            let annotations =
                |object: &Value| object["metadata"]["annotations"][EXTERNAL_NAME_ANNOTATION].clone();
            let external = self.rendered.expected.get(identity).map(annotations).unwrap_or_default();
            if external != annotations(object) {
                let patch = json!({"metadata": {"annotations": {EXTERNAL_NAME_ANNOTATION: external}}});
                self.kube.merge(target, "", &patch).await?;
            }
            let Some(status) = self.rendered.reported.get(identity).map(with_times) else { continue };
            if object["status"] != status {
                self.kube.merge(target, "status", &json!({ "status": status })).await?;
            }
        }
        Ok(())
    }

    async fn wake(&mut self, found: &[Value]) -> Outcome {
        self.woken += 1;
        let patch = json!({"metadata": {"annotations": {WAKE_ANNOTATION: self.woken.to_string()}}});
        for composite in found.iter().filter(|object| Identity::of(object).is_composite()) {
            let resource = self.resource_of(composite)?;
            match self.kube.merge(Target::of(resource, composite), "", &patch).await {
                Err(failure) if failure.is_not_found() => {}
                other => drop(other?),
            }
        }
        Ok(())
    }

    /// Deletes an object as soon as it is not in use: that its replicas are gone, a cluster learns by the way.
    async fn delete(&mut self, object: &Value) -> Outcome {
        let target = Target::of(self.resource_of(object)?, object);
        until(&format!("{} may be deleted", name(object)), async || match self.kube.delete(target).await {
            Err(failure @ Failure::Api { code: 403 | 409, .. }) => {
                self.wake(&self.found().await.map_err(not_yet)?).await.map_err(not_yet)?;
                tokio::time::sleep(WAKE_AFTER).await;
                Err(failure.describe())
            }
            outcome => Ok(outcome),
        })
        .await?
    }

    /// Deletes the manifests' objects, models first, and waits until nothing composed is left.
    async fn remove(&mut self) -> Outcome {
        let is_model = |object: &Value| text(object, "/kind").starts_with("Model");
        let (models, platform): (Vec<Value>, Vec<Value>) =
            self.rendered.applied.iter().cloned().partition(is_model);
        for objects in [models, platform] {
            for object in &objects {
                self.delete(object).await?;
            }
            let gone: Vec<Identity> = objects.iter().map(Identity::of).collect();
            until("they are gone", async || {
                let found = self.found().await.map_err(not_yet)?;
                let left: Vec<&Value> =
                    found.iter().filter(|object| gone.contains(&Identity::of(object))).collect();
                match left.first() {
                    None => Ok(()),
                    Some(one) => Err(format!("{} of {}, {} among them", left.len(), found.len(), name(one))),
                }
            })
            .await?;
        }
        until("all that was composed is gone", async || {
            let found = self.found().await.map_err(not_yet)?;
            self.release(&found).await.map_err(not_yet)?;
            match found.first() {
                None => Ok(()),
                Some(one) => Err(format!("{} left, {} among them", found.len(), Identity::of(one))),
            }
        })
        .await
    }

    /// Helps Crossplane out of a dead end: a usage by an object whose definition is gone is never given up, since its
    /// controller fails to look for the object. The definitions of the Gateway API go with the InferenceGateway, and
    /// sometimes before Crossplane has seen that its Gateway is gone.
    async fn release(&mut self, found: &[Value]) -> Outcome {
        for usage in found.iter().filter(|object| object["kind"] == "Usage") {
            if !self.kube.kinds(text(usage, "/spec/by/apiVersion")).await?.is_empty() {
                continue;
            }
            self.released += 1;
            let finalizers = json!({"metadata": {"finalizers": null}});
            let target = Target::of(self.resource_of(usage)?, usage);
            self.kube.merge(target, "", &finalizers).await?;
            self.kube.delete(target).await?;
            // The garbage collector, often refused, would take minutes to try again.
            let used = found.iter().find(|object| {
                object["kind"] == usage["spec"]["of"]["kind"]
                    && name(object) == text(usage, "/spec/of/resourceRef/name")
            });
            if let Some(used) = used {
                // Another usage may still be in the way; then that one's turn comes.
                drop(self.kube.delete(Target::of(self.resource_of(used)?, used)).await);
            }
        }
        Ok(())
    }
}

fn shown(differences: &BTreeMap<Identity, String>) -> String {
    let lines = differences.iter().take(SHOWN).map(|(identity, what)| format!("{identity}: {what}"));
    format!("{} objects differ:\n  {}", differences.len(), lines.collect::<Vec<_>>().join("\n  "))
}

/// A status with what the definitions ask of a condition and `render` leaves out.
fn with_times(status: &Value) -> Value {
    let mut status = status.clone();
    complete_conditions(&mut status);
    let parents = status.get_mut("parents").and_then(Value::as_array_mut);
    for parent in parents.into_iter().flatten() {
        parent["controllerName"] = json!("e2e.modelplane.ai/played");
        complete_conditions(parent);
    }
    status
}

fn complete_conditions(of: &mut Value) {
    let conditions = of.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        condition["lastTransitionTime"] = json!("2026-01-01T00:00:00Z");
        condition["message"] = json!("");
    }
}
