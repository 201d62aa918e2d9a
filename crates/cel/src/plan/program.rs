//! The instructions of a stack machine and the tables they refer to.

use std::collections::HashSet;

use crate::eval::{MapKey, Value};
use crate::library::declarations::{Cost, Op};
use crate::library::regex::LazyPattern;

/// One step. Targets are indices into the code; `u32::MAX` until they are known.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Instruction {
    /// Pushes a constant, which costs nothing.
    Constant(u32),
    /// Pushes the folded result of a call, charging what the call costs.
    Folded {
        constant: u32,
        cost: u32,
    },
    /// Pushes a variable of the environment.
    Variable {
        index: u16,
        cost: u8,
    },
    /// Pushes a local variable.
    Local {
        slot: u16,
        cost: u8,
    },
    /// Runs the code that computes a bound variable unless it has been run.
    Force {
        slot: u16,
        code: u32,
    },
    /// Ends such code: stores the result and goes back.
    Return {
        slot: u16,
    },
    /// Forgets a bound variable.
    Unset {
        slot: u16,
    },

    /// Opens an optional at the start of a path; an empty one, or a fault, ends the path.
    Begin {
        end: u32,
    },
    /// Selects a constant key.
    Field {
        key: u32,
        end: u32,
    },
    OptionalField {
        key: u32,
        end: u32,
    },
    /// Selects the key on top of the stack.
    Index {
        end: u32,
    },
    OptionalIndex {
        end: u32,
    },
    /// Tests for a constant key.
    Test {
        key: u32,
        end: u32,
    },
    /// Selects attribute or capacity of a device by constant domain and name.
    DevicePath {
        path: u32,
        cost: u8,
        end: u32,
    },
    /// Tests for such an attribute or capacity.
    DeviceTest {
        path: u32,
    },
    /// Ends a path.
    End {
        cost: u8,
    },

    Jump {
        to: u32,
    },
    /// Drops `below` operands under a fault on top, and leaves.
    LeaveOnFault {
        below: u32,
        to: u32,
    },
    /// Takes a condition; a fault or non-bool is left as fault.
    Branch {
        otherwise: u32,
        end: u32,
    },
    /// Takes a term of `||` into the outcome below; true leaves.
    OrTerm {
        to: u32,
    },
    /// Takes a term of `&&` into the outcome below; false leaves.
    AndTerm {
        to: u32,
    },
    /// Leaves with the value of an optional, or drops an empty one and goes on.
    OptionalOr {
        to: u32,
        unwrap: bool,
    },

    /// Calls a function with the topmost values.
    Call {
        op: Op,
        arguments: u8,
        cost: Cost,
    },
    /// Calls a function with the topmost value and a constant, which may cost something before.
    CallConstant {
        op: Op,
        cost: Cost,
        constant: u32,
        before: u16,
    },
    /// Pushes the name of a device's driver.
    Driver {
        cost: u8,
    },
    /// Calls `matches`, `find` or `findAll` with a constant pattern.
    Match {
        op: Op,
        pattern: u32,
        arguments: u8,
        cost: Cost,
    },
    /// Tests the topmost value for being in a constant set.
    InSet {
        set: u32,
    },
    /// Makes a list of the topmost values; optional ones are marked in the table.
    MakeList {
        count: u32,
        optionals: u32,
    },
    MakeMap {
        count: u32,
        optionals: u32,
    },

    /// Takes a range and starts iterating over it.
    StartFold {
        end: u32,
    },
    /// Stores the next element (or key and value) from slot `slot` on.
    Next {
        slot: u16,
        pair: bool,
        done: u32,
    },
    /// As `Next`, then leaves if the accumulator before `slot` is decided: false for `all`, true for `exists`.
    NextUndecided {
        slot: u16,
        pair: bool,
        all: bool,
        done: u32,
    },
    /// Takes the predicate's value into the accumulator of `all` or `exists`.
    Decide {
        slot: u16,
        all: bool,
    },
    /// Charges a cost in one step.
    Pay {
        cost: u32,
    },
    /// Charges units of cost, one by one.
    Charge {
        units: u32,
    },
    /// Stores into a local variable.
    Store {
        slot: u16,
    },
    /// Takes a value and appends it to a list.
    Append {
        slot: u16,
        literal_cost: u8,
    },
    /// Takes key and value and adds them to a map.
    Insert {
        slot: u16,
    },
    /// Takes a map and adds its entries to a map.
    InsertAll {
        slot: u16,
    },
    /// Stops iterating.
    FinishFold,
    /// Drops the topmost value.
    Drop,
}

/// A constant list as a set, for `in`.
#[derive(Debug)]
pub(crate) struct ConstantSet {
    pub(crate) keys: HashSet<MapKey>,
    pub(crate) elements: Vec<Value<'static>>,
}

/// A constant regular expression and the size that metering uses.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) regex: LazyPattern,
    pub(crate) size: u64,
}

/// `device.attributes["domain"].name` or `device.capacity["domain"].name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DevicePath {
    pub(crate) capacity: bool,
    pub(crate) domain: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) domain_hash: u64,
    pub(crate) name_hash: u64,
}

/// A path from a variable over constant keys that the program reads, for explanations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) variable: u16,
    pub(crate) keys: Vec<Box<str>>,
    /// As written, such as `device.attributes["gpu.example.com"].model`.
    pub(crate) text: String,
}

/// A compiled expression.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) code: Vec<Instruction>,
    pub(crate) constants: Vec<Value<'static>>,
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) sets: Vec<ConstantSet>,
    pub(crate) paths: Vec<DevicePath>,
    /// For each literal with `?`, which of its elements have it.
    pub(crate) optionals: Vec<Vec<bool>>,
    pub(crate) slots: u16,
    pub(crate) inputs: Vec<Input>,
}
