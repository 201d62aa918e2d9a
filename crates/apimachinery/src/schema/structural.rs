//! Whether a schema is structural: types everywhere outside of value validations, and only there (KEP-1193).

use modelplane_cel::pattern::Pattern;
use serde_json::{Value, json};

use super::cause::Cause;
use super::path::Place;
use super::raw::{JUNCTORS, Raw};

/// Where a schema stands, which decides how a missing type is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Keywords with which a schema cannot even be read as a structural one.
pub(crate) fn is_readable(raw: Raw<'_>) -> bool {
    const UNSUPPORTED: [&str; 3] = ["id", "$schema", "$ref"];
    const UNSUPPORTED_ENTRIES: [&str; 2] = ["patternProperties", "definitions"];
    let unsupported = UNSUPPORTED.iter().any(|keyword| !raw.text(keyword).is_empty())
        || UNSUPPORTED_ENTRIES.iter().any(|keyword| raw.has_entries(keyword))
        || raw.get("dependencies").is_some()
        || raw.get("additionalItems").is_some()
        || raw.get("items").is_some_and(Value::is_array)
        || raw.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false));
    let mut readable = !unsupported;
    super::raw::each_child(raw, &Place::ROOT, &mut |child, _| readable = readable && is_readable(child));
    readable
}

/// What is not structural in the schema of a whole resource.
pub(crate) fn check(raw: Raw<'_>, place: &Place<'_>, causes: &mut Vec<Cause>) {
    let mut walk = Walk { causes };
    walk.level(raw, Level::Root, place);
    walk.completeness(raw, Some(raw), place, place);
}

struct Walk<'c> {
    causes: &'c mut Vec<Cause>,
}

