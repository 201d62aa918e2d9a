//! The syntax tree: an arena of nodes.

use std::borrow::Cow;

/// The index of a node in its [`Tree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A run of entries in the tree's list of children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    start: u32,
    length: u32,
}

impl Slice {
    pub(crate) fn len(self) -> usize {
        self.length as usize
    }

    pub(crate) fn is_empty(self) -> bool {
        self.length == 0
    }
}

/// A child of a list or map literal; `optional` marks `[?e]` and `{?k: v}` (on the value).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Child {
    pub(crate) node: NodeId,
    pub(crate) optional: bool,
}

/// A fold over a range, what every iterating macro expands to.
#[derive(Debug, Clone)]
pub(crate) struct Comprehension<'s> {
    pub(crate) range: NodeId,
    pub(crate) variable: &'s str,
    pub(crate) second_variable: Option<&'s str>,
    pub(crate) accumulator: &'s str,
    pub(crate) initial: NodeId,
    pub(crate) condition: NodeId,
    pub(crate) step: NodeId,
    pub(crate) result: NodeId,
}

/// What a node is. Names borrow from the source text.
#[derive(Debug, Clone)]
pub(crate) enum Kind<'s> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Cow<'s, str>),
    Bytes(Vec<u8>),
    Identifier(&'s str),
    /// `operand.field`, or `has(operand.field)` if `test`.
    Select {
        operand: NodeId,
        field: &'s str,
        test: bool,
    },
    /// Operators are calls too, named like `_+_`; `_&&_` and `_||_` have two or more arguments.
    Call {
        function: &'s str,
        target: Option<NodeId>,
        arguments: Slice,
    },
    List(Slice),
    /// Keys and values in turn.
    Map(Slice),
    /// `Name{field: value}`; no environment here has message types, the checker refuses it.
    Message(&'s str),
    Comprehension(Box<Comprehension<'s>>),
}

/// One node and where it stands in the source.
#[derive(Debug, Clone)]
pub(crate) struct Node<'s> {
    pub(crate) kind: Kind<'s>,
    /// Byte offset in the source, for messages.
    pub(crate) offset: u32,
    depth: u16,
}

/// A parsed expression.
#[derive(Debug, Default)]
pub(crate) struct Tree<'s> {
    nodes: Vec<Node<'s>>,
    children: Vec<Child>,
}

/// Why a node cannot be added.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TreeLimit {
    Nodes,
    Depth,
}

impl<'s> Tree<'s> {
    /// Macros may multiply the text (each `optMap` copies its target); this bounds the result.
    pub(crate) const MAXIMUM_NODES: usize = 50_000;
    /// Checker, planner and estimator recurse at most this deep.
    pub(crate) const MAXIMUM_DEPTH: u16 = 600;

    pub(crate) fn with_source_length(length: usize) -> Self {
        Self {
            nodes: Vec::with_capacity((length / 4).clamp(8, 2048)),
            children: Vec::with_capacity((length / 8).clamp(8, 1024)),
        }
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node<'s> {
        &self.nodes[id.index()]
    }

    pub(crate) fn kind(&self, id: NodeId) -> &Kind<'s> {
        &self.nodes[id.index()].kind
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn children(&self, slice: Slice) -> &[Child] {
        &self.children[slice.start as usize..(slice.start + slice.length) as usize]
    }

    pub(crate) fn child(&self, slice: Slice, index: usize) -> Child {
        self.children[slice.start as usize + index]
    }

    pub(crate) fn add_children(&mut self, children: impl IntoIterator<Item = Child>) -> Slice {
        let start = self.children.len() as u32;
        self.children.extend(children);
        Slice { start, length: self.children.len() as u32 - start }
    }

    pub(crate) fn add(&mut self, offset: u32, kind: Kind<'s>) -> Result<NodeId, TreeLimit> {
        let below = |id: NodeId| self.nodes[id.index()].depth;
        let depth = match &kind {
            Kind::Select { operand, .. } => below(*operand),
            Kind::Call { target, arguments, .. } => {
                let deepest =
                    self.children(*arguments).iter().map(|child| below(child.node)).max().unwrap_or(0);
                deepest.max(target.map_or(0, below))
            }
            Kind::List(slice) | Kind::Map(slice) => {
                self.children(*slice).iter().map(|child| below(child.node)).max().unwrap_or(0)
            }
            Kind::Comprehension(fold) => [fold.range, fold.initial, fold.condition, fold.step, fold.result]
                .into_iter()
                .map(below)
                .max()
                .unwrap_or(0),
            _ => 0,
        } + 1;
        if depth > Self::MAXIMUM_DEPTH {
            return Err(TreeLimit::Depth);
        }
        if self.nodes.len() >= Self::MAXIMUM_NODES {
            return Err(TreeLimit::Nodes);
        }
        self.nodes.push(Node { kind, offset, depth });
        Ok(NodeId(self.nodes.len() as u32 - 1))
    }

    /// Copies a subtree, as `optMap` does with its target.
    pub(crate) fn copy(&mut self, id: NodeId) -> Result<NodeId, TreeLimit> {
        let Node { kind, offset, .. } = self.nodes[id.index()].clone();
        let kind = match kind {
            Kind::Select { operand, field, test } => {
                Kind::Select { operand: self.copy(operand)?, field, test }
            }
            Kind::Call { function, target, arguments } => {
                let target = target.map(|target| self.copy(target)).transpose()?;
                Kind::Call { function, target, arguments: self.copy_slice(arguments)? }
            }
            Kind::List(slice) => Kind::List(self.copy_slice(slice)?),
            Kind::Map(slice) => Kind::Map(self.copy_slice(slice)?),
            Kind::Comprehension(fold) => Kind::Comprehension(Box::new(Comprehension {
                range: self.copy(fold.range)?,
                initial: self.copy(fold.initial)?,
                condition: self.copy(fold.condition)?,
                step: self.copy(fold.step)?,
                result: self.copy(fold.result)?,
                ..*fold
            })),
            leaf => leaf,
        };
        self.add(offset, kind)
    }

    fn copy_slice(&mut self, slice: Slice) -> Result<Slice, TreeLimit> {
        let mut copies = self.children(slice).to_vec();
        for child in &mut copies {
            child.node = self.copy(child.node)?;
        }
        Ok(self.add_children(copies))
    }
}

impl From<NodeId> for Child {
    fn from(node: NodeId) -> Self {
        Self { node, optional: false }
    }
}
