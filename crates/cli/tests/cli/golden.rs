//! What each command prints, compared as a whole.

use std::fs;
use std::path::Path;

use crate::modelplane;

/// A call and the golden file of its output.
struct Case {
    /// Name of the golden file.
    name: &'static str,
    /// Arguments, separated by blanks.
    call: &'static str,
    /// Expected exit code.
    code: i32,
}

const fn case(name: &'static str, call: &'static str, code: i32) -> Case {
    Case { name, call, code }
}

const EXAMPLES: [&str; 9] = [
    "canary",
    "demo",
    "does-not-fit",
    "drain-by-taint",
    "external-provider",
    "gang-with-cache",
    "overflow-to-provider",
    "prefill-decode",
    "two-clouds",
];

fn check(cases: &[Case]) {
    let differences: Vec<String> = cases.iter().filter_map(difference).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Runs a case; says how its output differs from the golden file, if it does.
fn difference(case: &Case) -> Option<String> {
    let arguments: Vec<&str> = case.call.split_whitespace().collect();
    let output = modelplane(&arguments);
    let mut text = format!("$ modelplane {}\n{}", case.call, String::from_utf8_lossy(&output.stdout));
    let errors = String::from_utf8_lossy(&output.stderr);
    if !errors.is_empty() {
        text.push_str(&format!("--- stderr\n{errors}"));
    }
    let code = output.status.code();
    assert_eq!(code, Some(case.code), "exit code of `modelplane {}`:\n{text}", case.call);
    assert!(!text.contains('\u{1b}'), "`modelplane {}` writes escape sequences to a pipe", case.call);
    compare(case.name, &text)
}

fn compare(name: &str, text: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).expect("golden files can be written");
        return None;
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    if golden == text {
        return None;
    }
    let line = golden.lines().zip(text.lines()).position(|(golden, text)| golden != text);
    let line = line.unwrap_or_else(|| golden.lines().count().min(text.lines().count()));
    Some(format!(
        "{name}.txt differs from line {}:\n  golden: {}\n  now:    {}\nUPDATE_GOLDEN=1 rewrites it",
        line + 1,
        golden.lines().nth(line).unwrap_or("(end)"),
        text.lines().nth(line).unwrap_or("(end)"),
    ))
}

