//! How long a pass over one composite takes, per kind, with everything observed and ready.

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use modelplane_core::contract::Desired;
use support::fixed_point::{fixtures, run};

fn compose(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("compose");
    for (kind, fixture) in fixtures().into_iter().flatten() {
        let steps = fixture.steps();
        let request = fixture.fixed_point().expect("valid requests have a fixed point").request();
        group.bench_function(kind, |bencher| {
            bencher.iter(|| run(&steps, black_box(&request), wanted_bytes).expect("valid requests compose"));
        });
    }
    group.finish();
}

/// Looks at every body, so that none can be left out.
fn wanted_bytes(wanted: &Desired<'_>) -> usize {
    wanted.resources.values().map(|resource| resource.body.bytes().len()).sum()
}

criterion_group!(benches, compose);
criterion_main!(benches);
