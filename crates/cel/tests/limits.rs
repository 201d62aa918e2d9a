//! Expressions of extreme shape end quickly on the 2 MiB stack of a test thread: they compile or are refused.

use std::time::{Duration, Instant};

use modelplane_cel::device::{Attribute, COST_LIMIT, Device, PreparedDevice, Selector};

/// Generous, since tests are built without optimisation.
const PATIENCE: Duration = Duration::from_secs(3);

fn device() -> PreparedDevice<'static> {
    PreparedDevice::new(Device {
        driver: "d".into(),
        attributes: vec![("n".into(), Attribute::Int(1)), ("s".into(), Attribute::String("text".into()))],
        capacity: vec![("memory".into(), "1Gi".into())],
        allow_multiple_allocations: false,
    })
    .expect("the device is well-formed")
}

fn nested(before: &str, middle: &str, after: &str, depth: usize) -> String {
    format!("{}{middle}{}", before.repeat(depth), after.repeat(depth))
}

/// Compiles and, if that succeeds, evaluates.
fn run(text: &str) -> Result<bool, String> {
    let started = Instant::now();
    let outcome = Selector::compile(text).map_err(|error| error.to_string()).and_then(|selector| {
        let evaluation = selector.evaluate(&device());
        assert!(evaluation.result.is_err() || evaluation.cost <= COST_LIMIT);
        evaluation.result.map_err(|error| error.to_string())
    });
    let shown: String = text.chars().take(60).collect();
    assert!(started.elapsed() < PATIENCE, "{shown}… took {:?}", started.elapsed());
    outcome
}

#[test]
fn long_chains_are_refused_where_kubernetes_refuses_them() {
    let chain = |part: &str, count: usize, last: &str| format!("{}{last}", part.repeat(count));
    assert_eq!(run(&chain("1 + ", 248, "1 == 249")), Ok(true));
    assert!(run(&chain("1 + ", 260, "1 == 261")).unwrap_err().contains("nested deeper"));
    assert_eq!(run(&chain("true && ", 1000, "true")), Ok(true));
    assert_eq!(run(&chain("false || ", 1000, "true")), Ok(true));
    assert!(run(&format!("\"a\"{} == \"a\"", ".trim()".repeat(400))).unwrap_err().contains("nested deeper"));
    assert!(run(&format!("device{}", ".a".repeat(1000))).is_err());
    assert!(run(&format!("device{}", "[0]".repeat(1000))).is_err());
}

#[test]
fn deep_nesting_ends_without_overflowing_the_stack() {
    for depth in [50, 200, 249, 1000, 3000] {
        for text in [
            nested("(", "true", ")", depth),
            nested("[", "1", "]", depth) + " == []",
            nested("{1: ", "1", "}", depth) + " == {}",
            nested("!(", "true", ")", depth),
            nested("true ? true : (", "true", ")", depth),
            nested("[1].all(x, ", "true", ")", depth),
            nested("[1].exists_one(x, ", "true", ")", depth),
            nested("[1].map(x, ", "1", ")", depth) + " == []",
            nested("[1].transformMap(k, v, ", "1", ")", depth) + " == {}",
            nested("cel.bind(x, 1, ", "true", ")", depth),
            nested("cel.bind(x, ", "true", ", x)", depth),
            nested("dyn(", "true", ")", depth) + " == true",
            nested("optional.of(", "1", ")", depth) + ".hasValue()",
            nested("device.attributes[", "device.driver", "].s", depth),
            nested("-", "1", "", depth) + " == 1",
            nested("[[", "", "]]", depth) + " == [[]]",
        ] {
            let _ = run(&text[..text.len().min(10_240)]);
        }
    }
}

#[test]
fn growth_that_costs_nothing_in_kubernetes_is_bounded() {
    let doubling = |inner: &str, count: usize, last: &str| {
        let mut text = String::from("cel.bind(a0, ");
        text.push_str(inner);
        for step in 1..count {
            text.push_str(&format!(", cel.bind(a{step}, a{} + a{}", step - 1, step - 1));
        }
        text.push_str(&format!(", {last}{}", ")".repeat(count)));
        text
    };
    assert!(run(&doubling("[1, 2]", 40, "a39 == []")).is_err());
    assert!(run(&doubling("\"text\"", 40, "a39 == \"\"")).is_err());
    let mut pairs = String::from("cel.bind(a0, [1, 2]");
    for step in 1..40 {
        pairs.push_str(&format!(", cel.bind(a{step}, [a{}, a{}]", step - 1, step - 1));
    }
    assert!(run(&format!("{pairs}, a39 == a39{}", ")".repeat(40))).is_err());
    assert!(run("lists.range(9223372036854775807).size() > 1").is_err());
    assert!(run("lists.range(900000).map(x, x).size() > 1").is_err());
    assert!(run("lists.range(2000).all(x, lists.range(2000).all(y, true))").is_err());
    assert!(run("lists.range(300).map(x, string(x)).exists(p, \"a\".matches(p + \"(a{500}){2}\"))").is_err());
}

#[test]
fn macros_cannot_multiply_an_expression_without_bound() {
    let text = format!("optional.of(1){}.hasValue()", ".optMap(x, x + 1)".repeat(60));
    assert!(run(&text).unwrap_err().contains("nodes"));
}

#[test]
fn texts_over_the_limit_are_refused() {
    let long = format!("true{}", " ".repeat(10_240));
    assert!(run(&long).unwrap_err().contains("10240"));
    assert_eq!(run(&long[..10_240]), Ok(true));
}

#[test]
fn compiling_ten_kilobytes_is_quick() {
    for part in [
        "device.attributes[\"d\"].n == 1 && ",
        "[1, 2, 3].all(x, x > 0) && ",
        "\"a\".matches(\"\\\\pL{200}\") || ",
        "[[1], [2], [3]] == [[1], [2], [3]] && ",
        "cel.bind(x, {1: {2: 3}}, x[1][2] == 3) && ",
        "1 + 2 * 3 - 4 == 3 && ",
    ] {
        let count = 10_000 / part.len();
        let _ = run(&format!("{}true", part.repeat(count)));
    }
}
