//! Replicas that come, go, move or change, and deployments left short.

use std::collections::BTreeMap;

use modelplane_core::schedule::{ReplicaOutcome, Report};
use modelplane_core::simulate::{ObjectKey, StoredObject, World};
use serde::Serialize;

use super::{Worlds, objects};
use crate::commands::explain::Answer;
use crate::output;
use crate::scheduling;
use crate::view::{Replica, count, full_name, of_kind, or_dash};

/// What becomes of a replica.
#[derive(Debug, Serialize)]
pub(super) struct Change {
    action: Action,
    /// The deployment; empty for a replica nobody composes.
    deployment: String,
    /// Cluster and pools before; empty if it is new.
    #[serde(skip_serializing_if = "String::is_empty")]
    from: String,
    /// Cluster and pools after; empty if it goes.
    #[serde(skip_serializing_if = "String::is_empty")]
    to: String,
    /// Object name: the one after, or the one before if it goes.
    replica: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Move,
    New,
    Remove,
    Change,
}

/// A deployment with fewer replicas than it wants.
#[derive(Debug, Serialize)]
pub(super) struct Unplaced {
    deployment: String,
    pub(super) wanted: usize,
    pub(super) placed: usize,
    why: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    help: Vec<String>,
}

pub(super) fn changes(worlds: Worlds<'_>) -> (Vec<Change>, Vec<Unplaced>) {
    let before = by_deployment(worlds.before);
    let after = by_deployment(worlds.after);
    let mut keys: Vec<&Option<ObjectKey>> = before.keys().chain(after.keys()).collect();
    keys.sort();
    keys.dedup();
    let none = Vec::new();
    let mut changes = Vec::new();
    for key in keys {
        let (old, new) = (before.get(key).unwrap_or(&none), after.get(key).unwrap_or(&none));
        let deployment = key.as_ref().and_then(|key| worlds.after.get(key));
        changes.extend(of_deployment(worlds, key.as_ref(), deployment, old, new));
    }
    (changes, unplaced(worlds.after))
}

type Replicas<'w> = Vec<Replica<'w>>;

fn by_deployment(world: &World) -> BTreeMap<Option<ObjectKey>, Replicas<'_>> {
    let mut replicas: BTreeMap<Option<ObjectKey>, Replicas<'_>> = BTreeMap::new();
    for replica in Replica::all(world) {
        replicas.entry(replica.deployment()).or_default().push(replica);
    }
    replicas
}

