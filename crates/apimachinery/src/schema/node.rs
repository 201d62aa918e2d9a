//! One node of a structural schema.

use std::collections::BTreeMap;

use serde_json::Value;

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
    pub merge_key: Option<String>,
}

/// One node of a structural schema.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    /// The type; `None` is any.
    pub kind: Option<Kind>,
    /// The fields of an object.
    pub properties: BTreeMap<String, Schema>,
    /// What an object may hold beside `properties`.
    pub additional_properties: Additional,
    /// The schema of a list's items.
    pub items: Option<Box<Schema>>,
    /// `x-kubernetes-list-type`.
    pub list_type: ListType,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<String>,
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
    pub default: Option<Value>,
}
