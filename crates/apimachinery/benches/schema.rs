//! Reading the schema of a kind, and what each object of it then costs.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use modelplane_api::kind::ALL;
use modelplane_api::xrd::crd;
use modelplane_apimachinery::schema::Schema;
use modelplane_apimachinery::schema::decode::decode;
use serde_json::Value;

fn schema_of(kind: &str) -> Value {
    let info = ALL.iter().find(|info| info.kind == kind).expect("the kind exists");
    crd(info)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

/// The largest example of a kind.
fn example(kind: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let files = std::fs::read_dir(folder).expect("there are examples").flatten().flat_map(|folder| {
        let files = std::fs::read_dir(folder.path()).ok().into_iter().flatten().flatten();
        files.map(|file| file.path()).collect::<Vec<_>>()
    });
    files
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .flat_map(|text| serde_saphyr::from_multiple::<Value>(&text).expect("examples are YAML"))
        .filter(|object| object["kind"] == kind)
        .max_by_key(|object| object.to_string().len())
        .expect("the kind has an example")
}

fn benchmark(criterion: &mut Criterion) {
    for kind in ["ModelDeployment", "InferenceCluster"] {
        let raw = schema_of(kind);
        let schema = Schema::parse(&raw).expect("the schema is valid");
        let mut without_rules = raw.clone();
        drop_rules(&mut without_rules);
        let without_rules = Schema::parse(&without_rules).expect("the schema is valid without rules");
        let mut object = example(kind);
        schema.apply_defaults(&mut object);
        assert!(schema.prune(&mut object).is_empty());
        assert!(schema.validate(&object, None).is_empty());
        let text = object.to_string();
        let mut group = criterion.benchmark_group(format!("{kind} of {} bytes", text.len()));
        group.bench_function("parse schema", |bencher| bencher.iter(|| Schema::parse(black_box(&raw))));
        group.bench_function("decode", |bencher| bencher.iter(|| decode(black_box(text.as_bytes()))));
        group.bench_function("default and prune", |bencher| {
            bencher.iter_batched_ref(
                || object.clone(),
                |object| {
                    schema.apply_defaults(object);
                    schema.prune(object)
                },
                criterion::BatchSize::SmallInput,
            );
        });
        group.bench_function("validate without rules", |bencher| {
            bencher.iter(|| without_rules.validate(black_box(&object), None));
        });
        group
            .bench_function("validate", |bencher| bencher.iter(|| schema.validate(black_box(&object), None)));
        group.bench_function("validate an update", |bencher| {
            bencher.iter(|| schema.validate(black_box(&object), Some(&object)));
        });
        group.finish();
    }
}

fn drop_rules(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove("x-kubernetes-validations");
            fields.values_mut().for_each(drop_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_rules),
        _ => {}
    }
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
