//! Overload resolution.

use super::checker::{Checker, Result};
use crate::library::declarations::Function;
use crate::syntax::{NodeId, Slice};
use crate::types::Type;

impl Checker<'_, '_, '_> {
    pub(super) fn instantiate(&mut self, node: NodeId, kind: Type, variables: u32) -> Result<Type> {
        let mut fresh = [Type::DYN; 2];
        for slot in fresh.iter_mut().take(variables as usize) {
            let variable = self.unifier.fresh();
            *slot = self.sized(node, variable)?;
        }
        let instantiated = self.unifier.instantiate(kind, &fresh[..variables as usize]);
        self.sized(node, instantiated)
    }

    /// Finds the overloads that fit and sets the type of the call.
    pub(super) fn overloads(
        &mut self,
        node: NodeId,
        function: &'static Function,
        target: Option<NodeId>,
        arguments: Slice,
    ) -> Result<u32> {
        let tree = self.tree;
        let operands = target.into_iter().chain(tree.children(arguments).iter().map(|child| child.node));
        if matches!(function.name, "_&&_" | "_||_") {
            for operand in operands {
                if !self.assignable(node, self.type_of(operand), Type::BOOL)? {
                    let found = self.name_of(operand, self.type_of(operand))?;
                    return self.error(operand, format!("expected a bool, found {found}"));
                }
            }
            self.set(node, Type::BOOL);
            return Ok(1);
        }
        let mut types = [Type::ERROR; 8];
        let mut count = 0;
        for operand in operands {
            if count == types.len() {
                return self.no_overload(node, function, &types, target.is_some());
            }
            types[count] = self.type_of(operand);
            count += 1;
        }
        let types = &types[..count];
        let mut resolved = 0;
        let mut result: Option<Type> = None;
        for (index, overload) in function.overloads.iter().enumerate() {
            if overload.member != target.is_some() || overload.arguments.len() != count {
                continue;
            }
            let mut parameters = [Type::ERROR; 8];
            let mut fresh = [Type::DYN; 2];
            if overload.variables > 0 {
                for slot in fresh.iter_mut().take(overload.variables as usize) {
                    let variable = self.unifier.fresh();
                    *slot = self.sized(node, variable)?;
                }
            }
            for (slot, &parameter) in parameters.iter_mut().zip(&overload.arguments) {
                let instantiated = self.unifier.instantiate(parameter, &fresh);
                *slot = self.sized(node, instantiated)?;
            }
            let fits = self.unifier.assign_all(types.iter().copied().zip(parameters));
            if !self.sized(node, fits)? {
                continue;
            }
            resolved |= 1 << index;
            let returned = self.unifier.instantiate(overload.result, &fresh);
            let returned = self.sized(node, returned)?;
            let returned = self.substitute(node, returned, false)?;
            result = Some(match result {
                Some(before) if !before.is_dyn() && !self.types().same(returned, before) => Type::DYN,
                Some(before) => before,
                None => returned,
            });
        }
        let Some(result) = result else {
            return self.no_overload(node, function, types, target.is_some());
        };
        self.set(node, result);
        Ok(resolved)
    }

    fn no_overload(
        &mut self,
        node: NodeId,
        function: &Function,
        types: &[Type],
        member: bool,
    ) -> Result<u32> {
        let mut names = Vec::new();
        for &kind in types {
            names.push(self.name_of(node, kind)?);
        }
        let shown = display_name(function.name);
        let message = match (member, names.split_first()) {
            (true, Some((receiver, rest))) => {
                format!("{shown} is not defined for {receiver}.({})", rest.join(", "))
            }
            _ => format!("{shown} is not defined for ({})", names.join(", ")),
        };
        let hint = if function.overloads.iter().all(|overload| overload.member) && !member {
            Some(format!("write it as a method: x.{shown}()"))
        } else if function.overloads.iter().all(|overload| !overload.member) && member {
            Some(format!("write it as a function: {shown}(x)"))
        } else if names.iter().any(|name| name == "kubernetes.Quantity" || name == "kubernetes.Semver")
            && matches!(function.name, "_<_" | "_<=_" | "_>_" | "_>=_" | "_==_" | "_!=_")
        {
            Some(
                "compare quantities and versions with compareTo(), isLessThan() or isGreaterThan()"
                    .to_owned(),
            )
        } else {
            None
        };
        self.error_with_hint(node, message, hint)
    }
}

/// How an operator or internal function is called in messages.
fn display_name(name: &str) -> &str {
    match name {
        "_?_:_" => "the conditional",
        "_[_]" | "_[?_]" => "indexing",
        "@in" => "in",
        "@sortByAssociatedKeys" => "sortBy",
        "cel.@mapInsert" => "transformMap",
        _ if name.contains('_') && !name.contains(|character: char| character.is_alphanumeric()) => {
            name.trim_matches('_')
        }
        _ => name,
    }
}
