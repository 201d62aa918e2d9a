//! What the report says of replicas, clusters and pools.

use modelplane_api::model_deployment::ModelDeployment;
use modelplane_core::contract::Resource;
use modelplane_core::schedule::{
    self, ClusterLabels, ClusterRejection, DeviceRejection, Inputs, NewReplicas, PoolRejection, Problem,
    RemovalReason, ReplicaOutcome, Report, Verdict,
};
use serde_json::json;

use crate::scenario::*;

fn report_with(scenario: &Scenario, labels: Option<&ClusterLabels>) -> Report {
    let request = scenario.request();
    let observed = request.observed();
    let deployment: ModelDeployment = observed.decode_composite().expect("readable");
    let empty: Vec<Resource<'_>> = Vec::new();
    let problem = Problem::new(Inputs {
        deployment: &deployment,
        clusters: observed.required.get("clusters").unwrap_or(&empty),
        replicas: observed.required.get("all-replicas").unwrap_or(&empty),
        composed: &[],
        labels,
        placement: NewReplicas::Allowed,
    })
    .expect("selectors compile");
    let plan = schedule::solve(&problem);
    assert_eq!(modelplane_core::check::validate(&problem, &plan), []);
    schedule::explain(&problem, &plan)
}

fn report(scenario: &Scenario) -> Report {
    report_with(scenario, None)
}

#[test]
fn every_cluster_has_a_verdict_and_a_reason() {
    let mut down = simple("down", 4);
    down["status"]["conditions"] = json!([]);
    let mut closed = simple("no-gateway", 4);
    closed["status"]["gateway"] = json!({});
    let clusters = vec![
        simple("chosen", 1),
        simple("full", 0),
        down,
        closed,
        tainted(simple("tainted", 4), "NoSchedule"),
        simple("zz-spare", 4),
    ];
    let report = report(&Scenario::new(1, clusters));
    let verdict = |name| report.cluster(name).map(|cluster| (cluster.verdict(), cluster.rejections.clone()));
    let no_pool = || ClusterRejection::NoPool { engine: "e".into() };
    assert_eq!(verdict("chosen"), Some((Verdict::Chosen, vec![no_pool()])));
    assert_eq!(verdict("full"), Some((Verdict::Rejected, vec![no_pool()])));
    assert_eq!(verdict("down"), Some((Verdict::Rejected, vec![ClusterRejection::NotReady])));
    assert_eq!(verdict("no-gateway"), Some((Verdict::Rejected, vec![ClusterRejection::NoGateway])));
    let taint = ClusterRejection::Taint { taint: "m:NoSchedule".into() };
    assert_eq!(verdict("tainted"), Some((Verdict::Rejected, vec![taint])));
    assert_eq!(verdict("zz-spare"), Some((Verdict::Available, Vec::new())));
}

#[test]
fn a_full_pool_says_how_many_nodes_are_free_of_how_many() {
    let scenario = Scenario::new(1, vec![simple("a", 2)])
        .engines(vec![copies(
            engine("e", vec![member("Standalone", vec![request("gpu", 8, &at_least(80))])]),
            2,
        )])
        .foreign("a", claiming("e", "p"));
    let report = report(&scenario);
    let pool = &report.cluster("a").expect("a").pools[0];
    assert_eq!((pool.nodes, pool.free), (2, 1));
    let too_few = PoolRejection::TooFewNodes { needed: 2, free: 1, total: 2 };
    assert_eq!(pool.engines[0].rejections, [too_few]);
    assert!(report.to_string().contains("needs 2 nodes, 1 of 2 are free"), "{report}");
}

#[test]
fn a_failing_selector_is_shown_with_the_values_it_read() {
    let scenario = Scenario::new(1, vec![cluster("a", vec![pool("p", 2, vec![gpu(24, 8)])])]);
    let report = report(&scenario);
    let rejection = &report.cluster("a").expect("a").pools[0].engines[0].rejections[0];
    let PoolRejection::NoMatch { request, devices, .. } = rejection else { panic!("{rejection:?}") };
    assert_eq!(request, "gpu");
    let DeviceRejection::Selector { selector, inputs, error } = &devices[0].why else {
        panic!("{devices:?}")
    };
    assert_eq!((selector.as_str(), error), (at_least(80).as_str(), &None));
    assert!(
        inputs.iter().any(|input| input.path.contains("memory") && input.value.contains("24Gi")),
        "{inputs:?}"
    );
}

