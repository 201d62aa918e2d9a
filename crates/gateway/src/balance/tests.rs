use std::collections::{BTreeMap, VecDeque};

use super::*;
use crate::routes::config::{Address, EndpointConfig, EntryConfig, ServiceConfig, Snapshot};
use crate::routes::table::RouteTable;

const REQUESTS: usize = 100_000;

/// A service whose entries have these weights and endpoints.
fn snapshot(entries: &[(u32, Vec<Arc<EndpointConfig>>)]) -> Snapshot {
    let entry = |(weight, endpoints): &(u32, Vec<_>)| EntryConfig {
        weight: *weight,
        tier: 0,
        endpoints: endpoints.clone(),
    };
    let service = ServiceConfig {
        namespace: "team".to_owned(),
        name: "chat".to_owned(),
        entries: entries.iter().map(entry).collect(),
        ..ServiceConfig::default()
    };
    Snapshot { services: vec![service], ..Snapshot::default() }
}

/// Endpoints `<letter>0`, `<letter>1` and so on.
fn endpoints(letter: char, count: u16) -> Vec<Arc<EndpointConfig>> {
    let address = |index| Address::plain(format!("{letter}.example.com"), index);
    let named = |index| EndpointConfig::new("team", &format!("{letter}{index}"), address(index));
    (0..count).map(named).map(Arc::new).collect()
}

fn choose_from(table: &RouteTable) -> Choice {
    let service = table.service("team/chat").unwrap();
    let draw = Draw { now: Instant::now(), random: random::next(), affinity: None, tried: &[] };
    choose(service, draw).unwrap()
}

/// Fails unless the shares of letters are within 2 % of all requests of what the weights say.
fn assert_shares(counts: &BTreeMap<char, usize>, weights: &[(char, u32)]) {
    let total: usize = counts.values().sum();
    let whole: u32 = weights.iter().map(|(_, weight)| weight).sum();
    for &(letter, weight) in weights {
        let share = counts[&letter] as f64 / total as f64;
        let want = f64::from(weight) / f64::from(whole);
        assert!((share - want).abs() < 0.02, "{letter} has {share}, not {want}: {counts:?}");
    }
}

fn letter(choice: &Choice) -> char {
    choice.endpoint.config.name.chars().next().unwrap()
}

#[test]
fn weights_hold_exactly_over_100_000_requests_whatever_is_in_flight() {
    let entries = [(80, endpoints('a', 1)), (15, endpoints('b', 3)), (5, endpoints('c', 2))];
    let table = RouteTable::build(&snapshot(&entries), &RouteTable::default(), 1);
    let (mut by_letter, mut by_name) = (BTreeMap::new(), BTreeMap::<String, usize>::new());
    let mut in_flight = VecDeque::new();
    for _ in 0..REQUESTS {
        let choice = choose_from(&table);
        *by_letter.entry(letter(&choice)).or_default() += 1_usize;
        *by_name.entry(choice.endpoint.config.name.clone()).or_default() += 1_usize;
        in_flight.push_back(choice.lease);
        if in_flight.len() > 200 {
            // Requests end in another order than they began.
            let index = random::next() as usize % in_flight.len();
            in_flight.swap_remove_back(index);
        }
    }
    assert_eq!(by_letter, [('a', 80_000), ('b', 15_000), ('c', 5_000)].into());
    for (name, want) in [("b0", 5_000), ("b1", 5_000), ("b2", 5_000), ("c0", 2_500), ("c1", 2_500)] {
        assert!(by_name[name].abs_diff(want) < want / 10, "{by_name:?}");
    }
}

#[test]
fn weights_hold_while_endpoints_come_and_go() {
    let (a, b) = (endpoints('a', 3), endpoints('b', 3));
    let mut table = RouteTable::default();
    let mut counts = BTreeMap::new();
    for round in 0..REQUESTS / 100 {
        let some = |all: &[Arc<EndpointConfig>], bits: usize| {
            let there = |index: &usize| *index == 0 || bits >> index & 1 == 1;
            (0..all.len()).filter(there).map(|index| all[index].clone()).collect()
        };
        let drawn = random::next() as usize;
        let entries = [(3, some(&a, drawn)), (1, some(&b, drawn >> 8))];
        table = RouteTable::build(&snapshot(&entries), &table, 1);
        for _ in 0..100 {
            *counts.entry(letter(&choose_from(&table))).or_default() += 1;
        }
        assert!(round > 0 || counts.len() == 2);
    }
    assert_shares(&counts, &[('a', 3), ('b', 1)]);
}

#[test]
fn weights_hold_over_threads() {
    let entries = [(7, endpoints('a', 2)), (3, endpoints('b', 1))];
    let table = RouteTable::build(&snapshot(&entries), &RouteTable::default(), 4);
    let counted = || {
        let mut counts = BTreeMap::<char, usize>::new();
        for _ in 0..REQUESTS / 4 {
            *counts.entry(letter(&choose_from(&table))).or_default() += 1;
        }
        counts
    };
    let counts = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(counted)).collect();
        let mut all = BTreeMap::<char, usize>::new();
        for (letter, count) in threads.into_iter().flat_map(|thread| thread.join().unwrap()) {
            *all.entry(letter).or_default() += count;
        }
        all
    });
    assert_eq!(counts, [('a', 70_000), ('b', 30_000)].into());
}
