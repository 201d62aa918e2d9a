//! What an API server asks of a schema in a CustomResourceDefinition beyond being structural.
//!
//! Unsupported keywords, list and map types, and the rules of `x-kubernetes-validations` with their costs.

use serde_json::{Value, json};

use super::cause::Cause;
use super::node::{Additional, Schema};
use super::parse::holds;
use super::path::Place;
use super::raw::{JUNCTORS, Raw};
use super::rules::{Cost, RuleScope, Rules, check_texts};

/// What is wrong with a schema.
#[derive(Default)]
pub(crate) struct Found {
    /// With its keywords.
    pub(crate) schema: Vec<Cause>,
    /// With what its rules mean; to be ignored if the schema itself is wrong.
    pub(crate) rules: Vec<Cause>,
}

/// Checks a schema and, if there is a sound `target` read from it, puts the compiled rules there.
pub(crate) fn check(raw: Raw<'_>, place: &Place<'_>, target: Option<&mut Schema>) -> Found {
    let mut walk = Walk { found: Found::default(), cost: Cost::default() };
    let context = Context { is_root: true, ..Context::default() };
    walk.level(raw, place, &context, target.map(|target| (target, Some(1))));
    walk.cost.report(place, &mut walk.found.rules);
    walk.found
}

/// What holds for a schema because of the schemas around it.
#[derive(Debug, Clone, Default)]
struct Context {
    is_root: bool,
    /// Why there may be no default.
    forbids_defaults: Option<String>,
    inside_metadata: bool,
    /// The list or map within which former values cannot be found.
    uncorrelatable: Option<String>,
}

impl Context {
    fn inner(&self) -> Self {
        Self { is_root: false, ..self.clone() }
    }
}

struct Walk {
    found: Found,
    cost: Cost,
}

/// The schema that gets the rules, and how many values of it an object has at most.
type Target<'t> = Option<(&'t mut Schema, Option<u64>)>;

impl Walk {
    fn level(&mut self, raw: Raw<'_>, place: &Place<'_>, context: &Context, mut target: Target<'_>) {
        let before = self.found.schema.len();
        self.keywords(raw, place, context);
        self.children(raw, place, context, &mut target);
        self.junctors(raw, place, &context.inner());
        self.list_and_map_types(raw, place);
        check_texts(raw, place, &mut self.found.schema);
        let Some((schema, cardinality)) = target else { return };
        if self.found.schema.len() == before && !raw.list("x-kubernetes-validations").is_empty() {
            let scope = RuleScope {
                is_resource: context.is_root || schema.embedded_resource,
                uncorrelatable: context.uncorrelatable.as_deref(),
                cardinality,
            };
            schema.rules = Rules::compile(raw, place, &scope, &mut self.cost, &mut self.found.rules);
        }
        schema.holds = holds(schema);
    }

    fn refuse(&mut self, place: &Place<'_>, keyword: &str, detail: &str) {
        self.found.schema.push(Cause::forbidden(place.field(keyword).bracketed(), detail));
    }

    fn keywords(&mut self, raw: Raw<'_>, place: &Place<'_>, context: &Context) {
        const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
        let kind = raw.text("type");
        if !kind.is_empty() && !TYPES.contains(&kind) {
            let path = place.field("type").bracketed();
            self.found.schema.push(Cause::not_supported(path, &json!(kind), &TYPES.map(|name| json!(name))));
        }
        if let Some(reason) = context.forbids_defaults.as_ref().filter(|_| raw.get("default").is_some()) {
            self.refuse(place, "default", &format!("must not be set {reason}"));
        }
        for keyword in ["id", "$ref"] {
            if !raw.text(keyword).is_empty() {
                self.refuse(place, keyword, &format!("{keyword} is not supported"));
            }
        }
        for keyword in ["additionalItems", "dependencies"] {
            if raw.get(keyword).is_some() {
                self.refuse(place, keyword, &format!("{keyword} is not supported"));
            }
        }
        for keyword in ["patternProperties", "definitions"] {
            if raw.has_entries(keyword) {
                self.refuse(place, keyword, &format!("{keyword} is not supported"));
            }
        }
        if kind == "null" {
            self.refuse(place, "type", "type cannot be set to null, use nullable as an alternative");
        }
        if raw.get("items").and_then(Value::as_array).is_some_and(|items| !items.is_empty()) {
            self.refuse(place, "items", "items must be a schema object and not an array");
        }
        if context.inside_metadata && raw.flag("x-kubernetes-embedded-resource") {
            self.refuse(place, "x-kubernetes-embedded-resource", "must not be used inside of resource meta");
        }
        if raw.flag("uniqueItems") {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.refuse(place, "uniqueItems", detail);
        }
        let additional = raw.get("additionalProperties");
        if raw.has_entries("properties") && additional.is_some_and(|value| *value != Value::Bool(true)) {
            let detail = "additionalProperties and properties are mutual exclusive";
            self.refuse(place, "additionalProperties", detail);
        }
        let preserve = "x-kubernetes-preserve-unknown-fields";
        if let Some(value @ Value::Bool(false)) = raw.get(preserve) {
            let path = place.field(preserve).bracketed();
            self.found.schema.push(Cause::invalid(path, value, "must be true or undefined"));
        }
    }

