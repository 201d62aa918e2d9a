//! Sets of fields and their algebra.

use std::cmp::Ordering;

use super::path::{Path, PathElement};

/// A set of fields: a tree of path elements, sorted, each of which may itself be a member.
///
/// No entry is without both membership and members below it. The set of the whole object is not
/// expressible: nobody owns an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    pub(super) entries: Vec<Entry>,
}

/// One element of a set, with the set below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) element: PathElement,
    /// Whether the element is a member itself.
    pub(super) member: bool,
    pub(super) below: FieldSet,
}

impl Entry {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// The set without members.
    pub fn new() -> FieldSet {
        FieldSet::default()
    }

    /// The set of named fields, each given as the names from the root (`["metadata", "labels"]`).
    pub fn of_fields(paths: &[&[&str]]) -> FieldSet {
        let mut set = FieldSet::new();
        for path in paths {
            let elements: Vec<PathElement> = path.iter().map(|name| PathElement::field(name)).collect();
            set.insert(&elements);
        }
        set
    }

    /// Whether the set has no members.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds the field at `path`, not the fields above it.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((last, above)) = path.split_last() else { return };
        let mut set = self;
        for element in above {
            set = &mut set.entry(element).below;
        }
        set.entry(last).member = true;
    }

    /// Whether the field at `path` is a member.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        let Some((last, above)) = path.split_last() else { return false };
        let mut set = self;
        for element in above {
            match set.find(element) {
                Some(entry) => set = &entry.below,
                None => return false,
            }
        }
        set.find(last).is_some_and(|entry| entry.member)
    }

    /// All members, parents first: at each level the members, then what is below them.
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<PathElement>, paths: &mut Vec<Path>) {
        for entry in self.entries.iter().filter(|entry| entry.member) {
            let mut path = prefix.clone();
            path.push(entry.element.clone());
            paths.push(Path(path));
        }
        for entry in &self.entries {
            prefix.push(entry.element.clone());
            entry.below.collect(prefix, paths);
            prefix.pop();
        }
    }

    /// The entry of `element`, made if there is none.
    pub(super) fn entry(&mut self, element: &PathElement) -> &mut Entry {
        // Sets are mostly built in order, so the place is usually the end.
        let position = match self.entries.last() {
            Some(last) if last.element < *element => Err(self.entries.len()),
            _ => self.entries.binary_search_by(|entry| entry.element.cmp(element)),
        };
        let position = match position {
            Ok(position) => position,
            Err(position) => {
                let entry = Entry { element: element.clone(), member: false, below: FieldSet::new() };
                self.entries.insert(position, entry);
                position
            }
        };
        &mut self.entries[position]
    }

    pub(super) fn find(&self, element: &PathElement) -> Option<&Entry> {
        let position = self.entries.binary_search_by(|entry| entry.element.cmp(element)).ok()?;
        Some(&self.entries[position])
    }

    /// The entry of the field `name`, found without making an element.
    pub(super) fn find_field(&self, name: &str) -> Option<&Entry> {
        let order = |entry: &Entry| match &entry.element {
            PathElement::Field(other) => (**other).cmp(name),
            _ => Ordering::Greater,
        };
        let position = self.entries.binary_search_by(order).ok()?;
        Some(&self.entries[position])
    }

    /// What is in either set.
    pub fn union(&self, other: &FieldSet) -> FieldSet {
        self.merge(other, Some(Entry::clone), Some(Entry::clone), |left, right| Entry {
            element: left.element.clone(),
            member: left.member || right.member,
            below: left.below.union(&right.below),
        })
    }

    /// What is in both sets.
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        self.merge(other, None, None, |left, right| Entry {
            element: left.element.clone(),
            member: left.member && right.member,
            below: left.below.intersection(&right.below),
        })
    }

    /// What is in this set and not in the other; a parent in `other` does not take its children away.
    pub fn difference(&self, other: &FieldSet) -> FieldSet {
        self.merge(other, Some(Entry::clone), None, |left, right| Entry {
            element: left.element.clone(),
            member: left.member && !right.member,
            below: left.below.difference(&right.below),
        })
    }

    /// What is in this set and neither in the other nor below one of its members.
    pub fn recursive_difference(&self, other: &FieldSet) -> FieldSet {
        self.merge(other, Some(Entry::clone), None, |left, right| Entry {
            element: left.element.clone(),
            member: left.member && !right.member,
            below: if right.member { FieldSet::new() } else { left.below.recursive_difference(&right.below) },
        })
    }

    fn merge(
        &self,
        other: &FieldSet,
        only_left: Option<fn(&Entry) -> Entry>,
        only_right: Option<fn(&Entry) -> Entry>,
        both: impl Fn(&Entry, &Entry) -> Entry,
    ) -> FieldSet {
        let mut entries = Vec::new();
        let (mut left, mut right) = (self.entries.iter().peekable(), other.entries.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some(left), Some(right)) => left.element.cmp(&right.element),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            let entry = match order {
                Ordering::Less => left.next().and_then(|entry| only_left.map(|keep| keep(entry))),
                Ordering::Greater => right.next().and_then(|entry| only_right.map(|keep| keep(entry))),
                Ordering::Equal => left
                    .next()
                    .zip(right.next())
                    .map(|(left, right)| both(left, right))
                    .filter(|e| !e.is_empty()),
            };
            entries.extend(entry);
        }
        FieldSet { entries }
    }
}
