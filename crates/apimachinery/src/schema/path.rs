//! Paths to fields, built only when something is wrong with one.

use std::fmt;

/// The path of a field in an object, such as `spec.pools[2].name`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(pub(crate) String);

impl FieldPath {
    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// One step of a walk through an object; lives on the stack of the walk.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'p> {
    /// The start: nothing, or the path of the value that is walked through.
    Start(&'p str),
    /// A field of an object.
    Field(&'p Place<'p>, &'p str),
    /// A key of a map.
    Key(&'p Place<'p>, &'p str),
    /// An item of a list.
    Item(&'p Place<'p>, usize),
}

/// How the keys of maps are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// `labels.app`, as value validations and unknown fields have it.
    Dotted,
    /// `labels[app]`, as all else has it.
    Bracketed,
}

impl<'p> Place<'p> {
    pub(crate) const ROOT: Place<'static> = Place::Start("");

    pub(crate) fn field(&'p self, name: &'p str) -> Place<'p> {
        Place::Field(self, name)
    }

    pub(crate) fn key(&'p self, name: &'p str) -> Place<'p> {
        Place::Key(self, name)
    }

    pub(crate) fn item(&'p self, index: usize) -> Place<'p> {
        Place::Item(self, index)
    }

    pub(crate) fn dotted(&self) -> String {
        self.written(Keys::Dotted)
    }

    pub(crate) fn bracketed(&self) -> String {
        self.written(Keys::Bracketed)
    }

    fn written(&self, keys: Keys) -> String {
        let mut output = String::new();
        self.write(&mut output, keys);
        output
    }

    fn write(&self, output: &mut String, keys: Keys) {
        match self {
            Place::Start(path) => output.push_str(path),
            Place::Key(parent, name) if keys == Keys::Bracketed => {
                parent.write(output, keys);
                output.push('[');
                output.push_str(name);
                output.push(']');
            }
            Place::Field(parent, name) | Place::Key(parent, name) => {
                parent.write(output, keys);
                if !output.is_empty() {
                    output.push('.');
                }
                output.push_str(name);
            }
            Place::Item(parent, index) => {
                parent.write(output, keys);
                output.push('[');
                output.push_str(&index.to_string());
                output.push(']');
            }
        }
    }
}
