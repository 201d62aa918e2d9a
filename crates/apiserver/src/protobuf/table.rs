//! The table of messages, `fields.txt`, read line by line as messages occur.

use std::collections::HashMap;
use std::sync::OnceLock;

const TEXT: &str = include_str!("fields.txt");

/// How often a field occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    One,
    Repeated,
    Map,
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base<'t> {
    Text,
    Flag,
    Integer,
    Bytes,
    Message(&'t str),
}

/// One field of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'t> {
    pub(super) number: u64,
    /// Its name in JSON; empty if its own fields take its place.
    pub(super) name: &'t str,
    /// JSON leaves it out when it is zero.
    pub(super) omit_zero: bool,
    pub(super) shape: Shape,
    pub(super) base: Base<'t>,
}

/// The fields of a message as text; `None` for messages the table does not have.
pub(super) fn line(name: &str) -> Option<&'static str> {
    static LINES: OnceLock<HashMap<&str, &str>> = OnceLock::new();
    let lines = LINES.get_or_init(|| {
        let lines = TEXT.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.split_once(' ').unwrap_or((line, ""))).collect()
    });
    lines.get(name).copied()
}

/// The fields of a message; none if the table does not have it.
pub(super) fn fields(name: &str) -> Vec<Field<'static>> {
    line(name).unwrap_or_default().split(' ').filter_map(field).collect()
}

fn field(text: &'static str) -> Option<Field<'static>> {
    let mut parts = text.splitn(3, ',');
    let (number, name, kind) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
    let omit_zero = kind.starts_with('?');
    let kind = kind.trim_start_matches('?');
    let (shape, base) = match kind.as_bytes().first()? {
        b'*' => (Shape::Repeated, &kind[1..]),
        b'%' => (Shape::Map, &kind[1..]),
        _ => (Shape::One, kind),
    };
    let base = match base {
        "s" => Base::Text,
        "b" => Base::Flag,
        "i" => Base::Integer,
        "y" => Base::Bytes,
        name => Base::Message(name),
    };
    Some(Field { number, name, omit_zero, shape, base })
}