#[test]
fn devices_that_are_missing_or_too_few_are_told_apart() {
    let pools = vec![pool("none", 2, Vec::new()), pool("few", 2, vec![gpu(141, 4)])];
    let report = report(&Scenario::new(1, vec![cluster("a", pools)]));
    let pools = &report.cluster("a").expect("a").pools;
    assert!(matches!(pools[0].engines[0].rejections[0], PoolRejection::NoDevices { .. }));
    let PoolRejection::NoMatch { devices, .. } = &pools[1].engines[0].rejections[0] else { panic!() };
    assert_eq!(devices[0].why, DeviceRejection::TooFew { needed: 8, left: 4, total: 4 });
}

#[test]
fn a_stranded_member_and_an_unclaimable_one_are_told_apart() {
    let nic_only = || vec![engine("e", vec![member("Standalone", vec![request("nic", 1, NIC)])])];
    let both = vec![pool("p1", 3, vec![nic("Synthetic")]), pool("p2", 0, vec![nic("DRA")])];
    let stranded = report(&Scenario::new(1, vec![cluster("a", both)]).engines(nic_only()));
    let rejections = &stranded.cluster("a").expect("a").pools[0].engines[0].rejections;
    assert_eq!(*rejections, [PoolRejection::Stranded { member: "Standalone" }]);
    let one = vec![pool("p1", 3, vec![nic("Synthetic")])];
    let unclaimable = report(&Scenario::new(1, vec![cluster("a", one)]).engines(nic_only()));
    assert_eq!(
        unclaimable.cluster("a").expect("a").pools[0].engines[0].rejections,
        [PoolRejection::NothingToClaim]
    );
}

#[test]
fn labels_of_the_deployment_and_of_the_cache_are_told_apart() {
    let mut east = simple("east", 2);
    east["metadata"]["labels"] = json!({"region": "east", "cached": "yes"});
    let mut west = simple("west", 2);
    west["metadata"]["labels"] = json!({"region": "west"});
    let labels = ClusterLabels {
        deployment: [("region".to_owned(), "east".to_owned())].into(),
        cache: [("cached".to_owned(), "yes".to_owned())].into(),
    };
    let report = report_with(&Scenario::new(1, vec![east, west]), Some(&labels));
    assert_eq!(report.cluster("east").map(|cluster| cluster.verdict()), Some(Verdict::Chosen));
    assert_eq!(
        report.cluster("west").map(|cluster| cluster.rejections.clone()),
        Some(vec![
            ClusterRejection::CacheFootprint { key: "cached".into(), wanted: "yes".into(), found: None },
            ClusterRejection::Label {
                key: "region".into(),
                wanted: "east".into(),
                found: Some("west".into())
            },
        ])
    );
}

