//! The estimated cost and result size of calls, by cost rule.

use super::estimator::{Estimator, Operands};
use super::size::Bounds;
use crate::library::declarations::Cost;
use crate::syntax::{Kind, NodeId};
use crate::types::Type;

const TRAVERSAL: f64 = 0.1;
const PATTERN: f64 = 0.25;
/// The size of the longest pattern of a named format.
const LONGEST_FORMAT_PATTERN: f64 = 128.0;
/// The length of the longest name of a format.
const LONGEST_FORMAT: u64 = 64;
/// The sizes of addresses in bytes.
const ADDRESS: Bounds = Bounds { minimum: 4, maximum: 16 };
/// The items of a list attribute that `includes` looks at.
const INCLUDES_LIMIT: u64 = 48;

type Estimate = (Bounds, Option<Bounds>);

impl Estimator<'_, '_, '_> {
    /// The cost of one overload, arguments included, and the size of its result.
    pub(super) fn function(&mut self, node: NodeId, rule: Cost, operands: &Operands<'_>) -> Estimate {
        let total = Self::total(operands);
        let arguments = operands.arguments;
        match rule {
            Cost::Logic => {
                let first = operands.costs.first().map_or(0, |cost| cost.minimum);
                (Bounds { minimum: first, maximum: total.maximum }, None)
            }
            Cost::Conditional => {
                let size = self.size_or_unknown(arguments[1]).union(self.size_or_unknown(arguments[2]));
                let entries = self.entries_union(arguments[1], arguments[2]);
                self.keep_entries(node, entries);
                let branches = operands.costs[1].union(operands.costs[2]);
                (operands.costs[0].plus(branches), Some(size))
            }
            Cost::AddList | Cost::AddText => {
                let size = self.size_or_unknown(arguments[0]).plus(self.size_or_unknown(arguments[1]));
                let entries = self.entries_union(arguments[0], arguments[1]);
                self.keep_entries(node, entries);
                let cost = if rule == Cost::AddList { Bounds::ONE } else { size.scaled(TRAVERSAL) };
                (cost.plus(total), Some(size))
            }
            rule => {
                let (cost, size) = self.own(rule, operands);
                (cost.plus(total), size)
            }
        }
    }

    fn own(&mut self, rule: Cost, operands: &Operands<'_>) -> Estimate {
        let (target, arguments) = (operands.target, operands.arguments);
        match (rule, target) {
            (Cost::Equality, _) if self.is_cheap_equality(arguments) => {
                (self.cheap_equality(arguments), None)
            }
            (Cost::Equality | Cost::Comparison, _) => {
                let (left, right) = (self.size_or_unknown(arguments[0]), self.size_or_unknown(arguments[1]));
                let maximum = left.maximum.min(right.maximum);
                (Bounds { minimum: u64::from(maximum > 0), maximum }.scaled(TRAVERSAL), None)
            }
            (Cost::InList, _) => (self.size_or_unknown(arguments[1]), None),
            (Cost::Affix, _) => (self.size_or_unknown(arguments[0]).scaled(TRAVERSAL), None),
            (Cost::FormatText, Some(target)) => (self.size_or_unknown(target).scaled(TRAVERSAL), None),
            (Cost::Contains, Some(target)) => {
                let text = self.size_or_unknown(target).scaled(TRAVERSAL);
                (text.times(self.size_or_unknown(arguments[0]).scaled(TRAVERSAL)), None)
            }
            (Cost::Matches, Some(target)) => (self.pattern(target, arguments[0]), None),
            (Cost::Find, Some(target)) => {
                let size = Bounds { minimum: 0, maximum: self.size_or_unknown(target).maximum };
                (self.pattern(target, arguments[0]), Some(size))
            }
            (Cost::StringToBytes, _) => {
                let size = self.size_or_unknown(arguments[0]);
                let result = Bounds { minimum: size.minimum, maximum: size.maximum.wrapping_mul(4) };
                (size.scaled(TRAVERSAL), Some(result))
            }
            (Cost::BytesToString, _) => {
                let size = self.size_or_unknown(arguments[0]);
                (size.scaled(TRAVERSAL), Some(Bounds { minimum: size.minimum / 4, maximum: size.maximum }))
            }
            (Cost::Quote, _) => {
                let size = self.size_or_unknown(arguments[0]);
                let result = Bounds {
                    minimum: size.minimum.wrapping_add(2),
                    maximum: size.maximum.wrapping_mul(2).wrapping_add(2),
                };
                (size.scaled(TRAVERSAL), Some(result))
            }
            (Cost::Traverse, Some(target)) => (self.traversal(target), None),
            (Cost::SameText, Some(target)) => {
                let size = self.size_or_unknown(target);
                (size.scaled(TRAVERSAL), Some(size))
            }
            (Cost::ParseSized, _) => {
                let size = self.size_or_unknown(arguments[0]);
                (size.scaled(TRAVERSAL), Some(size))
            }
            (Cost::Parse, _) => (self.size_or_unknown(arguments[0]).scaled(TRAVERSAL), None),
            (Cost::ParseTwice, _) => (self.size_or_unknown(arguments[0]).scaled(2.0 * TRAVERSAL), None),
            (Cost::Replace, Some(target)) => self.replace(target, arguments),
            (Cost::Split, Some(target)) => self.split(target, arguments),
            (Cost::Join, Some(target)) => self.join(target, arguments),
            (Cost::ContainsIp | Cost::ContainsIpText | Cost::ContainsCidr | Cost::ContainsCidrText, _) => {
                (self.containment(rule, arguments[0]), None)
            }
            (Cost::Validate, _) => {
                let text = self.size_or_unknown(arguments[0]).scaled(TRAVERSAL);
                (text.scaled(LONGEST_FORMAT_PATTERN * PATTERN), None)
            }
            (Cost::Slice | Cost::Flatten | Cost::Range | Cost::Reverse | Cost::Distinct, _)
            | (Cost::Sort { .. } | Cost::SortByKeys { .. } | Cost::Sets(_), _) => self.lists(rule, operands),
            (Cost::Includes, _) => (Bounds { minimum: 0, maximum: INCLUDES_LIMIT }, None),
            _ => (Bounds::ONE, None),
        }
    }

    fn is_cheap_equality(&self, arguments: &[NodeId]) -> bool {
        const CHEAP: [Type; 6] =
            [Type::QUANTITY, Type::SEMVER, Type::FORMAT, Type::URL, Type::IP, Type::CIDR];
        let kind = self.type_of(arguments[0]);
        CHEAP.contains(&kind) && kind == self.type_of(arguments[1])
    }

    fn cheap_equality(&mut self, arguments: &[NodeId]) -> Bounds {
        match self.type_of(arguments[0]) {
            Type::FORMAT => Bounds { minimum: 1, maximum: LONGEST_FORMAT }.scaled(TRAVERSAL),
            Type::URL => {
                let size = self.size_of(arguments[1]).unwrap_or(Bounds::ONE);
                Bounds { minimum: 1, maximum: size.maximum }.scaled(TRAVERSAL)
            }
            _ => Bounds::ONE,
        }
    }

    fn pattern(&mut self, text: NodeId, pattern: NodeId) -> Bounds {
        let text = self.size_or_unknown(text).plus(Bounds::ONE).scaled(TRAVERSAL);
        text.times(self.size_or_unknown(pattern).scaled(PATTERN))
    }

    fn traversal(&mut self, target: NodeId) -> Bounds {
        let size = self.size_or_unknown(target);
        match self.element_of(target) {
            Some((kind, declared)) => {
                let each = match kind {
                    Type::STRING | Type::BYTES => {
                        Bounds::ONE.plus(declared.unwrap_or(Bounds::UNKNOWN).scaled(TRAVERSAL))
                    }
                    _ => Bounds::ONE,
                };
                size.times(each)
            }
            None => size.scaled(TRAVERSAL),
        }
    }

    fn replace(&mut self, target: NodeId, arguments: &[NodeId]) -> Estimate {
        let size = self.size_or_unknown(target);
        let (old, new) = (self.size_or_unknown(arguments[0]), self.size_or_unknown(arguments[1]));
        let (mut count, mut kept) = (Bounds::ZERO, Bounds::ZERO);
        let quotient = |size: u64, by: u64| (size as f64 / by as f64).ceil() as u64;
        // The longest result: replacing the shortest by the longest as often as possible.
        if old.minimum == 0 {
            count.maximum = size.maximum.saturating_add(1);
            kept.maximum = size.maximum;
        } else if new.maximum <= old.minimum {
            kept.maximum = size.maximum;
        } else {
            count.maximum = quotient(size.maximum, old.minimum);
        }
        if old.maximum == 0 {
            count.minimum = size.minimum.saturating_add(1);
            kept.minimum = size.minimum;
        } else if old.maximum <= new.minimum {
            kept.minimum = size.minimum;
        } else {
            count.minimum = quotient(size.minimum, old.maximum);
        }
        (size.scaled(2.0 * TRAVERSAL), Some(count.times(new).plus(kept)))
    }

    fn split(&mut self, target: NodeId, arguments: &[NodeId]) -> Estimate {
        let size = self.size_or_unknown(target);
        let maximum = match arguments.get(1).map(|&limit| self.kind(limit)) {
            Some(Kind::Int(limit)) => limit.cast_unsigned(),
            _ => size.maximum,
        };
        (size.scaled(2.0 * TRAVERSAL), Some(Bounds { minimum: 0, maximum }))
    }

    fn join(&mut self, target: NodeId, arguments: &[NodeId]) -> Estimate {
        let list = self.size_or_unknown(target);
        let mut size = Bounds::ZERO;
        if let Some((_, declared)) = self.element_of(target) {
            size = list.times(declared.unwrap_or(Bounds::UNKNOWN));
        }
        if let Some(&separator) = arguments.first() {
            let separators =
                Bounds { minimum: list.minimum.saturating_sub(1), maximum: list.maximum.saturating_sub(1) };
            size = size.plus(self.size_or_unknown(separator).times(separators));
        }
        (size.scaled(TRAVERSAL), Some(size))
    }

    fn containment(&mut self, rule: Cost, argument: NodeId) -> Bounds {
        let mut cost = ADDRESS.plus(ADDRESS).scaled(TRAVERSAL);
        if matches!(rule, Cost::ContainsCidr | Cost::ContainsCidrText) {
            cost = cost.plus(ADDRESS.scaled(TRAVERSAL)).plus(Bounds::ONE);
        }
        if matches!(rule, Cost::ContainsIpText | Cost::ContainsCidrText) {
            cost = cost.plus(self.size_or_unknown(argument).scaled(TRAVERSAL));
        }
        cost
    }

    /// An argument's literal value, or a default.
    fn literal(&self, node: NodeId, default: u64) -> u64 {
        match self.kind(node) {
            Kind::Int(value) => u64::try_from(*value).unwrap_or(0),
            _ => default,
        }
    }

    fn lists(&mut self, rule: Cost, operands: &Operands<'_>) -> Estimate {
        let arguments = operands.arguments;
        let target = operands.target.map_or(Bounds::UNKNOWN, |target| self.size_or_unknown(target));
        let text = |text: bool| if text { 2.0 + TRAVERSAL } else { 2.0 };
        let (factor, size) = match rule {
            Cost::Slice => {
                let (start, end) =
                    (self.literal(arguments[0], 0), self.literal(arguments[1], target.maximum));
                (1.0, Bounds::fixed(end.wrapping_sub(start)))
            }
            Cost::Range => (1.0, Bounds::fixed(self.literal(arguments[0], u64::MAX))),
            Cost::Flatten => {
                let depth = arguments.first().map_or(1, |&depth| self.literal(depth, u64::MAX));
                (depth as f64, target)
            }
            Cost::Distinct => (2.0, target.times(target)),
            Cost::Sort { text: is_text } => (text(is_text), target.times(target)),
            Cost::SortByKeys { text: is_text } => {
                let keys = self.size_or_unknown(arguments[0]);
                (text(is_text), keys.times(keys))
            }
            Cost::Sets(factor) => {
                let product = self.size_or_unknown(arguments[0]).times(self.size_or_unknown(arguments[1]));
                return (product.scaled(f64::from(factor)).plus(Bounds::ONE), None);
            }
            _ => (1.0, target),
        };
        (size.scaled(factor).plus(Bounds::fixed(11)), Some(size))
    }
}
