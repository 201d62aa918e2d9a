//! The stack machine that runs programs.

use std::sync::Arc;

use smallvec::SmallVec;

use super::arithmetic;
use super::compare::{equal, order};
use super::map::{Entries, Map, MapKey};
use super::meter::{Budget, Exhausted};
use super::value::{Fault, Handle, List, Text, Value};
use crate::library::calls;
use crate::library::declarations::{Cost, Op};
use crate::plan::{ConstantSet, Instruction, Program, bad_key, not_optional};

/// The outcome of an evaluation as the caller makes it of the value, and the cost spent.
pub(crate) struct Evaluated<T> {
    pub(crate) outcome: Result<T, Exhausted>,
    pub(crate) cost: u64,
}

/// The stack of operands; small enough evaluations allocate nothing.
type Stack<'a> = SmallVec<[Value<'a>; 8]>;

/// The state of one evaluation.
pub(crate) struct Machine<'a, 'm> {
    program: &'a Program,
    variables: &'a [Value<'a>],
    stack: &'m mut Stack<'a>,
    locals: &'m mut SmallVec<[Value<'a>; 6]>,
    folds: Vec<Iteration<'a>>,
    returns: Vec<u32>,
    budget: Budget,
}

/// A range being iterated over.
struct Iteration<'a> {
    range: Range<'a>,
    position: usize,
}

enum Range<'a> {
    List(List<'a>),
    /// The keys, and the map for their values.
    Map(Vec<Value<'a>>, Map<'a>),
}

