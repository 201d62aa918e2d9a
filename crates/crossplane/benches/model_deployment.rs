//! The ModelDeployment composition from the bytes of a `RunFunctionRequest` to those of its response.
//!
//! `cargo bench -p modelplane-crossplane --bench model_deployment`. Fields are in random order, as Crossplane
//! sends them; the `fixed` sizes tell what that costs.

#![allow(missing_docs, reason = "criterion's macros generate undocumented functions")]
#![allow(clippy::allow_attributes, reason = "an expectation would fail where nothing is generated")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

#[path = "../../core/benches/support/fleet.rs"]
mod fleet;

use fleet::{FieldOrder, Fleet, SIZES, Situation};

fn wire_to_wire(criterion: &mut Criterion) {
    for (situation, order) in [
        (Situation::Steady, FieldOrder::Random),
        (Situation::Placing, FieldOrder::Random),
        (Situation::Placing, FieldOrder::Fixed),
    ] {
        let name = format!("wire_to_wire/{situation:?}/{order:?}").to_lowercase();
        let mut group = criterion.benchmark_group(name);
        group.sample_size(20);
        for size in SIZES {
            let request = Fleet::generate(size, situation, order).request();
            group.throughput(Throughput::Bytes(request.len() as u64));
            group.bench_function(size.name(), |bencher| {
                bencher.iter(|| modelplane_crossplane::run(black_box(&request)).expect("a readable request"));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, wire_to_wire);
criterion_main!(benches);
