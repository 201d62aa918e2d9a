//! The macros: calls that are rewritten to folds and presence tests while parsing.
//!
//! The shape of each expansion decides the metered cost, so it is the one cel-go uses.

use super::parser::Parser;
use super::tree::{Child, Comprehension, Kind, NodeId, Slice};
use crate::error::CompileError;

/// The fold's accumulator; no expression can name it.
const ACCUMULATOR: &str = "@result";
/// The accumulator's former name, which no iteration variable may have.
const FORMER_ACCUMULATOR: &str = "__result__";
/// The iteration variable of folds that only bind a name.
pub(crate) const BIND_ITERATION_VARIABLE: &str = "#unused";
/// The name `sortBy` binds its target to.
const SORT_INPUT: &str = "@__sortBy_input__";

type Result<T> = std::result::Result<T, Box<CompileError>>;

#[derive(Clone, Copy)]
enum Quantifier {
    All,
    Exists,
    ExistsOne,
}

/// The variables of a fold: an element or key, or a key and a value.
#[derive(Clone, Copy)]
struct Variables<'s> {
    first: &'s str,
    second: Option<&'s str>,
}

/// What a fold collects.
enum Collected {
    List { element: NodeId },
    Map { key: NodeId, value: NodeId },
    Entry { entry: NodeId },
}

impl<'s> Parser<'s> {
    /// The expansion of a call, or `None` if it is an ordinary call.
    pub(super) fn expand_macro(
        &mut self,
        offset: u32,
        function: &'s str,
        target: Option<NodeId>,
        arguments: Slice,
    ) -> Result<Option<NodeId>> {
        let mut nodes = [NodeId(0); 4];
        if arguments.is_empty() || arguments.len() > nodes.len() {
            return Ok(None);
        }
        for (node, child) in nodes.iter_mut().zip(self.tree.children(arguments)) {
            *node = child.node;
        }
        let nodes = &nodes[..arguments.len()];
        let Some(range) = target else {
            return match (function, nodes) {
                ("has", &[field]) => self.presence(offset, field).map(Some),
                _ => Ok(None),
            };
        };
        let macros = Expansion { offset, range };
        let two = self.options.two_variables;
        let expanded = match (function, nodes) {
            ("all", &[name, predicate]) => self.quantify(macros, Quantifier::All, &[name], predicate),
            ("exists", &[name, predicate]) => self.quantify(macros, Quantifier::Exists, &[name], predicate),
            ("exists_one" | "existsOne", &[name, predicate]) => {
                self.quantify(macros, Quantifier::ExistsOne, &[name], predicate)
            }
            ("map", &[name, element]) => self.collect(macros, &[name], None, Collected::List { element }),
            ("map", &[name, filter, element]) => {
                self.collect(macros, &[name], Some(filter), Collected::List { element })
            }
            ("filter", &[name, filter]) => {
                self.collect(macros, &[name], Some(filter), Collected::List { element: name })
            }
            ("all", &[key, value, predicate]) if two => {
                self.quantify(macros, Quantifier::All, &[key, value], predicate)
            }
            ("exists", &[key, value, predicate]) if two => {
                self.quantify(macros, Quantifier::Exists, &[key, value], predicate)
            }
            ("exists_one" | "existsOne", &[key, value, predicate]) if two => {
                self.quantify(macros, Quantifier::ExistsOne, &[key, value], predicate)
            }
            ("transformList", &[key, value, ref rest @ ..]) if two && !rest.is_empty() => {
                let (filter, element) = filter_and_last(rest);
                self.collect(macros, &[key, value], filter, Collected::List { element })
            }
            ("transformMap", &[key, value, ref rest @ ..]) if two && !rest.is_empty() => {
                let (filter, transformed) = filter_and_last(rest);
                self.collect(macros, &[key, value], filter, Collected::Map { key, value: transformed })
            }
            ("transformMapEntry", &[key, value, ref rest @ ..]) if two && !rest.is_empty() => {
                let (filter, entry) = filter_and_last(rest);
                self.collect(macros, &[key, value], filter, Collected::Entry { entry })
            }
            ("bind", &[name, value, body])
                if self.options.bindings && matches!(self.tree.kind(range), Kind::Identifier("cel")) =>
            {
                let name = self.identifier(name, "the name bound by cel.bind must be a simple name")?;
                self.bind(offset, name, value, body)
            }
            ("optMap", &[name, body]) if self.options.optionals => self.opt_map(macros, name, body, true),
            ("optFlatMap", &[name, body]) if self.options.optionals => {
                self.opt_map(macros, name, body, false)
            }
            ("sortBy", &[name, key]) if self.options.sort_by => self.sort_by(macros, name, key),
            _ => return Ok(None),
        };
        expanded.map(Some)
    }

