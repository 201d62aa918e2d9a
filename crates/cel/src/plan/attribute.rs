//! Paths: a base and the selections and indices applied to it.
//!
//! cel-go evaluates a path as one step, in which each selection costs one unit and the whole one more. Where a path
//! is used as an index or as a branch of a conditional, that last unit is not charged.

use super::planner::{Planned, Planner, Result, text_key};
use super::program::{DevicePath, Input, Instruction};
use crate::check::Reference;
use crate::device::hash_name;
use crate::eval::Value;
use crate::library::declarations::Op;
use crate::syntax::{Kind, NodeId};
use crate::types::{Shape, Type};

/// One selection of a path.
struct Selection<'t> {
    key: Key<'t>,
    optional: bool,
}

enum Key<'t> {
    Field(&'t str),
    /// `has(…​.field)`.
    Test(&'t str),
    Index(NodeId),
}

impl<'s> Planner<'_, 's, '_> {
    /// Plans a node that reads a variable, selects, indexes or chooses.
    pub(super) fn attribute(&mut self, node: NodeId, observed: bool) -> Result<()> {
        let (base, mut selections) = self.selections(node);
        selections.reverse();
        let mut ends = Vec::new();
        let mut observed = observed;
        let mut done = 0;
        match self.checked.reference(base) {
            Reference::Variable(index) => {
                self.note_input(base, &selections);
                done = self.device_path(index, &selections, &mut ends);
                if done == 0 {
                    let cost = u8::from(observed && selections.is_empty());
                    self.push(Instruction::Variable { index, cost });
                }
            }
            Reference::Local(slot) => {
                self.refuse_type(base)?;
                self.note_input(base, &selections);
                if let Some(&(_, code)) = self.lazy.iter().rev().find(|(lazy, _)| *lazy == slot) {
                    self.push(Instruction::Force { slot, code });
                }
                let cost = u8::from(observed && selections.is_empty());
                self.push(Instruction::Local { slot, cost });
            }
            Reference::Call(function, _) if function.op == Op::Conditional => {
                self.conditional(base)?;
                observed = false;
            }
            _ => match self.plan(base)? {
                Planned::Constant(value) => self.emit_constant(value),
                Planned::Emitted => {}
            },
        }
        if selections.is_empty() {
            return Ok(());
        }
        // A faulty base keeps the first index from being evaluated.
        let indexed = matches!(&selections[0], Selection { key: Key::Index(node), .. }
            if !matches!(self.tree.kind(*node), Kind::String(_) | Kind::Int(_)));
        if done == 0 && (indexed || self.may_be_optional(base)) {
            ends.push(self.push(Instruction::Begin { end: u32::MAX }));
        }
        for selection in &selections[done..] {
            self.selection(selection, &mut ends)?;
        }
        // A test takes back the unit that it would cost as a path.
        let test = matches!(selections.last(), Some(Selection { key: Key::Test(_), .. }));
        let cost = u8::from(observed && !test);
        let end = self.here();
        if let Some(Instruction::Driver { cost: total }) = self.program.code.last_mut()
            && done == 1
        {
            *total += cost;
            return Ok(());
        }
        if let ([at], Some(Instruction::DevicePath { end: to, cost: total, .. })) =
            (&ends[..], self.program.code.last_mut())
            && *at + 1 == end as usize
        {
            *to = end;
            *total += cost;
            return Ok(());
        }
        if matches!(self.program.code.last(), Some(Instruction::DeviceTest { .. })) && ends.is_empty() {
            return Ok(());
        }
        self.push(Instruction::End { cost });
        for at in ends {
            self.aim(at, end);
        }
        Ok(())
    }

    /// Kubernetes cannot plan variables that hold types.
    pub(super) fn refuse_type(&self, node: NodeId) -> Result<()> {
        match self.checked.types.shape(self.checked.type_of(node)) {
            Some(Shape::Meta(_)) => self.error(node, "a variable cannot hold a type"),
            _ => Ok(()),
        }
    }

    /// Walks a path down to its base; the selections come last first.
    fn selections(&self, node: NodeId) -> (NodeId, Vec<Selection<'s>>) {
        let mut selections = Vec::new();
        let mut at = node;
        loop {
            match *self.tree.kind(at) {
                Kind::Select { operand, field, test }
                    if !matches!(self.checked.reference(at), Reference::TypeName(_))
                        && (!test || selections.is_empty()) =>
                {
                    let key = if test { Key::Test(field) } else { Key::Field(field) };
                    selections.push(Selection { key, optional: false });
                    at = operand;
                }
                Kind::Call { function: function @ ("_[_]" | "_[?_]" | "_?._"), target: None, arguments } => {
                    let operand = self.tree.child(arguments, 0).node;
                    let key = Key::Index(self.tree.child(arguments, 1).node);
                    selections.push(Selection { key, optional: function != "_[_]" });
                    at = operand;
                }
                _ => return (at, selections),
            }
        }
    }

    fn may_be_optional(&self, base: NodeId) -> bool {
        let kind = self.checked.type_of(base);
        kind == Type::DYN
            || kind == Type::ANY
            || matches!(self.checked.types.shape(kind), Some(Shape::Optional(_)))
    }

    fn selection(&mut self, selection: &Selection<'_>, ends: &mut Vec<usize>) -> Result<()> {
        let end = u32::MAX;
        let constant = match selection.key {
            Key::Field(field) => text_key(field),
            Key::Test(field) => {
                let key = self.constant(text_key(field));
                ends.push(self.push(Instruction::Test { key, end }));
                return Ok(());
            }
            Key::Index(node) => match self.index(node)? {
                Some(constant) => constant,
                None => {
                    ends.push(self.push(if selection.optional {
                        Instruction::OptionalIndex { end }
                    } else {
                        Instruction::Index { end }
                    }));
                    return Ok(());
                }
            },
        };
        let key = self.constant(constant);
        ends.push(self.push(if selection.optional {
            Instruction::OptionalField { key, end }
        } else {
            Instruction::Field { key, end }
        }));
        Ok(())
    }

    /// Plans an index: its value if it is constant.
    fn index(&mut self, node: NodeId) -> Result<Option<Value<'static>>> {
        if self.is_attribute(node) {
            self.attribute(node, false)?;
            return Ok(None);
        }
        match self.plan(node)? {
            Planned::Constant(
                value @ (Value::Bool(_)
                | Value::Int(_)
                | Value::Uint(_)
                | Value::Double(_)
                | Value::String(_)),
            ) => Ok(Some(value)),
            Planned::Constant(value) => {
                self.error(node, format!("a value of type {} cannot be an index", value.type_name()))
            }
            Planned::Emitted => Ok(None),
        }
    }

    /// Whether cel-go plans the node as a path, so that it is not charged as an index or branch.
    fn is_attribute(&self, node: NodeId) -> bool {
        match *self.tree.kind(node) {
            Kind::Identifier(_) | Kind::Select { .. } => {
                !matches!(self.checked.reference(node), Reference::TypeName(_))
            }
            Kind::Call { function: "_[_]" | "_[?_]" | "_?._" | "_?_:_", .. } => true,
            _ => false,
        }
    }

    fn conditional(&mut self, node: NodeId) -> Result<()> {
        let Kind::Call { arguments, .. } = *self.tree.kind(node) else {
            return self.error(node, "a conditional is a call");
        };
        let [condition, truthy, falsy] = [0, 1, 2].map(|index| self.tree.child(arguments, index).node);
        self.emit(condition)?;
        let branch = self.push(Instruction::Branch { otherwise: u32::MAX, end: u32::MAX });
        self.branch(truthy)?;
        let over = self.push(Instruction::Jump { to: u32::MAX });
        let second = self.here();
        self.branch(falsy)?;
        let finish = self.here();
        self.aim(over, finish);
        self.program.code[branch] = Instruction::Branch { otherwise: second, end: finish };
        Ok(())
    }

    fn branch(&mut self, node: NodeId) -> Result<()> {
        if self.is_attribute(node) { self.attribute(node, false) } else { self.emit(node) }
    }

    /// Merges the first three selections on a device into one instruction; how many were merged.
    fn device_path(&mut self, variable: u16, selections: &[Selection<'_>], ends: &mut Vec<usize>) -> usize {
        if self.device
            && variable == 0
            && let [Selection { key: Key::Field("driver"), optional: false }] = selections
        {
            ends.push(self.push(Instruction::Driver { cost: 1 }));
            return 1;
        }
        let [part, domain, name, rest @ ..] = selections else { return 0 };
        if !self.device || variable != 0 || [part, domain, name].iter().any(|selection| selection.optional) {
            return 0;
        }
        let capacity = match part.key {
            Key::Field("attributes") => false,
            Key::Field("capacity") => true,
            _ => return 0,
        };
        let (Some(domain), Some(field)) = (self.text_of(domain), self.text_of(name)) else { return 0 };
        let path = DevicePath {
            capacity,
            domain_hash: hash_name(domain),
            name_hash: hash_name(field),
            domain: domain.into(),
            name: field.into(),
        };
        self.program.paths.push(path);
        let path = self.program.paths.len() as u32 - 1;
        match name.key {
            Key::Test(_) if rest.is_empty() => {
                self.push(Instruction::DeviceTest { path });
            }
            Key::Test(_) => {
                self.program.paths.pop();
                return 0;
            }
            _ => ends.push(self.push(Instruction::DevicePath { path, cost: 3, end: u32::MAX })),
        }
        3
    }

    fn text_of<'t>(&'t self, selection: &'t Selection<'_>) -> Option<&'t str>
    where
        's: 't,
    {
        match selection.key {
            Key::Field(field) | Key::Test(field) => Some(field),
            Key::Index(node) => match self.tree.kind(node) {
                Kind::String(text) => Some(text),
                _ => None,
            },
        }
    }

    /// Remembers which constant path is read, for explanations.
    fn note_input(&mut self, base: NodeId, selections: &[Selection<'_>]) {
        if let Some((input, _)) = self.constant_path(base, selections)
            && !input.keys.is_empty()
            && !self.program.inputs.contains(&input)
        {
            self.program.inputs.push(input);
        }
    }

    /// The longest constant part of a path from a variable, and whether that is all of it.
    fn constant_path(&self, base: NodeId, selections: &[Selection<'_>]) -> Option<(Input, bool)> {
        let mut input = match (self.checked.reference(base), self.tree.kind(base)) {
            (Reference::Variable(variable), Kind::Identifier(name)) => {
                Input { variable, keys: Vec::new(), text: (*name).to_owned() }
            }
            (Reference::Local(slot), _) => {
                self.bound.iter().rev().find(|(bound, _)| *bound == slot)?.1.clone()
            }
            _ => return None,
        };
        for selection in selections {
            let Some(key) = self.text_of(selection) else { return Some((input, false)) };
            let written = match selection.key {
                Key::Index(_) if !is_name(key) || input.keys.len() == 1 => format!("[{key:?}]"),
                _ => format!(".{key}"),
            };
            input.text.push_str(&written);
            input.keys.push(key.into());
        }
        Some((input, true))
    }

    /// The constant path a bound variable stands for.
    pub(super) fn bound_input(&self, node: NodeId) -> Option<Input> {
        let (base, mut selections) = self.selections(node);
        selections.reverse();
        self.constant_path(base, &selections).filter(|(_, whole)| *whole).map(|(input, _)| input)
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
