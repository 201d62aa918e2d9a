//! One reconcile of one usage.

use std::sync::Arc;

use jiff::Timestamp;
use modelplane_api::names::COMPOSITE_LABEL;
use modelplane_core::simulate::ObjectKey;
use serde_json::{Map, Value, json};

use super::index::{Parties, Party, UsageIndex};
use super::{ATTEMPT_ANNOTATION, DETAILS_ANNOTATION, FINALIZER, HOLD_FINALIZER, IN_USE_LABEL, Protection};
use crate::cache::{CacheError, Caches};
use crate::client::{ClientError, Propagation, Target, Write};
use crate::composite::remove_finalizer;
use crate::conditions::{Conditions, NewCondition};
use crate::controller::{Controller, Next, ReconcileError, Trying};
use crate::metrics::{ControllerMetrics, Metrics};
use crate::object::Stored;

/// Keeps usages resolved, what they protect marked, and refused deletions repeated.
pub struct UsageController {
    pub(crate) caches: Arc<Caches>,
    pub(crate) index: Arc<UsageIndex>,
    pub(crate) metrics: Arc<Metrics>,
}

impl Controller for UsageController {
    const NAME: &'static str = "usage";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(usage) = self.caches.get(key) else {
            if let Some((used, replay)) = self.index.take_freed(key) {
                self.free(&used, replay).await?;
            }
            return Ok(Next::OnChange);
        };
        let Some(parties) = Parties::of(&usage) else {
            return self
                .report(
                    &usage,
                    &NewCondition::new("Ready", false, "Unavailable").because("spec.of is malformed"),
                )
                .await;
        };
        if usage.is_deleting() {
            return self.release(&usage, &parties).await;
        }
        self.protect(&usage, &parties).await
    }

    fn metrics(&self) -> &ControllerMetrics {
        &self.metrics.usages
    }
}

impl UsageController {
    async fn protect(&self, usage: &Stored, parties: &Parties) -> Result<Next, ReconcileError> {
        let Some(resolved) = self.resolve(usage, parties).await? else {
            let waiting =
                NewCondition::new("Ready", false, "Unavailable").because("a selector matches nothing yet");
            return self.report(usage, &waiting).await;
        };
        if resolved {
            // What was just written comes back as a change.
            return Ok(Next::OnChange);
        }
        let used = self.party(&parties.of).await?;
        let user = match &parties.by {
            Some(by) => self.party(by).await?,
            None => None,
        };
        self.tie(usage, parties, user.as_deref()).await?;
        let Some(used) = used else {
            return self
                .report(
                    usage,
                    &NewCondition::new("Ready", false, "Unavailable").because("spec.of does not exist yet"),
                )
                .await;
        };
        self.mark(&used).await?;
        if parties.by.is_some() && user.is_none() {
            return self
                .report(
                    usage,
                    &NewCondition::new("Ready", false, "Unavailable").because("spec.by does not exist yet"),
                )
                .await;
        }
        self.report(usage, &NewCondition::new("Ready", true, "Available")).await
    }

    /// Writes the names that selectors stand for: whether it did, or `None` if one matches nothing.
    async fn resolve(&self, usage: &Stored, parties: &Parties) -> Result<Option<bool>, ReconcileError> {
        let mut spec = Map::new();
        for (side, party) in [("of", Some(&parties.of)), ("by", parties.by.as_ref())] {
            let Some(party) = party.filter(|party| party.name.is_none()) else { continue };
            let Some(found) = self.select(usage, party).await? else { return Ok(None) };
            spec.insert(side.to_owned(), json!({"resourceRef": {"name": found.key.name}}));
        }
        if spec.is_empty() {
            return Ok(Some(false));
        }
        self.merge(usage, &json!({"spec": spec})).await?;
        Ok(Some(true))
    }

