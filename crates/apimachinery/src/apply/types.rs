//! How server-side apply sees a schema: which values are scalars, lists or maps, and how each is merged.
//!
//! Follows the conversion of OpenAPI schemas to structured-merge-diff types: fields of an object with
//! unknown fields, and values without a schema, are merged field by field, their lists as a whole.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::schema::{Additional, Kind, ListType, MapType, Schema};

use super::path::{KeyField, PathElement};

/// The type of a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Type<'a> {
    /// As a schema says.
    Known {
        schema: &'a Schema,
        /// Whether a schema above keeps unknown fields, which holds for everything below it.
        preserve: bool,
        /// Whether `apiVersion`, `kind` and `metadata` are those of every object.
        object: bool,
    },
    /// Known by its value only: maps by field, lists as a whole.
    Deduced,
    /// Known by its value only, below a list: everything as a whole.
    Whole,
}

/// What a value of a type may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shapes<'a> {
    pub(super) map: Option<MapShape<'a>>,
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<ListShape<'a>>,
}

/// What scalars a type allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    Any,
    Text,
    Number,
    Boolean,
}

/// How a map is merged.
#[derive(Debug, Clone, Copy)]
pub(super) struct MapShape<'a> {
    pub(super) atomic: bool,
    fields: Option<&'a Schema>,
    preserve: bool,
    object: bool,
    /// The type of what is not a named field; `None` if there may be nothing else.
    others: Option<Type<'a>>,
}

/// How a list is merged.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListShape<'a> {
    pub(super) atomic: bool,
    pub(super) keys: &'a [String],
    pub(super) items: Type<'a>,
    item_schema: Option<&'a Schema>,
}

/// One of the shapes, the one a value has.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape<'a> {
    Map(MapShape<'a>),
    Scalar(Scalar),
    List(ListShape<'a>),
}

impl<'a> Type<'a> {
    /// The type of a whole object.
    pub(super) fn root(schema: &'a Schema) -> Type<'a> {
        Type::Known { schema, preserve: schema.preserve_unknown_fields, object: true }
    }

    fn below(schema: &'a Schema, preserve: bool) -> Type<'a> {
        let preserve = preserve || schema.preserve_unknown_fields;
        Type::Known { schema, preserve, object: schema.embedded_resource }
    }

    pub(super) fn shapes(self) -> Shapes<'a> {
        let (schema, preserve, object) = match self {
            Type::Known { schema, preserve, object } => (schema, preserve, object),
            Type::Deduced => return Shapes::of_any(false),
            Type::Whole => return Shapes::of_any(true),
        };
        let map = || MapShape::of(schema, preserve, object);
        let list = || ListShape::of(schema, preserve);
        let scalar = |scalar| Shapes { map: None, scalar: Some(scalar), list: None };
        match schema.kind {
            Some(Kind::Object) => Shapes { map: Some(map()), scalar: None, list: None },
            Some(Kind::Array) => Shapes { map: None, scalar: None, list: Some(list()) },
            Some(Kind::String) if schema.int_or_string => scalar(Scalar::Any),
            Some(Kind::String) => scalar(Scalar::Text),
            Some(Kind::Integer | Kind::Number) => scalar(Scalar::Number),
            Some(Kind::Boolean) => scalar(Scalar::Boolean),
            None => Shapes { map: Some(map()), scalar: Some(Scalar::Any), list: Some(list()) },
        }
    }

    /// The shape of `value` in this type.
    pub(super) fn shape(self, value: Option<&Value>) -> Shape<'a> {
        self.shapes().of_value(value)
    }
}

impl<'a> Shapes<'a> {
    fn of_any(whole: bool) -> Shapes<'a> {
        let items = Type::Whole;
        let others = if whole { Type::Whole } else { Type::Deduced };
        Shapes {
            map: Some(MapShape {
                atomic: whole,
                fields: None,
                preserve: false,
                object: false,
                others: Some(others),
            }),
            scalar: Some(Scalar::Any),
            list: Some(ListShape { atomic: true, keys: &[], items, item_schema: None }),
        }
    }

    /// The shape that `value` has; where it has none of them, the first of map, scalar, list.
    pub(super) fn of_value(self, value: Option<&Value>) -> Shape<'a> {
        let fitting = match value {
            Some(Value::String(_) | Value::Number(_) | Value::Bool(_)) => self.scalar.map(Shape::Scalar),
            Some(Value::Array(_)) => self.list.map(Shape::List),
            Some(Value::Object(_)) => self.map.map(Shape::Map),
            Some(Value::Null) | None => None,
        };
        let first = || self.map.map(Shape::Map).or(self.scalar.map(Shape::Scalar));
        fitting.or_else(first).or(self.list.map(Shape::List)).unwrap_or(Shape::Scalar(Scalar::Any))
    }

    /// Whether two values would be walked alike.
    pub(super) fn alike(self, left: &Value, right: &Value) -> bool {
        let class = |value: &Value| match value {
            Value::String(_) | Value::Number(_) | Value::Bool(_) if self.scalar.is_some() => 1,
            Value::Array(_) if self.list.is_some() => 2,
            Value::Object(_) if self.map.is_some() => 3,
            _ => 0,
        };
        let shapes = [self.map.is_some(), self.scalar.is_some(), self.list.is_some()];
        class(left) == class(right) || shapes.iter().filter(|present| **present).count() == 1
    }
}

