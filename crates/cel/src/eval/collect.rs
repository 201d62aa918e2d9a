//! Literals of lists and maps, and folds: ranges being iterated over and what they collect.

use std::sync::Arc;

use super::machine::{Machine, Step};
use super::map::{Entries, Map, MapKey};
use super::value::{Handle, List, Value};
use crate::library::calls;
use crate::plan::{bad_key, not_optional};

/// A range being iterated over.
pub(super) struct Iteration<'a> {
    range: Range<'a>,
    position: usize,
}

enum Range<'a> {
    List(List<'a>),
    /// The keys, and the map for their values.
    Map(Vec<Value<'a>>, Map<'a>),
}

impl<'a> Machine<'a, '_> {
    pub(super) fn make_list(&mut self, count: usize, optionals: u32) -> Step<()> {
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

    pub(super) fn make_map(&mut self, count: usize, optionals: u32) -> Step<()> {
        self.budget.charge(u64::from(calls::MAP_COST))?;
        self.budget.work(count)?;
        let start = self.stack.len().saturating_sub(count);
        let parts: Vec<Value<'a>> = self.stack.drain(start..).collect();
        let marks = self.program.optionals.get(optionals as usize);
        let made = assemble(parts, marks.map_or(&[], Vec::as_slice));
        self.stack.push(made);
        Ok(())
    }

    pub(super) fn start_fold(&mut self) -> Step<bool> {
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

    pub(super) fn next(&mut self, slot: u16, pair: bool) -> Step<bool> {
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

    pub(super) fn append(&mut self, slot: u16, literal_cost: u64) -> Step<()> {
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

    pub(super) fn insert(&mut self, slot: u16) -> Step<()> {
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

    pub(super) fn insert_all(&mut self, slot: u16) -> Step<()> {
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