    /// The first object a selector matches.
    async fn select(&self, usage: &Stored, party: &Party) -> Result<Option<Arc<Stored>>, ReconcileError> {
        let selector = party.selector.clone().unwrap_or_default();
        let kind = match self.caches.kind(&party.api_version, &party.kind).await {
            Ok(kind) => kind,
            Err(CacheError::Client(error)) if error.is_not_served() => return Ok(None),
            Err(error) => return Err(ReconcileError::Other(error.to_string())),
        };
        let namespace = kind.resource().namespaced.then_some(party.namespace.as_str());
        let controller = usage.controller().map(|owner| owner.uid.to_owned());
        let found = kind.select(namespace.filter(|namespace| !namespace.is_empty()), &selector.match_labels);
        Ok(found.into_iter().find(|object| {
            selector.match_controller_ref != Some(true)
                || (controller.is_some()
                    && object.controller().map(|owner| owner.uid) == controller.as_deref())
        }))
    }

    /// One side of the usage, if it exists.
    async fn party(&self, party: &Party) -> Result<Option<Arc<Stored>>, ReconcileError> {
        let kind = match self.caches.kind(&party.api_version, &party.kind).await {
            Ok(kind) => kind,
            Err(CacheError::Client(error)) if error.is_not_served() => return Ok(None),
            Err(error) => return Err(ReconcileError::Other(error.to_string())),
        };
        let namespace = if kind.resource().namespaced { party.namespace.as_str() } else { "" };
        Ok(party.name.as_deref().and_then(|name| kind.get(namespace, name)))
    }

    /// Gives the usage its finalizer and details, and the object that uses as an owner: without it there
    /// is no use.
    async fn tie(
        &self,
        usage: &Stored,
        parties: &Parties,
        user: Option<&Stored>,
    ) -> Result<(), ReconcileError> {
        let document = usage.document();
        let details = parties.details();
        let owned = user.is_none_or(|user| usage.is_owned_by(&user.uid));
        if owned
            && usage.finalizers().contains(&FINALIZER)
            && usage.annotation(DETAILS_ANNOTATION) == Some(details.as_str())
        {
            return Ok(());
        }
        let mut finalizers: Vec<&str> = usage.finalizers();
        if !finalizers.contains(&FINALIZER) {
            finalizers.push(FINALIZER);
        }
        let owners: Option<Vec<Value>> = document.decode_at(&["metadata", "ownerReferences"]).ok().flatten();
        let mut owners = owners.unwrap_or_default();
        if let Some(user) = user.filter(|_| !owned) {
            owners.push(json!({
                "apiVersion": user.api_version(), "kind": user.key.kind, "name": user.key.name, "uid": user.uid,
            }));
        }
        let mut metadata = json!({
            "finalizers": finalizers,
            "annotations": {DETAILS_ANNOTATION: details},
            "resourceVersion": usage.version.to_string(),
        });
        if !owners.is_empty() {
            metadata["ownerReferences"] = Value::Array(owners);
        }
        self.merge(usage, &json!({"metadata": metadata})).await
    }

    /// Marks an object as in use, and notes the deletion that was refused because of it.
    async fn mark(&self, used: &Stored) -> Result<(), ReconcileError> {
        let mut metadata = Map::new();
        if used.label(IN_USE_LABEL) != Some("true") {
            metadata.insert("labels".to_owned(), json!({IN_USE_LABEL: "true"}));
        }
        if let Some(policy) = self.index.attempt_on(&used.key)
            && used.annotation(ATTEMPT_ANNOTATION) != Some(policy.as_str())
        {
            metadata.insert("annotations".to_owned(), json!({ATTEMPT_ANNOTATION: policy}));
        }
        let mut finalizers = used.finalizers();
        if self.index.protection() == Protection::Finalizer
            && !finalizers.contains(&HOLD_FINALIZER)
            && !used.is_deleting()
        {
            finalizers.push(HOLD_FINALIZER);
            metadata.insert("finalizers".to_owned(), json!(finalizers));
            metadata.insert("resourceVersion".to_owned(), json!(used.version.to_string()));
        }
        if !metadata.is_empty() {
            self.merge(used, &json!({"metadata": metadata})).await?;
        }
        self.index.attempt_noted(&used.key);
        Ok(())
    }

