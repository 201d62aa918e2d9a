//! One node of a structural schema.

use std::ops::Deref;
use std::sync::LazyLock;

use modelplane_cel::pattern::Pattern;
use serde_json::{Number, Value};

use super::format::Format;
use super::properties::Properties;
use super::rules::Rules;

/// The type of a value, where the schema names one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `object`.
    Object,
    /// `array`.
    Array,
    /// `string`.
    String,
    /// `integer`.
    Integer,
    /// `number`.
    Number,
    /// `boolean`.
    Boolean,
}

impl Kind {
    /// The name in a schema.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    /// The type of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Object, Self::Array, Self::String, Self::Integer, Self::Number, Self::Boolean]
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }
}

/// What an object may hold beside its properties (`additionalProperties`).
#[derive(Debug, Clone, Default)]
pub enum Additional {
    /// Nothing: absent or `false`.
    #[default]
    Forbidden,
    /// Anything: `true`.
    Any,
    /// Values of this schema under any name.
    Schema(Box<Schema>),
}

/// How a list is merged and which items it may repeat (`x-kubernetes-list-type`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ListType {
    /// As a whole.
    #[default]
    Atomic,
    /// By item, each of which occurs once.
    Set,
    /// By the keys of [`Schema::list_map_keys`], each combination of which occurs once.
    Map,
}

/// How an object is merged (`x-kubernetes-map-type`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum MapType {
    /// Field by field.
    #[default]
    Granular,
    /// As a whole.
    Atomic,
}

/// How a strategic merge patch treats a field (`x-kubernetes-patch-strategy`, `x-kubernetes-patch-merge-key`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// `merge`: items are merged instead of the list being replaced.
    pub merge: bool,
    /// `retainKeys`: keys that the patch does not name are dropped.
    pub replace_keys: bool,
    /// The key that identifies an item.
    pub merge_key: Option<Box<str>>,
}

/// One node of a structural schema.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    /// The type; `None` is any.
    pub kind: Option<Kind>,
    /// The fields of an object.
    pub properties: Properties,
    /// What an object may hold beside `properties`.
    pub additional_properties: Additional,
    /// The schema of a list's items.
    pub items: Option<Box<Schema>>,
    /// `x-kubernetes-list-type`.
    pub list_type: ListType,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Box<[String]>,
    /// `x-kubernetes-map-type`.
    pub map_type: MapType,
    /// `x-kubernetes-patch-strategy` and `-merge-key`, which built-in kinds have.
    pub patch_strategy: PatchStrategy,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown_fields: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// Whether `null` is a value of its own.
    pub nullable: bool,
    /// The value of an absent field.
    pub default: Option<Box<Value>>,
    /// The keywords that only check values.
    pub(crate) checks: Checks,
    /// The rules of this node.
    pub(crate) rules: Rules,
    /// What is found in this node or below it, so that walks can skip the rest.
    pub(crate) holds: Holds,
}

/// What a schema or a schema inside it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Holds {
    pub(crate) embedded: bool,
    pub(crate) keyed_lists: bool,
    pub(crate) rules: bool,
    pub(crate) defaults: bool,
}

impl Holds {
    pub(crate) fn add(&mut self, other: Holds) {
        self.embedded |= other.embedded;
        self.keyed_lists |= other.keyed_lists;
        self.rules |= other.rules;
        self.defaults |= other.defaults;
    }
}

/// What a node checks; most nodes check nothing, and take no room for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checks(Option<Box<Keywords>>);

impl From<Keywords> for Checks {
    fn from(keywords: Keywords) -> Self {
        Self(Some(Box::new(keywords)))
    }
}

impl Deref for Checks {
    type Target = Keywords;

    fn deref(&self) -> &Keywords {
        static NONE: LazyLock<Keywords> = LazyLock::new(Keywords::default);
        self.0.as_deref().unwrap_or(&NONE)
    }
}

/// Keywords that check values; also those under `allOf`, `anyOf`, `oneOf` and `not`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keywords {
    /// `additionalProperties: false`, which unlike its absence refuses fields.
    pub(crate) closed: bool,
    pub(crate) format: Option<(Format, String)>,
    pub(crate) maximum: Option<Bound>,
    pub(crate) minimum: Option<Bound>,
    pub(crate) multiple_of: Option<Number>,
    pub(crate) max_length: Option<u64>,
    pub(crate) min_length: Option<u64>,
    pub(crate) pattern: Option<(Pattern, String)>,
    pub(crate) max_items: Option<u64>,
    pub(crate) min_items: Option<u64>,
    pub(crate) unique_items: bool,
    pub(crate) max_properties: Option<u64>,
    pub(crate) min_properties: Option<u64>,
    pub(crate) required: Vec<String>,
    pub(crate) enumeration: Vec<Value>,
    pub(crate) all_of: Vec<Schema>,
    pub(crate) any_of: Vec<Schema>,
    pub(crate) one_of: Vec<Schema>,
    pub(crate) not: Option<Box<Schema>>,
}

/// `maximum` or `minimum`.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub(crate) value: Number,
    pub(crate) exclusive: bool,
}

impl Schema {
    /// The schema of a field, named or not.
    pub fn field(&self, name: &str) -> Option<&Schema> {
        match (self.properties.get(name), &self.additional_properties) {
            (Some(field), _) => Some(field),
            (None, Additional::Schema(values)) => Some(values),
            _ => None,
        }
    }
}
