//! cel-go's `math` library, which no Kubernetes environment enables.

use super::declarations::Op;
use crate::eval::{Fault, Value, order};

/// Calls a function over numbers; `None` if there is no such overload.
pub(super) fn call<'a>(op: Op, arguments: &[Value<'a>]) -> Option<Result<Value<'a>, Fault>> {
    use Value::{Bool, Double, Int, Uint};
    const OVERFLOW: Fault = Fault::Static("integer overflow");
    const NEGATIVE: Fault = Fault::Static("the shift is negative");
    Some(Ok(match (op, arguments) {
        (Op::Greatest | Op::Least, arguments) => return extreme(op == Op::Greatest, arguments),
        (Op::Ceil, [Double(value)]) => Double(value.ceil()),
        (Op::Floor, [Double(value)]) => Double(value.floor()),
        (Op::Round, [Double(value)]) => Double(value.round()),
        (Op::Trunc, [Double(value)]) => Double(value.trunc()),
        (Op::Abs, [Int(value)]) => return Some(value.checked_abs().map(Int).ok_or(OVERFLOW)),
        (Op::Abs, [Uint(value)]) => Uint(*value),
        (Op::Abs, [Double(value)]) => Double(value.abs()),
        (Op::SignOf, [Int(value)]) => Int(value.signum()),
        (Op::SignOf, [Uint(value)]) => Uint((*value).min(1)),
        (Op::SignOf, [Double(value)]) if value.is_nan() || *value == 0.0 => Double(*value),
        (Op::SignOf, [Double(value)]) => Double(value.signum()),
        (Op::IsNan, [Double(value)]) => Bool(value.is_nan()),
        (Op::IsInf, [Double(value)]) => Bool(value.is_infinite()),
        (Op::IsFinite, [Double(value)]) => Bool(value.is_finite()),
        (Op::Sqrt, [Double(value)]) => Double(value.sqrt()),
        (Op::Sqrt, [Int(value)]) => Double((*value as f64).sqrt()),
        (Op::Sqrt, [Uint(value)]) => Double((*value as f64).sqrt()),
        (Op::BitAnd, [Int(a), Int(b)]) => Int(a & b),
        (Op::BitAnd, [Uint(a), Uint(b)]) => Uint(a & b),
        (Op::BitOr, [Int(a), Int(b)]) => Int(a | b),
        (Op::BitOr, [Uint(a), Uint(b)]) => Uint(a | b),
        (Op::BitXor, [Int(a), Int(b)]) => Int(a ^ b),
        (Op::BitXor, [Uint(a), Uint(b)]) => Uint(a ^ b),
        (Op::BitNot, [Int(value)]) => Int(!value),
        (Op::BitNot, [Uint(value)]) => Uint(!value),
        (Op::BitShiftLeft | Op::BitShiftRight, [_, Int(shift)]) if *shift < 0 => return Some(Err(NEGATIVE)),
        (Op::BitShiftLeft, [Int(value), Int(shift)]) => Int(shifted(*shift).map_or(0, |by| value << by)),
        (Op::BitShiftLeft, [Uint(value), Int(shift)]) => Uint(shifted(*shift).map_or(0, |by| value << by)),
        (Op::BitShiftRight, [Int(value), Int(shift)]) => {
            // Right shifts are logical, also of negative numbers.
            Int(shifted(*shift).map_or(0, |by| (value.cast_unsigned() >> by).cast_signed()))
        }
        (Op::BitShiftRight, [Uint(value), Int(shift)]) => Uint(shifted(*shift).map_or(0, |by| value >> by)),
        _ => return None,
    }))
}

fn shifted(shift: i64) -> Option<u32> {
    u32::try_from(shift).ok().filter(|shift| *shift < 64)
}

fn extreme<'a>(greatest: bool, arguments: &[Value<'a>]) -> Option<Result<Value<'a>, Fault>> {
    let elements: Vec<Value<'a>> = match arguments {
        [Value::List(list)] => list.iter().collect(),
        arguments => arguments.to_vec(),
    };
    let mut best: Option<Value<'a>> = None;
    for element in elements {
        if !matches!(element, Value::Int(_) | Value::Uint(_) | Value::Double(_)) {
            return None;
        }
        best = match best {
            None => Some(element),
            Some(best) => match order(&best, &element) {
                Ok(found) if found.is_lt() == greatest && found.is_ne() => Some(element),
                Ok(_) => Some(best),
                Err(fault) => return Some(Err(fault)),
            },
        };
    }
    Some(best.ok_or(Fault::Static("the list of numbers is empty")))
}
