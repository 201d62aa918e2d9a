//! From the JSON of a schema to a [`Schema`].

use modelplane_cel::pattern::Pattern;
use serde_json::Value;

use super::cause::Cause;
use super::format::Format;
use super::node::{
    Additional, Bound, Checks, Holds, Keywords, Kind, ListType, MapType, PatchStrategy, Schema,
};
use super::path::Place;
use super::properties::Properties;
use super::raw::{Raw, check_shapes};
use super::rules::Rules;
use super::{defaults, standard, structural};

impl Schema {
    /// Reads the `openAPIV3Schema` of a CustomResourceDefinition, checking all that an API server checks.
    ///
    /// Causes name paths from `openAPIV3Schema` on; the caller puts `spec.versions[i].schema.` in front.
    pub fn parse(open_api_v3_schema: &Value) -> Result<Schema, Vec<Cause>> {
        Self::parse_at(open_api_v3_schema, "openAPIV3Schema")
    }

    /// [`Schema::parse`] for a schema at a path, such as `spec.validation.openAPIV3Schema`.
    pub fn parse_at(open_api_v3_schema: &Value, path: &str) -> Result<Schema, Vec<Cause>> {
        let place = Place::Start(path);
        let mut causes = Vec::new();
        check_shapes(open_api_v3_schema, &place, &mut causes);
        let Some(raw) = open_api_v3_schema.as_object().map(Raw).filter(|_| causes.is_empty()) else {
            return Err(causes);
        };
        if raw.flag("nullable") {
            let path = place.field("nullable").bracketed();
            causes.push(Cause::forbidden(path, "nullable cannot be true at the root"));
        }
        let mut schema = Schema::default();
        let mut is_sound = structural::is_readable(raw);
        if is_sound {
            let before = causes.len();
            structural::check(raw, &place, &mut causes);
            is_sound = causes.len() == before;
        }
        if is_sound {
            schema = read(raw);
        }
        let found = standard::check(raw, &place, is_sound.then_some(&mut schema));
        let before = causes.len();
        if is_sound {
            // The rules are compiled by now, so that defaults are held against them.
            defaults::check(&mut schema, &place, &mut causes);
        }
        let defaults_are_fine = causes.len() == before;
        causes.extend(found.schema);
        if defaults_are_fine {
            causes.extend(found.rules);
        }
        if causes.is_empty() { Ok(schema) } else { Err(causes) }
    }

    /// Reads a schema that is known to be fine, such as that of a built-in kind, without any check or rule.
    ///
    /// Keywords of the wrong type or below [the deepest level](super::MAXIMUM_SCHEMA_DEPTH) are ignored.
    pub fn trusted(open_api_v3_schema: &Value) -> Schema {
        let mut causes = Vec::new();
        check_shapes(open_api_v3_schema, &Place::ROOT, &mut causes);
        let raw = open_api_v3_schema.as_object().map(Raw).filter(|_| causes.is_empty());
        raw.map(read).unwrap_or_default()
    }
}

/// Reads a schema whose keywords have the right types.
fn read(raw: Raw<'_>) -> Schema {
    let kind = Kind::named(raw.text("type"));
    let items = raw.schema("items").map(|items| Box::new(read(items)));
    let properties: Properties =
        raw.named("properties").map(|(name, property)| (name, read(property))).collect();
    let additional_properties = match (raw.get("additionalProperties"), raw.schema("additionalProperties")) {
        (_, Some(values)) => Additional::Schema(Box::new(read(values))),
        (Some(Value::Bool(true)), None) => Additional::Any,
        _ => Additional::Forbidden,
    };
    let list_type = match raw.text("x-kubernetes-list-type") {
        "set" => ListType::Set,
        "map" => ListType::Map,
        _ => ListType::Atomic,
    };
    let strategies = raw.text("x-kubernetes-patch-strategy");
    let has_strategy = |name: &str| strategies.split(',').any(|strategy| strategy == name);
    let merge_key = raw.text("x-kubernetes-patch-merge-key");
    let mut schema = Schema {
        kind,
        list_type,
        list_map_keys: raw.texts("x-kubernetes-list-map-keys").map(str::to_owned).collect(),
        map_type: if raw.text("x-kubernetes-map-type") == "atomic" {
            MapType::Atomic
        } else {
            MapType::Granular
        },
        patch_strategy: PatchStrategy {
            merge: has_strategy("merge"),
            replace_keys: has_strategy("retainKeys"),
            merge_key: (!merge_key.is_empty()).then(|| merge_key.into()),
        },
        preserve_unknown_fields: raw.flag("x-kubernetes-preserve-unknown-fields"),
        embedded_resource: raw.flag("x-kubernetes-embedded-resource"),
        int_or_string: raw.flag("x-kubernetes-int-or-string"),
        nullable: raw.flag("nullable"),
        default: raw.get("default").cloned().map(Box::new),
        checks: checks(raw, kind),
        rules: Rules::default(),
        holds: Holds::default(),
        properties,
        additional_properties,
        items,
    };
    schema.holds = holds(&schema);
    schema
}

/// What a schema with complete children holds.
pub(crate) fn holds(schema: &Schema) -> Holds {
    let mut holds = Holds {
        embedded: schema.embedded_resource,
        keyed_lists: schema.list_type != ListType::Atomic,
        rules: !schema.rules.is_empty(),
        defaults: schema.default.is_some(),
    };
    for child in schema.properties.values().chain(schema.items.as_deref()) {
        holds.add(child.holds);
    }
    if let Additional::Schema(values) = &schema.additional_properties {
        holds.add(values.holds);
    }
    holds
}

/// The keywords of [`Keywords`], but for `additionalProperties: false`.
const CHECKING: [&str; 20] = [
    "allOf",
    "anyOf",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "required",
    "uniqueItems",
];

fn checks(raw: Raw<'_>, kind: Option<Kind>) -> Checks {
    let closed = raw.get("additionalProperties") == Some(&Value::Bool(false));
    if !closed && !CHECKING.iter().any(|keyword| raw.get(keyword).is_some()) {
        return Checks::default();
    }
    let bound = |keyword: &str, exclusive: &str| {
        raw.number(keyword).map(|value| Bound { value: value.clone(), exclusive: raw.flag(exclusive) })
    };
    let format = raw.text("format");
    let pattern = raw.text("pattern");
    let nested = |junctor: &str| raw.schemas(junctor).map(read).collect();
    let int_or_string = raw.flag("x-kubernetes-int-or-string");
    // An int-or-string has two types, with which no format goes.
    let format_kind = if int_or_string { None } else { kind };
    Checks::from(Keywords {
        closed,
        format: Format::named(format, format_kind).map(|known| (known, format.to_owned())),
        maximum: bound("maximum", "exclusiveMaximum"),
        minimum: bound("minimum", "exclusiveMinimum"),
        multiple_of: raw.number("multipleOf").cloned(),
        max_length: raw.count("maxLength"),
        min_length: raw.count("minLength"),
        pattern: (!pattern.is_empty())
            .then(|| Pattern::new(pattern).ok())
            .flatten()
            .map(|compiled| (compiled, pattern.to_owned())),
        max_items: raw.count("maxItems"),
        min_items: raw.count("minItems"),
        unique_items: raw.flag("uniqueItems"),
        max_properties: raw.count("maxProperties"),
        min_properties: raw.count("minProperties"),
        required: raw.texts("required").map(str::to_owned).collect(),
        enumeration: raw.list("enum").to_vec(),
        all_of: nested("allOf"),
        any_of: nested("anyOf"),
        one_of: nested("oneOf"),
        not: raw.schema("not").map(|not| Box::new(read(not))),
    })
}
