//! Emits instructions for a checked tree, folding what is constant.
//!
//! What is folded free of charge, and which calls stop at the first fault, follows cel-go's planner, since the
//! metered cost depends on it.

use std::sync::Arc;

use super::program::{ConstantSet, Instruction, Pattern, Program};
use crate::check::{Checked, Reference};
use crate::error::CompileError;
use crate::eval::{Budget, Entries, Fault, List, Map, MapKey, Text, Value};
use crate::library::calls;
use crate::library::declarations::{Cost, Function, Op};
use crate::library::regex::{LazyPattern, MAXIMUM_WEIGHT};
use crate::syntax::{Kind, NodeId, Slice, Tree};

pub(super) type Result<T> = std::result::Result<T, Box<CompileError>>;

/// Compiles a checked expression.
pub(crate) fn plan(
    source: &str,
    tree: &Tree<'_>,
    root: NodeId,
    checked: &Checked<'_>,
    device: bool,
) -> Result<Program> {
    let mut planner = Planner {
        source,
        tree,
        checked,
        device,
        program: Program { slots: checked.slots, ..Program::default() },
        bound: Vec::new(),
        lazy: Vec::new(),
        folding: Budget::new(u64::MAX - 1),
    };
    planner.program.code.reserve(tree.len());
    planner.emit(root)?;
    Ok(planner.program)
}

/// The outcome of planning a node.
pub(super) enum Planned {
    /// Known now, free of charge.
    Constant(Value<'static>),
    /// Instructions were emitted that push the value.
    Emitted,
}

pub(super) struct Planner<'p, 's, 'e> {
    source: &'p str,
    pub(super) tree: &'p Tree<'s>,
    pub(super) checked: &'p Checked<'e>,
    /// Whether variable 0 is a device.
    pub(super) device: bool,
    pub(super) program: Program,
    /// Paths that bound variables stand for.
    pub(super) bound: Vec<(u16, super::program::Input)>,
    /// Bound variables in scope, with the code that computes them.
    pub(super) lazy: Vec<(u16, u32)>,
    folding: Budget,
}

impl<'s> Planner<'_, 's, '_> {
    pub(super) fn error<T>(&self, node: NodeId, message: impl Into<String>) -> Result<T> {
        let offset = self.tree.node(node).offset as usize;
        Err(Box::new(CompileError::at(self.source, offset, message.into(), None)))
    }

    pub(super) fn push(&mut self, instruction: Instruction) -> usize {
        self.program.code.push(instruction);
        self.program.code.len() - 1
    }

    pub(super) fn here(&self) -> u32 {
        self.program.code.len() as u32
    }

    /// Sets the target of an instruction emitted before.
    pub(super) fn aim(&mut self, at: usize, target: u32) {
        use Instruction as I;
        match &mut self.program.code[at] {
            I::Begin { end }
            | I::Field { end, .. }
            | I::OptionalField { end, .. }
            | I::Index { end }
            | I::OptionalIndex { end }
            | I::Test { end, .. }
            | I::DevicePath { end, .. }
            | I::StartFold { end } => *end = target,
            I::Jump { to }
            | I::LeaveOnFault { to, .. }
            | I::OrTerm { to }
            | I::AndTerm { to }
            | I::OptionalOr { to, .. } => *to = target,
            I::Next { done, .. } | I::NextUndecided { done, .. } => *done = target,
            other => debug_assert!(false, "{other:?} has no target"),
        }
    }

    pub(super) fn constant(&mut self, value: Value<'static>) -> u32 {
        self.program.constants.push(value);
        self.program.constants.len() as u32 - 1
    }

    pub(super) fn emit_constant(&mut self, value: Value<'static>) {
        let constant = self.constant(value);
        self.push(Instruction::Constant(constant));
    }

    /// Plans a node so that its value is on the stack.
    pub(super) fn emit(&mut self, node: NodeId) -> Result<()> {
        if let Planned::Constant(value) = self.plan(node)? {
            self.emit_constant(value);
        }
        Ok(())
    }

