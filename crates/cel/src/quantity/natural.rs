//! Natural numbers of any size, kept in base 10^18 so that decimal shifts, parsing and printing are linear.
//!
//! Only what [`super::Quantity`] needs: no multiplication or division of two large numbers.

use std::cmp::Ordering;
use std::fmt::Write as _;

/// Decimal digits in one limb.
const LIMB_DIGITS: usize = 18;
/// One more than the largest limb.
const BASE: u64 = 10u64.pow(LIMB_DIGITS as u32);

/// A natural number: limbs in base 10^18, least significant first, the last one never zero.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Natural {
    limbs: Vec<u64>,
}

impl Natural {
    /// The number that a run of ASCII digits writes; other bytes must not occur.
    pub(super) fn from_digits(digits: &[u8]) -> Self {
        let limbs = digits
            .rchunks(LIMB_DIGITS)
            .map(|chunk| chunk.iter().fold(0, |limb, digit| limb * 10 + u64::from(digit - b'0')))
            .collect();
        Self { limbs }.trimmed()
    }

    /// The number with that value.
    pub(super) fn from_u64(value: u64) -> Self {
        Self { limbs: vec![value % BASE, value / BASE] }.trimmed()
    }

    /// Whether the number is 0.
    pub(super) fn is_zero(&self) -> bool {
        self.limbs.is_empty()
    }

    /// The value, if it fits.
    pub(super) fn to_u64(&self) -> Option<u64> {
        match *self.limbs.as_slice() {
            [] => Some(0),
            [low] => Some(low),
            [low, high] => high.checked_mul(BASE)?.checked_add(low),
            _ => None,
        }
    }

    /// The value, if it has at most two limbs.
    pub(super) fn to_small(&self) -> Option<i128> {
        match *self.limbs.as_slice() {
            [] => Some(0),
            [low] => Some(i128::from(low)),
            [low, high] => Some(i128::from(high) * i128::from(BASE) + i128::from(low)),
            _ => None,
        }
    }

    /// The limbs, least significant first.
    pub(super) fn limbs(&self) -> &[u64] {
        &self.limbs
    }

    /// The number times `factor`.
    pub(super) fn times(mut self, factor: u64) -> Self {
        let mut carry = 0u128;
        for limb in &mut self.limbs {
            let product = u128::from(*limb) * u128::from(factor) + carry;
            *limb = low_limb(product);
            carry = product / u128::from(BASE);
        }
        while carry > 0 {
            self.limbs.push(low_limb(carry));
            carry /= u128::from(BASE);
        }
        self.trimmed()
    }

    /// The number times 10^`places`.
    pub(super) fn shifted_up(self, places: usize) -> Self {
        let mut shifted = self.times(power_of_ten(places % LIMB_DIGITS));
        if !shifted.is_zero() {
            shifted.limbs.splice(0..0, std::iter::repeat_n(0, places / LIMB_DIGITS));
        }
        shifted
    }

    /// The number divided by 10^`places`, and whether the division left no remainder.
    pub(super) fn shifted_down(mut self, places: usize) -> (Self, bool) {
        let whole = (places / LIMB_DIGITS).min(self.limbs.len());
        let dropped_zero = self.limbs.drain(..whole).all(|limb| limb == 0);
        let (quotient, remainder) = self.divided(power_of_ten(places % LIMB_DIGITS));
        (quotient, dropped_zero && remainder == 0)
    }

    /// Quotient and remainder of a division by a small number, which must not be zero.
    pub(super) fn divided(mut self, divisor: u64) -> (Self, u64) {
        let mut remainder = 0u64;
        for limb in self.limbs.iter_mut().rev() {
            let dividend = u128::from(remainder) * u128::from(BASE) + u128::from(*limb);
            *limb = low_limb(dividend / u128::from(divisor));
            remainder = low_limb(dividend % u128::from(divisor));
        }
        (self.trimmed(), remainder)
    }

    /// The sum.
    pub(super) fn plus(mut self, other: &Self) -> Self {
        let mut carry = 0;
        if self.limbs.len() < other.limbs.len() {
            self.limbs.resize(other.limbs.len(), 0);
        }
        for (index, limb) in self.limbs.iter_mut().enumerate() {
            let sum = *limb + other.limbs.get(index).copied().unwrap_or(0) + carry;
            *limb = sum % BASE;
            carry = sum / BASE;
        }
        if carry > 0 {
            self.limbs.push(carry);
        }
        self
    }