    fn identifier(&self, node: NodeId, message: &str) -> Result<&'s str> {
        match *self.tree.kind(node) {
            Kind::Identifier(name) => Ok(name),
            _ => self.error(self.tree.node(node).offset, message),
        }
    }

    fn presence(&mut self, offset: u32, field: NodeId) -> Result<NodeId> {
        match *self.tree.kind(field) {
            Kind::Select { operand, field, test: false } => {
                self.add(offset, Kind::Select { operand, field, test: true })
            }
            _ => self.error(
                self.tree.node(field).offset,
                "the argument of has() must be a field selection like a.b",
            ),
        }
    }

    fn variables(&self, names: &[NodeId]) -> Result<Variables<'s>> {
        let mut read = [""; 2];
        for (slot, &node) in read.iter_mut().zip(names) {
            let name = self.identifier(node, "the iteration variable must be a simple name")?;
            if name == ACCUMULATOR || name == FORMER_ACCUMULATOR {
                return self
                    .error(self.tree.node(node).offset, format!("{name} cannot be an iteration variable"));
            }
            *slot = name;
        }
        match names {
            [_] => Ok(Variables { first: read[0], second: None }),
            [_, second] if read[0] == read[1] => self.error(
                self.tree.node(*second).offset,
                format!("both iteration variables are named {}", read[0]),
            ),
            _ => Ok(Variables { first: read[0], second: Some(read[1]) }),
        }
    }

    fn accumulator(&mut self, offset: u32) -> Result<NodeId> {
        self.add(offset, Kind::Identifier(ACCUMULATOR))
    }

    fn quantify(
        &mut self,
        Expansion { offset, range }: Expansion,
        quantifier: Quantifier,
        names: &[NodeId],
        predicate: NodeId,
    ) -> Result<NodeId> {
        let variables = self.variables(names)?;
        let start = match quantifier {
            Quantifier::All => Kind::Bool(true),
            Quantifier::Exists => Kind::Bool(false),
            Quantifier::ExistsOne => Kind::Int(0),
        };
        let initial = self.add(offset, start)?;
        let condition = match quantifier {
            Quantifier::All => {
                let so_far = self.accumulator(offset)?;
                self.call(offset, "@not_strictly_false", &[so_far])?
            }
            Quantifier::Exists => {
                let so_far = self.accumulator(offset)?;
                let negated = self.call(offset, "!_", &[so_far])?;
                self.call(offset, "@not_strictly_false", &[negated])?
            }
            Quantifier::ExistsOne => self.add(offset, Kind::Bool(true))?,
        };
        let so_far = self.accumulator(offset)?;
        let (step, result) = match quantifier {
            Quantifier::All => (self.call(offset, "_&&_", &[so_far, predicate])?, self.accumulator(offset)?),
            Quantifier::Exists => {
                (self.call(offset, "_||_", &[so_far, predicate])?, self.accumulator(offset)?)
            }
            Quantifier::ExistsOne => {
                let one = self.add(offset, Kind::Int(1))?;
                let more = self.call(offset, "_+_", &[so_far, one])?;
                let same = self.accumulator(offset)?;
                let step = self.call(offset, "_?_:_", &[predicate, more, same])?;
                let total = self.accumulator(offset)?;
                let one = self.add(offset, Kind::Int(1))?;
                (step, self.call(offset, "_==_", &[total, one])?)
            }
        };
        self.fold(
            offset,
            variables,
            Comprehension {
                range,
                variable: "",
                second_variable: None,
                accumulator: ACCUMULATOR,
                initial,
                condition,
                step,
                result,
            },
        )
    }

    fn fold(&mut self, offset: u32, variables: Variables<'s>, fold: Comprehension<'s>) -> Result<NodeId> {
        let fold = Comprehension { variable: variables.first, second_variable: variables.second, ..fold };
        self.add(offset, Kind::Comprehension(Box::new(fold)))
    }

    fn list_of(&mut self, offset: u32, elements: &[NodeId]) -> Result<NodeId> {
        let elements = self.tree.add_children(elements.iter().map(|&node| Child::from(node)));
        self.add(offset, Kind::List(elements))
    }

    fn collect(
        &mut self,
        Expansion { offset, range }: Expansion,
        names: &[NodeId],
        filter: Option<NodeId>,
        collected: Collected,
    ) -> Result<NodeId> {
        let variables = self.variables(names)?;
        let initial = match collected {
            Collected::List { .. } => self.list_of(offset, &[])?,
            Collected::Map { .. } | Collected::Entry { .. } => {
                let none = self.tree.add_children([]);
                self.add(offset, Kind::Map(none))?
            }
        };
        let condition = self.add(offset, Kind::Bool(true))?;
        let so_far = self.accumulator(offset)?;
        let mut step = match collected {
            Collected::List { element } => {
                let addition = self.list_of(offset, &[element])?;
                self.call(offset, "_+_", &[so_far, addition])?
            }
            Collected::Map { key, value } => self.call(offset, "cel.@mapInsert", &[so_far, key, value])?,
            Collected::Entry { entry } => self.call(offset, "cel.@mapInsert", &[so_far, entry])?,
        };
        if let Some(filter) = filter {
            let same = self.accumulator(offset)?;
            step = self.call(offset, "_?_:_", &[filter, step, same])?;
        }
        let result = self.accumulator(offset)?;
        self.fold(
            offset,
            variables,
            Comprehension {
                range,
                variable: "",
                second_variable: None,
                accumulator: ACCUMULATOR,
                initial,
                condition,
                step,
                result,
            },
        )
    }

    fn bind(&mut self, offset: u32, name: &'s str, value: NodeId, body: NodeId) -> Result<NodeId> {
        let range = self.list_of(offset, &[])?;
        let condition = self.add(offset, Kind::Bool(false))?;
        let step = self.add(offset, Kind::Identifier(name))?;
        self.add(
            offset,
            Kind::Comprehension(Box::new(Comprehension {
                range,
                variable: BIND_ITERATION_VARIABLE,
                second_variable: None,
                accumulator: name,
                initial: value,
                condition,
                step,
                result: body,
            })),
        )
    }

    fn member_of(
        &mut self,
        offset: u32,
        target: NodeId,
        function: &'s str,
        arguments: &[NodeId],
    ) -> Result<NodeId> {
        let arguments = self.tree.add_children(arguments.iter().map(|&node| Child::from(node)));
        self.add(offset, Kind::Call { function, target: Some(target), arguments })
    }

    /// `target.hasValue() ? [optional.of](bind(name, target.value(), body)) : optional.none()`.
    fn opt_map(&mut self, at: Expansion, name: NodeId, body: NodeId, wrap: bool) -> Result<NodeId> {
        let Expansion { offset, range: target } = at;
        let name = self.identifier(name, "the variable of optMap and optFlatMap must be a simple name")?;
        let present = self.member_of(offset, target, "hasValue", &[])?;
        let copied = self.tree.copy(target);
        let copy = self.limited(offset, copied)?;
        let value = self.member_of(offset, copy, "value", &[])?;
        let bound = self.bind(offset, name, value, body)?;
        let some = if wrap { self.call(offset, "optional.of", &[bound])? } else { bound };
        let none = self.call(offset, "optional.none", &[])?;
        self.call(offset, "_?_:_", &[present, some, none])
    }

    /// Binds the target, maps it to its keys and sorts by them.
    fn sort_by(&mut self, at: Expansion, name: NodeId, key: NodeId) -> Result<NodeId> {
        let Expansion { offset, range: target } = at;
        let sortable = matches!(
            self.tree.kind(target),
            Kind::List(_)
                | Kind::Select { .. }
                | Kind::Identifier(_)
                | Kind::Comprehension(_)
                | Kind::Call { .. }
        );
        if !sortable {
            return self.error(offset, "sortBy cannot be applied to a literal other than a list");
        }
        let input = self.add(offset, Kind::Identifier(SORT_INPUT))?;
        let keys = self.collect(
            Expansion { offset, range: input },
            &[name],
            None,
            Collected::List { element: key },
        )?;
        let input = self.add(offset, Kind::Identifier(SORT_INPUT))?;
        let sorted = self.member_of(offset, input, "@sortByAssociatedKeys", &[keys])?;
        self.bind(offset, SORT_INPUT, target, sorted)
    }
}

/// Where a macro stands and what it iterates over.
#[derive(Clone, Copy)]
struct Expansion {
    offset: u32,
    range: NodeId,
}

fn filter_and_last(rest: &[NodeId]) -> (Option<NodeId>, NodeId) {
    match *rest {
        [filter, last] => (Some(filter), last),
        _ => (None, rest[0]),
    }
}