    pub(super) fn plan(&mut self, node: NodeId) -> Result<Planned> {
        let tree = self.tree;
        Ok(Planned::Constant(match tree.kind(node) {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Int(value) => Value::Int(*value),
            Kind::Uint(value) => Value::Uint(*value),
            Kind::Double(value) => Value::Double(*value),
            Kind::String(text) => Value::text(&**text),
            Kind::Bytes(bytes) => Value::Bytes(Arc::from(&bytes[..])),
            Kind::Identifier(_) | Kind::Select { .. } => {
                if let Reference::TypeName(name) = self.checked.reference(node) {
                    return Ok(Planned::Constant(Value::Type(name)));
                }
                self.attribute(node, true)?;
                return Ok(Planned::Emitted);
            }
            &Kind::Call { target, arguments, .. } => return self.call(node, target, arguments),
            &Kind::List(elements) => return self.list(elements),
            &Kind::Map(entries) => return self.map(entries),
            Kind::Comprehension(fold) => {
                self.fold(node, fold)?;
                return Ok(Planned::Emitted);
            }
            Kind::Message(_) => return self.error(node, "messages cannot be made"),
        }))
    }

    fn call(&mut self, node: NodeId, target: Option<NodeId>, arguments: Slice) -> Result<Planned> {
        let (function, overloads, target) = match self.checked.reference(node) {
            Reference::Call(function, overloads) => (function, overloads, target),
            Reference::Namespaced(function, overloads) => (function, overloads, None),
            _ => return self.error(node, "the call was not resolved"),
        };
        let children = self.tree.children(arguments);
        match function.op {
            Op::And | Op::Or => self.logic(function.op == Op::Or, arguments)?,
            Op::Conditional | Op::Index | Op::OptionalIndex | Op::OptionalSelect => {
                self.attribute(node, true)?
            }
            Op::OptionalOr | Op::OptionalOrValue => {
                if let Some(target) = target {
                    self.emit(target)?;
                }
                let unwrap = function.op == Op::OptionalOrValue;
                let left = self.push(Instruction::OptionalOr { to: u32::MAX, unwrap });
                self.emit(children[0].node)?;
                let end = self.here();
                self.aim(left, end);
            }
            _ => {
                let operands: Vec<NodeId> =
                    target.into_iter().chain(children.iter().map(|child| child.node)).collect();
                return self.function(function, overloads, &operands);
            }
        }
        Ok(Planned::Emitted)
    }

    fn logic(&mut self, or: bool, terms: Slice) -> Result<()> {
        self.emit_constant(Value::Bool(!or));
        let mut leaves = Vec::with_capacity(terms.len());
        for index in 0..terms.len() {
            self.emit(self.tree.child(terms, index).node)?;
            let term =
                if or { Instruction::OrTerm { to: u32::MAX } } else { Instruction::AndTerm { to: u32::MAX } };
            leaves.push(self.push(term));
        }
        let end = self.here();
        for leave in leaves {
            self.aim(leave, end);
        }
        Ok(())
    }

    fn function(
        &mut self,
        function: &'static Function,
        overloads: u32,
        operands: &[NodeId],
    ) -> Result<Planned> {
        let resolved =
            (overloads.count_ones() == 1).then(|| &function.overloads[overloads.trailing_zeros() as usize]);
        let op = resolved.map_or(function.op, |overload| overload.op);
        let cost = resolved.map_or(function.open_cost, |overload| overload.cost);
        if matches!(op, Op::Matches | Op::Find | Op::FindAll)
            && let Some(pattern) = self.constant_text(operands[1])?
        {
            self.matcher((op, cost), &pattern, operands)?;
            return Ok(Planned::Emitted);
        }
        if op == Op::In
            && cost == Cost::InList
            && let Some(planned) = self.in_constant(operands)?
        {
            return Ok(planned);
        }
        // cel-go stops at the first fault for three and more arguments and where it dispatches by type.
        let stops = operands.len() >= 3
            || (operands.len() == 2 && (op == Op::Format || (resolved.is_none() && function.dispatched)));
        let before = self.program.code.len();
        let mut leaves = Vec::new();
        let mut constants: Vec<Value<'static>> = Vec::new();
        let (mut constant_last, mut folded_last) = (false, false);
        for (index, &operand) in operands.iter().enumerate() {
            let first = self.program.code.len();
            let planned = self.plan(operand)?;
            folded_last = self.program.code.len() == first + 1
                && matches!(self.program.code.last(), Some(Instruction::Folded { cost: 0..=1000, .. }));
            constant_last = matches!(planned, Planned::Constant(_));
            match planned {
                Planned::Constant(value) => {
                    if constants.len() == index {
                        constants.push(value.clone());
                    }
                    self.emit_constant(value);
                }
                Planned::Emitted => {}
            }
            if stops && index + 1 < operands.len() && constants.len() <= index {
                leaves.push(self.push(Instruction::LeaveOnFault { below: index as u32, to: u32::MAX }));
            }
        }
        if constants.len() == operands.len() && !operands.is_empty() {
            let free = operands.len() == 1 && is_conversion(function.name);
            if let Some(folded) = self.fold_call(op, cost, &constants) {
                self.program.code.truncate(before);
                self.program.constants.truncate(self.program.constants.len() - constants.len());
                let (value, cost) = folded;
                if free {
                    return match value {
                        Value::Fault(fault) => self.error(operands[0], fault.to_string()),
                        value => Ok(Planned::Constant(value)),
                    };
                }
                let constant = self.constant(value);
                self.push(Instruction::Folded { constant, cost });
                return Ok(Planned::Emitted);
            }
        }
        match self.program.code.last() {
            Some(&Instruction::Constant(constant)) if operands.len() == 2 && constant_last => {
                self.program.code.pop();
                self.push(Instruction::CallConstant { op, cost, constant, before: 0 });
            }
            Some(&Instruction::Folded { constant, cost: before }) if operands.len() == 2 && folded_last => {
                self.program.code.pop();
                self.push(Instruction::CallConstant { op, cost, constant, before: before as u16 });
            }
            _ => {
                self.push(Instruction::Call { op, arguments: operands.len() as u8, cost });
            }
        }
        let end = self.here();
        for leave in leaves {
            self.aim(leave, end);
        }
        Ok(Planned::Emitted)
    }

