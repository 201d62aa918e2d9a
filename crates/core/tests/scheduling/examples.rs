//! The worked examples of spec scheduling §10, by their numbers.

use modelplane_core::contract::Ready;
use serde_json::{Value, json};

use crate::scenario::*;

struct Example {
    number: &'static str,
    reason: &'static str,
    scenario: Scenario,
    placements: &'static [&'static str],
}

fn example(
    number: &'static str,
    reason: &'static str,
    scenario: Scenario,
    placements: &'static [&'static str],
) -> Example {
    Example { number, reason, scenario, placements }
}

fn check(examples: Vec<Example>) {
    for Example { number, reason, scenario, placements } in examples {
        assert_eq!(scenario.placements(), placements, "example {number}: {reason}");
    }
}

fn gpu_member(count: i64, memory: i64) -> Value {
    member("Standalone", vec![request("gpu", count, &at_least(memory))])
}

fn gang(leader: Vec<Value>, nodes: i64, copies_: i64) -> Vec<Value> {
    let workers = worker(nodes, vec![request("gpu", 8, &at_least(80))]);
    vec![copies(engine("e", vec![member("Leader", leader), workers]), copies_)]
}

#[test]
fn new_replicas_spread_over_clusters_and_pay_for_their_nodes() {
    let claiming_leader = || vec![request("gpu", 8, &at_least(80))];
    let sixteen = |nodes| Scenario::new(2, vec![simple("a", nodes)]).engines(gang(claiming_leader(), 3, 2));
    check(vec![
        example(
            "1",
            "the least loaded cluster first, then by name, whatever the order of delivery",
            Scenario::new(3, vec![simple("c", 1), simple("a", 2), simple("b", 2)]),
            &["a/0@p", "b/0@p", "c/0@p"],
        ),
        example(
            "2",
            "a partial placement is a placement",
            Scenario::new(4, vec![simple("a", 2), simple("b", 1)]),
            &["a/0@p", "a/1@p", "b/0@p"],
        ),
        example("3, 15 nodes", "a replica costs (1+3)*2 nodes", sixteen(15), &["a/0@p"]),
        example("3, 16 nodes", "a replica costs (1+3)*2 nodes", sixteen(16), &["a/0@p", "a/1@p"]),
        example(
            "4",
            "a leader that claims nothing costs nothing",
            Scenario::new(2, vec![simple("a", 6)]).engines(gang(Vec::new(), 3, 1)),
            &["a/0@p", "a/1@p"],
        ),
        example(
            "5",
            "others pay for claims only, and nothing on pools that are not published",
            Scenario::new(3, vec![simple("a", 4)])
                .foreign(
                    "a",
                    vec![engine("e", vec![pinned("Leader", "p", false), pinned_worker(2, "p", true)])],
                )
                .foreign("a", vec![copies(claiming("e", "old").remove(0), 4)]),
            &["a/0@p", "a/1@p"],
        ),
        example(
            "17",
            "new indices fill the gaps",
            Scenario::new(4, vec![simple("a", 9)]).running("a", 0, claiming("e", "p")).running(
                "a",
                2,
                claiming("e", "p"),
            ),
            &["a/0@p", "a/1@p", "a/2@p", "a/3@p"],
        ),
        example(
            "24",
            "free nodes may be negative",
            (0..3).fold(Scenario::new(1, vec![simple("a", 1), simple("b", 1)]), |scenario, _| {
                scenario.foreign("a", claiming("e", "p"))
            }),
            &["b/0@p"],
        ),
    ]);
}

#[test]
fn a_claimless_leader_is_pinned_without_device_requests() {
    let outcome = Scenario::new(1, vec![simple("a", 6)]).engines(gang(Vec::new(), 3, 1)).run();
    let members = &outcome.bodies[0]["spec"]["engines"][0]["members"];
    assert_eq!(members[0]["nodePoolName"], "p");
    assert_eq!(members[0].get("deviceRequests"), None);
    assert_eq!(members[1]["deviceRequests"][0]["deviceClassName"], "gpu.nvidia.com");
}

