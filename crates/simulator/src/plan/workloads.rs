//! Pods of Deployments and LeaderWorkerSets, Jobs that complete, and the statuses of all of them.
//!
//! Pods are replaced all at once when their template changes, as with the strategy `Recreate`.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use modelplane_api::names::SIMULATED_LABEL;
use serde_json::{Value, json};

use super::{Action, Ages, Place, Plan, conditions, controlled_by, is_controlled_by, with_labels};
use crate::settings::Settings;
use crate::world::{World, is_true, list, name, namespace, number, text, uid};

/// Label of the group of a pod of a LeaderWorkerSet, by index.
const GANG_NAME: &str = "leaderworkerset.sigs.k8s.io/name";
const GANG_GROUP: &str = "leaderworkerset.sigs.k8s.io/group-index";
const GANG_WORKER: &str = "leaderworkerset.sigs.k8s.io/worker-index";

/// Asks for the pods that workloads lack, and for those that are too many to go.
pub(super) fn pods(world: &World, plan: &mut Plan) {
    let lost = lost_nodes(world);
    for (workload, wanted) in workloads(world) {
        let wanted_names: HashSet<&str> = wanted.iter().map(name).collect();
        let mut taken = HashSet::new();
        for pod in world.pods.iter().filter(|pod| is_controlled_by(pod, workload)) {
            if !wanted_names.contains(name(pod)) || lost.contains(text(pod, "/spec/nodeName")) {
                plan.actions.push(Action::Delete(Place::of(pod)));
            }
            // One that goes leaves its name to its successor once it is gone.
            taken.insert(name(pod).to_owned());
        }
        plan.actions.extend(wanted.into_iter().filter(|pod| !taken.contains(name(pod))).map(Action::Create));
    }
}

/// Statuses of pods and of what owns them.
pub(super) fn statuses(world: &World, settings: &Settings, ages: &Ages, plan: &mut Plan) {
    for pod in &world.pods {
        pod_status(pod, settings, ages, plan);
    }
    for (workload, wanted) in workloads(world) {
        let ready = wanted
            .iter()
            .filter(|pod| {
                world.pods.iter().any(|known| name(known) == name(pod) && is_ready_pod(known, workload))
            })
            .count();
        let all_ready = ready == wanted.len();
        let generation = workload["metadata"]["generation"].clone();
        let status = if workload["kind"] == "LeaderWorkerSet" {
            let (groups, size) = gang_shape(workload);
            let ready_groups = ready as u32 / size.max(1);
            json!({
                "replicas": groups, "readyReplicas": ready_groups, "updatedReplicas": groups,
                "conditions": conditions(&[("Available", all_ready, "AllGroupsReady")]),
            })
        } else {
            let count = wanted.len();
            json!({
                "observedGeneration": generation, "replicas": count, "updatedReplicas": count, "readyReplicas": ready,
                "availableReplicas": ready, "unavailableReplicas": count - ready,
                "conditions": conditions(&[
                    ("Available", all_ready, if all_ready { "MinimumReplicasAvailable" } else { "MinimumReplicasUnavailable" }),
                    ("Progressing", true, "NewReplicaSetAvailable"),
                ]),
            })
        };
        plan.status(workload, status);
    }
    for job in &world.jobs {
        let completions = number(job, "/spec/completions").unwrap_or(1);
        plan.status(
            job,
            json!({"succeeded": completions, "conditions": conditions(&[("Complete", true, "Simulated")])}),
        );
    }
    for claim in &world.volume_claims {
        plan.status(
            claim,
            json!({
                "phase": "Bound", "accessModes": claim["spec"]["accessModes"],
                "capacity": claim["spec"]["resources"]["requests"],
            }),
        );
    }
    for set in &world.daemon_sets {
        let nodes = world.nodes.len();
        plan.status(
            set,
            json!({
                "observedGeneration": set["metadata"]["generation"], "desiredNumberScheduled": nodes,
                "currentNumberScheduled": nodes, "updatedNumberScheduled": nodes, "numberReady": nodes,
                "numberAvailable": nodes, "numberMisscheduled": 0,
            }),
        );
    }
}

fn lost_nodes(world: &World) -> HashSet<&str> {
    world.nodes.iter().filter(|node| has_stopped_reporting(node)).map(name).collect()
}

/// Whether a node has reported once and does so no longer.
fn has_stopped_reporting(node: &Value) -> bool {
    list(node, "/status/conditions")
        .iter()
        .any(|c| text(c, "/type") == "Ready" && text(c, "/status") != "True")
}