    /// Calls a function now; `None` if that would take long.
    fn fold_call(
        &mut self,
        op: Op,
        cost: Cost,
        constants: &[Value<'static>],
    ) -> Option<(Value<'static>, u32)> {
        if constants.iter().any(Value::is_fault) || !op.folds() {
            return None;
        }
        let value = calls::call(op, constants, &mut self.folding).ok()?;
        let cost = calls::cost(cost, constants, &value);
        Some((value, u32::try_from(cost).ok()?))
    }

    /// The text of a node that is a constant string.
    fn constant_text(&mut self, node: NodeId) -> Result<Option<String>> {
        match self.tree.kind(node) {
            Kind::String(text) => Ok(Some(text.to_string())),
            Kind::Call { function: "string" | "dyn", arguments, .. } if arguments.len() == 1 => {
                let before = (self.program.code.len(), self.program.constants.len());
                let planned = self.plan(node)?;
                self.program.code.truncate(before.0);
                self.program.constants.truncate(before.1);
                match planned {
                    Planned::Constant(Value::String(text)) => Ok(Some(text.as_str().to_owned())),
                    _ => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    fn matcher(&mut self, (op, cost): (Op, Cost), pattern: &str, operands: &[NodeId]) -> Result<()> {
        let regex = match LazyPattern::new(pattern) {
            Ok(regex) => regex,
            Err(error) => return self.error(operands[1], format!("invalid regular expression: {error}")),
        };
        let patterns = &mut self.program.patterns;
        let pattern = match patterns.iter().position(|known| known.regex.is_same(&regex)) {
            Some(known) => known,
            None => {
                patterns.push(Pattern { regex, size: pattern.chars().count() as u64 });
                patterns.len() - 1
            }
        } as u32;
        if patterns.iter().map(|pattern| pattern.regex.weight()).fold(0, u64::saturating_add) > MAXIMUM_WEIGHT
        {
            return self.error(operands[1], "the regular expressions are too large together");
        }
        self.emit(operands[0])?;
        let leave = self.push(Instruction::LeaveOnFault { below: 0, to: u32::MAX });
        if let Some(&limit) = operands.get(2) {
            self.emit(limit)?;
        }
        self.push(Instruction::Match { op, pattern, arguments: operands.len() as u8 - 1, cost });
        let end = self.here();
        self.aim(leave, end);
        Ok(())
    }

    /// Plans `x in [constants]` as a set lookup, which is free of charge.
    fn in_constant(&mut self, operands: &[NodeId]) -> Result<Option<Planned>> {
        let (code, constants) = (self.program.code.len(), self.program.constants.len());
        let planned = self.plan(operands[1])?;
        self.program.code.truncate(code);
        self.program.constants.truncate(constants);
        let Planned::Constant(Value::List(List::Shared(elements))) = planned else { return Ok(None) };
        if elements.is_empty() {
            // The value is planned, so that its errors are found, but never computed.
            self.plan(operands[0])?;
            self.program.code.truncate(code);
            self.program.constants.truncate(constants);
            return Ok(Some(Planned::Constant(Value::Bool(false))));
        }
        let primitive = |value: &Value<'_>| {
            matches!(
                value,
                Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_)
            )
        };
        if !elements.iter().all(primitive) {
            return Ok(None);
        }
        self.emit(operands[0])?;
        let keys = elements.iter().filter_map(MapKey::of).collect();
        self.program.sets.push(ConstantSet { keys, elements: elements.to_vec() });
        let set = self.program.sets.len() as u32 - 1;
        self.push(Instruction::InSet { set });
        Ok(Some(Planned::Emitted))
    }

    /// Plans the parts of a literal: their values if all are constant, else the jumps on a fault.
    fn parts(&mut self, slice: Slice) -> Result<std::result::Result<Vec<Value<'static>>, Vec<usize>>> {
        let before = (self.program.code.len(), self.program.constants.len());
        let mut constants = Vec::with_capacity(slice.len());
        let mut leaves = Vec::new();
        for index in 0..slice.len() {
            match self.plan(self.tree.child(slice, index).node)? {
                Planned::Constant(value) => {
                    if constants.len() == index {
                        constants.push(value.clone());
                    }
                    self.emit_constant(value);
                }
                Planned::Emitted if index + 1 < slice.len() => {
                    leaves.push(self.push(Instruction::LeaveOnFault { below: index as u32, to: u32::MAX }));
                }
                Planned::Emitted => {}
            }
        }
        if constants.len() < slice.len() {
            return Ok(Err(leaves));
        }
        self.program.code.truncate(before.0);
        self.program.constants.truncate(before.1);
        Ok(Ok(constants))
    }

    /// Emits the making of a literal; one with a faulty part costs as much.
    fn make(&mut self, make: Instruction, cost: u32, leaves: Vec<usize>) -> Planned {
        self.push(make);
        if !leaves.is_empty() {
            let over = self.push(Instruction::Jump { to: u32::MAX });
            let faulty = self.here();
            self.push(Instruction::Pay { cost });
            let end = self.here();
            self.aim(over, end);
            for leave in leaves {
                self.aim(leave, faulty);
            }
        }
        Planned::Emitted
    }

    fn optionals(&mut self, slice: Slice) -> u32 {
        let marks: Vec<bool> = self.tree.children(slice).iter().map(|child| child.optional).collect();
        if !marks.contains(&true) {
            return u32::MAX;
        }
        self.program.optionals.push(marks);
        self.program.optionals.len() as u32 - 1
    }

    fn list(&mut self, elements: Slice) -> Result<Planned> {
        let parts = self.parts(elements)?;
        let optionals = self.optionals(elements);
        Ok(match parts {
            Ok(constants) if optionals == u32::MAX => Planned::Constant(Value::list(constants)),
            Ok(_) => Planned::Constant(not_optional()),
            Err(leaves) => {
                let make = Instruction::MakeList { count: elements.len() as u32, optionals };
                self.make(make, calls::LIST_COST, leaves)
            }
        })
    }

    fn map(&mut self, entries: Slice) -> Result<Planned> {
        let parts = self.parts(entries)?;
        let optionals = self.optionals(entries);
        let leaves = match parts {
            Ok(constants) => return Ok(Planned::Constant(constant_map(constants, optionals != u32::MAX))),
            Err(leaves) => leaves,
        };
        let make = Instruction::MakeMap { count: entries.len() as u32, optionals };
        Ok(self.make(make, calls::MAP_COST, leaves))
    }
}

fn constant_map(constants: Vec<Value<'static>>, optionals: bool) -> Value<'static> {
    if optionals {
        return not_optional();
    }
    let mut map = Entries::default();
    let mut constants = constants.into_iter();
    while let (Some(key), Some(value)) = (constants.next(), constants.next()) {
        if MapKey::of(&key).is_none() {
            return bad_key();
        }
        map.insert(key, value);
    }
    Value::Map(Map::of(map))
}

pub(crate) fn not_optional() -> Value<'static> {
    Value::fault(Fault::Static("a part marked with ? is not an optional"))
}

pub(crate) fn bad_key() -> Value<'static> {
    Value::fault(Fault::Static("a value of this type cannot be a map key"))
}

/// Conversions of constants are constants, free of charge.
fn is_conversion(name: &str) -> bool {
    matches!(
        name,
        "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint"
    )
}

/// The text value of a constant key.
pub(super) fn text_key(text: &str) -> Value<'static> {
    Value::String(Text::Shared(text.into()))
}
