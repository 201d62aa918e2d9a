//! Devices as ResourceSlices and InferenceClasses write them.

use std::borrow::Cow;

use modelplane_cel::device::{Attribute, Device};
use serde_json::Value;

/// Reads a device: `driver`, `attributes{string|version|bool|int}`, `capacity{value}`.
///
/// A missing or empty device is one of no driver, attributes or capacity. The error names the field.
pub(super) fn device_from_json(json: &Value) -> Result<Device<'_>, String> {
    let attributes = entries(json, "attributes")
        .map(|(name, value)| Ok((Cow::Borrowed(name), attribute(name, value)?)))
        .collect::<Result<_, String>>()?;
    let capacity = entries(json, "capacity")
        .map(|(name, value)| {
            let text = value["value"].as_str().or_else(|| value.as_str());
            let text = text.ok_or_else(|| format!("capacity.{name}.value: expected a quantity as text"))?;
            Ok((Cow::Borrowed(name), Cow::Borrowed(text)))
        })
        .collect::<Result<_, String>>()?;
    Ok(Device {
        driver: Cow::Borrowed(json["driver"].as_str().unwrap_or_default()),
        attributes,
        capacity,
        allow_multiple_allocations: json["allowMultipleAllocations"].as_bool().unwrap_or_default(),
    })
}

fn entries<'j>(json: &'j Value, field: &str) -> impl Iterator<Item = (&'j str, &'j Value)> {
    json[field].as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

/// The one value of an attribute; of several, the one Kubernetes prefers.
fn attribute<'j>(name: &str, json: &'j Value) -> Result<Attribute<'j>, String> {
    if let Some(int) = json["int"].as_i64() {
        return Ok(Attribute::Int(int));
    }
    if let Some(bit) = json["bool"].as_bool() {
        return Ok(Attribute::Bool(bit));
    }
    if let Some(text) = json["string"].as_str() {
        return Ok(Attribute::String(text.into()));
    }
    let version = json["version"].as_str().map(|text| Attribute::Version(text.into()));
    version.ok_or_else(|| format!("attributes.{name}: expected one of int, bool, string, version"))
}
