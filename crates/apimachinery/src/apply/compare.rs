//! What changed between two objects, as sets of fields.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::path::{PathElement, same_value};
use super::set::FieldSet;
use super::types::{ListShape, MapShape, Shape, Type};

/// The differences of two objects; no field is in more than one set.
#[derive(Debug, Clone, Default)]
pub(super) struct Comparison {
    pub(super) removed: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) added: FieldSet,
}

impl Comparison {
    /// The differences that lead from `before` to `after`.
    pub(super) fn of(root: Type<'_>, before: &Value, after: &Value) -> Comparison {
        let mut walker = Walker { found: Comparison::default(), path: Vec::new() };
        walker.compare(root, Some(before), Some(after));
        walker.found
    }

    /// What the later object sets anew or differently.
    pub(super) fn changed(&self) -> FieldSet {
        self.modified.union(&self.added)
    }

    /// The comparison with each set filtered.
    pub(super) fn filtered(self, keep: impl Fn(FieldSet) -> FieldSet) -> Comparison {
        Comparison { removed: keep(self.removed), modified: keep(self.modified), added: keep(self.added) }
    }
}

/// A step of the walk; becomes a path element only where a difference is found.
#[derive(Clone, Copy)]
enum Step<'v> {
    Field(&'v str),
    Item(usize),
}

struct Walker<'v> {
    found: Comparison,
    path: Vec<(Step<'v>, Option<PathElement>)>,
}

#[derive(Clone, Copy)]
enum Difference {
    Removed,
    Modified,
    Added,
}

impl<'v> Walker<'v> {
    fn record(&mut self, difference: Difference) {
        let path: Vec<PathElement> = self
            .path
            .iter()
            .map(|(step, element)| match (element, step) {
                (Some(element), _) => element.clone(),
                (None, Step::Field(name)) => PathElement::field(name),
                (None, Step::Item(index)) => PathElement::Index(i64::try_from(*index).unwrap_or(i64::MAX)),
            })
            .collect();
        let set = match difference {
            Difference::Removed => &mut self.found.removed,
            Difference::Modified => &mut self.found.modified,
            Difference::Added => &mut self.found.added,
        };
        set.insert(&path);
    }

    fn compare(&mut self, of: Type<'_>, left: Option<&'v Value>, right: Option<&'v Value>) {
        let shapes = of.shapes();
        let leaf = match (left, right) {
            (Some(before), Some(after)) if !shapes.alike(before, after) => {
                self.shape(shapes.of_value(left), left, right);
                self.shape(shapes.of_value(right), left, right)
            }
            (_, Some(_)) => self.shape(shapes.of_value(right), left, right),
            _ => self.shape(shapes.of_value(left), left, right),
        };
        if !leaf {
            match (left, right) {
                (None, _) => self.record(Difference::Added),
                (_, None) => self.record(Difference::Removed),
                _ => {}
            }
        }
    }

    /// Compares as one shape; whether the value is a leaf.
    fn shape(&mut self, shape: Shape<'_>, left: Option<&'v Value>, right: Option<&'v Value>) -> bool {
        match shape {
            Shape::Map(map) => {
                let (before, after) = (object_of(left), object_of(right));
                let empty = before.is_none_or(Map::is_empty) && after.is_none_or(Map::is_empty);
                if !map.atomic && !empty {
                    self.maps(&map, before, after);
                    return false;
                }
            }
            Shape::List(list) => {
                let (before, after) = (items_of(left), items_of(right));
                let empty = before.is_empty() && after.is_empty();
                if !list.atomic && !empty {
                    self.lists(&list, before, after);
                    return false;
                }
            }
            Shape::Scalar(_) => {}
        }
        self.leaf(left, right);
        true
    }

    fn leaf(&mut self, left: Option<&Value>, right: Option<&Value>) {
        match (left, right) {
            (None, _) => self.record(Difference::Added),
            (_, None) => self.record(Difference::Removed),
            (Some(left), Some(right)) if !same_value(left, right) => self.record(Difference::Modified),
            _ => {}
        }
    }

    fn maps(
        &mut self,
        map: &MapShape<'_>,
        left: Option<&'v Map<String, Value>>,
        right: Option<&'v Map<String, Value>>,
    ) {
        for (name, before) in left.into_iter().flatten() {
            let after = right.and_then(|right| right.get(name));
            self.field(map, name, Some(before), after);
        }
        for (name, after) in right.into_iter().flatten() {
            if left.is_none_or(|left| !left.contains_key(name)) {
                self.field(map, name, None, Some(after));
            }
        }
    }

    fn field(
        &mut self,
        map: &MapShape<'_>,
        name: &'v str,
        left: Option<&'v Value>,
        right: Option<&'v Value>,
    ) {
        // What the schema does not know is pruned elsewhere and owned by nobody.
        let Some(of) = map.field(name) else { return };
        self.path.push((Step::Field(name), None));
        self.compare(of, left, right);
        self.path.pop();
    }

    fn lists(&mut self, list: &ListShape<'_>, left: &'v [Value], right: &'v [Value]) {
        // Telling items apart costs memory, and most lists do not change.
        if left == right {
            return;
        }
        let mut items: BTreeMap<PathElement, (Vec<&'v Value>, Vec<&'v Value>)> = BTreeMap::new();
        for item in left {
            if let Ok(element) = list.element(item) {
                items.entry(element).or_default().0.push(item);
            }
        }
        for item in right {
            if let Ok(element) = list.element(item) {
                items.entry(element).or_default().1.push(item);
            }
        }
        for (position, (element, (before, after))) in items.into_iter().enumerate() {
            self.path.push((Step::Item(position), Some(element)));
            self.item(list, &before, &after);
            self.path.pop();
        }
    }

    /// Items that occur more than once on a side are compared as a whole.
    fn item(&mut self, list: &ListShape<'_>, before: &[&'v Value], after: &[&'v Value]) {
        match (before, after) {
            ([] | [_], [] | [_]) => self.compare(list.items, before.first().copied(), after.first().copied()),
            ([_, _, ..], [_, _, ..]) => {
                let pairs = before.iter().zip(after);
                if before.len() != after.len()
                    || !pairs.into_iter().all(|(left, right)| same_value(left, right))
                {
                    self.record(Difference::Modified);
                }
            }
            ([_, _, ..], _) => {
                if let Some(after) = after.first() {
                    self.compare(list.items, None, Some(after));
                }
                self.record(Difference::Removed);
            }
            (_, _) => {
                if let Some(before) = before.first() {
                    self.compare(list.items, Some(before), None);
                }
                self.record(Difference::Added);
            }
        }
    }
}

pub(super) fn object_of(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

pub(super) fn items_of(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
