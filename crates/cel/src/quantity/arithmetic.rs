//! Addition and subtraction, `spec/cel.md` §5.3. Operands are never changed (§5.4).

use super::{Big, Form, Format, Quantity, Scaled, View, power_of_ten};

impl Quantity {
    /// The sum. A scaled-integer result stays so while it fits; otherwise the result is in big form, exact.
    pub fn add(&self, other: &Self) -> Self {
        self.combined(other, false)
    }

    /// The difference, with the rules of [`Quantity::add`].
    pub fn sub(&self, other: &Self) -> Self {
        self.combined(other, true)
    }

    /// The sum with an integer.
    pub fn add_integer(&self, other: i64) -> Self {
        self.add(&Self::operand(other))
    }

    /// The difference to an integer.
    pub fn sub_integer(&self, other: i64) -> Self {
        self.sub(&Self::operand(other))
    }

    /// An integer argument; Kubernetes gives it the exponent format, which a zero receiver takes over.
    fn operand(value: i64) -> Self {
        Self(Form::Scaled(Scaled { value, scale: 0, format: Format::DecimalExponent }))
    }

    fn combined(&self, other: &Self, negate: bool) -> Self {
        let (left, right) = (self.view(), other.view());
        let format = if self.is_zero() { right.format() } else { left.format() };
        if let (View::Scaled(left), View::Scaled(right)) = (&left, &right) {
            let left = Scaled { format, ..*left };
            if let Some(sum) = negated_if(*right, negate).and_then(|right| left.plus(right)) {
                return Self::scaled(sum);
            }
        }
        let (left, mut right) = (left.to_big(), right.to_big());
        right.negative ^= negate;
        Self::big(Big { format, ..left.plus(&right) })
    }
}

fn negated_if(scaled: Scaled, negate: bool) -> Option<Scaled> {
    let value = if negate { scaled.value.checked_neg()? } else { scaled.value };
    Some(Scaled { value, ..scaled })
}

impl View<'_> {
    fn to_big(&self) -> Big {
        match self {
            Self::Scaled(scaled) => scaled.to_big(),
            Self::Big(big) => (*big).clone(),
        }
    }
}

impl Scaled {
    /// The sum in the format of `self`, if both operands aligned to the smaller scale and the sum fit 64 bits.
    fn plus(self, other: Self) -> Option<Self> {
        if other.value == 0 {
            return Some(self);
        }
        if self.value == 0 {
            return Some(Self { format: self.format, ..other });
        }
        let scale = self.scale.min(other.scale);
        let value = self.aligned(scale)?.checked_add(other.aligned(scale)?)?;
        Some(Self { value, scale, format: self.format })
    }

    /// The value at a scale that is not larger than the own one.
    fn aligned(self, scale: i32) -> Option<i64> {
        match usize::try_from(self.scale - scale) {
            Ok(places) if places < 19 => self.value.checked_mul(i64::try_from(power_of_ten(places)).ok()?),
            _ => None,
        }
    }
}

impl Big {
    /// The exact sum, in the format of `self`.
    fn plus(self, other: &Self) -> Self {
        let scale = self.scale.max(other.scale);
        let (negative, nanos) = if self.negative == other.negative {
            (self.negative, self.nanos.plus(&other.nanos))
        } else if self.nanos >= other.nanos {
            (self.negative, self.nanos.minus(&other.nanos))
        } else {
            (other.negative, other.nanos.clone().minus(&self.nanos))
        };
        let negative = negative && !nanos.is_zero();
        Self { negative, nanos, scale, format: self.format }
    }
}
