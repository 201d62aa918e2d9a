//! Walks the tree once, children first, as cel-go's checker does.

use super::assign::Unifier;
use super::literals;
use super::suggest::closest;
use crate::env::Environment;
use crate::error::CompileError;
use crate::library::declarations::{DECLARATIONS, Function};
use crate::syntax::{Comprehension, Kind, NodeId, Slice, Tree};
use crate::types::{Shape, Type, TypeTooLarge, Types};

/// What a node refers to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Reference {
    #[default]
    None,
    /// A variable of the environment, by its index.
    Variable(u16),
    /// A variable of an enclosing fold, by its slot.
    Local(u16),
    /// A type used as a value.
    TypeName(&'static str),
    /// A call: the function and a bit for each overload that fits.
    Call(&'static Function, u32),
    /// A call through a namespace (`optional.of`), of which the written target is no operand.
    Namespaced(&'static Function, u32),
    /// A fold's first slot: accumulator, variable, second variable.
    Fold(u16),
}

/// The outcome of a successful check.
pub(crate) struct Checked<'e> {
    pub(crate) types: Types<'e>,
    node_types: Vec<Type>,
    references: Vec<Reference>,
    /// How many local slots folds need at once.
    pub(crate) slots: u16,
}

impl Checked<'_> {
    pub(crate) fn type_of(&self, node: NodeId) -> Type {
        self.node_types[node.index()]
    }

    pub(crate) fn reference(&self, node: NodeId) -> Reference {
        self.references[node.index()]
    }
}

pub(super) type Result<T> = std::result::Result<T, Box<CompileError>>;

/// Checks a parsed expression against an environment.
pub(crate) fn check<'e, 's>(
    environment: &'e Environment,
    source: &str,
    tree: &Tree<'s>,
    root: NodeId,
) -> Result<Checked<'e>> {
    let mut checker = Checker {
        environment,
        source,
        tree,
        unifier: Unifier::new(Types::extending(&environment.types)),
        node_types: vec![Type::ERROR; tree.len()],
        references: vec![Reference::None; tree.len()],
        scopes: Vec::new(),
        slots: 0,
        literals: Vec::new(),
        inside_format: false,
    };
    checker.check(root)?;
    checker.close(root)
}

/// A local variable in scope.
struct Local<'s> {
    name: &'s str,
    kind: Type,
    slot: u16,
}

pub(super) struct Checker<'e, 's, 't> {
    environment: &'e Environment,
    source: &'t str,
    pub(super) tree: &'t Tree<'s>,
    pub(super) unifier: Unifier<'e>,
    node_types: Vec<Type>,
    references: Vec<Reference>,
    scopes: Vec<Local<'s>>,
    slots: u16,
    /// List and map literals outside of `format` arguments, and `format` calls, to be validated in the end.
    literals: Vec<NodeId>,
    inside_format: bool,
}