fn of_deployment(
    worlds: Worlds<'_>,
    key: Option<&ObjectKey>,
    deployment: Option<&StoredObject>,
    old: &[Replica<'_>],
    new: &[Replica<'_>],
) -> Vec<Change> {
    let missing_in = |world: &World, replicas: &[Replica<'_>]| -> Vec<usize> {
        let gone = |replica: &Replica<'_>| world.get(&replica.object.key).is_none();
        replicas.iter().enumerate().filter(|(_, replica)| gone(replica)).map(|(index, _)| index).collect()
    };
    let (gone, come) = (missing_in(worlds.after, old), missing_in(worlds.before, new));
    // Only asked for when somebody goes: the scheduler knows why.
    let report = (!gone.is_empty()).then_some(deployment).flatten();
    let report =
        report.and_then(|deployment| scheduling::report(worlds.after, worlds.before, deployment).ok());
    let name = key.map(full_name).unwrap_or_default();
    let mut changes = Vec::new();
    for pair in 0..gone.len().max(come.len()) {
        let from = gone.get(pair).map(|index| old[*index]);
        let to = come.get(pair).map(|index| new[*index]);
        let action = match (from, to) {
            (Some(_), Some(_)) => Action::Move,
            (None, _) => Action::New,
            (_, None) => Action::Remove,
        };
        let Some(shown) = to.or(from) else { continue };
        changes.push(Change {
            action,
            deployment: name.clone(),
            from: from.map(Replica::location).unwrap_or_default(),
            to: to.map(Replica::location).unwrap_or_default(),
            replica: shown.object.key.name.clone(),
            why: from.map(|from| why_gone(report.as_ref(), deployment, from)).unwrap_or_default(),
        });
    }
    changes.extend(old.iter().filter_map(|replica| changed(worlds.after, &name, *replica)));
    changes
}

fn why_gone(report: Option<&Report>, deployment: Option<&StoredObject>, replica: Replica<'_>) -> String {
    if deployment.is_none() {
        return "its deployment is gone".to_owned();
    }
    let known =
        report.and_then(|report| report.replicas.iter().find(|known| known.name == replica.object.key.name));
    match known.map(|known| &known.outcome) {
        Some(ReplicaOutcome::Removed { why, .. }) => why.to_string(),
        _ => "it was placed anew while the change took effect".to_owned(),
    }
}

/// A replica that is edited in place.
fn changed(after: &World, deployment: &str, old: Replica<'_>) -> Option<Change> {
    let new = Replica { object: after.get(&old.object.key)? };
    let fields = objects::differing(&old.object.body["spec"], &new.object.body["spec"]);
    if fields.is_empty() {
        return None;
    }
    Some(Change {
        action: if old.location() == new.location() { Action::Change } else { Action::Move },
        deployment: deployment.to_owned(),
        from: old.location(),
        to: new.location(),
        replica: new.object.key.name.clone(),
        why: format!("edited in place: {}", crate::view::some_of(&fields, 2)),
    })
}

fn unplaced(world: &World) -> Vec<Unplaced> {
    let short = |deployment: &StoredObject| {
        let wanted = usize::try_from(deployment.body["spec"]["replicas"].as_i64().unwrap_or(1)).unwrap_or(0);
        let replicas = Replica::all(world);
        let placed =
            replicas.filter(|replica| replica.deployment().as_ref() == Some(&deployment.key)).count();
        (placed < wanted).then_some((wanted, placed))
    };
    let deployments = of_kind(world, "ModelDeployment");
    let unplaced = deployments.filter_map(|deployment| {
        let (wanted, placed) = short(deployment)?;
        let (why, help) = match scheduling::report(world, world, deployment) {
            Ok(report) => {
                let answer = Answer::new(world, deployment, &report);
                (answer.sentence, answer.help)
            }
            Err(error) => (error.to_string(), error.hint.into_iter().collect()),
        };
        Some(Unplaced { deployment: full_name(&deployment.key), wanted, placed, why, help })
    });
    unplaced.collect()
}

/// `2 replicas move`, `1 replica is new`.
pub(super) fn summarize(changes: &[Change]) -> Vec<String> {
    let words = [
        (Action::Move, "moves", "move"),
        (Action::New, "is new", "are new"),
        (Action::Remove, "goes", "go"),
        (Action::Change, "changes in place", "change in place"),
    ];
    let part = |(action, one, many): &(Action, &str, &str)| {
        let number = changes.iter().filter(|change| change.action == *action).count();
        let verb = if number == 1 { one } else { many };
        (number > 0).then(|| format!("{} {verb}", count(number, "replica")))
    };
    words.iter().filter_map(part).collect()
}

pub(super) fn describe(changes: &[Change]) -> Option<String> {
    let with_reasons = changes.iter().any(|change| !change.why.is_empty());
    let rows = changes.iter().map(|change| {
        let action = match change.action {
            Action::Move => "move",
            Action::New => "new",
            Action::Remove => "remove",
            Action::Change => "change",
        };
        let parts = [&change.deployment, &change.replica, &change.from, &change.to].map(|part| or_dash(part));
        let mut row = vec![action.to_owned()];
        row.extend(parts);
        if with_reasons {
            row.push(change.why.clone());
        }
        row
    });
    let headings = ["ACTION", "DEPLOYMENT", "REPLICA", "FROM", "TO", "WHY"];
    let shown = if with_reasons { &headings[..] } else { &headings[..5] };
    let table = output::table(shown, rows);
    (!changes.is_empty()).then(|| format!("REPLICAS\n{table}"))
}

pub(super) fn describe_unplaced(unplaced: &[Unplaced]) -> Option<String> {
    let mut lines = vec!["NOT PLACED".to_owned()];
    for deployment in unplaced {
        lines.push(format!("{}: {}", deployment.deployment, deployment.why));
        lines.extend(deployment.help.iter().map(|help| format!("  * {help}")));
    }
    (!unplaced.is_empty()).then(|| lines.join("\n"))
}