#[test]
fn every_way_a_replica_goes_has_its_own_reason() {
    let one = || Scenario::new(1, vec![simple("a", 9)]);
    let two_engines = vec![claiming("e", "p").remove(0), claiming("f", "p").remove(0)];
    let gang = vec![engine("e", vec![pinned("Leader", "p", true), pinned_worker(1, "p", true)])];
    let mut unpinned = claiming("e", "p");
    unpinned[0]["members"][0]["nodePoolName"].take();
    let weak = Scenario::new(1, vec![cluster("a", vec![pool("p", 9, vec![gpu(24, 8)])])]);
    let synthetic = cluster("a", vec![pool("p", 9, vec![nic("Synthetic")])]);
    let synthetic = Scenario::new(1, vec![synthetic])
        .engines(vec![engine("e", vec![member("Standalone", vec![request("nic", 1, NIC)])])]);
    let engine_name = || "e".to_owned();
    let cases = [
        ("R1", one().running("gone", 0, claiming("e", "p")), RemovalReason::NotACandidate),
        (
            "R3",
            Scenario::new(1, vec![tainted(simple("a", 9), "NoExecute")]).running("a", 0, claiming("e", "p")),
            RemovalReason::Evicted { taint: "m:NoExecute".into() },
        ),
        ("R4", one().running("a", 0, two_engines), RemovalReason::EngineCount { replica: 2, deployment: 1 }),
        (
            "R5",
            one().running("a", 0, claiming("old", "p")),
            RemovalReason::UnknownEngine { engine: "old".into() },
        ),
        ("R6", one().running("a", 0, gang), RemovalReason::MemberCount { engine: engine_name() }),
        (
            "R7",
            one().running("a", 0, vec![engine("e", vec![pinned("Leader", "p", true)])]),
            RemovalReason::RoleChanged { engine: engine_name() },
        ),
        ("R8", one().running("a", 0, unpinned), RemovalReason::NoPool { engine: engine_name() }),
        ("R9", one().running("a", 0, claiming("e", "q")), RemovalReason::PoolGone { pool: "q".into() }),
        (
            "R10",
            weak.running("a", 0, claiming("e", "p")),
            RemovalReason::NoMatch { engine: engine_name(), pool: "p".into() },
        ),
        (
            "R11",
            synthetic.running("a", 0, claiming("e", "p")),
            RemovalReason::NothingToClaim { engine: engine_name() },
        ),
    ];
    for (row, scenario, reason) in cases {
        let report = report(&scenario);
        let removed = report.replicas.iter().find_map(|replica| match &replica.outcome {
            ReplicaOutcome::Removed { why, .. } => Some(why.clone()),
            _ => None,
        });
        assert_eq!(removed, Some(reason), "{row}\n{report}");
    }
    let surplus = report(&one().running("a", 0, claiming("e", "p")).running("a", 1, claiming("e", "p")));
    let goes = &surplus.replicas[1];
    let why = ReplicaOutcome::Removed { why: RemovalReason::Surplus, in_place: false };
    assert_eq!((goes.name.as_str(), &goes.outcome), ("d-a-1", &why));
}

#[test]
fn a_duplicate_is_told_and_its_place_is_kept_by_the_other() {
    let mut scenario = Scenario::new(1, vec![simple("a", 9)]);
    for name in ["zz", "aa"] {
        scenario.add_running(name, "a", 0, claiming("e", "p"));
    }
    let report = report(&scenario);
    let outcomes: Vec<_> =
        report.replicas.iter().map(|replica| (replica.name.as_str(), replica.outcome.clone())).collect();
    let why = ReplicaOutcome::Removed { why: RemovalReason::Duplicate, in_place: true };
    assert_eq!(outcomes, [("aa", ReplicaOutcome::Retained), ("zz", why)]);
}

#[test]
fn the_capacity_of_the_fleet_adds_up() {
    let clusters = vec![simple("b", 2), tainted(simple("a", 4), "NoSchedule")];
    let scenario =
        Scenario::new(1, clusters).running("a", 0, claiming("e", "p")).foreign("a", claiming("e", "p"));
    let request = scenario.request();
    let observed = request.observed();
    let capacity = schedule::capacity(&observed.required["clusters"], &observed.required["all-replicas"]);
    let rows: Vec<_> = capacity
        .clusters
        .iter()
        .map(|c| (c.name.as_str(), c.pools[0].nodes, c.pools[0].used, c.pools[0].free, c.taints.clone()))
        .collect();
    assert_eq!(rows, [("a", 4, 2, 2, vec!["m:NoSchedule".to_owned()]), ("b", 2, 0, 2, Vec::new())]);
    assert!(capacity.notes.is_empty());
}

#[test]
fn a_report_is_serialisable() {
    let report =
        report(&Scenario::new(2, vec![simple("a", 1), cluster("b", vec![pool("p", 2, vec![gpu(24, 8)])])]));
    let json = serde_json::to_value(&report).expect("plain data");
    assert_eq!(json["clusters"][1]["pools"][0]["engines"][0]["rejections"][0]["reason"], "NoMatch");
}
