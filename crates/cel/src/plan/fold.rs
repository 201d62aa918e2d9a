//! Folds: the loops of the iterating macros, and bindings.

use super::planner::{Planned, Planner, Result};
use super::program::Instruction;
use crate::check::Reference;
use crate::eval::Value;
use crate::library::calls;
use crate::syntax::{BIND_ITERATION_VARIABLE, Comprehension, Kind, NodeId};

impl<'s> Planner<'_, 's, '_> {
    pub(super) fn fold(&mut self, node: NodeId, fold: &Comprehension<'s>) -> Result<()> {
        let Reference::Fold(slot) = self.checked.reference(node) else {
            return self.error(node, "the fold was not resolved");
        };
        if fold.variable == BIND_ITERATION_VARIABLE {
            return self.binding(slot, fold);
        }
        self.emit(fold.range)?;
        let start = self.push(Instruction::StartFold { end: u32::MAX });
        // Macros start from literals, which cost nothing and cannot fail.
        self.emit(fold.initial)?;
        self.push(Instruction::Store { slot });
        let pair = fold.second_variable.is_some();
        let again = self.here();
        let next = match self.quantifier(fold) {
            Some((all, predicate)) => {
                let next =
                    self.push(Instruction::NextUndecided { slot: slot + 1, pair, all, done: u32::MAX });
                self.emit(predicate)?;
                self.push(Instruction::Decide { slot, all });
                next
            }
            None => {
                let next = self.push(Instruction::Next { slot: slot + 1, pair, done: u32::MAX });
                self.step(slot, fold.step)?;
                next
            }
        };
        self.push(Instruction::Jump { to: again });
        let done = self.here();
        self.aim(next, done);
        self.push(Instruction::FinishFold);
        self.emit(fold.result)?;
        let end = self.here();
        self.aim(start, end);
        Ok(())
    }

    /// The predicate of `all` (true) or `exists` (false).
    fn quantifier(&self, fold: &Comprehension<'_>) -> Option<(bool, NodeId)> {
        let Kind::Call { function, target: None, arguments } = *self.tree.kind(fold.step) else {
            return None;
        };
        let all = match (function, self.tree.kind(fold.initial)) {
            ("_&&_", Kind::Bool(true)) => true,
            ("_||_", Kind::Bool(false)) => false,
            _ => return None,
        };
        Some((all, self.tree.child(arguments, 1).node))
    }

    /// Plans how an element changes the accumulator.
    fn step(&mut self, slot: u16, step: NodeId) -> Result<()> {
        let Kind::Call { function, target: None, arguments } = *self.tree.kind(step) else {
            return self.store(slot, step);
        };
        let argument = |index| self.tree.child(arguments, index).node;
        match function {
            "_?_:_" => {
                let (condition, truthy) = (argument(0), argument(1));
                self.emit(condition)?;
                let branch = self.push(Instruction::Branch { otherwise: u32::MAX, end: u32::MAX });
                self.step(slot, truthy)?;
                let over = self.push(Instruction::Jump { to: u32::MAX });
                let fault = self.here();
                self.push(Instruction::Store { slot });
                let end = self.here();
                self.aim(over, end);
                self.program.code[branch] = Instruction::Branch { otherwise: end, end: fault };
                Ok(())
            }
            "_+_" if matches!(self.tree.kind(argument(1)), Kind::List(_)) => {
                let Kind::List(elements) = *self.tree.kind(argument(1)) else {
                    return self.store(slot, step);
                };
                let element = self.tree.child(elements, 0);
                self.push(Instruction::Charge { units: 1 });
                let literal_cost = match self.plan(element.node)? {
                    Planned::Constant(value) => {
                        self.emit_constant(value);
                        0
                    }
                    Planned::Emitted => calls::LIST_COST as u8,
                };
                self.push(Instruction::Append { slot, literal_cost });
                Ok(())
            }
            "cel.@mapInsert" if arguments.len() == 3 => self.insert(slot, argument(1), argument(2)),
            "cel.@mapInsert" => {
                self.push(Instruction::Charge { units: 1 });
                self.emit(argument(1))?;
                self.push(Instruction::InsertAll { slot });
                Ok(())
            }
            _ => self.store(slot, step),
        }
    }

    /// `mapInsert` of three operands stops at the first that is a fault: the accumulator or the key.
    fn insert(&mut self, slot: u16, key: NodeId, value: NodeId) -> Result<()> {
        self.push(Instruction::Local { slot, cost: 1 });
        let leave = self.push(Instruction::LeaveOnFault { below: 0, to: u32::MAX });
        self.push(Instruction::Drop);
        self.emit(key)?;
        let faulty_key = self.push(Instruction::LeaveOnFault { below: 0, to: u32::MAX });
        self.emit(value)?;
        self.push(Instruction::Insert { slot });
        let over = self.push(Instruction::Jump { to: u32::MAX });
        let fault = self.here();
        self.aim(leave, fault);
        self.aim(faulty_key, fault);
        self.push(Instruction::Store { slot });
        let end = self.here();
        self.aim(over, end);
        Ok(())
    }

    fn store(&mut self, slot: u16, step: NodeId) -> Result<()> {
        self.emit(step)?;
        self.push(Instruction::Store { slot });
        Ok(())
    }

    /// `cel.bind`: the value is computed when it is first read, and never if it is not.
    fn binding(&mut self, slot: u16, fold: &Comprehension<'s>) -> Result<()> {
        self.refuse_type(fold.initial)?;
        let before = (self.program.code.len(), self.program.constants.len());
        self.push(Instruction::Unset { slot });
        let over = self.push(Instruction::Jump { to: u32::MAX });
        let code = self.here();
        match self.plan(fold.initial)? {
            Planned::Constant(value) if !matches!(value, Value::Fault(_)) => {
                self.program.code.truncate(before.0);
                self.emit_constant(value);
                self.push(Instruction::Store { slot });
                self.emit(fold.result)?;
                return Ok(());
            }
            Planned::Constant(value) => self.emit_constant(value),
            Planned::Emitted => {}
        }
        self.push(Instruction::Return { slot });
        let body = self.here();
        self.aim(over, body);
        if let Some(input) = self.bound_input(fold.initial) {
            self.bound.push((slot, input));
        }
        self.lazy.push((slot, code));
        self.emit(fold.result)?;
        self.lazy.pop();
        Ok(())
    }
}
