//! Checks of literals that Kubernetes makes after type-checking: homogeneous lists and maps, literal regular
//! expressions and literal format strings. (Literal durations and timestamps fail while they are folded.)

use super::checker::{Checker, Result};
use crate::library::{format, regex};
use crate::syntax::{Kind, NodeId, Slice};
use crate::types::{Shape, Type};

/// Validates one list or map literal, or one call of `matches` or `format`.
pub(super) fn validate(checker: &Checker<'_, '_, '_>, node: NodeId) -> Result<()> {
    match *checker.tree.kind(node) {
        Kind::List(elements) => {
            let children = checker.tree.children(elements);
            same_types(checker, children.iter().map(|child| (child.node, child.optional)))
        }
        Kind::Map(entries) => {
            let children = checker.tree.children(entries);
            same_types(checker, children.iter().step_by(2).map(|child| (child.node, false)))?;
            same_types(checker, children.iter().skip(1).step_by(2).map(|child| (child.node, child.optional)))
        }
        // The pattern of the member form is checked while planning.
        Kind::Call { function: "matches", target: None, arguments } => literal_regex(checker, arguments),
        Kind::Call { function: "format", target: Some(target), arguments } => {
            literal_format(checker, target, arguments)
        }
        _ => Ok(()),
    }
}

fn same_types(checker: &Checker<'_, '_, '_>, elements: impl Iterator<Item = (NodeId, bool)>) -> Result<()> {
    let mut first: Option<Type> = None;
    for (node, optional) in elements {
        let kind = checker.type_of(node);
        let kind = if optional { checker.types().unwrap_optional(kind).0 } else { kind };
        match first {
            None => first = Some(kind),
            Some(first) if !checker.types().same(first, kind) => {
                let (wanted, found) = (checker.types().name(first), checker.types().name(kind));
                return checker
                    .error(node, format!("expected {wanted} like the elements before, found {found}"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Kubernetes looks at the first argument, which of the global form is the text rather than the pattern.
fn literal_regex(checker: &Checker<'_, '_, '_>, arguments: Slice) -> Result<()> {
    let Some(first) = checker.tree.children(arguments).first() else { return Ok(()) };
    let Kind::String(pattern) = checker.tree.kind(first.node) else { return Ok(()) };
    match regex::LazyPattern::new(pattern) {
        Ok(_) => Ok(()),
        Err(error) => checker.error(first.node, format!("invalid regular expression: {error}")),
    }
}

fn literal_format(checker: &Checker<'_, '_, '_>, target: NodeId, arguments: Slice) -> Result<()> {
    let Kind::String(template) = checker.tree.kind(target) else { return Ok(()) };
    let [argument] = checker.tree.children(arguments) else { return Ok(()) };
    let Kind::List(elements) = *checker.tree.kind(argument.node) else { return Ok(()) };
    let elements = checker.tree.children(elements);
    let mut used = 0;
    for piece in format::pieces(template) {
        let clause = match piece {
            Ok(format::Piece::Text(_)) => continue,
            Ok(format::Piece::Clause(clause)) => clause,
            Err(error) if used < elements.len() => return checker.error(target, error),
            Err(_) => return checker.error(target, "the format has more clauses than there are arguments"),
        };
        let Some(element) = elements.get(used) else {
            return checker.error(target, "the format has more clauses than there are arguments");
        };
        used += 1;
        formattable(checker, element.node, clause)?;
    }
    if used < elements.len() {
        return checker.error(target, format!("the format uses {used} of {} arguments", elements.len()));
    }
    Ok(())
}

/// Whether a clause can render the static type of an argument, and of the elements of literals in it.
fn formattable(checker: &Checker<'_, '_, '_>, node: NodeId, clause: format::Clause) -> Result<()> {
    use format::Clause;
    let kind = checker.type_of(node);
    let shape = checker.types().shape(kind);
    let one_of = |types: &[Type]| kind == Type::DYN || types.contains(&kind);
    let fits = match clause {
        Clause::Text => {
            one_of(&[
                Type::INT,
                Type::UINT,
                Type::DOUBLE,
                Type::BOOL,
                Type::STRING,
                Type::TIMESTAMP,
                Type::BYTES,
                Type::DURATION,
                Type::NULL,
            ]) || matches!(shape, Some(Shape::List(_) | Shape::Map(..) | Shape::Meta(_)))
        }
        Clause::Decimal | Clause::Octal => one_of(&[Type::INT, Type::UINT]),
        Clause::Fixed(_) | Clause::Scientific(_) => one_of(&[Type::DOUBLE, Type::STRING]),
        Clause::Binary => one_of(&[Type::INT, Type::UINT, Type::BOOL]),
        Clause::Hexadecimal { .. } => one_of(&[Type::INT, Type::UINT, Type::STRING, Type::BYTES]),
    };
    if !fits {
        let name = checker.types().name(kind);
        return checker.error(node, format!("this format clause cannot render a value of type {name}"));
    }
    if let (Clause::Text, &(Kind::List(slice) | Kind::Map(slice))) = (clause, checker.tree.kind(node)) {
        for child in checker.tree.children(slice) {
            formattable(checker, child.node, clause)?;
        }
    }
    Ok(())
}
