//! Walks the checked tree as cel-go's estimator does: costs, sizes of values, sizes of elements, declared paths.

use super::size::Bounds;
use crate::check::{Checked, Reference};
use crate::env::{DeclaredSize, Environment};
use crate::library::calls::{LIST_COST, MAP_COST};
use crate::library::declarations::{Cost, Function};
use crate::syntax::{BIND_ITERATION_VARIABLE, Comprehension, Kind, NodeId, Slice, Tree};
use crate::types::{Shape, Type};

/// The sizes of the keys and values (or elements) of a container.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entries {
    list: bool,
    keys: Bounds,
    values: Bounds,
}

impl Entries {
    fn union(self, other: Self) -> Self {
        Self { list: self.list, keys: self.keys.union(other.keys), values: self.values.union(other.values) }
    }
}

/// The names that lead from a variable to a value; of computed values none.
///
/// Kubernetes keeps these as Go slices, of which two can share memory: appending to one then changes the other, and
/// with it the estimate. A path is therefore a prefix of a shared array, and appending writes into the array as long
/// as its capacity lasts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Path {
    array: u32,
    length: u32,
}

/// Steps that are no field names.
const ITEMS: &str = "@items";
const KEYS: &str = "@keys";
const VALUES: &str = "@values";
const INDICES: &str = "@indices";

/// What is known of a local variable.
#[derive(Debug, Clone, Copy, Default)]
struct Local {
    path: Path,
    size: Option<Bounds>,
    entries: Option<Entries>,
}

/// The worst-case cost of a checked expression.
pub(crate) fn estimate(
    environment: &Environment,
    tree: &Tree<'_>,
    root: NodeId,
    checked: &Checked<'_>,
) -> u64 {
    let mut estimator = Estimator {
        environment,
        tree,
        checked,
        arrays: vec![Vec::new()],
        paths: vec![Path::default(); tree.len()],
        sizes: vec![None; tree.len()],
        entries: vec![None; tree.len()],
        locals: vec![Local::default(); usize::from(checked.slots)],
    };
    estimator.cost(root).maximum
}

pub(super) struct Estimator<'p, 's, 'e> {
    environment: &'p Environment,
    tree: &'p Tree<'s>,
    checked: &'p Checked<'e>,
    /// What paths are prefixes of. The first is empty.
    arrays: Vec<Vec<&'p str>>,
    paths: Vec<Path>,
    sizes: Vec<Option<Bounds>>,
    entries: Vec<Option<Entries>>,
    locals: Vec<Local>,
}

/// The operands of a call, for the rules of functions.
pub(super) struct Operands<'n> {
    pub(super) target: Option<NodeId>,
    pub(super) arguments: &'n [NodeId],
    /// The costs of the arguments, without the target's.
    pub(super) costs: &'n [Bounds],
}

impl<'p, 's: 'p> Estimator<'p, 's, '_> {
    fn cost(&mut self, node: NodeId) -> Bounds {
        let tree = self.tree;
        match tree.kind(node) {
            Kind::Identifier(_) => self.identifier(node),
            &Kind::Select { operand, field, test } => self.select(node, operand, field, test),
            &Kind::Call { target, arguments, .. } => self.call(node, target, arguments),
            &Kind::List(elements) => self.list(node, elements),
            &Kind::Map(entries) => self.map(node, entries),
            Kind::Comprehension(fold) if fold.variable == BIND_ITERATION_VARIABLE => self.binding(node, fold),
            Kind::Comprehension(fold) => self.comprehension(node, fold),
            _ => Bounds::ZERO,
        }
    }

    fn identifier(&mut self, node: NodeId) -> Bounds {
        let environment = self.environment;
        self.paths[node.index()] = match self.checked.reference(node) {
            Reference::Local(slot) => self.locals[usize::from(slot)].path,
            Reference::Variable(index) => {
                self.append(Path::default(), &environment.variables[usize::from(index)].name)
            }
            _ => self.append(Path::default(), ""),
        };
        Bounds::ONE
    }

