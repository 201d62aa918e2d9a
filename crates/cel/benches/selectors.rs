//! Compiling and evaluating typical selectors, beside the crates `cel` and `cel-core`.
//!
//! Those have neither quantities nor versions: for them `quantity()` and `semver()` are functions to integers and
//! capacities are integers, which is less work than ours. `cel-core` takes no such functions here, so its rows with
//! them are missing.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use modelplane_cel::device::{Attribute, Device, PreparedDevice, Selector};
use serde_json::json;

const ROWS: [(&str, &str); 8] = [
    ("driver", r#"device.driver == "gpu.nvidia.com""#),
    ("attribute", r#"device.attributes["gpu.nvidia.com"].cores >= 100"#),
    ("capacity", r#"device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80Gi")) >= 0"#),
    ("semver", r#"device.attributes["gpu.nvidia.com"].cc.isGreaterThan(semver("9.0.0"))"#),
    ("matches", r#"device.attributes["gpu.nvidia.com"].model.matches("^NVIDIA H[0-9]+.*$")"#),
    (
        "lower_matches",
        r#"device.attributes["gpu.nvidia.com"].model.lowerAscii().matches("^nvidia h[0-9]+.*$")"#,
    ),
    (
        "exists",
        r#"["A100", "H100", "H200"].exists(m, device.attributes["gpu.nvidia.com"].model.contains(m))"#,
    ),
    (
        "bind",
        r#"cel.bind(d, device.attributes["gpu.nvidia.com"], d.ok && d.cores >= 100 && d.model != "T4")"#,
    ),
];

fn device() -> Device<'static> {
    Device {
        driver: "gpu.nvidia.com".into(),
        attributes: vec![
            ("architecture".into(), Attribute::String("Hopper".into())),
            ("model".into(), Attribute::String("NVIDIA H100 80GB HBM3".into())),
            ("cc".into(), Attribute::Version("9.5.3".into())),
            ("cores".into(), Attribute::Int(132)),
            ("ok".into(), Attribute::Bool(true)),
            ("resource.kubernetes.io/pcieRoot".into(), Attribute::String("pci0000:00".into())),
        ],
        capacity: vec![("memory".into(), "141Gi".into()), ("slices".into(), "7".into())],
        allow_multiple_allocations: false,
    }
}

fn foreign_device() -> serde_json::Value {
    json!({
        "driver": "gpu.nvidia.com",
        "attributes": {
            "gpu.nvidia.com": {
                "architecture": "Hopper", "model": "NVIDIA H100 80GB HBM3", "cc": 9_005_003, "cores": 132, "ok": true,
            },
            "resource.kubernetes.io": {"pcieRoot": "pci0000:00"},
        },
        "capacity": {"gpu.nvidia.com": {"memory": 151_397_597_184_i64, "slices": 7}},
    })
}

fn digits(text: &str) -> i64 {
    text.bytes().filter(u8::is_ascii_digit).fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
}

fn ours(criterion: &mut Criterion) {
    let device = PreparedDevice::new(device()).expect("the device is well-formed");
    for (name, text) in ROWS {
        let selector = Selector::compile(text).expect("the selector compiles");
        assert_eq!(selector.matches(&device), Ok(true), "{text}");
        criterion.bench_function(&format!("{name}/compile/modelplane"), |bencher| {
            bencher.iter(|| Selector::compile(black_box(text)));
        });
        criterion.bench_function(&format!("{name}/evaluate/modelplane"), |bencher| {
            bencher.iter(|| selector.matches(black_box(&device)));
        });
    }
    criterion.bench_function("prepare/modelplane", |bencher| {
        bencher.iter(|| PreparedDevice::new(black_box(self::device())));
    });
}

fn cel(criterion: &mut Criterion) {
    let mut context = cel::Context::default();
    let device = cel::to_value(foreign_device()).expect("the device is a value");
    context.add_variable_from_value("device", device);
    let registered = [
        context.add_function("quantity", |text: Arc<String>| digits(&text) << 30).is_ok(),
        context.add_function("semver", |text: Arc<String>| digits(&text)).is_ok(),
        context
            .add_function(
                "compareTo",
                |cel::extractors::This(own): cel::extractors::This<i64>, other: i64| {
                    (own > other) as i64 - (own < other) as i64
                },
            )
            .is_ok(),
        context
            .add_function(
                "isGreaterThan",
                |cel::extractors::This(own): cel::extractors::This<i64>, other: i64| own > other,
            )
            .is_ok(),
        context
            .add_function("lowerAscii", |cel::extractors::This(own): cel::extractors::This<Arc<String>>| {
                own.to_ascii_lowercase()
            })
            .is_ok(),
    ];
    black_box(registered);
    for (name, text) in ROWS {
        let Ok(program) = cel::Program::compile(text) else { continue };
        criterion.bench_function(&format!("{name}/compile/cel"), |bencher| {
            bencher.iter(|| cel::Program::compile(black_box(text)));
        });
        if program.execute(&context).is_ok() {
            criterion.bench_function(&format!("{name}/evaluate/cel"), |bencher| {
                bencher.iter(|| program.execute(black_box(&context)));
            });
        }
    }
}

fn cel_core_value(json: &serde_json::Value) -> cel_core::Value {
    match json {
        serde_json::Value::Bool(value) => (*value).into(),
        serde_json::Value::Number(value) => value.as_i64().unwrap_or_default().into(),
        serde_json::Value::String(value) => value.as_str().into(),
        serde_json::Value::Object(fields) => {
            let entries = fields.iter().map(|(key, value)| (key.as_str(), cel_core_value(value)));
            cel_core::Value::map(entries)
        }
        _ => cel_core::Value::Null,
    }
}

fn cel_core(criterion: &mut Criterion) {
    let env = cel_core::Env::with_standard_library()
        .with_all_extensions()
        .with_variable("device", cel_core::CelType::Dyn);
    let mut activation = cel_core::MapActivation::new();
    activation.insert("device", cel_core_value(&foreign_device()));
    for (name, text) in ROWS {
        let Ok(ast) = env.compile(text) else { continue };
        criterion.bench_function(&format!("{name}/compile/cel-core"), |bencher| {
            bencher.iter(|| env.compile(black_box(text)));
        });
        if let Ok(program) = env.program(&ast) {
            criterion.bench_function(&format!("{name}/evaluate/cel-core"), |bencher| {
                bencher.iter(|| program.eval(black_box(&activation)));
            });
        }
    }
}

criterion_group!(benches, ours, cel, cel_core);
criterion_main!(benches);