#[test]
fn every_example_renders_as_recorded() {
    let missing: Vec<String> = EXAMPLES
        .iter()
        .filter_map(|example| {
            let output = modelplane(&["render", "-f", &format!("examples/{example}")]);
            assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
            compare(&format!("render-{example}"), &String::from_utf8_lossy(&output.stdout))
        })
        .collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn every_folder_of_examples_is_in_the_table() {
    let folders = fs::read_dir(crate::workspace().join("examples")).expect("there are examples");
    let mut found: Vec<String> = folders
        .filter_map(|entry| entry.ok().filter(|entry| entry.path().is_dir()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    assert_eq!(found, EXAMPLES);
}

#[test]
fn rendering_can_be_watched_step_by_step_and_with_things_broken() {
    check(&[
        case("render-step-by-step", "render -f examples/does-not-fit --step --no-tree", 0),
        case("render-unready", "render -f examples/drain-by-taint --unready gateway --no-tree", 0),
    ]);
}

#[test]
fn explanations_start_with_the_answer() {
    check(&[
        case("explain-does-not-fit", "explain modeldeployment/big -f examples/does-not-fit", 0),
        case("explain-placed", "explain MD/qwen -n ml-team -f examples/two-clouds", 0),
        case("explain-drained", "explain md/mixtral -f examples/drain-by-taint", 0),
        case("explain-gang", "explain md kimi-k2 -f examples/gang-with-cache", 0),
        case("explain-cluster", "explain ic/dc-a -f examples/drain-by-taint", 0),
        case("explain-cluster-not-ready", "explain ic/dc-a -f examples/drain-by-taint --unready gateway", 0),
        case("explain-service", "explain modelservices/chat -f examples/two-clouds", 0),
        case("explain-cache", "explain mc/kimi-k2 -f examples/gang-with-cache", 0),
        case("explain-class", "explain InferenceClass/l4-1x -f examples/does-not-fit", 0),
        case("explain-gateway", "explain ig/default -f examples/two-clouds", 0),
        case(
            "explain-stack-not-ready",
            "explain ServingStack/dc-a-serving-stack-42f2f -f examples/drain-by-taint --unready cert-manager",
            0,
        ),
    ]);
}

#[test]
fn an_explanation_is_typed_data_too() {
    let output = modelplane(&["explain", "md/big", "-f", "examples/does-not-fit", "-o", "json"]);
    let explanation: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(explanation["report"]["placed"], 0);
    let rejection = &explanation["report"]["clusters"][0]["pools"][0]["engines"][0]["rejections"][0];
    assert_eq!(rejection["devices"][0]["why"]["inputs"][0]["value"], "23034Mi");
}

#[test]
fn unknown_names_are_answered_with_the_nearest_known_one() {
    check(&[
        case("unknown-kind", "explain modeldeploymnet/qwen -f examples/two-clouds", 1),
        case("unknown-name", "explain md/qwne -f examples/two-clouds", 1),
        case("unknown-namespace", "explain md/qwen -n prod -f examples/two-clouds", 1),
        case("unknown-class", "catalog show gke-l4", 1),
        case("unknown-path", "status -f examples/two-cluds", 1),
    ]);
}

#[test]
fn plans_say_what_moves_and_why() {
    check(&[
        case("plan-from-nothing", "plan -f examples/two-clouds", 0),
        case("plan-nothing-new", "plan -f examples/two-clouds --against examples/two-clouds", 0),
        case(
            "plan-end-of-drain",
            "plan -f crates/cli/tests/fixtures/undrained.yaml --against examples/drain-by-taint",
            0,
        ),
        case(
            "plan-does-not-fit",
            "plan -f examples/does-not-fit/model.yaml --against examples/two-clouds",
            0,
        ),
    ]);
}

/// The example drains a cluster that both replicas would otherwise share with another.
#[test]
fn a_plan_for_a_taint_names_the_taint_and_the_replica_that_moves() {
    let folder = std::env::temp_dir().join(format!("modelplane-undrained-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("temporary folders can be made");
    let example = crate::workspace().join("examples/drain-by-taint");
    for (from, to) in [("platform.yaml", "1.yaml"), ("model.yaml", "2.yaml")] {
        fs::copy(example.join(from), folder.join(to)).expect("the example is there");
    }
    let undrained = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/undrained.yaml");
    fs::copy(undrained, folder.join("3.yaml")).expect("the fixture is there");
    let folder_text = folder.to_string_lossy().into_owned();
    let arguments = ["plan", "-f", "examples/drain-by-taint", "--against", &folder_text];
    let output = modelplane(&arguments);
    fs::remove_dir_all(&folder).expect("temporary folders can be removed");
    let difference = compare("plan-drain", &String::from_utf8_lossy(&output.stdout));
    assert_eq!(difference, None);
}

#[test]
fn validation_names_file_line_field_problem_and_remedy() {
    check(&[
        case("validate-wrong-yaml", "validate -f crates/cli/tests/fixtures/wrong-yaml.yaml", 1),
        case("validate-unknown-field", "validate -f crates/cli/tests/fixtures/unknown-field.yaml", 1),
        case("validate-bad-selector", "validate -f crates/cli/tests/fixtures/bad-selector.yaml", 1),
        case("validate-dangling", "validate -f crates/cli/tests/fixtures/dangling.yaml", 1),
        case("validate-dangling-partial", "validate -f crates/cli/tests/fixtures/dangling.yaml --partial", 0),
        case("validate-broken-rule", "validate -f crates/cli/tests/fixtures/broken-rule.yaml --partial", 1),
        case("validate-does-not-fit", "validate -f examples/does-not-fit", 0),
        case("validate-strict", "validate -f examples/does-not-fit --strict -o json", 1),
        case("validate-example", "validate -f examples/two-clouds", 0),
    ]);
}

#[test]
fn the_older_shape_is_rewritten_and_rendered() {
    check(&[
        case("convert", "convert -f crates/cli/tests/fixtures/v0.1.yaml", 0),
        case("validate-older-shape", "validate -f crates/cli/tests/fixtures/v0.1.yaml --partial", 0),
    ]);
}

#[test]
fn the_fleet_is_shown_at_a_glance() {
    check(&[
        case("status", "status -f examples/two-clouds", 0),
        case("status-caches-and-gangs", "status -f examples/gang-with-cache", 0),
        case("status-tainted", "status -f examples/drain-by-taint -o yaml", 0),
    ]);
}

#[test]
fn a_class_of_the_catalog_can_be_applied() {
    check(&[
        case("catalog-list", "catalog list l40s", 0),
        case("catalog-show", "catalog show existing-l4-1x", 0),
    ]);
}