    fn select(&mut self, node: NodeId, operand: NodeId, field: &'p str, test: bool) -> Bounds {
        if matches!(self.checked.reference(node), Reference::TypeName(_)) {
            self.paths[node.index()] = self.append(Path::default(), "");
            return Bounds::ONE;
        }
        let cost = self.cost(operand);
        if test {
            return cost;
        }
        let path = self.path(operand);
        self.paths[node.index()] = self.append(path, field);
        let kind = self.checked.type_of(operand);
        let selects = match self.checked.types.shape(kind) {
            Some(Shape::Map(..) | Shape::Object(_)) => true,
            _ => [Type::QUANTITY, Type::SEMVER, Type::URL, Type::FORMAT].contains(&kind),
        };
        if selects { cost.plus(Bounds::ONE) } else { cost }
    }

    /// Appends a step as Go's `append` does: in place while there is capacity, else to a copy twice as large.
    fn append(&mut self, path: Path, step: &'p str) -> Path {
        let length = path.length as usize;
        let array = &mut self.arrays[path.array as usize];
        if length > 0 && length < length.next_power_of_two() {
            match array.get_mut(length) {
                Some(slot) => *slot = step,
                None => array.push(step),
            }
            return Path { length: path.length + 1, ..path };
        }
        let mut copy = array[..length].to_vec();
        copy.push(step);
        self.arrays.push(copy);
        Path { array: self.arrays.len() as u32 - 1, length: path.length + 1 }
    }

    /// The declared size at the end of a path.
    fn resolve(&self, path: Path) -> Option<u32> {
        let (first, steps) = self.arrays[path.array as usize][..path.length as usize].split_first()?;
        let environment = self.environment;
        let variable = environment.variables.iter().find(|variable| variable.name == *first);
        // Validation rules do not look at the variable.
        let mut size = environment.computed_root.or_else(|| variable?.size)?;
        for step in steps {
            let declared: &DeclaredSize = &environment.sizes[size as usize];
            size = match *step {
                ITEMS | VALUES => declared.elements?,
                KEYS => declared.keys?,
                field => match declared.fields.iter().find(|(name, _)| name == field) {
                    Some((_, size)) => *size,
                    None if declared.open_fields => declared.elements?,
                    None => return None,
                },
            };
        }
        Some(size)
    }

    /// The path that leads to a node's value.
    fn path(&self, node: NodeId) -> Path {
        match self.checked.reference(node) {
            Reference::Local(slot) => self.locals[usize::from(slot)].path,
            _ => self.paths[node.index()],
        }
    }

    fn call(&mut self, node: NodeId, target: Option<NodeId>, arguments: Slice) -> Bounds {
        let (function, overloads, target) = match self.checked.reference(node) {
            Reference::Call(function, overloads) => (function, overloads, target),
            Reference::Namespaced(function, overloads) => (function, overloads, None),
            _ => return Bounds::ZERO,
        };
        let arguments: Vec<NodeId> = self.tree.children(arguments).iter().map(|child| child.node).collect();
        if function.name == "dyn" {
            let cost = self.cost(arguments[0]).plus(Bounds::ONE);
            self.sizes[node.index()] = self.size(arguments[0]);
            self.entries[node.index()] = self.entry_sizes(arguments[0]);
            return cost;
        }
        let costs: Vec<Bounds> = arguments.iter().map(|&argument| self.argument_cost(argument)).collect();
        let target_cost = target.map_or(Bounds::ZERO, |target| self.cost(target));
        let operands = Operands { target, arguments: &arguments, costs: &costs };
        let (cost, size) = self.overloads(node, function, overloads, &operands);
        if size.is_some() {
            self.sizes[node.index()] = size;
        }
        target_cost.plus(cost)
    }

    /// As in cel-go, the size of an argument is computed, and kept, before the next one is looked at.
    fn argument_cost(&mut self, argument: NodeId) -> Bounds {
        let cost = self.cost(argument);
        self.size(argument);
        cost
    }

    fn overloads(
        &mut self,
        node: NodeId,
        function: &Function,
        overloads: u32,
        operands: &Operands<'_>,
    ) -> (Bounds, Option<Bounds>) {
        if let Some(target) = operands.target {
            self.size(target);
        }
        let mut cost = Bounds::NOTHING;
        let mut size: Option<Bounds> = None;
        for (index, overload) in function.overloads.iter().enumerate() {
            if overloads & 1 << index == 0 {
                continue;
            }
            let (own_cost, own_size) = self.function(node, overload.cost, operands);
            cost = cost.union(own_cost);
            if let Some(own) = own_size {
                size = Some(size.map_or(own, |size| size.union(own)));
            }
            if matches!(overload.cost, Cost::IndexList | Cost::IndexMap) {
                let container = operands.arguments[0];
                size = self.entry_sizes(container).map(|entries| entries.values);
                let path = self.path(container);
                let step = if overload.cost == Cost::IndexList { ITEMS } else { VALUES };
                self.paths[node.index()] = self.append(path, step);
            }
            if size.is_none() {
                size = self.size(node);
            }
        }
        (cost, size)
    }