fn is_ready_pod(pod: &Value, workload: &Value) -> bool {
    is_controlled_by(pod, workload) && is_true(pod, "Ready")
}

/// Every workload with the pods it should have.
fn workloads(world: &World) -> Vec<(&Value, Vec<Value>)> {
    let deployments = world.deployments.iter().map(|deployment| (deployment, deployment_pods(deployment)));
    let gangs = world.gangs.iter().map(|gang| (gang, gang_pods(gang)));
    deployments
        .chain(gangs)
        .filter(|(workload, _)| workload["metadata"]["deletionTimestamp"].is_null())
        .collect()
}

fn deployment_pods(deployment: &Value) -> Vec<Value> {
    let template = &deployment["spec"]["template"];
    let hash = template_hash(template);
    let replicas = number(deployment, "/spec/replicas").unwrap_or(1);
    (0..replicas)
        .map(|index| {
            let pod_name = format!("{}-{hash}-{index}", name(deployment));
            pod(deployment, &pod_name, template, &[("pod-template-hash", &hash)])
        })
        .collect()
}

/// Groups and pods of a group.
fn gang_shape(gang: &Value) -> (u32, u32) {
    let groups = number(gang, "/spec/replicas").unwrap_or(1);
    (groups, number(gang, "/spec/leaderWorkerTemplate/size").unwrap_or(1))
}

fn gang_pods(gang: &Value) -> Vec<Value> {
    let (groups, size) = gang_shape(gang);
    let templates = &gang["spec"]["leaderWorkerTemplate"];
    let worker = &templates["workerTemplate"];
    let leader = if templates["leaderTemplate"].is_object() { &templates["leaderTemplate"] } else { worker };
    let member = |group: u32, index: u32| {
        let template = if index == 0 { leader } else { worker };
        let pod_name = match index {
            0 => format!("{}-{group}", name(gang)),
            _ => format!("{}-{group}-{index}", name(gang)),
        };
        let hash = template_hash(template);
        let (group, index) = (group.to_string(), index.to_string());
        let labels = [
            (GANG_NAME, name(gang)),
            (GANG_GROUP, group.as_str()),
            (GANG_WORKER, index.as_str()),
            ("leaderworkerset.sigs.k8s.io/template-revision-hash", hash.as_str()),
        ];
        pod(gang, &pod_name, template, &labels)
    };
    (0..groups)
        .flat_map(|group| (0..size).map(move |index| (group, index)))
        .map(|(g, i)| member(g, i))
        .collect()
}

/// A pod of a workload.
fn pod(owner: &Value, pod_name: &str, template: &Value, labels: &[(&str, &str)]) -> Value {
    let mut labels = with_labels(template, labels);
    labels[SIMULATED_LABEL] = json!("true");
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": pod_name, "namespace": namespace(owner), "labels": labels,
            "annotations": template["metadata"]["annotations"].as_object().cloned().unwrap_or_default(),
            "ownerReferences": controlled_by(owner),
        },
        "spec": template["spec"],
    })
}

/// Ten hexadecimal digits that change with the template.
fn template_hash(template: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    template.to_string().hash(&mut hasher);
    format!("{:010x}", hasher.finish() & 0xff_ffff_ffff)
}

fn pod_status(pod: &Value, settings: &Settings, ages: &Ages, plan: &mut Plan) {
    let Some(age) = ages.get(uid(pod)).filter(|_| !text(pod, "/spec/nodeName").is_empty()) else { return };
    let ready = *age >= settings.ready_after;
    if !ready {
        plan.wake(settings.ready_after - *age);
    }
    let containers: Vec<Value> = list(pod, "/spec/containers")
        .iter()
        .map(|container| {
            let state = if ready {
                json!({"running": {"startedAt": pod["metadata"]["creationTimestamp"]}})
            } else {
                json!({"waiting": {"reason": "ContainerCreating"}})
            };
            json!({
                "name": container["name"], "image": container["image"], "imageID": "", "ready": ready,
                "restartCount": 0, "started": ready, "state": state,
            })
        })
        .collect();
    let reason = if ready { "Simulated" } else { "ContainersNotReady" };
    let mut status = json!({
        "phase": if ready { "Running" } else { "Pending" },
        "conditions": conditions(&[
            ("PodScheduled", true, "Simulated"), ("Initialized", true, "Simulated"),
            ("ContainersReady", ready, reason), ("Ready", ready, reason),
        ]),
        "containerStatuses": containers,
        "startTime": pod["metadata"]["creationTimestamp"],
    });
    if ready {
        for key in ["podIP", "hostIP"] {
            status[key] = json!("127.0.0.1");
        }
    }
    plan.status(pod, status);
}