#[test]
fn devices_are_taken_first_come_first_served() {
    let two = |first: i64, second: i64| {
        let pools = vec![pool("p", 1, vec![gpu(first, 1), gpu(second, 1)])];
        let requests = vec![request("r1", 1, &at_least(40)), request("r2", 1, &at_least(100))];
        Scenario::new(1, vec![cluster("a", pools)])
            .engines(vec![engine("e", vec![member("Standalone", requests)])])
    };
    let count_two = Scenario::new(1, vec![cluster("a", vec![pool("p", 1, vec![gpu(141, 1), gpu(141, 1)])])])
        .engines(vec![engine("e", vec![gpu_member(2, 80)])]);
    check(vec![
        example("7, A then B", "r1 takes the small one", two(80, 141), &["a/0@p"]),
        example("7, B then A", "r1 takes the large one, r2 finds none", two(141, 80), &[]),
        example("8", "counts are never summed over devices", count_two, &[]),
    ]);
}

#[test]
fn an_engine_must_claim_where_it_can() {
    let nic_request = || request("nic", 1, NIC);
    let nic_only = || vec![engine("e", vec![member("Standalone", vec![nic_request()])])];
    let both = || vec![request("gpu", 8, &at_least(80)), nic_request()];
    let synthetic =
        Scenario::new(1, vec![cluster("a", vec![pool("p", 1, vec![nic("Synthetic"), gpu(141, 8)])])])
            .engines(nic_only());
    let pools = vec![pool("p1", 3, vec![nic("Synthetic")]), pool("p2", 1, vec![nic("DRA")])];
    let stranded = Scenario::new(2, vec![cluster("a", pools)]).engines(nic_only());
    let pools = vec![
        pool("p1", 1, vec![gpu(141, 8), nic("Synthetic")]),
        pool("p2", 1, vec![gpu(141, 8), nic("DRA")]),
    ];
    let partly = Scenario::new(1, vec![cluster("a", pools)])
        .engines(vec![engine("e", vec![member("Standalone", both())])]);
    assert!(synthetic.run().has_condition("ReplicasScheduled=False/InsufficientCapacity"));
    let body = partly.run().bodies.remove(0);
    let requests = &body["spec"]["engines"][0]["members"][0]["deviceRequests"];
    assert_eq!(requests.as_array().map(Vec::len), Some(1), "only the GPU is claimed");
    check(vec![
        example("9", "a request met by synthetic devices only claims nothing anywhere", synthetic, &[]),
        example("10", "a pool without claims is no fallback for one with them", stranded, &["a/0@p2"]),
        example("11", "one resolved request is enough to claim", partly, &["a/0@p1"]),
    ]);
}

#[test]
fn engines_take_pools_greedily_in_order() {
    let engines = || vec![engine("e1", vec![gpu_member(8, 40)]), engine("e2", vec![gpu_member(8, 100)])];
    let big = || pool("big", 1, vec![gpu(141, 8)]);
    let small = || pool("small", 1, vec![gpu(80, 8)]);
    check(vec![
        example(
            "12, big first",
            "e1 takes what e2 needs",
            Scenario::new(1, vec![cluster("a", vec![big(), small()])]).engines(engines()),
            &[],
        ),
        example(
            "12, small first",
            "each finds its own",
            Scenario::new(1, vec![cluster("a", vec![small(), big()])]).engines(engines()),
            &["a/0@small+big"],
        ),
    ]);
}

#[test]
fn taints_evict_unless_tolerated() {
    let drained = |toleration: Option<Value>, with_b: bool| {
        let mut clusters = vec![tainted(simple("a", 2), "NoExecute")];
        clusters.extend(with_b.then(|| simple("b", 2)));
        let scenario = Scenario::new(1, clusters).running("a", 0, claiming("e", "p"));
        toleration.into_iter().fold(scenario, Scenario::tolerating)
    };
    let exists = json!({"key": "m", "operator": "Exists"});
    let exists_no_schedule = json!({"key": "m", "operator": "Exists", "effect": "NoSchedule"});
    check(vec![
        example("13, none", "NoExecute evicts", drained(None, true), &["b/0@p"]),
        example(
            "13, other effect",
            "that tolerates another effect",
            drained(Some(exists_no_schedule), true),
            &["b/0@p"],
        ),
        example("13, tolerated", "tolerated, so it stays", drained(Some(exists), true), &["a/0@p"]),
        example("14", "nowhere to go, and evicted all the same", drained(None, false), &[]),
        example(
            "13, NoSchedule",
            "NoSchedule repels new replicas and leaves running ones",
            Scenario::new(2, vec![tainted(simple("a", 9), "NoSchedule"), simple("b", 9)]).running(
                "a",
                0,
                claiming("e", "p"),
            ),
            &["a/0@p", "b/0@p"],
        ),
        example(
            "23",
            "the load of the retained ones counts",
            Scenario::new(3, vec![simple("a", 9), tainted(simple("b", 9), "NoExecute"), simple("c", 9)])
                .running("a", 0, claiming("e", "p"))
                .running("a", 1, claiming("e", "p"))
                .running("b", 0, claiming("e", "p")),
            &["a/0@p", "a/1@p", "c/0@p"],
        ),
    ]);
}

