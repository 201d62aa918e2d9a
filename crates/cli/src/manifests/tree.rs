//! A YAML document whose every value knows its line.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    line: u64,
    node: Node,
}

#[derive(Debug, Clone)]
enum Node {
    Scalar(Value),
    List(Vec<Tree>),
    Object(Vec<(String, u64, Tree)>),
}

/// Why a text is not YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParseError {
    pub(super) line: u64,
    pub(super) message: String,
}

/// Parses all documents of a text.
pub(super) fn parse(text: &str) -> Result<Vec<Tree>, ParseError> {
    serde_saphyr::from_multiple(text).map_err(|error| {
        let line = error.location().map_or(1, |location| location.line());
        let message = error.without_snippet().to_string();
        ParseError { line, message: message.lines().next().unwrap_or_default().to_owned() }
    })
}

impl Tree {
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.node, Node::Scalar(Value::Null))
    }

    /// The items of the list under `key`.
    pub(super) fn items(&self, key: &str) -> Option<&[Tree]> {
        match &self.get(key)?.1.node {
            Node::List(items) => Some(items),
            _ => None,
        }
    }

    fn get(&self, key: &str) -> Option<(u64, &Tree)> {
        let Node::Object(fields) = &self.node else { return None };
        fields.iter().find(|(name, ..)| name == key).map(|(_, line, tree)| (*line, tree))
    }

    pub(super) fn to_json(&self) -> Value {
        match &self.node {
            Node::Scalar(value) => value.clone(),
            Node::List(items) => items.iter().map(Tree::to_json).collect(),
            Node::Object(fields) => {
                let fields = fields.iter().map(|(key, _, tree)| (key.clone(), tree.to_json()));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }

    /// The line of the field under `path`, or of the deepest part of the path that exists.
    pub(super) fn line_of(&self, path: &str) -> u64 {
        let (mut line, mut current) = (self.line, self);
        for step in steps(path) {
            let found = match (&step, &current.node) {
                (Step::Key(key), _) => current.get(key),
                (Step::Index(index), Node::List(items)) => items.get(*index).map(|item| (item.line, item)),
                _ => None,
            };
            let Some(found) = found else { break };
            (line, current) = found;
        }
        line
    }
}

enum Step {
    Key(String),
    Index(usize),
}

/// Splits `a.b[0]["c.d"]` into its steps.
fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix("[\"") {
            let end = inner.find("\"]").unwrap_or(inner.len());
            steps.push(Step::Key(inner[..end].to_owned()));
            rest = inner.get(end + 2..).unwrap_or_default();
        } else if let Some(inner) = rest.strip_prefix('[') {
            let end = inner.find(']').unwrap_or(inner.len());
            steps.extend(inner[..end].parse().ok().map(Step::Index));
            rest = inner.get(end + 1..).unwrap_or_default();
        } else if let Some(inner) = rest.strip_prefix('.') {
            rest = inner;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            steps.push(Step::Key(rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
    steps
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Node>::deserialize(deserializer)?;
        Ok(Self { line: spanned.referenced.line(), node: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_bool<E>(self, bit: bool) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Bool(bit)))
    }

    fn visit_i64<E>(self, integer: i64) -> Result<Node, E> {
        Ok(Node::Scalar(integer.into()))
    }

    fn visit_u64<E>(self, integer: u64) -> Result<Node, E> {
        Ok(Node::Scalar(integer.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Scalar(Number::from_f64(number).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Scalar(text.into()))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::Scalar(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut fields = Vec::new();
        while let Some((key, tree)) = access.next_entry::<Spanned<String>, Tree>()? {
            fields.push((key.value, key.referenced.line(), tree));
        }
        Ok(Node::Object(fields))
    }
}