impl<'a> MapShape<'a> {
    fn of(schema: &'a Schema, preserve: bool, object: bool) -> MapShape<'a> {
        let others = match &schema.additional_properties {
            Additional::Schema(values) => Some(Type::below(values, preserve)),
            Additional::Any => Some(Type::Deduced),
            Additional::Forbidden if preserve || (schema.properties.is_empty() && !object) => {
                Some(Type::Deduced)
            }
            Additional::Forbidden => None,
        };
        MapShape {
            atomic: schema.map_type == MapType::Atomic,
            fields: Some(schema),
            preserve,
            object,
            others,
        }
    }

    /// The type of a field that the schema names.
    pub(super) fn named(&self, name: &str) -> Option<Type<'a>> {
        if self.object {
            match name {
                "apiVersion" | "kind" => return Some(Type::below(text(), false)),
                "metadata" => return Some(Type::below(object_metadata(), false)),
                _ => {}
            }
        }
        let schema = self.fields?.properties.get(name)?;
        Some(Type::below(schema, self.preserve))
    }

    /// The type of any field; `None` if there may be no such field.
    pub(super) fn field(&self, name: &str) -> Option<Type<'a>> {
        self.named(name).or(self.others)
    }

    /// Whether nothing is known about the map's fields.
    pub(super) fn is_deduced(&self) -> bool {
        let named = self.object || self.fields.is_some_and(|schema| !schema.properties.is_empty());
        matches!(self.others, Some(Type::Deduced)) && !named
    }
}

impl<'a> ListShape<'a> {
    fn of(schema: &'a Schema, preserve: bool) -> ListShape<'a> {
        let item_schema = schema.items.as_deref();
        let items = item_schema.map_or(Type::Whole, |items| Type::below(items, preserve));
        let (atomic, keys): (bool, &[String]) = match schema.list_type {
            ListType::Map => (false, &schema.list_map_keys),
            ListType::Set => (false, &[]),
            ListType::Atomic => (true, &[]),
        };
        ListShape { atomic, keys, items, item_schema }
    }

    /// The element by which `item` is known; the error says why it has none.
    pub(super) fn element(&self, item: &Value) -> Result<PathElement, BadItem> {
        if self.keys.is_empty() {
            return match item {
                Value::Object(_) => Err(BadItem::ObjectInSet),
                Value::Array(_) => Err(BadItem::ListInSet),
                Value::Null => Err(BadItem::NullInSet),
                scalar => Ok(PathElement::Value(Arc::new(scalar.clone()))),
            };
        }
        let object = match item {
            Value::Object(object) => object,
            Value::Null => return Err(BadItem::NullInMap),
            _ => return Err(BadItem::ScalarInMap),
        };
        let mut fields: Vec<KeyField> = Vec::with_capacity(self.keys.len());
        for key in self.keys {
            let value =
                object.get(key).map(Cow::Borrowed).or_else(|| self.key_default(key).map(Cow::Borrowed));
            if let Some(value) = value {
                fields.push(KeyField { name: Arc::from(key.as_str()), value: value.into_owned() });
            }
        }
        if fields.is_empty() {
            return Err(BadItem::NoKey(self.keys.to_vec()));
        }
        fields.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(PathElement::Key(fields.into()))
    }

    fn key_default(&self, key: &str) -> Option<&'a Value> {
        self.item_schema?.properties.get(key)?.default.as_deref()
    }
}