type Step<T> = Result<T, Exhausted>;

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
    fn pop(&mut self) -> Value<'a> {
        self.stack.pop().unwrap_or_default()
    }

    fn top(&mut self) -> &mut Value<'a> {
        if self.stack.is_empty() {
            self.stack.push(Value::Unset);
        }
        let last = self.stack.len() - 1;
        &mut self.stack[last]
    }

    fn local(&mut self, slot: u16) -> &mut Value<'a> {
        &mut self.locals[usize::from(slot)]
    }

    fn constant(&self, index: u32) -> &'a Value<'static> {
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

    /// Whether the path goes on.
    fn begin(&mut self) -> bool {
        let top = self.top();
        match top {
            Value::Optional(Some(value)) => {
                let inner = match &**value {
                    Value::Map(map) => Value::Map(map.without_default()),
                    inner => inner.clone(),
                };
                *top = Value::Path(Box::new(inner));
                true
            }
            Value::Optional(None) | Value::Fault(_) => false,
            _ => true,
        }
    }

    /// Selects a key from the topmost value; whether the path goes on.
    fn select(&mut self, key: &Value<'_>, optional: bool) -> Step<bool> {
        let top = self.top();
        let (object, maybe) = match top {
            Value::Fault(_) => return Ok(false),
            Value::Path(inner) => (&**inner, true),
            _ => (&*top, optional),
        };
        match qualify(object, key) {
            Ok(Some(value)) => {
                *top = if maybe { Value::Path(Box::new(value)) } else { value };
                self.budget.charge(1)?;
                Ok(true)
            }
            Ok(None) if maybe => {
                *top = Value::NONE;
                Ok(false)
            }
            Ok(None) => {
                *top = missing(object, key);
                self.budget.charge(1)?;
                Ok(false)
            }
            Err(fault) => {
                *top = Value::fault(fault);
                // An optional selection that fails is not observed by the meter.
                self.budget.charge(u64::from(!maybe))?;
                Ok(false)
            }
        }
    }

    fn index(&mut self, optional: bool) -> Step<bool> {
        let key = self.pop();
        let valid = matches!(
            key,
            Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_)
        );
        if valid {
            return self.select(&key, optional);
        }
        let top = self.top();
        let maybe = optional || matches!(top, Value::Path(_));
        *top = if key.is_fault() { key } else { Value::message("a value of this type cannot be an index") };
        self.budget.charge(u64::from(!maybe))?;
        Ok(false)
    }

    fn test(&mut self, key: &Value<'_>) -> Step<()> {
        let top = self.top();
        let (object, maybe) = match top {
            Value::Fault(_) => return Ok(()),
            Value::Path(inner) => (&**inner, true),
            _ => (&*top, false),
        };
        let found = qualify(object, key);
        let charge = !maybe || matches!(found, Ok(Some(_)));
        *top = match found {
            Ok(found) => Value::Bool(found.is_some()),
            Err(fault) => Value::fault(fault),
        };
        self.budget.charge(u64::from(charge))
    }

    fn device_value(&self, path: u32) -> Option<&'a Value<'a>> {
        let path = &self.program.paths[path as usize];
        match self.variables.first() {
            Some(Value::Map(Map::Device(device))) => {
                let domains = if path.capacity { &device.capacity } else { &device.attributes };
                let domain = domains
                    .iter()
                    .find(|domain| domain.hash == path.domain_hash && *domain.name == *path.domain)?;
                domain.find_hashed(&path.name, path.name_hash)
            }
            _ => None,
        }
    }

    #[cold]
    fn missing_path(&self, path: u32) -> Value<'a> {
        Value::fault(Fault::NoKey(Arc::from(&*self.program.paths[path as usize].name)))
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

    fn make_list(&mut self, count: usize, optionals: u32) -> Step<()> {
        self.budget.charge(u64::from(calls::LIST_COST))?;
        self.budget.work(count)?;
        let start = self.stack.len().saturating_sub(count);
        let mut elements: Vec<Value<'a>> = self.stack.drain(start..).collect();
        if let Some(position) = elements.iter().position(Value::is_fault) {
            let fault = elements.swap_remove(position);
            self.stack.push(fault);
            return Ok(());
        }
        if let Some(marks) = self.program.optionals.get(optionals as usize) {
            let mut kept = Vec::with_capacity(count);
            for (element, &optional) in elements.into_iter().zip(marks) {
                match element {
                    Value::Optional(None) if optional => {}
                    Value::Optional(Some(value)) if optional => kept.push((*value).clone()),
                    _ if optional => {
                        self.stack.push(not_optional());
                        return Ok(());
                    }
                    element => kept.push(element),
                }
            }
            elements = kept;
        }
        self.stack.push(Value::list(elements));
        Ok(())
    }

    fn make_map(&mut self, count: usize, optionals: u32) -> Step<()> {
        self.budget.charge(u64::from(calls::MAP_COST))?;
        self.budget.work(count)?;
        let start = self.stack.len().saturating_sub(count);
        let parts: Vec<Value<'a>> = self.stack.drain(start..).collect();
        let marks = self.program.optionals.get(optionals as usize);
        let made = assemble(parts, marks.map_or(&[], Vec::as_slice));
        self.stack.push(made);
        Ok(())
    }

    fn start_fold(&mut self) -> Step<bool> {
        let range = match self.pop() {
            Value::List(list) => Range::List(list),
            Value::Map(map) => {
                self.budget.work(map.len())?;
                Range::Map(map.keys().collect(), map)
            }
            fault @ Value::Fault(_) => {
                self.stack.push(fault);
                return Ok(false);
            }
            _ => {
                self.stack.push(Value::message("a value of this type cannot be iterated over"));
                return Ok(false);
            }
        };
        self.folds.push(Iteration { range, position: 0 });
        Ok(true)
    }

    fn next(&mut self, slot: u16, pair: bool) -> Step<bool> {
        let Some(iteration) = self.folds.last_mut() else { return Ok(false) };
        let position = iteration.position;
        iteration.position += 1;
        let (first, second) = match &iteration.range {
            Range::List(list) => match list.get(position) {
                Some(element) if pair => (Value::Int(position as i64), Some(element)),
                Some(element) => (element, None),
                None => return Ok(false),
            },
            Range::Map(keys, map) => match keys.get(position) {
                Some(key) if pair => (key.clone(), map.find(key)),
                Some(key) => (key.clone(), None),
                None => return Ok(false),
            },
        };
        *self.local(slot) = first;
        if let Some(second) = second {
            *self.local(slot + 1) = second;
        }
        self.budget.work(1)?;
        Ok(true)
    }

    fn append(&mut self, slot: u16, literal_cost: u64) -> Step<()> {
        let element = self.pop();
        self.budget.charge(literal_cost)?;
        self.budget.charge(1)?;
        match (self.local(slot), element) {
            (Value::Fault(_), _) => {}
            (accumulator, fault @ Value::Fault(_)) => *accumulator = fault,
            (Value::List(List::Shared(elements)), element) => Arc::make_mut(elements).push(element),
            (accumulator @ Value::List(_), element) => *accumulator = Value::list(vec![element]),
            (accumulator, _) => *accumulator = Value::no_overload("+"),
        }
        Ok(())
    }

    fn insert(&mut self, slot: u16) -> Step<()> {
        let (value, key) = (self.pop(), self.pop());
        self.budget.charge(1)?;
        let accumulator = self.local(slot);
        if let fault @ Value::Fault(_) = value {
            *accumulator = fault;
            return Ok(());
        }
        add_entry(accumulator, key, value);
        Ok(())
    }

    fn insert_all(&mut self, slot: u16) -> Step<()> {
        let entries = self.pop();
        self.budget.charge(1)?;
        match (self.local(slot), entries) {
            (Value::Fault(_), _) => {}
            (accumulator, fault @ Value::Fault(_)) => *accumulator = fault,
            (accumulator, Value::Map(entries)) => {
                for key in entries.keys() {
                    if let Some(value) = entries.find(&key) {
                        add_entry(accumulator, key, value);
                    }
                }
            }
            (accumulator, _) => *accumulator = Value::no_overload("transformMapEntry"),
        }
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

/// Adds an entry to the map of a fold, which must not have the key yet.
fn add_entry<'a>(accumulator: &mut Value<'a>, key: Value<'a>, value: Value<'a>) {
    if MapKey::of(&key).is_none() {
        *accumulator = bad_key();
        return;
    }
    match accumulator {
        Value::Map(Map::Entries(Handle::Shared(entries))) => {
            if entries.find(&key).is_some() {
                *accumulator = Value::message(format!("the key {key} occurs twice"));
            } else {
                Arc::make_mut(entries).insert(key, value);
            }
        }
        Value::Map(_) => {
            let mut entries = Entries::default();
            entries.insert(key, value);
            *accumulator = Value::Map(Map::of(entries));
        }
        _ => {}
    }
}

