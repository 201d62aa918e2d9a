//! Assignability of types and the bindings of type variables.

use crate::types::{Shape, Type, TypeTooLarge, Types};

/// Types plus what is known of the type variables so far.
pub(super) struct Unifier<'e> {
    pub(super) types: Types<'e>,
    /// The binding of each free variable.
    bindings: Vec<Option<Type>>,
    /// Overwritten bindings since the current attempt began.
    trail: Vec<(u32, Option<Type>)>,
}

type Sized<T> = Result<T, TypeTooLarge>;

impl<'e> Unifier<'e> {
    pub(super) fn new(types: Types<'e>) -> Self {
        Self { types, bindings: Vec::new(), trail: Vec::new() }
    }

    pub(super) fn fresh(&mut self) -> Sized<Type> {
        let number = self.bindings.len() as u32;
        self.bindings.push(None);
        self.types.add(Shape::Variable(Shape::FIRST_FREE + number))
    }

    fn variable(&self, kind: Type) -> Option<u32> {
        match self.types.shape(kind) {
            Some(Shape::Variable(number)) => number.checked_sub(Shape::FIRST_FREE),
            _ => None,
        }
    }

    fn bind(&mut self, variable: u32, to: Type) {
        let slot = &mut self.bindings[variable as usize];
        self.trail.push((variable, *slot));
        *slot = Some(to);
    }