/// Why an item of a list cannot be told from the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BadItem {
    ObjectInSet,
    ListInSet,
    NullInSet,
    NullInMap,
    ScalarInMap,
    NoKey(Vec<String>),
}

impl fmt::Display for BadItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadItem::ObjectInSet => {
                f.write_str("associative list without keys has an element that's a map type")
            }
            BadItem::ListInSet => f.write_str("not supported: associative list with lists as elements"),
            BadItem::NullInSet => {
                f.write_str("associative list without keys has an element that's an explicit null")
            }
            BadItem::NullInMap => f.write_str("associative list with keys may not have a null element"),
            BadItem::ScalarInMap => f.write_str("associative list with keys may not have non-map elements"),
            BadItem::NoKey(keys) => {
                let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
                let keys = keys.join(" ");
                write!(
                    f,
                    "associative list with keys has an element that omits all key fields [{keys}] \
                     (and doesn't have default values for any key fields)"
                )
            }
        }
    }
}

fn text() -> &'static Schema {
    static TEXT: OnceLock<Schema> = OnceLock::new();
    TEXT.get_or_init(|| of_kind(Kind::String))
}

fn of_kind(kind: Kind) -> Schema {
    Schema { kind: Some(kind), ..Schema::default() }
}

/// The schema of every object's `metadata` (ObjectMeta of meta/v1), as far as merging depends on it.
pub fn object_metadata() -> &'static Schema {
    static METADATA: OnceLock<Schema> = OnceLock::new();
    METADATA.get_or_init(|| {
        let labels = || Schema {
            additional_properties: Additional::Schema(Box::new(of_kind(Kind::String))),
            ..of_kind(Kind::Object)
        };
        let owner = [
            ("apiVersion", Kind::String),
            ("blockOwnerDeletion", Kind::Boolean),
            ("controller", Kind::Boolean),
            ("kind", Kind::String),
            ("name", Kind::String),
            ("uid", Kind::String),
        ];
        let typed = |(name, kind)| (name, of_kind(kind));
        let owner = object_of(owner.map(typed));
        let plain = [
            ("creationTimestamp", Kind::String),
            ("deletionGracePeriodSeconds", Kind::Integer),
            ("deletionTimestamp", Kind::String),
            ("generateName", Kind::String),
            ("generation", Kind::Integer),
            ("name", Kind::String),
            ("namespace", Kind::String),
            ("resourceVersion", Kind::String),
            ("selfLink", Kind::String),
            ("uid", Kind::String),
        ];
        let list = |items: Schema, list_type, keys: &[&str]| Schema {
            items: Some(Box::new(items)),
            list_type,
            list_map_keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            ..of_kind(Kind::Array)
        };
        let mut owners = list(Schema { map_type: MapType::Atomic, ..owner }, ListType::Map, &["uid"]);
        owners.patch_strategy.merge = true;
        owners.patch_strategy.merge_key = Some("uid".into());
        let mut finalizers = list(of_kind(Kind::String), ListType::Set, &[]);
        finalizers.patch_strategy.merge = true;
        let managed = list(of_kind(Kind::Object), ListType::Atomic, &[]);
        let structured = [
            ("annotations", labels()),
            ("labels", labels()),
            ("ownerReferences", owners),
            ("finalizers", finalizers),
            ("managedFields", managed),
        ];
        object_of(plain.map(typed).into_iter().chain(structured))
    })
}

fn object_of(fields: impl IntoIterator<Item = (&'static str, Schema)>) -> Schema {
    Schema { properties: fields.into_iter().collect(), ..of_kind(Kind::Object) }
}