    fn children(&mut self, raw: Raw<'_>, place: &Place<'_>, context: &Context, target: &mut Target<'_>) {
        let times = |count: Option<u64>, target: &Target<'_>| {
            let cardinality = target.as_ref().and_then(|(_, cardinality)| *cardinality);
            cardinality.zip(count).map(|(times, count)| times.saturating_mul(count))
        };
        if let Some(values) = raw.schema("additionalProperties") {
            let mut context = context.inner();
            if context.inside_metadata {
                let reason = "inside additionalProperties applying to object metadata";
                context.forbids_defaults = Some(reason.to_owned());
            }
            let count = times(raw.count("maxProperties"), target);
            let inner = target.as_mut().and_then(|(schema, _)| match &mut schema.additional_properties {
                Additional::Schema(values) => Some((&mut **values, count)),
                _ => None,
            });
            self.level(values, &place.field("additionalProperties"), &context, inner);
        }
        let properties = place.field("properties");
        let is_resource = context.is_root || raw.flag("x-kubernetes-embedded-resource");
        let map_type = raw.text("x-kubernetes-map-type");
        for (name, property) in raw.named("properties") {
            let mut inner_context = context.inner();
            if !matches!(map_type, "" | "granular" | "atomic") {
                inner_context.uncorrelatable.get_or_insert_with(|| place.bracketed());
            }
            if is_resource && matches!(name, "metadata" | "kind" | "apiVersion") {
                inner_context.inside_metadata = true;
                if context.is_root {
                    inner_context.forbids_defaults = Some(format!("in top-level {name}"));
                }
            }
            let inner =
                target.as_mut().and_then(|(schema, count)| Some((schema.properties.get_mut(name)?, *count)));
            self.level(property, &properties.key(name), &inner_context, inner);
        }
        if let Some(items) = raw.schema("items") {
            let mut context = context.inner();
            if raw.text("x-kubernetes-list-type") != "map" {
                context.uncorrelatable.get_or_insert_with(|| place.bracketed());
            }
            let count = times(raw.count("maxItems"), target);
            let inner = target.as_mut().and_then(|(schema, _)| Some((schema.items.as_deref_mut()?, count)));
            self.level(items, &place.field("items"), &context, inner);
        }
    }

    fn junctors(&mut self, raw: Raw<'_>, place: &Place<'_>, context: &Context) {
        if let Some(not) = raw.schema("not") {
            self.level(not, &place.field("not"), context, None);
        }
        for junctor in JUNCTORS {
            let list = place.field(junctor);
            for (index, nested) in raw.schemas(junctor).enumerate() {
                self.level(nested, &list.item(index), context, None);
            }
        }
    }

    fn list_and_map_types(&mut self, raw: Raw<'_>, place: &Place<'_>) {
        let kind = raw.text("type");
        for (keyword, expected, known) in [
            ("x-kubernetes-map-type", "object", &["atomic", "granular"][..]),
            ("x-kubernetes-list-type", "array", &["atomic", "set", "map"][..]),
        ] {
            let Some(value) = raw.get(keyword) else { continue };
            let path = place.field("type").bracketed();
            let detail = format!("must be {expected} if {keyword} is specified");
            if kind.is_empty() {
                self.found.schema.push(Cause::required(path, &detail));
            } else if kind != expected {
                self.found.schema.push(Cause::invalid_text(path, kind, &detail));
            }
            if !known.contains(&raw.text(keyword)) {
                let path = place.field(keyword).bracketed();
                let known: Vec<Value> = known.iter().map(|name| json!(name)).collect();
                self.found.schema.push(Cause::not_supported(path, value, &known));
            }
        }
        self.set_items(raw, place);
        self.map_keys(raw, place);
        self.map_items(raw, place);
    }

    /// The items of a set are compared as a whole.
    fn set_items(&mut self, raw: Raw<'_>, place: &Place<'_>) {
        if raw.text("x-kubernetes-list-type") != "set" || raw.text("type") != "array" {
            return;
        }
        let Some(items) = raw.schema("items") else { return };
        let list_type = items.get("x-kubernetes-list-type");
        let keyword = match items.text("type") {
            "array" if list_type.is_some_and(|kind| kind != "atomic") => "x-kubernetes-list-type",
            "object" if items.text("x-kubernetes-map-type") != "atomic" => "x-kubernetes-map-type",
            _ => return,
        };
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let path = place.field("items").field(keyword).bracketed();
        self.found.schema.push(Cause::invalid(path, list_type.unwrap_or(&Value::Null), detail));
    }

    fn map_keys(&mut self, raw: Raw<'_>, place: &Place<'_>) {
        let (type_keyword, keys_keyword) = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys");
        let list_type = raw.text(type_keyword);
        let keys = raw.list(keys_keyword);
        if !keys.is_empty() && list_type != "map" {
            let path = place.field(type_keyword).bracketed();
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            self.found.schema.push(match raw.get(type_keyword) {
                None => Cause::required(path, detail),
                Some(value) => Cause::invalid(path, value, detail),
            });
        }
        if list_type == "map" && keys.is_empty() {
            let path = place.field(keys_keyword).bracketed();
            let detail = "must not be empty if x-kubernetes-list-type is map";
            self.found.schema.push(Cause::required(path, detail));
        }
    }

    fn map_items(&mut self, raw: Raw<'_>, place: &Place<'_>) {
        let list_type = raw.text("x-kubernetes-list-type");
        let items_place = place.field("items");
        let Some(items) = raw.schema("items") else {
            if list_type == "map" && raw.get("items").is_none() {
                let detail = "must have a schema if x-kubernetes-list-type is map";
                self.found.schema.push(Cause::required(items_place.bracketed(), detail));
            }
            return;
        };
        if matches!(list_type, "set" | "map") && items.flag("nullable") {
            let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            self.refuse(&items_place, "nullable", &detail);
        }
        if list_type != "map" {
            return;
        }
        let kind = items.text("type");
        if kind != "object" {
            let path = items_place.field("type").bracketed();
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            self.found.schema.push(Cause::invalid_text(path, kind, detail));
        }
        let keys_path = place.field("x-kubernetes-list-map-keys");
        let keys = raw.get("x-kubernetes-list-map-keys").unwrap_or(&Value::Null);
        let mut seen: Vec<&str> = Vec::new();
        for key in raw.texts("x-kubernetes-list-map-keys").filter(|_| kind == "object") {
            match items.property(key) {
                Some(property) if matches!(property.text("type"), "array" | "object") => {
                    let path = items_place.field("properties").key(key).field("type").bracketed();
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    self.found.schema.push(Cause::invalid_text(path, kind, detail));
                }
                Some(_) => {}
                None => {
                    let detail = "entries must all be names of item properties";
                    self.found.schema.push(Cause::invalid(keys_path.bracketed(), keys, detail));
                }
            }
            if seen.contains(&key) {
                let detail = "must not contain duplicate entries";
                self.found.schema.push(Cause::invalid(keys_path.bracketed(), keys, detail));
            }
            seen.push(key);
        }
        self.map_key_properties(raw, items, &items_place);
    }

    fn map_key_properties(&mut self, raw: Raw<'_>, items: Raw<'_>, place: &Place<'_>) {
        let properties = place.field("properties");
        for key in raw.texts("x-kubernetes-list-map-keys") {
            let Some(property) = items.property(key) else { continue };
            let place = properties.key(key);
            if property.get("default").is_none() && !items.texts("required").any(|name| name == key) {
                let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                self.found.schema.push(Cause::required(place.field("default").bracketed(), detail));
            }
            if property.flag("nullable") {
                let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.refuse(&place, "nullable", detail);
            }
        }
    }
}