fn assemble<'a>(parts: Vec<Value<'a>>, marks: &[bool]) -> Value<'a> {
    let mut entries = Entries::default();
    let mut parts = parts.into_iter().enumerate();
    while let (Some((_, key)), Some((at, value))) = (parts.next(), parts.next()) {
        if key.is_fault() {
            return key;
        }
        if value.is_fault() {
            return value;
        }
        if MapKey::of(&key).is_none() {
            return bad_key();
        }
        let value = match value {
            value if !marks.get(at).copied().unwrap_or(false) => value,
            Value::Optional(Some(value)) => (*value).clone(),
            Value::Optional(None) => {
                entries.remove(&key);
                continue;
            }
            _ => return not_optional(),
        };
        entries.insert(key, value);
    }
    Value::Map(Map::of(entries))
}

/// Looks a key up; `None` if it is absent, a fault if it cannot be looked up.
fn qualify<'a>(object: &Value<'a>, key: &Value<'_>) -> Result<Option<Value<'a>>, Fault> {
    match object {
        Value::Map(map) => Ok(match key {
            Value::String(name) => map.field(name.as_str()),
            key => map.find(key),
        }),
        Value::List(list) => {
            let index = match MapKey::of(key) {
                Some(MapKey::Int(index)) if !matches!(key, Value::Bool(_)) => index,
                _ => return Err(Fault::Static("a list is indexed by integers")),
            };
            Ok(usize::try_from(index).ok().and_then(|index| list.get(index)))
        }
        _ => Ok(None),
    }
}

#[cold]
fn missing<'a>(object: &Value<'_>, key: &Value<'_>) -> Value<'a> {
    match (object, key) {
        (Value::List(_), _) => Value::message(format!("index out of bounds: {key}")),
        (_, Value::String(Text::Shared(name))) => Value::fault(Fault::NoKey(name.clone())),
        (_, Value::String(Text::Borrowed(name))) => Value::fault(Fault::NoKey(Arc::from(*name))),
        _ => Value::fault(Fault::NoKey(Arc::from(key.to_string()))),
    }
}

