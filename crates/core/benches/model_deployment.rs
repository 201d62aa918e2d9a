//! The ModelDeployment composition on generated fleets, from observed documents to desired state.
//!
//! `cargo bench -p modelplane-core --bench model_deployment`. Wire to wire is measured in `crates/crossplane`.

#![allow(missing_docs, reason = "criterion's macros generate undocumented functions")]
#![allow(clippy::allow_attributes, reason = "an expectation would fail where nothing is generated")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use modelplane_core::compose::model_deployment::compose;

#[path = "support/fleet.rs"]
mod fleet;

use fleet::{FieldOrder, Fleet, SIZES, Situation};

fn model_deployment(criterion: &mut Criterion) {
    for situation in [Situation::Steady, Situation::Placing] {
        let mut group = criterion.benchmark_group(format!("model_deployment/{situation:?}").to_lowercase());
        group.sample_size(20);
        for size in SIZES {
            let fleet = Fleet::generate(size, situation, FieldOrder::Random);
            let observed = fleet.observed();
            group.bench_function(size.name(), |bencher| {
                bencher.iter(|| compose(black_box(&observed)).expect("a deployment that can be composed"));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, model_deployment);
criterion_main!(benches);