    /// Lets a deleted usage go once the object that used is gone, and what it protected with it.
    async fn release(&self, usage: &Stored, parties: &Parties) -> Result<Next, ReconcileError> {
        let finalizers = usage.finalizers();
        if !finalizers.contains(&FINALIZER) {
            return Ok(Next::OnChange);
        }
        // A composed usage may be deleted together with the object that uses: that goes first.
        if let Some(by) = parties.by.as_ref().filter(|_| usage.label(COMPOSITE_LABEL).is_some())
            && self.party(by).await?.is_some()
        {
            return Ok(Next::OnChange);
        }
        if let Some(used) = self.party(&parties.of).await?
            && self.index.count(&used.key) < 2
        {
            self.unmark(&used).await?;
        }
        remove_finalizer(self.caches.api(), usage, FINALIZER).await?;
        Ok(Next::OnChange)
    }

    async fn unmark(&self, used: &Stored) -> Result<(), ReconcileError> {
        if used.label(IN_USE_LABEL).is_some() {
            self.merge(used, &json!({"metadata": {"labels": {IN_USE_LABEL: null}}})).await?;
        }
        let current = self.caches.get(&used.key);
        let used = current.as_deref().unwrap_or(used);
        if used.finalizers().contains(&HOLD_FINALIZER) {
            remove_finalizer(self.caches.api(), used, HOLD_FINALIZER).await?;
        }
        Ok(())
    }

    /// Unmarks what no usage protects any more, and repeats a deletion that was refused.
    ///
    /// Usages of one object may go at the same time, so this is looked at again after each of them.
    async fn free(&self, used: &ObjectKey, replay: bool) -> Result<(), ReconcileError> {
        let Some(object) = self.caches.get(used) else { return Ok(()) };
        if self.index.count(used) > 0 {
            return Ok(());
        }
        self.unmark(&object).await?;
        if replay && !object.is_deleting() { self.replay(used, &object).await } else { Ok(()) }
    }

    async fn replay(&self, used: &ObjectKey, object: &Stored) -> Result<(), ReconcileError> {
        let attempted = self.index.attempt_on(used);
        let Some(policy) = attempted.as_deref().or(object.annotation(ATTEMPT_ANNOTATION)) else {
            return Ok(());
        };
        let propagation =
            if policy == "Foreground" { Propagation::Foreground } else { Propagation::Background };
        tracing::info!(object = %used, policy, "repeating a deletion that was refused");
        let api = self.caches.api();
        let resource = api.resource(object.api_version(), &used.kind).await.trying("cannot delete")?;
        api.delete(&resource, &Target::of(used), Some(&object.uid), propagation)
            .await
            .trying("cannot repeat the deletion")?;
        self.index.attempt_noted(used);
        Ok(())
    }

    async fn merge(&self, object: &Stored, patch: &Value) -> Result<(), ReconcileError> {
        let api = self.caches.api();
        let resource = api.resource(object.api_version(), &object.key.kind).await.trying("cannot update")?;
        let target = Target::of(&object.key);
        match api.write(&resource, &target, Write::Merge, patch).await {
            Ok(written) => {
                self.caches.put(written);
                Ok(())
            }
            Err(error) if ClientError::is_not_found(&error) => Ok(()),
            Err(source) => Err(ReconcileError::Request { action: "cannot mark what is in use", source }),
        }
    }

    async fn report(&self, usage: &Stored, condition: &NewCondition<'_>) -> Result<Next, ReconcileError> {
        let current = self.caches.get(&usage.key);
        let usage = current.as_deref().unwrap_or(usage);
        let value = usage.value();
        let mut conditions = Conditions::of(&value, Timestamp::now());
        conditions.set(condition);
        let conditions = conditions.into_value();
        if value["status"]["conditions"] == conditions {
            return Ok(Next::OnChange);
        }
        let api = self.caches.api();
        let resource = api.resource(usage.api_version(), &usage.key.kind).await.trying("cannot update")?;
        let body = json!({"status": {"conditions": conditions}});
        let target = Target::of(&usage.key).status();
        match api.write(&resource, &target, Write::Merge, &body).await {
            Ok(written) => {
                self.caches.put(written);
            }
            Err(error) if error.is_not_found() => {}
            Err(source) => return Err(ReconcileError::Request { action: "cannot write the status", source }),
        }
        Ok(Next::OnChange)
    }
}
