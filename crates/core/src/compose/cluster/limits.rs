//! Checks a spec against the published schema of its kind before it is composed.
//!
//! The API server would reject it anyway, but only after the composition had wanted it, and without
//! saying which InferenceCluster is to blame. CEL rules are not evaluated and patterns are not matched;
//! what a cloud needs of those is checked by [`super::provider::Cloud::check`].

use modelplane_api::kind::KindInfo;
use modelplane_api::schema;
use serde::Serialize;
use serde_json::Value;

/// The first value of `spec` that the kind's schema does not allow, as `field: what is wrong`.
pub(super) fn check<S: Serialize>(info: &KindInfo, spec: &S) -> Result<(), String> {
    let spec = serde_json::to_value(spec).map_err(|error| error.to_string())?;
    check_value(&schema::strict(info)["properties"]["spec"], &spec, &mut Vec::new())
}

/// Checks a value and all below it; `path` names the fields from the spec down, with entries of lists by
/// name. Depth is bounded by our own types, not by the input.
fn check_value(schema: &Value, value: &Value, path: &mut Vec<String>) -> Result<(), String> {
    check_bounds(schema, value).map_err(|problem| format!("{}: {problem}", path.join(".")))?;
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                path.push(name.clone());
                check_value(&schema["properties"][name], field, path)?;
                path.pop();
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let name = item["name"].as_str().map_or_else(|| index.to_string(), str::to_owned);
                path.push(name);
                check_value(&schema["items"], item, path)?;
                path.pop();
            }
        }
        _ => {}
    }
    Ok(())
}

fn check_bounds(schema: &Value, value: &Value) -> Result<(), String> {
    let bound = |keyword: &str| schema[keyword].as_i64();
    let (size, unit, least, most) = match value {
        Value::Number(number) => (number.as_i64(), "", bound("minimum"), bound("maximum")),
        Value::String(text) => {
            let length = i64::try_from(text.chars().count()).ok();
            (length, " characters long", bound("minLength"), bound("maxLength"))
        }
        Value::Array(items) => {
            (i64::try_from(items.len()).ok(), " entries", bound("minItems"), bound("maxItems"))
        }
        _ => return Ok(()),
    };
    let Some(size) = size else { return Ok(()) };
    if let Some(least) = least.filter(|least| size < *least) {
        return Err(format!("{value} is below the minimum of {least}{unit}"));
    }
    if let Some(most) = most.filter(|most| size > *most) {
        return Err(format!("{value} is above the maximum of {most}{unit}"));
    }
    match schema["enum"].as_array() {
        Some(allowed) if !allowed.contains(value) => Err(format!("{value} is not one of {}", schema["enum"])),
        _ => Ok(()),
    }
}
