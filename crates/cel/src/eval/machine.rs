//! The stack machine that runs programs.

use smallvec::SmallVec;

use super::collect::Iteration;
use super::map::{Map, MapKey};
use super::meter::{Budget, Exhausted};
use super::operators::{binary, quick};
use super::value::{Text, Value};
use crate::library::calls;
use crate::library::declarations::{Cost, Op};
use crate::plan::{ConstantSet, Instruction, Program};

/// The outcome of an evaluation as the caller makes it of the value, and the cost spent.
pub(crate) struct Evaluated<T> {
    pub(crate) outcome: Result<T, Exhausted>,
    pub(crate) cost: u64,
}

/// The stack of operands; small enough evaluations allocate nothing.
type Stack<'a> = SmallVec<[Value<'a>; 8]>;

/// The state of one evaluation.
pub(crate) struct Machine<'a, 'm> {
    pub(super) program: &'a Program,
    pub(super) variables: &'a [Value<'a>],
    pub(super) stack: &'m mut Stack<'a>,
    locals: &'m mut SmallVec<[Value<'a>; 6]>,
    pub(super) folds: Vec<Iteration<'a>>,
    returns: Vec<u32>,
    pub(super) budget: Budget,
}

pub(super) type Step<T> = Result<T, Exhausted>;

/// Runs a program on the values of its environment's variables and reads the result.
pub(crate) fn run<'a, T>(
    program: &'a Program,
    variables: &'a [Value<'a>],
    limit: u64,
    read: impl FnOnce(&Value<'a>) -> T,
) -> Evaluated<T> {
    let mut stack = Stack::new();
    let mut locals = SmallVec::new();
    if program.slots > 0 {
        locals.resize_with(usize::from(program.slots), Value::default);
    }
    let mut machine = Machine {
        program,
        variables,
        stack: &mut stack,
        locals: &mut locals,
        folds: Vec::new(),
        returns: Vec::new(),
        budget: Budget::new(limit),
    };
    let executed = machine.execute();
    let cost = machine.budget.cost;
    // The value is read in place: moving it would stall on its just written parts.
    let outcome = executed.map(|()| read(stack.last().unwrap_or(&Value::Unset)));
    Evaluated { outcome, cost }
}