    /// Whether every left type is assignable to the right one; on failure no binding is kept.
    pub(super) fn assign_all(&mut self, pairs: impl IntoIterator<Item = (Type, Type)>) -> Sized<bool> {
        self.trail.clear();
        for (left, right) in pairs {
            if !self.assign(left, right)? {
                while let Some((variable, before)) = self.trail.pop() {
                    self.bindings[variable as usize] = before;
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn assignable(&mut self, left: Type, right: Type) -> Sized<bool> {
        self.assign_all([(left, right)])
    }

    fn assign(&mut self, left: Type, right: Type) -> Sized<bool> {
        if let Some(variable) = self.variable(right) {
            let (valid, bound) = self.substitutes(left, right, variable)?;
            if valid || bound {
                return Ok(valid);
            }
        }
        if let Some(variable) = self.variable(left) {
            return Ok(self.substitutes(right, left, variable)?.0);
        }
        if left.is_dyn_or_error() || right.is_dyn_or_error() {
            return Ok(true);
        }
        if left == Type::NULL || right == Type::NULL {
            let other = if left == Type::NULL { right } else { left };
            return Ok(other == Type::NULL || self.nullable(other));
        }
        match (self.types.shape(left), self.types.shape(right)) {
            (None, None) => Ok(left == right),
            (Some(Shape::Meta(_)), Some(Shape::Meta(_))) => Ok(true),
            (Some(Shape::List(a)), Some(Shape::List(b)))
            | (Some(Shape::Optional(a)), Some(Shape::Optional(b))) => self.assign(a, b),
            (Some(Shape::Map(ak, av)), Some(Shape::Map(bk, bv))) => {
                Ok(self.assign(ak, bk)? && self.assign(av, bv)?)
            }
            (Some(Shape::Object(a)), Some(Shape::Object(b))) => Ok(a == b),
            _ => Ok(false),
        }
    }

    /// Types of which a value may be null for the checker.
    fn nullable(&self, kind: Type) -> bool {
        const SIMPLE: [Type; 8] = [
            Type::TIMESTAMP,
            Type::DURATION,
            Type::QUANTITY,
            Type::SEMVER,
            Type::URL,
            Type::FORMAT,
            Type::IP,
            Type::CIDR,
        ];
        SIMPLE.contains(&kind)
            || matches!(self.types.shape(kind), Some(Shape::Optional(_) | Shape::Object(_)))
    }

    /// Whether `kind` can stand for the variable, and whether the variable was bound before.
    fn substitutes(&mut self, kind: Type, variable_type: Type, variable: u32) -> Sized<(bool, bool)> {
        if self.types.same(kind, variable_type) {
            return Ok((true, true));
        }
        if let Some(bound) = self.bindings[variable as usize] {
            if self.types.same(kind, bound) {
                return Ok((true, true));
            }
            if self.assign(kind, bound)? {
                let general = self.most_general(kind, bound);
                if !self.occurs(variable, general) {
                    self.bind(variable, general);
                }
                return Ok((true, true));
            }
            return Ok((false, true));
        }
        if self.occurs(variable, kind) {
            return Ok((false, false));
        }
        self.bind(variable, kind);
        Ok((true, false))
    }

    /// The less specific of two types that are assignable to each other.
    pub(super) fn most_general(&self, left: Type, right: Type) -> Type {
        if self.as_general(left, right) { left } else { right }
    }

    fn as_general(&self, left: Type, right: Type) -> bool {
        let wild = |kind: Type| kind.is_dyn() || matches!(self.types.shape(kind), Some(Shape::Variable(_)));
        if wild(left) {
            return true;
        }
        if wild(right) {
            return false;
        }
        match (self.types.shape(left), self.types.shape(right)) {
            (Some(Shape::List(a)), Some(Shape::List(b)))
            | (Some(Shape::Optional(a)), Some(Shape::Optional(b))) => self.as_general(a, b),
            (Some(Shape::Map(ak, av)), Some(Shape::Map(bk, bv))) => {
                self.as_general(ak, bk) && self.as_general(av, bv)
            }
            (Some(Shape::Meta(_)), Some(Shape::Meta(_))) => true,
            _ => self.types.same(left, right),
        }
    }

    /// Whether the variable occurs in a type, directly or through bindings.
    fn occurs(&self, variable: u32, within: Type) -> bool {
        if !self.types.is_open(within) {
            return false;
        }
        match self.types.shape(within) {
            Some(Shape::Variable(_)) => match self.variable(within) {
                Some(other) if other == variable => true,
                Some(other) => {
                    self.bindings[other as usize].is_some_and(|bound| self.occurs(variable, bound))
                }
                None => false,
            },
            Some(Shape::List(inner) | Shape::Optional(inner) | Shape::Meta(inner)) => {
                self.occurs(variable, inner)
            }
            Some(Shape::Map(key, value)) => self.occurs(variable, key) || self.occurs(variable, value),
            Some(Shape::Object(_)) | None => false,
        }
    }

    /// Replaces bound variables; unbound ones become `dyn` if `close` is set.
    pub(super) fn substitute(&mut self, kind: Type, close: bool) -> Sized<Type> {
        self.rebuild(kind, &mut |unifier, number| {
            let Some(free) = number.checked_sub(Shape::FIRST_FREE) else { return Ok(None) };
            match unifier.bindings[free as usize] {
                Some(bound) => unifier.substitute(bound, close).map(Some),
                None => Ok(close.then_some(Type::DYN)),
            }
        })
    }

    /// Replaces the variables of a declaration by fresh ones.
    pub(super) fn instantiate(&mut self, kind: Type, fresh: &[Type]) -> Sized<Type> {
        self.rebuild(kind, &mut |_, number| Ok(fresh.get(number as usize).copied()))
    }

    fn rebuild(
        &mut self,
        kind: Type,
        variable: &mut dyn FnMut(&mut Self, u32) -> Sized<Option<Type>>,
    ) -> Sized<Type> {
        if !self.types.is_open(kind) {
            return Ok(kind);
        }
        let shape = match self.types.shape(kind) {
            Some(Shape::Variable(number)) => return Ok(variable(self, number)?.unwrap_or(kind)),
            Some(Shape::List(inner)) => Shape::List(self.rebuild(inner, variable)?),
            Some(Shape::Optional(inner)) => Shape::Optional(self.rebuild(inner, variable)?),
            Some(Shape::Meta(inner)) => Shape::Meta(self.rebuild(inner, variable)?),
            Some(Shape::Map(key, value)) => {
                Shape::Map(self.rebuild(key, variable)?, self.rebuild(value, variable)?)
            }
            Some(Shape::Object(_)) | None => return Ok(kind),
        };
        self.types.add(shape)
    }
}
