//! Properties of the scheduler on generated fleets: it validates, is idempotent, does not depend on the order
//! of its inputs, never overcommits and never moves what it retains.

use std::collections::BTreeMap;

use modelplane_api::model_deployment::ModelDeployment;
use modelplane_core::check;
use modelplane_core::schedule::{self, Inputs, NewReplicas, Problem};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use serde_json::{Value, json};

use crate::scenario::*;

/// The devices a generated pool may have.
fn devices() -> impl Strategy<Value = Vec<Value>> {
    prop_oneof![
        Just(vec![gpu(141, 8)]),
        Just(vec![gpu(80, 8), nic("DRA")]),
        Just(vec![gpu(24, 4)]),
        Just(vec![nic("Synthetic"), gpu(141, 4), gpu(80, 4)]),
        Just(vec![nic("Synthetic")]),
        Just(Vec::new()),
    ]
}

fn any_cluster(number: usize) -> impl Strategy<Value = Value> {
    let pools = prop::collection::vec((0i64..5, devices()), 0..4);
    (pools, 0..12u8).prop_map(move |(pools, flaw)| {
        let pools = pools.into_iter().enumerate();
        let pools =
            pools.map(|(position, (nodes, devices))| pool(&format!("p{position}"), nodes, devices)).collect();
        let mut cluster = cluster(&format!("c{number}"), pools);
        match flaw {
            0 => cluster["status"]["conditions"] = json!([]),
            1 => cluster["status"]["gateway"] = json!({}),
            2 => cluster = tainted(cluster, "NoSchedule"),
            3 => cluster = tainted(cluster, "NoExecute"),
            _ => {}
        }
        cluster
    })
}

fn any_engine(name: &'static str) -> impl Strategy<Value = Value> {
    let requests = || {
        prop_oneof![
            Just(vec![request("gpu", 4, &at_least(80))]),
            Just(vec![request("gpu", 8, &at_least(40)), request("nic", 1, NIC)]),
            Just(vec![request("nic", 1, NIC)]),
            Just(vec![request("r1", 4, &at_least(40)), request("r2", 4, &at_least(100))]),
        ]
    };
    let standalone = requests().prop_map(|requests| vec![member("Standalone", requests)]);
    let gang =
        (requests(), any::<bool>(), 1i64..3, requests()).prop_map(|(leader, claims, nodes, workers)| {
            vec![member("Leader", if claims { leader } else { Vec::new() }), worker(nodes, workers)]
        });
    (prop_oneof![2 => standalone, 1 => gang], 1i64..3)
        .prop_map(move |(members, count)| copies(engine(name, members), count))
}

/// A replica of somebody, on a cluster and pool that may not exist.
fn any_replica() -> impl Strategy<Value = (bool, u8, u32, u8, i64)> {
    (any::<bool>(), 0..6u8, 0..3u32, 0..4u8, 1i64..3)
}

fn any_scenario() -> impl Strategy<Value = Scenario> {
    let clusters: Vec<_> = (0..5).map(any_cluster).collect();
    let engines = prop_oneof![
        any_engine("e").prop_map(|e| vec![e]),
        (any_engine("e"), any_engine("f")).prop_map(|(e, f)| vec![e, f]),
    ];
    let replicas = prop::collection::vec(any_replica(), 0..8);
    let toleration = prop::option::weighted(0.2, Just(json!({"operator": "Exists"})));
    (clusters, 0..5usize, engines, replicas, 1i64..6, toleration).prop_map(
        |(mut clusters, count, engines, replicas, wanted, toleration)| {
            clusters.truncate(count + 1);
            let mut scenario = Scenario::new(wanted, clusters).engines(engines.clone());
            for (number, (ours, cluster, index, pool, copies)) in replicas.into_iter().enumerate() {
                let stamped = stamp(&engines, &format!("p{pool}"), (!ours).then_some(copies));
                let deployment = if ours { "d" } else { "other" };
                let (name, cluster) = (format!("r{number}"), format!("c{cluster}"));
                let replica = replica(("ml", &name), Some(deployment), (&cluster, index), stamped);
                scenario.replicas.get_or_insert_default().push(replica);
            }
            toleration.into_iter().fold(scenario, Scenario::tolerating)
        },
    )
}

/// The engines of a deployment as a replica carries them, all on one pool; with other copies, if given. Ours
/// keep the deployment's: a retained replica may grow past its pool, which is not what is tested here.
fn stamp(engines: &[Value], pool: &str, count: Option<i64>) -> Vec<Value> {
    let member = |member: &Value| {
        let mut stamped =
            pinned(member["role"].as_str().expect("a role"), pool, member["nodeSelector"].is_object());
        if member["worker"].is_object() {
            stamped["worker"] = member["worker"].clone();
        }
        stamped
    };
    let stamped = engines.iter().map(|engine_| {
        let members = engine_["members"].as_array().expect("members").iter().map(member).collect();
        let count = count.or(engine_["copies"].as_i64()).unwrap_or(1);
        copies(engine(engine_["name"].as_str().expect("a name"), members), count)
    });
    stamped.collect()
}