#[test]
fn surplus_goes_from_the_most_loaded_cluster() {
    let mut scenario = Scenario::new(3, vec![simple("a", 9), simple("b", 9), simple("c", 9)]);
    for (cluster, index) in [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("c", 0)] {
        scenario = scenario.running(cluster, index, claiming("e", "p"));
    }
    check(vec![example("15", "a/2, b/1 and a/1 go", scenario, &["a/0@p", "b/0@p", "c/0@p"])]);
}

#[test]
fn a_replica_stays_on_a_cluster_that_is_down() {
    let mut down = simple("a", 9);
    down["status"] = json!({"gpuPools": down["status"]["gpuPools"]});
    let scenario = Scenario::new(2, vec![down, simple("b", 9)]).running("a", 0, claiming("e", "p"));
    let outcome = scenario.run();
    assert_eq!(outcome.placements, ["a/0@p", "b/0@p"], "example 16");
    assert_eq!(outcome.endpoints, Vec::<String>::new(), "example 16: no gateway, no endpoint");
}

#[test]
fn a_changed_definition_moves_or_keeps_replicas() {
    let pools = vec![pool("l4", 5, vec![gpu(24, 8)]), pool("h200", 1, vec![gpu(141, 8)])];
    let selective = Scenario::new(1, vec![cluster("a", pools)])
        .engines(vec![engine("e", vec![gpu_member(8, 100)])])
        .running("a", 0, claiming("e", "l4"));
    let observed_gang = || vec![engine("e", vec![pinned("Leader", "p", true), pinned_worker(1, "p", true)])];
    let grown = |nodes| {
        Scenario::new(2, vec![simple("a", nodes)])
            .engines(gang(vec![request("gpu", 8, &at_least(80))], 3, 1))
            .running("a", 0, observed_gang())
    };
    let fifty = Scenario::new(1, vec![simple("a", 1)])
        .engines(vec![copies(engine("e", vec![gpu_member(8, 80)]), 50)])
        .running("a", 0, claiming("e", "p"));
    assert_eq!(fifty.run().bodies[0]["spec"]["engines"][0]["copies"], json!(50));
    check(vec![
        example("6", "the same identity on another pool", selective, &["a/0@h200"]),
        example("18, 5 nodes", "the retained one is charged 2, a new one costs 4", grown(5), &["a/0@p"]),
        example(
            "18, 6 nodes",
            "the retained one is charged 2, a new one costs 4",
            grown(6),
            &["a/0@p", "a/1@p"],
        ),
        example("19", "a retained replica is never checked against capacity", fifty, &["a/0@p"]),
        example(
            "21",
            "an unknown engine drops the replica, and its cluster gets no preference",
            Scenario::new(1, vec![simple("a", 1), simple("b", 1)]).running("b", 0, claiming("old", "p")),
            &["a/0@p"],
        ),
    ]);
}

#[test]
fn without_a_known_cache_nothing_new_is_placed() {
    for (cache, reason) in [(None, "ModelCacheUnresolved"), (Some(Vec::new()), "ModelCacheNotFound")] {
        let scenario =
            Scenario::new(2, vec![simple("a", 9)]).running("a", 0, claiming("e", "p")).caching(cache);
        let outcome = scenario.run();
        assert_eq!(outcome.placements, ["a/0@p"], "example 20");
        assert!(
            outcome.has_condition(&format!("ModelCacheResolved=False/{reason}")),
            "{:?}",
            outcome.conditions
        );
        assert!(outcome.has_condition("ReplicasScheduled=True/ReplicasCreated"));
        assert_eq!(outcome.ready, Ready::False, "one of two replicas is missing");
    }
}

#[test]
fn of_duplicates_the_first_by_name_stays_and_both_are_charged() {
    let pools = vec![pool("p", 1, vec![gpu(141, 8)]), pool("q", 1, vec![gpu(141, 8)])];
    let mut scenario = Scenario::new(2, vec![cluster("a", pools)]);
    for (name, pool) in [("zz", "q"), ("aa", "p")] {
        let replicas = scenario.replicas.get_or_insert_default();
        replicas.push(replica(("ml", name), Some("d"), ("a", 0), claiming("e", pool)));
    }
    check(vec![example("22", "q looks full", scenario, &["a/0@p"])]);
}