impl<'e, 's> Checker<'e, 's, '_> {
    pub(super) fn error<T>(&self, node: NodeId, message: impl Into<String>) -> Result<T> {
        self.error_with_hint(node, message, None)
    }

    pub(super) fn error_with_hint<T>(
        &self,
        node: NodeId,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> Result<T> {
        let offset = self.tree.node(node).offset as usize;
        Err(Box::new(CompileError::at(self.source, offset, message.into(), hint)))
    }

    pub(super) fn sized<T>(&self, node: NodeId, result: std::result::Result<T, TypeTooLarge>) -> Result<T> {
        result.or_else(|TypeTooLarge| self.error(node, "the type of this expression is too complex"))
    }

    pub(super) fn type_of(&self, node: NodeId) -> Type {
        self.node_types[node.index()]
    }

    pub(super) fn types(&self) -> &Types<'e> {
        &self.unifier.types
    }

    pub(super) fn set(&mut self, node: NodeId, kind: Type) {
        self.node_types[node.index()] = kind;
    }

    fn refer(&mut self, node: NodeId, reference: Reference) {
        self.references[node.index()] = reference;
    }

    fn add(&mut self, node: NodeId, shape: Shape) -> Result<Type> {
        let added = self.unifier.types.add(shape);
        self.sized(node, added)
    }

    pub(super) fn assignable(&mut self, node: NodeId, left: Type, right: Type) -> Result<bool> {
        let assignable = self.unifier.assignable(left, right);
        self.sized(node, assignable)
    }

    pub(super) fn substitute(&mut self, node: NodeId, kind: Type, close: bool) -> Result<Type> {
        let substituted = self.unifier.substitute(kind, close);
        self.sized(node, substituted)
    }

    pub(super) fn name_of(&mut self, node: NodeId, kind: Type) -> Result<String> {
        let kind = self.substitute(node, kind, true)?;
        Ok(self.unifier.types.name(kind))
    }

    /// Replaces remaining type variables and runs the validators of literals.
    fn close(mut self, root: NodeId) -> Result<Checked<'e>> {
        for index in 0..self.node_types.len() {
            let node = NodeId(index as u32);
            let kind = self.node_types[index];
            self.node_types[index] = self.substitute(node, kind, true)?;
        }
        for node in std::mem::take(&mut self.literals) {
            literals::validate(&self, node)?;
        }
        let kind = self.type_of(root);
        if let Err(wanted) = self.environment.accepts(kind) {
            let found = self.unifier.types.name(kind);
            return self.error(root, format!("the expression must evaluate to {wanted}, not {found}"));
        }
        Ok(Checked {
            types: self.unifier.types,
            node_types: self.node_types,
            references: self.references,
            slots: self.slots,
        })
    }

    fn check(&mut self, node: NodeId) -> Result<()> {
        let tree = self.tree;
        match tree.kind(node) {
            Kind::Null => self.set(node, Type::NULL),
            Kind::Bool(_) => self.set(node, Type::BOOL),
            Kind::Int(_) => self.set(node, Type::INT),
            Kind::Uint(_) => self.set(node, Type::UINT),
            Kind::Double(_) => self.set(node, Type::DOUBLE),
            Kind::String(_) => self.set(node, Type::STRING),
            Kind::Bytes(_) => self.set(node, Type::BYTES),
            Kind::Identifier(name) => return self.identifier(node, name),
            &Kind::Select { operand, field, test } => return self.select(node, operand, field, test),
            &Kind::Call { function, target, arguments } => {
                return self.call(node, function, target, arguments);
            }
            &Kind::List(elements) => return self.list(node, elements),
            &Kind::Map(entries) => return self.map(node, entries),
            Kind::Message(name) => {
                return self.error(node, format!("{name} is not a type of which messages can be made"));
            }
            Kind::Comprehension(fold) => return self.comprehension(node, fold),
        }
        Ok(())
    }

    /// Looks a plain or dotted name up, innermost scope first.
    fn resolve(&mut self, node: NodeId, name: &str) -> Result<bool> {
        if let Some(local) = self.scopes.iter().rev().find(|local| local.name == name) {
            let (kind, slot) = (local.kind, local.slot);
            self.set(node, kind);
            self.refer(node, Reference::Local(slot));
            return Ok(true);
        }
        if let Some(index) = self.environment.variables.iter().position(|variable| variable.name == name) {
            self.set(node, self.environment.variables[index].kind);
            self.refer(node, Reference::Variable(index as u16));
            return Ok(true);
        }
        let Some((name, kind)) = DECLARATIONS.type_name(name) else { return Ok(false) };
        let kind = self.instantiate(node, kind, 2)?;
        self.set(node, kind);
        self.refer(node, Reference::TypeName(name));
        Ok(true)
    }

    fn identifier(&mut self, node: NodeId, name: &str) -> Result<()> {
        if self.resolve(node, name)? {
            return Ok(());
        }
        let known = self
            .scopes
            .iter()
            .map(|local| local.name)
            .filter(|name| !name.starts_with(['@', '#']))
            .chain(self.environment.variables.iter().map(|variable| variable.name.as_str()));
        let hint = closest(name, known).map(|name| format!("did you mean {name}?"));
        self.error_with_hint(node, format!("{name} is not declared"), hint)
    }

    /// The dotted name a chain of selections spells, if it starts with a plain name.
    fn qualified(&self, node: NodeId, tail: &str) -> Option<String> {
        let mut parts = vec![tail];
        let mut at = node;
        loop {
            match *self.tree.kind(at) {
                Kind::Identifier(name) => {
                    parts.push(name);
                    parts.reverse();
                    return Some(parts.join("."));
                }
                Kind::Select { operand, field, test: false } if parts.len() < 4 => {
                    parts.push(field);
                    at = operand;
                }
                _ => return None,
            }
        }
    }

    /// Whether a chain starts with a name that is the first part of dotted names.
    fn is_namespace(&self, node: NodeId, namespaces: &[&str]) -> bool {
        let mut at = node;
        loop {
            match *self.tree.kind(at) {
                Kind::Identifier(name) => return namespaces.contains(&name),
                Kind::Select { operand, test: false, .. } => at = operand,
                _ => return false,
            }
        }
    }

    fn select(&mut self, node: NodeId, operand: NodeId, field: &'s str, test: bool) -> Result<()> {
        if !test
            && self.is_namespace(operand, &["net", "google"])
            && let Some(name) = self.qualified(operand, field)
            && self.resolve(node, &name)?
        {
            return Ok(());
        }
        let kind = self.select_field(node, operand, field, false)?;
        let kind = if test { Type::BOOL } else { self.substitute(node, kind, false)? };
        self.set(node, kind);
        Ok(())
    }

    fn select_field(&mut self, node: NodeId, operand: NodeId, field: &str, optional: bool) -> Result<Type> {
        self.check(operand)?;
        let operand_type = self.substitute(operand, self.type_of(operand), false)?;
        let (target, was_optional) = self.types().unwrap_optional(operand_type);
        let result = match self.types().shape(target) {
            Some(Shape::Map(_, value)) => value,
            Some(Shape::Object(object)) => self.field(node, object, field)?,
            Some(Shape::Variable(_)) => {
                self.assignable(node, Type::DYN, target)?;
                Type::DYN
            }
            _ if target.is_dyn_or_error() => Type::DYN,
            _ => {
                let name = self.name_of(node, target)?;
                return self.error(node, format!("a value of type {name} has no fields, so no {field}"));
            }
        };
        if was_optional || optional { self.add(node, Shape::Optional(result)) } else { Ok(result) }
    }

    fn field(&self, node: NodeId, object: u32, field: &str) -> Result<Type> {
        let object = &self.environment.objects[object as usize];
        if let Some(found) = object.fields.iter().find(|candidate| candidate.name == field) {
            return Ok(found.kind);
        }
        let hint = closest(field, object.fields.iter().map(|field| field.name.as_str()))
            .map(|name| format!("did you mean {name}?"));
        self.error_with_hint(node, format!("{} has no field {field}", object.name), hint)
    }

    fn call(&mut self, node: NodeId, name: &'s str, target: Option<NodeId>, arguments: Slice) -> Result<()> {
        if name == "_?._" {
            return self.optional_select(node, arguments);
        }
        let outer = self.inside_format;
        self.inside_format |= name == "format";
        for index in 0..arguments.len() {
            self.check(self.tree.child(arguments, index).node)?;
        }
        if let Some(target) = target
            && self.is_namespace(target, &NAMESPACES)
            && let Some(qualified) = self.qualified(target, name)
            && let Some(function) = self.environment.function(&qualified)
        {
            self.inside_format = outer;
            let resolved = self.overloads(node, function, None, arguments)?;
            self.refer(node, Reference::Namespaced(function, resolved));
            return Ok(());
        }
        if let Some(target) = target {
            self.check(target)?;
        }
        self.inside_format = outer;
        let Some(function) = self.environment.function(name) else {
            return self.unknown_function(node, name, target);
        };
        let resolved = self.overloads(node, function, target, arguments)?;
        self.refer(node, Reference::Call(function, resolved));
        if matches!(name, "matches" | "format") {
            self.literals.push(node);
        }
        Ok(())
    }

    fn unknown_function(&self, node: NodeId, name: &str, target: Option<NodeId>) -> Result<()> {
        let written =
            target.and_then(|target| self.qualified(target, name)).unwrap_or_else(|| name.to_owned());
        let known = || self.environment.function_names().filter(|name| !name.contains(['@', '_']));
        let hint = closest(&written, known())
            .or_else(|| closest(name, known()))
            .map(|name| format!("did you mean {name}()?"));
        let macros = ["has", "all", "exists", "exists_one", "map", "filter", "bind"];
        if macros.contains(&name) {
            return self.error(node, format!("the macro {name} is not called with these arguments"));
        }
        self.error_with_hint(node, format!("there is no function {name}"), hint)
    }

    fn optional_select(&mut self, node: NodeId, arguments: Slice) -> Result<()> {
        let operand = self.tree.child(arguments, 0).node;
        let name = self.tree.child(arguments, 1).node;
        let tree = self.tree;
        let Kind::String(field) = tree.kind(name) else {
            return self.error(node, "an optional selection needs a field name");
        };
        self.set(name, Type::STRING);
        let kind = self.select_field(node, operand, field, true)?;
        let kind = self.substitute(node, kind, false)?;
        self.set(node, kind);
        if let Some(function) = self.environment.function("_?._") {
            self.refer(node, Reference::Call(function, 1));
        }
        Ok(())
    }

    /// The type of an element, unwrapped if it is written with `?`.
    fn element(&mut self, node: NodeId, optional: bool) -> Result<Type> {
        self.check(node)?;
        let kind = self.type_of(node);
        if !optional {
            return Ok(kind);
        }
        let (inner, was_optional) = self.types().unwrap_optional(kind);
        if !was_optional && !inner.is_dyn() {
            let name = self.name_of(node, inner)?;
            return self.error(node, format!("expected an optional, found {name}"));
        }
        Ok(inner)
    }

    fn join(&mut self, node: NodeId, previous: Option<Type>, current: Type) -> Result<Type> {
        let Some(previous) = previous else { return Ok(current) };
        if self.assignable(node, previous, current)? {
            return Ok(self.unifier.most_general(previous, current));
        }
        if self.inside_format {
            return Ok(Type::DYN);
        }
        let (wanted, found) = (self.name_of(node, previous)?, self.name_of(node, current)?);
        self.error(node, format!("expected {wanted} like the elements before, found {found}"))
    }

    fn note_literal(&mut self, node: NodeId) {
        if !self.inside_format {
            self.literals.push(node);
        }
    }

    fn fresh(&mut self, node: NodeId) -> Result<Type> {
        let fresh = self.unifier.fresh();
        self.sized(node, fresh)
    }

    fn list(&mut self, node: NodeId, elements: Slice) -> Result<()> {
        let mut joined = None;
        for index in 0..elements.len() {
            let child = self.tree.child(elements, index);
            let kind = self.element(child.node, child.optional)?;
            joined = Some(self.join(child.node, joined, kind)?);
        }
        let element = match joined {
            Some(kind) => kind,
            None => self.fresh(node)?,
        };
        self.note_literal(node);
        let kind = self.add(node, Shape::List(element))?;
        self.set(node, kind);
        Ok(())
    }

    fn map(&mut self, node: NodeId, entries: Slice) -> Result<()> {
        let (mut keys, mut values) = (None, None);
        for index in (0..entries.len()).step_by(2) {
            let key = self.tree.child(entries, index).node;
            self.check(key)?;
            keys = Some(self.join(key, keys, self.type_of(key))?);
            let value = self.tree.child(entries, index + 1);
            let kind = self.element(value.node, value.optional)?;
            values = Some(self.join(value.node, values, kind)?);
        }
        let (key, value) = match (keys, values) {
            (Some(key), Some(value)) => (key, value),
            _ => (self.fresh(node)?, self.fresh(node)?),
        };
        self.note_literal(node);
        let kind = self.add(node, Shape::Map(key, value))?;
        self.set(node, kind);
        Ok(())
    }

    fn comprehension(&mut self, node: NodeId, fold: &Comprehension<'s>) -> Result<()> {
        self.check(fold.range)?;
        self.check(fold.initial)?;
        let range = self.substitute(node, self.type_of(fold.range), false)?;
        let accumulated = self.type_of(fold.initial);
        // Slots are never shared: a bound value may be computed while any later fold runs.
        let base = self.slots;
        let depth = self.scopes.len();
        self.refer(node, Reference::Fold(base));
        self.slots += 3;
        self.scopes.push(Local { name: fold.accumulator, kind: accumulated, slot: base });

        let (first, second) = match self.types().shape(range) {
            Some(Shape::List(element)) if fold.second_variable.is_some() => (Type::INT, element),
            Some(Shape::List(element)) => (element, Type::ERROR),
            Some(Shape::Map(key, value)) => (key, value),
            Some(Shape::Variable(_)) => {
                self.assignable(node, Type::DYN, range)?;
                (Type::DYN, Type::DYN)
            }
            _ if range == Type::DYN || range == Type::ERROR => (Type::DYN, Type::DYN),
            _ => {
                let name = self.name_of(fold.range, range)?;
                return self
                    .error(fold.range, format!("expected a list or map to iterate over, found {name}"));
            }
        };
        self.scopes.push(Local { name: fold.variable, kind: first, slot: base + 1 });
        self.scopes.push(Local { name: fold.second_variable.unwrap_or(""), kind: second, slot: base + 2 });
        self.check(fold.condition)?;
        self.expect(fold.condition, Type::BOOL)?;
        self.check(fold.step)?;
        self.expect(fold.step, accumulated)?;
        // The result still sees the accumulator, under slots that nested folds must not reuse.
        for local in &mut self.scopes[depth + 1..] {
            local.name = "";
        }
        self.check(fold.result)?;
        self.scopes.truncate(depth);
        let kind = self.substitute(node, self.type_of(fold.result), false)?;
        self.set(node, kind);
        Ok(())
    }

    fn expect(&mut self, node: NodeId, wanted: Type) -> Result<()> {
        let found = self.type_of(node);
        if self.assignable(node, wanted, found)? {
            return Ok(());
        }
        let (wanted, found) = (self.name_of(node, wanted)?, self.name_of(node, found)?);
        self.error(node, format!("expected {wanted}, found {found}"))
    }
}

/// The first parts of dotted function names.
pub(super) const NAMESPACES: [&str; 8] =
    ["optional", "lists", "sets", "strings", "format", "ip", "math", "cel"];