/// Solves, validates, and gives the plan as JSON.
fn plan(scenario: &Scenario) -> Value {
    let request = scenario.request();
    let observed = request.observed();
    let deployment: ModelDeployment = observed.decode_composite().expect("readable");
    let problem = Problem::new(Inputs {
        deployment: &deployment,
        clusters: &observed.required["clusters"],
        replicas: &observed.required["all-replicas"],
        composed: &[],
        labels: None,
        placement: NewReplicas::Allowed,
    })
    .expect("selectors compile");
    let plan = schedule::solve(&problem);
    assert_eq!(check::validate(&problem, &plan), []);
    let report = schedule::explain(&problem, &plan);
    assert!(report.clusters.len() == observed.required["clusters"].len());
    if !report.is_complete() {
        assert!(
            report.clusters.iter().all(|cluster| !cluster.rejections.is_empty()),
            "a replica is missing although a cluster would take it\n{report}"
        );
    }
    serde_json::to_value(&plan).expect("plain data")
}

/// The scenario once the plan has been carried out: our replicas are what was composed.
fn applied(scenario: &Scenario) -> Scenario {
    let mut after = scenario.clone();
    let replicas = after.replicas.get_or_insert_default();
    let ours = |replica: &Value| replica["metadata"]["labels"]["modelplane.ai/deployment"] == "d";
    replicas.retain(|replica| !ours(replica));
    replicas.extend(scenario.run().bodies);
    after
}

/// Where the replicas of a plan are: cluster, index, engines.
fn places(plan: &Value) -> Vec<(Value, Value, Value)> {
    let placements = plan["placements"].as_array().expect("placements");
    placements.iter().map(|p| (p["cluster"].clone(), p["index"].clone(), p["engines"].clone())).collect()
}

fn config() -> Config {
    Config { cases: 96, rng_seed: RngSeed::Fixed(42), failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_plan_validates_and_is_stable_once_carried_out(scenario in any_scenario()) {
        let mut current = scenario;
        let mut first = plan(&current);
        // Nodes of replicas that go, or that claim less than before, come free only in the next round.
        if first["placements"].as_array().map(|p| p.len() as u64) != current.deployment["spec"]["replicas"].as_u64() {
            current = applied(&current);
            first = plan(&current);
        }
        let second = plan(&applied(&current));
        prop_assert_eq!(places(&first), places(&second));
        prop_assert_eq!(&second["removals"], &json!([]));
    }

    #[test]
    fn the_order_of_clusters_and_replicas_does_not_matter(
        (scenario, clusters, replicas) in any_scenario().prop_flat_map(|scenario| {
            let clusters = scenario.clusters.clone().unwrap_or_default();
            let replicas = scenario.replicas.clone().unwrap_or_default();
            (Just(scenario), Just(clusters).prop_shuffle(), Just(replicas).prop_shuffle())
        })
    ) {
        let mut shuffled = scenario.clone();
        shuffled.clusters = Some(clusters);
        shuffled.replicas = Some(replicas);
        prop_assert_eq!(plan(&scenario), plan(&shuffled));
    }

    #[test]
    fn a_plan_never_overcommits_and_never_moves(scenario in any_scenario()) {
        let before = used(scenario.replicas.as_deref().unwrap_or_default());
        let after = applied(&scenario);
        let after = used(after.replicas.as_deref().unwrap_or_default());
        for cluster in scenario.clusters.iter().flatten() {
            for pool in cluster["status"]["gpuPools"].as_array().into_iter().flatten() {
                let place = (cluster["metadata"]["name"].to_string(), pool["name"].to_string());
                let (was, is) = (before.get(&place).copied().unwrap_or(0), after.get(&place).copied().unwrap_or(0));
                let nodes = pool["nodes"].as_i64().expect("nodes");
                // What was there before may exceed the pool; nothing new may add to that.
                prop_assert!(is <= nodes.max(was), "{place:?}: {was} of {nodes} before, {is} after");
            }
        }
        for placement in plan(&scenario)["placements"].as_array().into_iter().flatten() {
            if let Some(name) = placement["retained"].as_str() {
                let mut replicas = scenario.replicas.iter().flatten();
                let was = replicas.find(|replica| replica["metadata"]["name"] == name).expect("it existed");
                prop_assert_eq!(&placement["cluster"], &was["spec"]["clusterName"]);
                let pool = |engine: &Value| engine["members"][0]["pool"].clone();
                let pinned = |engine: &Value| engine["members"][0]["nodePoolName"].clone();
                let is: Vec<Value> = placement["engines"].as_array().expect("engines").iter().map(pool).collect();
                let was: Vec<Value> = was["spec"]["engines"].as_array().expect("engines").iter().map(pinned).collect();
                prop_assert_eq!(is, was);
            }
        }
    }
}

/// Nodes held, by cluster and pool, straight from the replicas.
fn used(replicas: &[Value]) -> BTreeMap<(String, String), i64> {
    let mut used = BTreeMap::new();
    for replica in replicas {
        for engine in replica["spec"]["engines"].as_array().into_iter().flatten() {
            for member in engine["members"].as_array().into_iter().flatten() {
                if member["deviceRequests"].as_array().is_some_and(|requests| !requests.is_empty()) {
                    let nodes = member["worker"]["nodes"].as_i64().unwrap_or(1)
                        * engine["copies"].as_i64().unwrap_or(1);
                    let place =
                        (replica["spec"]["clusterName"].to_string(), member["nodePoolName"].to_string());
                    *used.entry(place).or_insert(0) += nodes;
                }
            }
        }
    }
    used
}
