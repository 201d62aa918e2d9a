//! Reading, comparing, adding and writing quantities in the forms that device capacities have.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use modelplane_cel::Quantity;

const TEXTS: [&str; 6] = ["141Gi", "8", "500m", "1.5Gi", "1e3", "9223372036854775808"];

fn quantities(criterion: &mut Criterion) {
    for text in TEXTS {
        criterion.bench_function(&format!("quantity/parse/{text}"), |bencher| {
            bencher.iter(|| Quantity::parse(black_box(text)));
        });
        let quantity = Quantity::parse(text).expect("a quantity");
        criterion.bench_function(&format!("quantity/display/{text}"), |bencher| {
            bencher.iter(|| black_box(&quantity).to_string());
        });
    }
    for (left, right) in [("141Gi", "80Gi"), ("141Gi", "500m"), ("1.5Gi", "80Gi"), ("1.5Gi", "1.6Gi")] {
        let first = Quantity::parse(left).expect("a quantity");
        let second = Quantity::parse(right).expect("a quantity");
        criterion.bench_function(&format!("quantity/compare/{left}/{right}"), |bencher| {
            bencher.iter(|| black_box(&first).cmp(black_box(&second)));
        });
        criterion.bench_function(&format!("quantity/add/{left}/{right}"), |bencher| {
            bencher.iter(|| black_box(&first).add(black_box(&second)));
        });
    }
}

criterion_group!(benches, quantities);
criterion_main!(benches);