impl Walk<'_> {
    fn level(&mut self, raw: Raw<'_>, level: Level, place: &Place<'_>) {
        let kind = raw.text("type");
        if kind == "array" && raw.get("items").is_none() {
            self.causes.push(Cause::required(place.field("items").bracketed(), "must be specified"));
        }
        if let Some(items) = raw.schema("items") {
            self.level(items, Level::Item, &place.field("items"));
        }
        let properties = place.field("properties");
        for (name, property) in raw.named("properties") {
            self.level(property, Level::Field, &properties.key(name));
        }
        let additional = place.field("additionalProperties");
        if raw.get("additionalProperties").is_some() && level == Level::Root {
            self.causes.push(Cause::forbidden(additional.bracketed(), "must not be used at the root"));
        }
        if let Some(values) = raw.schema("additionalProperties") {
            self.level(values, Level::Field, &additional);
        }
        self.extensions(raw, place);
        let int_or_string = json!([{ "type": "integer" }, { "type": "string" }]);
        let first_all_of = raw.schemas("allOf").next();
        let exceptions = Exceptions {
            any_of: raw.get("anyOf") == Some(&int_or_string),
            first_all_of: first_all_of.is_some_and(|first| first.get("anyOf") == Some(&int_or_string)),
        };
        self.junctors(raw, exceptions, place);
        self.pattern(raw, place);
        self.kind(raw, level, place);
        self.metadata(raw, level, place);
    }

    fn extensions(&mut self, raw: Raw<'_>, place: &Place<'_>) {
        if !raw.flag("x-kubernetes-int-or-string") {
            return;
        }
        for keyword in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if raw.flag(keyword) {
                let path = place.field(keyword).bracketed();
                let detail = "must be false if x-kubernetes-int-or-string is true";
                self.causes.push(Cause::invalid(path, &Value::Bool(true), detail));
            }
        }
    }

    fn kind(&mut self, raw: Raw<'_>, level: Level, place: &Place<'_>) {
        let kind = raw.text("type");
        let path = || place.field("type").bracketed();
        let embedded = raw.flag("x-kubernetes-embedded-resource");
        let untyped =
            raw.flag("x-kubernetes-int-or-string") || raw.flag("x-kubernetes-preserve-unknown-fields");
        if embedded && kind != "object" {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            self.causes.push(match kind {
                "" => Cause::required(path(), detail),
                other => Cause::invalid_text(path(), other, detail),
            });
        } else if kind.is_empty() && !untyped {
            let detail = match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            };
            self.causes.push(Cause::required(path(), detail));
        }
        if embedded && raw.get("additionalProperties").is_some() {
            let path = place.field("additionalProperties").bracketed();
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            self.causes.push(Cause::forbidden(path, detail));
        }
        if level == Level::Root && !kind.is_empty() && kind != "object" {
            self.causes.push(Cause::invalid_text(path(), kind, "must be object at the root"));
        }
        let preserves = raw.flag("x-kubernetes-preserve-unknown-fields");
        if embedded && !preserves && !raw.has_entries("properties") {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
            self.causes.push(Cause::required(place.field("properties").bracketed(), detail));
        }
    }

    fn metadata(&mut self, raw: Raw<'_>, level: Level, place: &Place<'_>) {
        let properties = place.field("properties");
        if level == Level::Root || raw.flag("x-kubernetes-embedded-resource") {
            for (name, expected) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
                let Some(property) = raw.property(name) else { continue };
                let kind = property.text("type");
                if kind != expected {
                    let path = properties.key(name).field("type").bracketed();
                    self.causes.push(Cause::invalid_text(path, kind, &format!("must be {expected}")));
                }
            }
        }
        let Some(metadata) = raw.property("metadata").filter(|_| level == Level::Root) else { return };
        let is_name = |name: &str| name == "name" || name == "generateName";
        let restricts_more = metadata.0.keys().any(|keyword| match keyword.as_str() {
            "type" | "default" => false,
            "properties" => metadata.named("properties").any(|(name, _)| !is_name(name)),
            other => metadata.get(other).is_some(),
        });
        if restricts_more {
            let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
            self.causes.push(Cause::forbidden(properties.key("metadata").bracketed(), detail));
        }
    }

    fn junctors(&mut self, raw: Raw<'_>, exceptions: Exceptions, place: &Place<'_>) {
        for junctor in JUNCTORS {
            if junctor == "anyOf" && exceptions.any_of {
                continue;
            }
            let list = place.field(junctor);
            for (index, nested) in raw.schemas(junctor).enumerate() {
                let any_of = junctor == "allOf" && index == 0 && exceptions.first_all_of;
                self.nested(nested, Exceptions { any_of, first_all_of: false }, &list.item(index));
            }
        }
        if let Some(not) = raw.schema("not") {
            self.nested(not, Exceptions::default(), &place.field("not"));
        }
    }

    fn pattern(&mut self, raw: Raw<'_>, place: &Place<'_>) {
        let pattern = raw.text("pattern");
        if let Err(error) = Pattern::new(pattern) {
            let detail = format!(
                "must be a valid regular expression, but isn't: error parsing regexp: {error}: `{pattern}`"
            );
            self.causes.push(Cause::invalid_text(place.field("pattern").bracketed(), pattern, &detail));
        }
    }

    /// A schema under a junctor, which may only check values.
    fn nested(&mut self, raw: Raw<'_>, exceptions: Exceptions, place: &Place<'_>) {
        const FORBIDDEN: [(&str, &str); 12] = [
            ("type", "must be empty to be structural"),
            ("additionalProperties", "must be undefined to be structural"),
            ("default", "must be undefined to be structural"),
            ("title", "must be empty to be structural"),
            ("description", "must be empty to be structural"),
            ("nullable", "must be false to be structural"),
            ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
            ("x-kubernetes-embedded-resource", "must be false to be structural"),
            ("x-kubernetes-int-or-string", "must be false to be structural"),
            ("x-kubernetes-list-map-keys", "must be empty to be structural"),
            ("x-kubernetes-list-type", "must be undefined to be structural"),
            ("x-kubernetes-map-type", "must be undefined to be structural"),
        ];
        self.junctors(raw, exceptions, place);
        self.pattern(raw, place);
        if let Some(items) = raw.schema("items") {
            self.nested(items, Exceptions::default(), &place.field("items"));
        }
        let properties = place.field("properties");
        for (name, property) in raw.named("properties") {
            self.nested(property, Exceptions::default(), &properties.key(name));
        }
        for (keyword, detail) in FORBIDDEN {
            let is_empty = |value: &Value| match value {
                Value::String(text) => text.is_empty() && keyword != "default",
                Value::Bool(flag) => !flag && keyword != "default" && keyword != "additionalProperties",
                Value::Array(items) => items.is_empty() && keyword != "default",
                _ => false,
            };
            if raw.get(keyword).is_some_and(|value| !is_empty(value)) {
                self.causes.push(Cause::forbidden(place.field(keyword).bracketed(), detail));
            }
        }
        if !raw.list("x-kubernetes-validations").is_empty() {
            let path = place.field("x-kubernetes-validations").bracketed();
            self.causes.push(Cause::forbidden(path, "must be empty to be structural"));
        }
        if raw.property("metadata").is_some() {
            let path = properties.key("metadata").bracketed();
            self.causes.push(Cause::forbidden(path, "must not be specified in a nested context"));
        }
    }

    /// Fields that the root's value validations name have to exist; like Kubernetes, deeper ones are not checked.
    fn completeness(&mut self, raw: Raw<'_>, shape: Option<Raw<'_>>, shaped: &Place<'_>, place: &Place<'_>) {
        let Some(shape) = shape else {
            let detail = format!("because it is defined in {}", place.bracketed());
            self.causes.push(Cause::required(shaped.bracketed(), &detail));
            return;
        };
        if let Some(not) = raw.schema("not") {
            self.nested_completeness(not, shape, shaped, &place.field("not"));
        }
        for junctor in JUNCTORS {
            let list = place.field(junctor);
            for (index, nested) in raw.schemas(junctor).enumerate() {
                self.nested_completeness(nested, shape, shaped, &list.item(index));
            }
        }
    }

    fn nested_completeness(&mut self, raw: Raw<'_>, shape: Raw<'_>, shaped: &Place<'_>, place: &Place<'_>) {
        self.completeness(raw, Some(shape), shaped, place);
        if let Some(items) = raw.schema("items") {
            let (shaped, place) = (&shaped.field("items"), &place.field("items"));
            match shape.schema("items") {
                Some(shape) => self.nested_completeness(items, shape, shaped, place),
                None => self.completeness(items, None, shaped, place),
            }
        }
        let (properties, shapes) = (place.field("properties"), shaped.field("properties"));
        for (name, property) in raw.named("properties") {
            let (shaped, place) = (&shapes.key(name), &properties.key(name));
            match shape.property(name) {
                Some(shape) => self.nested_completeness(property, shape, shaped, place),
                None => self.completeness(property, None, shaped, place),
            }
        }
    }
}

/// The places where an int-or-string may name types in a junctor.
#[derive(Debug, Clone, Copy, Default)]
struct Exceptions {
    any_of: bool,
    first_all_of: bool,
}
