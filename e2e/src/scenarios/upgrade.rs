//! A fleet that upstream composed is taken over.
//!
//! Upstream itself does not run here. What it has composed is in `manifests/legacy-composed.yaml`, keys and
//! names written out rather than computed; the composites are paused while it is made. Then our function
//! takes over.

use std::time::Duration;

use modelplane_api::names::{
    COMPOSITE_LABEL, COMPOSITION_RESOURCE_NAME_ANNOTATION, PAUSED_ANNOTATION, WORKLOAD_NAMESPACE,
};
use serde_json::{Value, json};

use super::view::{MODEL_DEPLOYMENT, MODEL_REPLICA, objects_of, remove, serves};
use crate::environment::{Environment, TEAM};
use crate::failure::{Failure, Outcome, ensure, not_yet, throughout, until};
use crate::kube_api::{Kube, Mode, Target, conditions, is_true, name, uid};
use crate::manifests;
use crate::resources::{DEPLOYMENT, HTTP_ROUTE, OBJECT, RESOURCE_CLAIM_TEMPLATE, Resource};

const NAME: &str = "legacy";
const CLUSTER: &str = "west";
const REPLICA: &str = "legacy-06317";

/// What upstream's Objects keep on the cluster.
const THERE: [(Resource, &str); 3] = [
    (DEPLOYMENT, "legacy-06317-engine-01619"),
    (RESOURCE_CLAIM_TEMPLATE, "legacy-06317-engine-standalone-devices-e20df"),
    (HTTP_ROUTE, REPLICA),
];

/// Replica, endpoint and Objects keep their unique ids, and so does everything on the cluster.
pub(super) async fn recreates_nothing(environment: &mut Environment) -> Outcome {
    let kube = environment.control();
    let composed = compose_like_upstream(kube).await?;
    let there = there(environment).await?;

    let resume = json!({"metadata": {"annotations": {PAUSED_ANNOTATION: null}}});
    kube.merge(Target::new(MODEL_REPLICA, TEAM, REPLICA), "", &resume).await?;
    // Only a replica that is ready has an endpoint, so the deployment goes on once it is, as it was upstream.
    until("the replica is ready", async || {
        let found = kube.get(MODEL_REPLICA, TEAM, REPLICA).await.map_err(not_yet)?;
        if is_true(&found, "Ready") { Ok(()) } else { Err(conditions(&found)) }
    })
    .await?;
    kube.merge(Target::new(MODEL_DEPLOYMENT, TEAM, NAME), "", &resume).await?;
    let replicas = serves(environment, NAME, 1).await?;
    throughout("what was composed is what it was", Duration::from_secs(5), async || {
        for before in &composed {
            let resource = Resource::of_manifest(before).map_err(not_yet)?;
            let now = kube.get(resource, TEAM, name(before)).await.map_err(not_yet)?;
            if uid(&now) != uid(before) {
                return Err(format!("{} {} was re-created", resource.kind, name(before)));
            }
        }
        Ok(())
    })
    .await?;
    let objects = objects_of(environment, &replicas[0]).await?;
    for key in ["model-serving-engine", "resource-claim-engine-standalone", "model-route"] {
        let with_key =
            |object: &&Value| object["metadata"]["annotations"][COMPOSITION_RESOURCE_NAME_ANNOTATION] == key;
        let count = objects.iter().filter(with_key).count();
        ensure(count == 1, || format!("there are {count} Objects with the key {key}"))?;
    }
    for object in &objects {
        until(&format!("Object {} is in sync", name(object)), async || {
            let found = kube.get(OBJECT, TEAM, name(object)).await.map_err(not_yet)?;
            if is_true(&found, "Synced") { Ok(()) } else { Err(conditions(&found)) }
        })
        .await?;
    }
    let now = self::there(environment).await?;
    ensure(now == there, || format!("on the cluster, {there:?} became {now:?}"))?;
    remove(environment, NAME).await
}

/// Unique ids of what upstream's Objects keep on the cluster, once all of it is there.
async fn there(environment: &Environment) -> Outcome<Vec<String>> {
    let kube = environment.workload(CLUSTER)?;
    let mut found = Vec::new();
    for (resource, name) in THERE {
        let object = until(&format!("{} {name} is on the cluster", resource.kind), async || {
            kube.get(resource, WORKLOAD_NAMESPACE, name).await.map_err(not_yet)
        })
        .await?;
        found.push(uid(&object).to_owned());
    }
    Ok(found)
}

/// Makes the deployment and what upstream composed for it, owned and referenced as Crossplane does; returns
/// what was composed.
async fn compose_like_upstream(kube: &Kube) -> Outcome<Vec<Value>> {
    let [deployment] = <[Value; 1]>::try_from(manifests::own("legacy.yaml")?)
        .map_err(|_| Failure::Wrong("legacy.yaml holds one deployment".to_owned()))?;
    let deployment = kube.create(&deployment, Mode::Real).await?;
    let mut composed = Vec::new();
    let mut replica = Value::Null;
    for mut manifest in manifests::own("legacy-composed.yaml")? {
        let owner = if manifest["kind"] == OBJECT.kind { &replica } else { &deployment };
        manifest["metadata"]["labels"][COMPOSITE_LABEL] = json!(NAME);
        manifest["metadata"]["ownerReferences"] = json!([{
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": name(owner),
            "uid": uid(owner),
            "controller": true,
            "blockOwnerDeletion": true,
        }]);
        let created = kube.create(&manifest, Mode::Real).await?;
        if created["kind"] == MODEL_REPLICA.kind {
            replica = created.clone();
        }
        composed.push(created);
    }
    let (objects, children): (Vec<&Value>, Vec<&Value>) =
        composed.iter().partition(|object| object["kind"] == OBJECT.kind);
    refer(kube, Target::of(MODEL_DEPLOYMENT, &deployment), &children).await?;
    refer(kube, Target::of(MODEL_REPLICA, &replica), &objects).await?;
    // Guards the test itself: three Objects, a replica and an endpoint.
    ensure(composed.len() == 5, || format!("legacy-composed.yaml holds {} objects", composed.len()))?;
    Ok(composed)
}

/// Lists composed resources where Crossplane looks them up.
async fn refer(kube: &Kube, composite: Target<'_>, composed: &[&Value]) -> Outcome {
    let reference = |object: &&Value| json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "name": name(object)});
    let references: Vec<Value> = composed.iter().map(reference).collect();
    let patch = json!({"spec": {"crossplane": {"resourceRefs": references}}});
    kube.merge(composite, "", &patch).await.map(drop)
}
