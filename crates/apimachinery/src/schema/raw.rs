//! A schema as it stands in a CustomResourceDefinition, read keyword by keyword.

use serde_json::{Map, Number, Value};

use super::cause::Cause;
use super::path::Place;

/// Schemas nest at most this deep.
pub const MAXIMUM_DEPTH: usize = 64;

/// The keywords of one schema; `null` is the same as absence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Raw<'s>(pub(crate) &'s Map<String, Value>);

/// The junctors whose value is a list of schemas.
pub(crate) const JUNCTORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

impl<'s> Raw<'s> {
    pub(crate) fn get(self, keyword: &str) -> Option<&'s Value> {
        self.0.get(keyword).filter(|value| !value.is_null())
    }

    pub(crate) fn text(self, keyword: &str) -> &'s str {
        self.get(keyword).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn flag(self, keyword: &str) -> bool {
        self.get(keyword).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(crate) fn number(self, keyword: &str) -> Option<&'s Number> {
        match self.get(keyword) {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        }
    }

    /// A limit of a length or count; negative ones are 0.
    pub(crate) fn count(self, keyword: &str) -> Option<u64> {
        self.number(keyword).map(|number| number.as_u64().unwrap_or_default())
    }

    pub(crate) fn list(self, keyword: &str) -> &'s [Value] {
        self.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn texts(self, keyword: &str) -> impl Iterator<Item = &'s str> {
        self.list(keyword).iter().filter_map(Value::as_str)
    }

    pub(crate) fn schema(self, keyword: &str) -> Option<Raw<'s>> {
        self.get(keyword).and_then(Value::as_object).map(Raw)
    }

    pub(crate) fn schemas(self, keyword: &str) -> impl Iterator<Item = Raw<'s>> {
        self.list(keyword).iter().filter_map(Value::as_object).map(Raw)
    }

    /// The schemas of a keyword such as `properties`, by name.
    pub(crate) fn named(self, keyword: &str) -> impl Iterator<Item = (&'s str, Raw<'s>)> {
        let entries = self.get(keyword).and_then(Value::as_object).into_iter().flatten();
        entries.filter_map(|(name, value)| Some((name.as_str(), Raw(value.as_object()?))))
    }

    pub(crate) fn property(self, name: &str) -> Option<Raw<'s>> {
        self.schema("properties")?.schema(name)
    }

    pub(crate) fn has_entries(self, keyword: &str) -> bool {
        self.get(keyword).and_then(Value::as_object).is_some_and(|entries| !entries.is_empty())
    }
}

/// The JSON type of a keyword's value.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Flag,
    Number,
    Count,
    Texts,
    Values,
    Any,
    Schema,
    SchemaOrFlag,
    SchemaOrList,
    Schemas,
    Named,
    Rules,
}

const SHAPES: [(&str, Shape); 39] = [
    ("type", Shape::Text),
    ("format", Shape::Text),
    ("title", Shape::Text),
    ("description", Shape::Text),
    ("pattern", Shape::Text),
    ("id", Shape::Text),
    ("$schema", Shape::Text),
    ("$ref", Shape::Text),
    ("default", Shape::Any),
    ("example", Shape::Any),
    ("nullable", Shape::Flag),
    ("exclusiveMaximum", Shape::Flag),
    ("exclusiveMinimum", Shape::Flag),
    ("uniqueItems", Shape::Flag),
    ("maximum", Shape::Number),
    ("minimum", Shape::Number),
    ("multipleOf", Shape::Number),
    ("maxLength", Shape::Count),
    ("minLength", Shape::Count),
    ("maxItems", Shape::Count),
    ("minItems", Shape::Count),
    ("maxProperties", Shape::Count),
    ("minProperties", Shape::Count),
    ("required", Shape::Texts),
    ("enum", Shape::Values),
    ("allOf", Shape::Schemas),
    ("anyOf", Shape::Schemas),
    ("oneOf", Shape::Schemas),
    ("not", Shape::Schema),
    ("properties", Shape::Named),
    ("additionalProperties", Shape::SchemaOrFlag),
    ("items", Shape::SchemaOrList),
    ("x-kubernetes-preserve-unknown-fields", Shape::Flag),
    ("x-kubernetes-embedded-resource", Shape::Flag),
    ("x-kubernetes-int-or-string", Shape::Flag),
    ("x-kubernetes-list-type", Shape::Text),
    ("x-kubernetes-map-type", Shape::Text),
    ("x-kubernetes-list-map-keys", Shape::Texts),
    ("x-kubernetes-validations", Shape::Rules),
];