impl<'a> Machine<'a, '_> {
    pub(super) fn pop(&mut self) -> Value<'a> {
        self.stack.pop().unwrap_or_default()
    }

    pub(super) fn top(&mut self) -> &mut Value<'a> {
        if self.stack.is_empty() {
            self.stack.push(Value::Unset);
        }
        let last = self.stack.len() - 1;
        &mut self.stack[last]
    }

    pub(super) fn local(&mut self, slot: u16) -> &mut Value<'a> {
        &mut self.locals[usize::from(slot)]
    }

    pub(super) fn constant(&self, index: u32) -> &'a Value<'static> {
        &self.program.constants[index as usize]
    }

    fn execute(&mut self) -> Step<()> {
        use Instruction as I;
        let program = self.program;
        let mut at = 0usize;
        while let Some(&instruction) = program.code.get(at) {
            at += 1;
            match instruction {
                I::Constant(index) => {
                    let value = self.constant(index).borrowed();
                    self.stack.push(value);
                }
                I::Folded { constant, cost } => {
                    self.budget.charge(u64::from(cost))?;
                    let value = self.constant(constant).borrowed();
                    self.stack.push(value);
                }
                I::Variable { index, cost } => {
                    self.budget.charge(u64::from(cost))?;
                    let value = self.variables.get(usize::from(index)).map_or(Value::Unset, Value::borrowed);
                    self.stack.push(match value {
                        Value::Unset => Value::message("a variable of the expression has no value"),
                        value => value,
                    });
                }
                I::Local { slot, cost } => {
                    self.budget.charge(u64::from(cost))?;
                    let value = self.local(slot).clone();
                    self.stack.push(value);
                }
                I::Force { slot, code } => {
                    if matches!(self.local(slot), Value::Unset) {
                        self.returns.push(at as u32);
                        at = code as usize;
                    }
                }
                I::Return { slot } => {
                    *self.local(slot) = self.pop();
                    at = self.returns.pop().unwrap_or(u32::MAX) as usize;
                }
                I::Unset { slot } => *self.local(slot) = Value::Unset,
                I::Begin { end } => {
                    if !self.begin() {
                        at = end as usize;
                    }
                }
                I::Field { key, end } => {
                    if !self.select(self.constant(key), false)? {
                        at = end as usize;
                    }
                }
                I::OptionalField { key, end } => {
                    if !self.select(self.constant(key), true)? {
                        at = end as usize;
                    }
                }
                I::Index { end } => {
                    if !self.index(false)? {
                        at = end as usize;
                    }
                }
                I::OptionalIndex { end } => {
                    if !self.index(true)? {
                        at = end as usize;
                    }
                }
                I::Test { key, end } => {
                    self.test(self.constant(key))?;
                    at = end as usize;
                }
                I::DevicePath { path, cost, end } => {
                    self.budget.charge_units(u64::from(cost))?;
                    match self.device_value(path) {
                        Some(value) => self.stack.push(value.borrowed()),
                        None => {
                            let missing = self.missing_path(path);
                            self.stack.push(missing);
                            at = end as usize;
                        }
                    }
                }
                I::DeviceTest { path } => {
                    self.budget.charge_units(3)?;
                    let present = self.device_value(path).is_some();
                    self.stack.push(Value::Bool(present));
                }
                I::End { cost } => {
                    self.budget.charge(u64::from(cost))?;
                    let top = self.top();
                    if let Value::Path(_) = top
                        && let Value::Path(value) = std::mem::take(top)
                    {
                        *top = Value::some(*value);
                    }
                }
                I::Jump { to } => at = to as usize,
                I::LeaveOnFault { below, to } => {
                    if self.top().is_fault() {
                        let fault = self.pop();
                        let left = self.stack.len().saturating_sub(below as usize);
                        self.stack.truncate(left);
                        self.stack.push(fault);
                        at = to as usize;
                    }
                }
                I::Branch { otherwise, end } => match *self.top() {
                    Value::Bool(value) => {
                        self.shrink(1);
                        if !value {
                            at = otherwise as usize;
                        }
                    }
                    Value::Fault(_) => at = end as usize,
                    _ => {
                        *self.top() = Value::no_overload("the conditional");
                        at = end as usize;
                    }
                },
                I::OrTerm { to } => {
                    if self.term(true) {
                        at = to as usize;
                    }
                }
                I::AndTerm { to } => {
                    if self.term(false) {
                        at = to as usize;
                    }
                }
                I::OptionalOr { to, unwrap } => match self.pop() {
                    Value::Optional(None) => {}
                    Value::Optional(Some(value)) => {
                        self.stack.push(if unwrap { (*value).clone() } else { Value::Optional(Some(value)) });
                        at = to as usize;
                    }
                    other => {
                        self.stack.push(other);
                        at = to as usize;
                    }
                },
                I::Call { op, arguments, cost } => self.call(op, usize::from(arguments), cost)?,
                I::CallConstant { op, cost, constant, before } => {
                    self.budget.charge(u64::from(before))?;
                    self.call_constant(op, cost, constant)?;
                }
                I::Driver { cost } => {
                    self.budget.charge_units(u64::from(cost))?;
                    let driver = match self.variables.first() {
                        Some(Value::Map(Map::Device(device))) => {
                            Value::String(Text::Borrowed(&device.driver))
                        }
                        _ => Value::message("there is no device"),
                    };
                    self.stack.push(driver);
                }
                I::Match { op, pattern, arguments, cost } => self.search(op, pattern, arguments, cost)?,
                I::InSet { set } => {
                    let value = self.pop();
                    let member = member(&program.sets[set as usize], value)?;
                    self.stack.push(member);
                }
                I::MakeList { count, optionals } => self.make_list(count as usize, optionals)?,
                I::MakeMap { count, optionals } => self.make_map(count as usize, optionals)?,
                I::StartFold { end } => {
                    if !self.start_fold()? {
                        at = end as usize;
                    }
                }
                I::Next { slot, pair, done } => {
                    if !self.next(slot, pair)? {
                        at = done as usize;
                    }
                }
                I::NextUndecided { slot, pair, all, done } => {
                    if !self.next(slot, pair)? {
                        at = done as usize;
                        continue;
                    }
                    // `@not_strictly_false(accumulator)`, with a negation for `exists`.
                    self.budget.charge_units(if all { 2 } else { 3 })?;
                    if matches!(self.local(slot - 1), Value::Bool(decided) if *decided != all) {
                        at = done as usize;
                        continue;
                    }
                    self.budget.charge_units(1)?;
                }
                I::Decide { slot, all } => {
                    if let Value::Bool(value) = *self.top() {
                        self.shrink(1);
                        if value != all {
                            *self.local(slot) = Value::Bool(value);
                        }
                        continue;
                    }
                    let predicate = self.pop();
                    let accumulator = self.local(slot);
                    match predicate {
                        _ if accumulator.is_fault() => {}
                        fault @ Value::Fault(_) => *accumulator = fault,
                        _ => *accumulator = Value::no_overload(if all { "&&" } else { "||" }),
                    }
                }
                I::Pay { cost } => self.budget.charge(u64::from(cost))?,
                I::Charge { units } => self.budget.charge_units(u64::from(units))?,
                I::Store { slot } => *self.local(slot) = self.pop(),
                I::Drop => drop(self.pop()),
                I::Append { slot, literal_cost } => self.append(slot, u64::from(literal_cost))?,
                I::Insert { slot } => self.insert(slot)?,
                I::InsertAll { slot } => self.insert_all(slot)?,
                I::FinishFold => drop(self.folds.pop()),
            }
        }
        Ok(())
    }

    /// Takes the topmost value into the outcome of `||` (or `&&`) below; whether that decides it.
    fn term(&mut self, or: bool) -> bool {
        if let Value::Bool(value) = *self.top() {
            self.shrink(1);
            if value == or {
                *self.top() = Value::Bool(or);
            }
            return value == or;
        }
        let term = self.pop();
        let outcome = self.top();
        match term {
            _ if outcome.is_fault() => {}
            fault @ Value::Fault(_) => *outcome = fault,
            _ => *outcome = Value::no_overload(if or { "||" } else { "&&" }),
        }
        false
    }

    /// Drops topmost values in place.
    fn shrink(&mut self, count: usize) {
        let left = self.stack.len().saturating_sub(count);
        self.stack.truncate(left);
    }

    fn replace(&mut self, count: usize, value: Value<'a>) {
        self.shrink(count);
        self.stack.push(value);
    }

    fn call(&mut self, op: Op, count: usize, cost: Cost) -> Step<()> {
        let start = self.stack.len().saturating_sub(count);
        if let [left, right] = &self.stack[start..]
            && let Some(quick) = quick(op, left, right)
        {
            let charged = match cost {
                Cost::One => 1,
                _ => calls::pair_cost(cost, left, right),
            };
            self.shrink(1);
            *self.top() = quick.into();
            return self.budget.charge(charged);
        }
        let value = match (op, &self.stack[start..]) {
            (Op::NotStrictlyFalse, [Value::Bool(value)]) => Value::Bool(*value),
            (Op::NotStrictlyFalse, _) => Value::Bool(true),
            (_, arguments) if arguments.iter().any(Value::is_fault) => {
                if calls::measured(cost, arguments).is_some_and(Value::is_fault) {
                    return Err(Exhausted::Internal);
                }
                let cost = calls::cost(cost, arguments, &Value::Unset);
                self.budget.charge(cost)?;
                let fault = self.stack.drain(start..).find(Value::is_fault).unwrap_or_default();
                self.stack.push(fault);
                return Ok(());
            }
            (op, [left, right]) => match binary(op, left, right, &mut self.budget)? {
                Some(value) => value,
                None => self.general(op, start, cost)?,
            },
            (Op::Not, [Value::Bool(value)]) => Value::Bool(!value),
            _ => self.general(op, start, cost)?,
        };
        let charged = match cost {
            Cost::One => 1,
            _ => calls::cost(cost, &self.stack[start..], &value),
        };
        self.replace(count, value);
        self.budget.charge(charged)
    }

    /// A call with a constant right operand, which never enters the stack if the operator is simple.
    fn call_constant(&mut self, op: Op, cost: Cost, constant: u32) -> Step<()> {
        let right: &'a Value<'a> = self.constant(constant);
        if let Some(left) = self.stack.last()
            && let Some(quick) = quick(op, left, right)
        {
            let charged = match cost {
                Cost::One => 1,
                _ => calls::pair_cost(cost, left, right),
            };
            *self.top() = quick.into();
            return self.budget.charge(charged);
        }
        self.stack.push(right.borrowed());
        self.call(op, 2, cost)
    }

    /// Calls a library function, unless its known cost would end the evaluation anyway.
    fn general(&mut self, op: Op, start: usize, cost: Cost) -> Step<Value<'a>> {
        let arguments = &self.stack[start..];
        if let Some(known) = calls::cost_before(cost, arguments)
            && !self.budget.affords(known)
        {
            self.budget.charge(known)?;
        }
        calls::call(op, arguments, &mut self.budget)
    }

    /// A regular expression that is constant: the stack holds the text and, for some, a limit.
    fn search(&mut self, op: Op, pattern: u32, count: u8, cost: Cost) -> Step<()> {
        let pattern = &self.program.patterns[pattern as usize];
        let start = self.stack.len().saturating_sub(usize::from(count));
        let charged = calls::pattern_cost(cost, &self.stack[start], pattern.size);
        self.budget.charge(charged)?;
        let value = match self.stack[start..].iter().position(Value::is_fault) {
            Some(fault) => self.stack[start + fault].clone(),
            None => match pattern.regex.get() {
                Ok(regex) => calls::search(op, regex, &self.stack[start..], &mut self.budget)?,
                Err(error) => Value::message(error),
            },
        };
        self.replace(usize::from(count), value);
        Ok(())
    }
}

/// Looks a value up in a constant list, which cel-go keeps as a Go map: some values cannot be hashed.
fn member<'a>(set: &ConstantSet, value: Value<'a>) -> Step<Value<'a>> {
    Ok(match &value {
        Value::Fault(_) => value,
        Value::String(text) if set.elements.len() <= 8 => Value::Bool(
            set.elements
                .iter()
                .any(|element| matches!(element, Value::String(own) if own.as_str() == text.as_str())),
        ),
        Value::Semver(_) | Value::Bytes(_) | Value::Format(_) => return Err(Exhausted::Internal),
        _ => Value::Bool(MapKey::of(&value).is_some_and(|key| set.keys.contains(&key))),
    })
}