    /// The difference; `other` must not be larger.
    pub(super) fn minus(mut self, other: &Self) -> Self {
        debug_assert!(self >= *other, "the difference would be negative");
        let mut borrow = 0;
        for (index, limb) in self.limbs.iter_mut().enumerate() {
            let take = other.limbs.get(index).copied().unwrap_or(0) + borrow;
            borrow = u64::from(*limb < take);
            *limb = *limb + borrow * BASE - take;
        }
        self.trimmed()
    }

    /// How many times 10 divides the number; 0 for 0.
    pub(super) fn trailing_zeros(&self) -> usize {
        let Some(whole) = self.limbs.iter().position(|limb| *limb != 0) else { return 0 };
        let mut limb = self.limbs[whole];
        let mut zeros = whole * LIMB_DIGITS;
        while limb.is_multiple_of(10) {
            limb /= 10;
            zeros += 1;
        }
        zeros
    }

    /// The digits, without leading zeros; `0` for 0.
    pub(super) fn digits(&self) -> String {
        let mut text = String::with_capacity(self.limbs.len() * LIMB_DIGITS + 1);
        let mut limbs = self.limbs.iter().rev();
        let first = limbs.next().copied().unwrap_or(0);
        // Writing to a string cannot fail.
        let _ = write!(text, "{first}");
        for limb in limbs {
            let _ = write!(text, "{limb:018}");
        }
        text
    }

    fn trimmed(mut self) -> Self {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
        self
    }
}

impl Ord for Natural {
    fn cmp(&self, other: &Self) -> Ordering {
        self.limbs
            .len()
            .cmp(&other.limbs.len())
            .then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev()))
    }
}

impl PartialOrd for Natural {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// 10^`places` for fewer than 20 places.
pub(super) const fn power_of_ten(places: usize) -> u64 {
    10u64.pow(places as u32)
}

/// The part of a double-width intermediate that a limb keeps.
fn low_limb(wide: u128) -> u64 {
    (wide % u128::from(BASE)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn natural(digits: &str) -> Natural {
        Natural::from_digits(digits.as_bytes())
    }

    #[test]
    fn digits_survive_the_round_trip_across_limb_borders() {
        for digits in
            ["0", "7", "999999999999999999", "1000000000000000000", "123456789012345678901234567890123456789"]
        {
            assert_eq!(natural(digits).digits(), digits);
        }
        assert_eq!(natural("000").digits(), "0");
        assert_eq!(natural(&format!("{}5", "0".repeat(40))).digits(), "5");
        assert_eq!(Natural::from_u64(u64::MAX).digits(), u64::MAX.to_string());
        assert_eq!(Natural::from_u64(u64::MAX).to_u64(), Some(u64::MAX));
        assert_eq!(natural("18446744073709551616").to_u64(), None);
    }

    #[test]
    fn arithmetic_carries_and_borrows() {
        let large = natural("999999999999999999999999999999999999");
        assert_eq!(large.clone().plus(&natural("1")).digits(), format!("1{}", "0".repeat(36)));
        assert_eq!(natural(&format!("1{}", "0".repeat(36))).minus(&natural("1")), large);
        assert_eq!(natural("12345678901234567890").minus(&natural("12345678901234567890")).digits(), "0");
        assert_eq!(
            natural("18446744073709551615").times(1 << 60).digits(),
            "21267647932558653965307991459878666240"
        );
        assert_eq!(natural("1024").divided(1000), (natural("1"), 24));
        assert_eq!(
            natural("21267647932558653965307991459878666240").divided(1 << 40).0.digits(),
            "19342813113834066794250240"
        );
    }

    #[test]
    fn shifts_move_the_decimal_point() {
        assert_eq!(natural("15").shifted_up(37).digits(), format!("15{}", "0".repeat(37)));
        assert_eq!(natural("0").shifted_up(37).digits(), "0");
        assert_eq!(natural(&format!("15{}", "0".repeat(37))).shifted_down(37), (natural("15"), true));
        assert_eq!(natural(&format!("15{}1", "0".repeat(36))).shifted_down(37), (natural("15"), false));
        assert_eq!(natural("15").shifted_down(370), (natural("0"), false));
        assert_eq!(natural(&format!("15{}", "0".repeat(37))).trailing_zeros(), 37);
    }
}
