//! Kubernetes quantities: exact amounts such as `141Gi`, `500m` or `1e3`.
//!
//! Reading, rounding, saturation, the two forms, arithmetic and canonical text follow Kubernetes 1.36
//! (`spec/cel.md` §5). Four things deliberately do not: exponents beyond ±10,000 are refused; operations never
//! change their receiver or the form of their operands (§5.4); subtracting −2^63 is exact instead of adding it; and
//! a computed quantity whose Kubernetes text would not read back as the same value (decimal above 10^21, binary above
//! 2^63−1) is written in full instead.

mod arithmetic;
mod display;
mod error;
mod natural;
mod parse;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

pub use error::QuantityError;

use natural::{Natural, power_of_ten};
use parse::PLACES;

/// An exact amount as Kubernetes writes it in resource lists and device capacities.
///
/// Compared by value: `1Gi == 1024Mi`. Values are multiples of 10^−9. Copies are cheap.
#[derive(Debug, Clone)]
pub struct Quantity(Form);

/// How a value is held. The form never influences comparison, equality or sign; [`Quantity::is_integer`],
/// [`Quantity::as_integer`] and [`Quantity::as_approximate_float`] depend on it as in Kubernetes.
#[derive(Debug, Clone)]
enum Form {
    Scaled(Scaled),
    Verbatim(Arc<Verbatim>),
    Big(Arc<Big>),
}

/// The scaled-integer form: `value` × 10^`scale`.
#[derive(Debug, Clone, Copy)]
struct Scaled {
    value: i64,
    scale: i32,
    format: Format,
}

/// The scaled-integer form with the text it was read from, where Kubernetes writes that text back although it is
/// not the computed one (`05Ki`, `+3`, `1.250`).
#[derive(Debug)]
struct Verbatim {
    scaled: Scaled,
    text: Box<str>,
}

/// The big form: a count of 10^−9.
#[derive(Debug, Clone)]
struct Big {
    negative: bool,
    nanos: Natural,
    /// Decimal places of the arbitrary-precision number Kubernetes would hold; only the rounding of
    /// [`Quantity::as_approximate_float`] depends on it.
    scale: i32,
    format: Format,
}

/// The kind of suffix that a quantity is written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    DecimalSi,
    DecimalExponent,
    BinarySi,
}

impl Quantity {
    /// The quantity 0.
    pub const ZERO: Self = Self(Form::Scaled(Scaled { value: 0, scale: 0, format: Format::DecimalSi }));

    /// Reads a quantity; surrounding white space is not accepted.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        parse::parse(text)
    }

    /// −1, 0 or 1.
    pub fn sign(&self) -> i64 {
        match self.view() {
            View::Scaled(scaled) => scaled.value.signum(),
            View::Big(big) => big.sign(),
        }
    }

    /// Whether the quantity is 0.
    pub fn is_zero(&self) -> bool {
        self.sign() == 0
    }

    /// Whether [`Quantity::as_integer`] has a result: depends on how the value is held, see `spec/cel.md` §5.3.
    pub fn is_integer(&self) -> bool {
        self.as_integer().is_some()
    }

    /// The value as an integer, if the quantity is in scaled-integer form without decimal places.
    pub fn as_integer(&self) -> Option<i64> {
        match self.view() {
            View::Scaled(scaled) => scaled.as_integer(),
            View::Big(_) => None,
        }
    }

    /// The value as a double, with Kubernetes' rounding: `0.3` gives 0.30000000000000004.
    pub fn as_approximate_float(&self) -> f64 {
        match self.view() {
            View::Scaled(scaled) => scale_float(scaled.value as f64, i64::from(scaled.scale)),
            View::Big(big) => scale_float(big.unscaled_float(), -i64::from(big.scale)),
        }
    }

    fn scaled(scaled: Scaled) -> Self {
        Self(Form::Scaled(scaled))
    }

    fn verbatim(verbatim: Verbatim) -> Self {
        Self(Form::Verbatim(Arc::new(verbatim)))
    }

    fn big(big: Big) -> Self {
        Self(Form::Big(Arc::new(big)))
    }

    fn view(&self) -> View<'_> {
        match &self.0 {
            Form::Scaled(scaled) => View::Scaled(*scaled),
            Form::Verbatim(verbatim) => View::Scaled(verbatim.scaled),
            Form::Big(big) => View::Big(big),
        }
    }
}

/// A quantity's value without the text it may carry.
enum View<'quantity> {
    Scaled(Scaled),
    Big(&'quantity Big),
}

impl View<'_> {
    fn format(&self) -> Format {
        match self {
            Self::Scaled(scaled) => scaled.format,
            Self::Big(big) => big.format,
        }
    }
}

impl Scaled {
    fn as_integer(self) -> Option<i64> {
        if self.value == 0 && self.scale >= 0 {
            return Some(0);
        }
        let places = u32::try_from(self.scale).ok()?;
        self.value.checked_mul(10i64.checked_pow(places)?)
    }

    /// The value as a count of 10^−9, if it is small.
    fn nanos(self) -> Option<i128> {
        let places = usize::try_from(self.scale + PLACES).ok().filter(|places| *places < 20)?;
        Some(i128::from(self.value) * i128::from(power_of_ten(places)))
    }