const RULE_SHAPES: [(&str, Shape); 6] = [
    ("rule", Shape::Text),
    ("message", Shape::Text),
    ("messageExpression", Shape::Text),
    ("reason", Shape::Text),
    ("fieldPath", Shape::Text),
    ("optionalOldSelf", Shape::Flag),
];

impl Shape {
    /// What a value of the shape is; `None` if the value has it.
    fn mismatch(self, value: &Value) -> Option<&'static str> {
        let every = |is: fn(&Value) -> bool| value.as_array().is_some_and(|items| items.iter().all(is));
        let (fits, expected) = match self {
            Shape::Text => (value.is_string(), "a string"),
            Shape::Flag => (value.is_boolean(), "a boolean"),
            Shape::Number => (value.is_number(), "a number"),
            Shape::Count => (value.is_i64(), "an integer"),
            Shape::Texts => (every(Value::is_string), "a list of strings"),
            Shape::Values => (value.is_array(), "a list"),
            Shape::Any => (true, ""),
            Shape::Schema => (value.is_object(), "a schema"),
            Shape::SchemaOrFlag => (value.is_object() || value.is_boolean(), "a schema or a boolean"),
            Shape::SchemaOrList => (value.is_object() || every(Value::is_object), "a schema"),
            Shape::Schemas => (every(Value::is_object), "a list of schemas"),
            Shape::Named => {
                let all = value.as_object().is_some_and(|named| named.values().all(Value::is_object));
                (all, "schemas by name")
            }
            Shape::Rules => (every(Value::is_object), "a list of rules"),
        };
        (!fits).then_some(expected)
    }
}

/// Checks that every keyword has the JSON type it must have, and the depth of a schema, before it is read.
pub(crate) fn check_shapes(schema: &Value, place: &Place<'_>, causes: &mut Vec<Cause>) {
    match schema.as_object() {
        Some(keywords) => check_level(Raw(keywords), place, 0, causes),
        None => causes.push(Cause::type_invalid(place.bracketed(), kind_name(schema), "must be a schema")),
    }
}

fn check_level(raw: Raw<'_>, place: &Place<'_>, depth: usize, causes: &mut Vec<Cause>) {
    if depth > MAXIMUM_DEPTH {
        let detail = format!("must not nest more than {MAXIMUM_DEPTH} schemas");
        causes.push(Cause::forbidden(place.bracketed(), &detail));
        return;
    }
    let before = causes.len();
    check_keywords(raw, &SHAPES, place, causes);
    let rules = place.field("x-kubernetes-validations");
    for (index, rule) in raw.schemas("x-kubernetes-validations").enumerate() {
        check_keywords(rule, &RULE_SHAPES, &rules.item(index), causes);
    }
    if causes.len() > before {
        return;
    }
    each_child(raw, place, &mut |child, place| check_level(child, place, depth + 1, causes));
}

fn check_keywords(raw: Raw<'_>, shapes: &[(&str, Shape)], place: &Place<'_>, causes: &mut Vec<Cause>) {
    for (keyword, shape) in shapes {
        let Some(value) = raw.get(keyword) else { continue };
        if let Some(expected) = shape.mismatch(value) {
            let path = place.field(keyword).bracketed();
            causes.push(Cause::type_invalid(path, kind_name(value), &format!("must be {expected}")));
        }
    }
}

/// Calls back for each schema right inside a schema.
pub(crate) fn each_child<'s>(raw: Raw<'s>, place: &Place<'_>, visit: &mut dyn FnMut(Raw<'s>, &Place<'_>)) {
    for keyword in ["items", "additionalProperties", "not"] {
        if let Some(child) = raw.schema(keyword) {
            visit(child, &place.field(keyword));
        }
    }
    let properties = place.field("properties");
    for (name, child) in raw.named("properties") {
        visit(child, &properties.key(name));
    }
    for junctor in JUNCTORS {
        let list = place.field(junctor);
        for (index, child) in raw.schemas(junctor).enumerate() {
            visit(child, &list.item(index));
        }
    }
}

/// The name of a JSON value's type.
pub(crate) fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