    /// The sum of the arguments' costs.
    pub(super) fn total(operands: &Operands<'_>) -> Bounds {
        operands.costs.iter().fold(Bounds::ZERO, |sum, cost| sum.plus(*cost))
    }

    pub(super) fn size_or_unknown(&mut self, node: NodeId) -> Bounds {
        self.size(node).unwrap_or(Bounds::UNKNOWN)
    }

    pub(super) fn size_of(&mut self, node: NodeId) -> Option<Bounds> {
        self.size(node)
    }

    pub(super) fn kind(&self, node: NodeId) -> &Kind<'s> {
        self.tree.kind(node)
    }

    pub(super) fn type_of(&self, node: NodeId) -> Type {
        self.checked.type_of(node)
    }

    /// The element type of a list (or the key type of a map), and the declared size of its elements.
    pub(super) fn element_of(&self, node: NodeId) -> Option<(Type, Option<Bounds>)> {
        let element = match self.checked.types.shape(self.type_of(node))? {
            Shape::List(element) | Shape::Optional(element) | Shape::Map(element, _) => element,
            _ => return None,
        };
        let path = self.path(node);
        let declared = self
            .resolve(path)
            .and_then(|size| self.environment.sizes[size as usize].elements)
            .map(|size| self.declared(size));
        Some((element, declared))
    }

    fn declared(&self, path: u32) -> Bounds {
        Bounds { minimum: 0, maximum: self.environment.sizes[path as usize].maximum }
    }

    pub(super) fn keep_entries(&mut self, node: NodeId, entries: Option<Entries>) {
        if entries.is_some() {
            self.entries[node.index()] = entries;
        }
    }

    /// Both sides' entry sizes together; `None` if either is unknown.
    pub(super) fn entries_union(&self, left: NodeId, right: NodeId) -> Option<Entries> {
        Some(self.entry_sizes(left)?.union(self.entry_sizes(right)?))
    }

    /// The size of a node's value, if anything is known of it.
    fn size(&mut self, node: NodeId) -> Option<Bounds> {
        if let Some(size) = self.sizes[node.index()] {
            return Some(size);
        }
        match self.tree.kind(node) {
            Kind::String(text) => return Some(Bounds::fixed(text.chars().count() as u64)),
            Kind::Bytes(bytes) => return Some(Bounds::fixed(bytes.len() as u64)),
            Kind::Bool(_) | Kind::Int(_) | Kind::Uint(_) | Kind::Double(_) | Kind::Null => {
                return Some(Bounds::ONE);
            }
            Kind::List(elements) => return Some(Bounds::fixed(elements.len() as u64)),
            Kind::Map(entries) => return Some(Bounds::fixed(entries.len() as u64 / 2)),
            _ => {}
        }
        if let Some(declared) = self.resolve(self.path(node)) {
            let size = self.declared(declared);
            self.sizes[node.index()] = Some(size);
            return Some(size);
        }
        if self.is_scalar(self.checked.type_of(node)) {
            return Some(Bounds::ONE);
        }
        match self.checked.reference(node) {
            Reference::Local(slot) => self.locals[usize::from(slot)].size,
            _ => None,
        }
    }

    fn is_scalar(&self, kind: Type) -> bool {
        const SCALARS: [Type; 6] =
            [Type::BOOL, Type::DOUBLE, Type::DURATION, Type::INT, Type::TIMESTAMP, Type::UINT];
        match self.checked.types.shape(kind) {
            Some(Shape::Optional(inner)) => self.is_scalar(inner),
            _ => SCALARS.contains(&kind),
        }
    }

    fn entry_sizes(&self, node: NodeId) -> Option<Entries> {
        self.entries[node.index()].or_else(|| match self.checked.reference(node) {
            Reference::Local(slot) => self.locals[usize::from(slot)].entries,
            _ => None,
        })
    }

    fn list(&mut self, node: NodeId, elements: Slice) -> Bounds {
        let mut cost = Bounds::ZERO;
        let mut values = if elements.is_empty() { Bounds::ZERO } else { Bounds::NOTHING };
        for index in 0..elements.len() {
            let element = self.tree.child(elements, index).node;
            cost = cost.plus(self.cost(element));
            values = values.union(self.size_or_unknown(element));
        }
        self.entries[node.index()] = Some(Entries { list: true, keys: Bounds::ONE, values });
        cost.plus(Bounds::fixed(u64::from(LIST_COST)))
    }

    fn map(&mut self, node: NodeId, entries: Slice) -> Bounds {
        let mut cost = Bounds::ZERO;
        let mut sizes = [if entries.is_empty() { Bounds::ZERO } else { Bounds::NOTHING }; 2];
        for index in (0..entries.len()).step_by(2) {
            let [key, value] = [index, index + 1].map(|index| self.tree.child(entries, index).node);
            cost = cost.plus(self.cost(key)).plus(self.cost(value));
            sizes[0] = sizes[0].union(self.size_or_unknown(key));
            sizes[1] = sizes[1].union(self.size_or_unknown(value));
        }
        self.entries[node.index()] = Some(Entries { list: false, keys: sizes[0], values: sizes[1] });
        cost.plus(Bounds::fixed(u64::from(MAP_COST)))
    }

    fn bind_local(&mut self, slot: u16, value: NodeId) {
        let local =
            Local { path: self.path(value), size: self.size(value), entries: self.entry_sizes(value) };
        self.locals[usize::from(slot)] = local;
    }

    fn binding(&mut self, node: NodeId, fold: &Comprehension<'_>) -> Bounds {
        let Reference::Fold(slot) = self.checked.reference(node) else { return Bounds::ZERO };
        let cost = self.cost(fold.range).plus(self.cost(fold.initial));
        self.bind_local(slot, fold.initial);
        let cost = cost.plus(self.cost(fold.result));
        if let Some(size) = self.size(fold.result) {
            self.sizes[node.index()] = Some(size);
        }
        let entries = self.entry_sizes(fold.result);
        self.keep_entries(node, entries);
        cost
    }

    fn comprehension(&mut self, node: NodeId, fold: &Comprehension<'_>) -> Bounds {
        let Reference::Fold(slot) = self.checked.reference(node) else { return Bounds::ZERO };
        let mut cost = self.cost(fold.range).plus(self.cost(fold.initial));
        self.bind_local(slot, fold.initial);
        self.locals[usize::from(slot)].path = Path::default();
        self.bind_iteration(slot + 1, fold);
        let each = self.cost(fold.condition).plus(self.cost(fold.step));
        cost = cost.plus(self.cost(fold.result));
        let count = self.size_or_unknown(fold.range);
        cost = cost.plus(count.times(each));
        match self.tree.kind(fold.initial) {
            Kind::List(_) | Kind::Map(_) => {
                self.sizes[node.index()] = Some(count);
                let entries = self.entry_sizes(fold.step);
                self.keep_entries(node, entries);
            }
            Kind::Bool(_) | Kind::Int(_) => self.sizes[node.index()] = self.size(fold.initial),
            _ => {}
        }
        cost
    }

    fn bind_iteration(&mut self, slot: u16, fold: &Comprehension<'_>) {
        let entries = self.entry_sizes(fold.range);
        let list = match entries {
            Some(entries) => entries.list,
            None => self.checked.types.is_list(self.checked.type_of(fold.range)),
        };
        let (keys, values) = (entries.map(|entries| entries.keys), entries.map(|entries| entries.values));
        let range = self.path(fold.range);
        let element = |path, size| Local { path, size, entries: None };
        let (first, second) = match fold.second_variable {
            None if list => (element(self.append(range, ITEMS), values), Local::default()),
            None => (element(self.append(range, KEYS), keys), Local::default()),
            Some(_) => (
                element(self.append(range, if list { INDICES } else { KEYS }), keys),
                element(self.append(range, if list { ITEMS } else { VALUES }), values),
            ),
        };
        self.locals[usize::from(slot)] = first;
        self.locals[usize::from(slot) + 1] = second;
    }
}