    /// The same value in big form.
    fn to_big(self) -> Big {
        let Self { value, scale, format } = self;
        let places = usize::try_from(scale + PLACES).expect("scales are at least -9");
        let nanos = Natural::from_u64(value.unsigned_abs()).shifted_up(places);
        Big { negative: value < 0, nanos, scale: -scale, format }
    }

    /// Value without its factors of 10, and their number added to the scale.
    fn reduced(self) -> (i64, i32) {
        let (mut value, mut scale) = (self.value, self.scale);
        while value != 0 && value % 10 == 0 {
            value /= 10;
            scale += 1;
        }
        (value, scale)
    }
}

impl Ord for Scaled {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.scale < other.scale {
            return other.cmp(self).reverse();
        }
        // From here on `self` has the larger scale.
        match usize::try_from(self.scale - other.scale) {
            Ok(0) => self.value.cmp(&other.value),
            Ok(places) if places < 19 => {
                let aligned = i128::from(self.value) * i128::from(power_of_ten(places));
                aligned.cmp(&i128::from(other.value))
            }
            // 10^19 exceeds every 64-bit value.
            _ if self.value == 0 => 0.cmp(&other.value),
            _ => self.value.cmp(&0),
        }
    }
}

impl PartialOrd for Scaled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scaled {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scaled {}

impl Big {
    fn sign(&self) -> i64 {
        match (self.nanos.is_zero(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    /// The order relative to a quantity in scaled-integer form; allocates only where 128 bits do not suffice.
    fn compare_scaled(&self, other: Scaled) -> Ordering {
        self.sign().cmp(&other.value.signum()).then_with(|| {
            let small = self.nanos.to_small().zip(other.nanos());
            small.map_or_else(
                || self.compare(&other.to_big()),
                |(magnitude, other)| (if self.negative { -magnitude } else { magnitude }).cmp(&other),
            )
        })
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.sign().cmp(&other.sign()).then_with(|| {
            let magnitudes = self.nanos.cmp(&other.nanos);
            if self.negative { magnitudes.reverse() } else { magnitudes }
        })
    }

    /// The integer that Kubernetes would hold, as the nearest double.
    fn unscaled_float(&self) -> f64 {
        let mut digits = self.nanos.digits();
        match usize::try_from(PLACES - self.scale) {
            Ok(dropped) => digits.truncate(digits.len().saturating_sub(dropped)),
            // Only a zero read with that many places, or a sum with one, has more than nine.
            Err(_) => digits.extend(std::iter::repeat_n('0', (self.scale - PLACES) as usize)),
        }
        let magnitude = digits.parse().unwrap_or(0.0);
        if self.negative { -magnitude } else { magnitude }
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.view(), other.view()) {
            (View::Scaled(left), View::Scaled(right)) => left.cmp(&right),
            (View::Scaled(left), View::Big(right)) => right.compare_scaled(left).reverse(),
            (View::Big(left), View::Scaled(right)) => left.compare_scaled(right),
            (View::Big(left), View::Big(right)) => left.compare(right),
        }
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.sign().hash(state);
        match self.view() {
            View::Scaled(Scaled { value: 0, .. }) => {}
            View::Scaled(scaled) => {
                let (value, scale) = scaled.reduced();
                (scale, Natural::from_u64(value.unsigned_abs()).limbs()).hash(state);
            }
            View::Big(big) if big.nanos.is_zero() => {}
            View::Big(big) => {
                let zeros = big.nanos.trailing_zeros();
                let (nanos, _) = big.nanos.clone().shifted_down(zeros);
                (zeros as i32 - PLACES, nanos.limbs()).hash(state);
            }
        }
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl From<i64> for Quantity {
    fn from(value: i64) -> Self {
        Self::scaled(Scaled { value, scale: 0, format: Format::DecimalSi })
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

/// `base` × 10^`exponent` with one multiplication, as Go computes it.
fn scale_float(base: f64, exponent: i64) -> f64 {
    if exponent == 0 { base } else { base * power_of_ten_float(exponent) }
}

/// 10^`exponent` as Go's `math.Pow10` rounds it: the product or quotient of two correctly rounded powers.
fn power_of_ten_float(exponent: i64) -> f64 {
    const STEPS: [f64; 11] = [1e0, 1e32, 1e64, 1e96, 1e128, 1e160, 1e192, 1e224, 1e256, 1e288, f64::INFINITY];
    const NEGATIVE_STEPS: [f64; 11] =
        [1e0, 1e-32, 1e-64, 1e-96, 1e-128, 1e-160, 1e-192, 1e-224, 1e-256, 1e-288, 1e-320];
    const UNITS: [f64; 32] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
        1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31,
    ];
    let magnitude = exponent.unsigned_abs() as usize;
    match exponent {
        0..=308 => STEPS[magnitude / 32] * UNITS[magnitude % 32],
        -323..0 => NEGATIVE_STEPS[magnitude / 32] / UNITS[magnitude % 32],
        309.. => f64::INFINITY,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests;