/// A result that fits into registers.
#[derive(Clone, Copy)]
enum Quick {
    Bool(bool),
    Int(i64),
}

impl From<Quick> for Value<'_> {
    fn from(quick: Quick) -> Self {
        match quick {
            Quick::Bool(value) => Value::Bool(value),
            Quick::Int(value) => Value::Int(value),
        }
    }
}

/// The most frequent operators and functions, on operands of the same type; `None` for the rest.
fn quick(op: Op, left: &Value<'_>, right: &Value<'_>) -> Option<Quick> {
    use std::cmp::Ordering;
    let found: Ordering = match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => {
            let (a, b) = (a.as_str(), b.as_str());
            return Some(Quick::Bool(match op {
                Op::Equal => a == b,
                Op::NotEqual => a != b,
                Op::StartsWith => a.starts_with(b),
                Op::EndsWith => a.ends_with(b),
                Op::Contains => a.contains(b),
                _ => return None,
            }));
        }
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Quantity(a), Value::Quantity(b)) => a.get().cmp(b.get()),
        (Value::Semver(a), Value::Semver(b)) => a.get().cmp(b.get()),
        _ => return None,
    };
    Some(match (op, left) {
        (Op::Equal, _) => Quick::Bool(found.is_eq()),
        (Op::NotEqual, _) => Quick::Bool(found.is_ne()),
        (Op::Less, Value::Int(_) | Value::Bool(_)) => Quick::Bool(found.is_lt()),
        (Op::LessEqual, Value::Int(_) | Value::Bool(_)) => Quick::Bool(found.is_le()),
        (Op::Greater, Value::Int(_) | Value::Bool(_)) => Quick::Bool(found.is_gt()),
        (Op::GreaterEqual, Value::Int(_) | Value::Bool(_)) => Quick::Bool(found.is_ge()),
        (Op::CompareTo, Value::Quantity(_) | Value::Semver(_)) => Quick::Int(found as i64),
        (Op::IsLessThan, Value::Quantity(_) | Value::Semver(_)) => Quick::Bool(found.is_lt()),
        (Op::IsGreaterThan, Value::Quantity(_) | Value::Semver(_)) => Quick::Bool(found.is_gt()),
        _ => return None,
    })
}

/// The operators with two operands; `None` for functions of the libraries.
fn binary<'a>(op: Op, left: &Value<'a>, right: &Value<'a>, budget: &mut Budget) -> Step<Option<Value<'a>>> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let settle = |outcome: Result<Value<'a>, Fault>| outcome.unwrap_or_else(Value::fault);
    let ordered = |accept: [std::cmp::Ordering; 2]| match order(left, right) {
        Ok(found) => Value::Bool(accept.contains(&found)),
        Err(fault) => Value::fault(fault),
    };
    Ok(Some(match op {
        Op::Equal => match equal(left, right, budget)? {
            Some(same) => Value::Bool(same),
            None => Value::no_overload("=="),
        },
        Op::NotEqual => Value::Bool(equal(left, right, budget)? != Some(true)),
        Op::Less => ordered([Less, Less]),
        Op::LessEqual => ordered([Less, Equal]),
        Op::Greater => ordered([Greater, Greater]),
        Op::GreaterEqual => ordered([Greater, Equal]),
        Op::Add => match (left, right) {
            (Value::List(a), Value::List(b)) => {
                budget.work(a.len() + b.len())?;
                arithmetic::join(a, b)
            }
            (Value::String(a), Value::String(b)) => {
                budget.work((a.as_str().len() + b.as_str().len()) / 8)?;
                arithmetic::add(left, right)
            }
            _ => arithmetic::add(left, right),
        },
        Op::Subtract => settle(arithmetic::subtract(left, right)),
        Op::Multiply => settle(arithmetic::multiply(left, right)),
        Op::Divide => settle(arithmetic::divide(left, right)),
        Op::Modulo => settle(arithmetic::modulo(left, right)),
        Op::CompareTo => Value::no_overload("compareTo"),
        Op::IsGreaterThan => Value::no_overload("isGreaterThan"),
        Op::IsLessThan => Value::no_overload("isLessThan"),
        _ => return Ok(None),
    }))
}
