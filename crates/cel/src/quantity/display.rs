//! The canonical text of a quantity, and quantities in serialised data.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use super::natural::Natural;
use super::{Big, Form, Format, PLACES, Quantity, Scaled};

/// Largest decimal exponent that has a letter.
const LARGEST_LETTER: i32 = 18;
/// Largest multiple of 3 that is read as an exponent.
const LARGEST_EXPONENT: i32 = 9_999;

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Verbatim(verbatim) => formatter.pad(&verbatim.text),
            Form::Scaled(scaled) => formatter.pad(&scaled_text(*scaled)),
            Form::Big(big) => formatter.pad(&big_text(big)),
        }
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

/// Accepts a text, white space around it ignored as Kubernetes does, or a number.
struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a quantity such as \"141Gi\" or 8")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
        Quantity::parse(text.trim()).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Quantity, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Quantity, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Quantity, E> {
        self.visit_str(&value.to_string())
    }
}

fn scaled_text(scaled: Scaled) -> String {
    if let Some((value, suffix)) = whole_binary(scaled) {
        return format!("{value}{suffix}");
    }
    let (value, scale) = scaled.reduced();
    decimal_text(value.to_string(), scale, scaled.format)
}

fn big_text(big: &Big) -> String {
    if big.format == Format::BinarySi
        && let (integer, true) = big.nanos.clone().shifted_down(PLACES as usize)
    {
        return match integer.to_u64().and_then(|value| i64::try_from(value).ok()) {
            Some(value) => {
                let value = if big.negative { -value } else { value };
                scaled_text(Scaled { value, scale: 0, format: Format::BinarySi })
            }
            // A binary suffix would be capped when read again.
            None => signed_digits(&integer, big.negative),
        };
    }
    let zeros = big.nanos.trailing_zeros();
    let (nanos, _) = big.nanos.clone().shifted_down(zeros);
    decimal_text(signed_digits(&nanos, big.negative), zeros as i32 - PLACES, big.format)
}

fn signed_digits(number: &Natural, negative: bool) -> String {
    let digits = number.digits();
    if negative { format!("-{digits}") } else { digits }
}

/// The parts of a text with a binary suffix, for an integer of at least 1024 held in that format.
fn whole_binary(scaled: Scaled) -> Option<(i64, &'static str)> {
    const SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if scaled.format != Format::BinarySi {
        return None;
    }
    let mut value = scaled.as_integer().filter(|value| value.unsigned_abs() >= 1024)?;
    if value == i64::MIN {
        // `-8Ei` would be capped when read again.
        return None;
    }
    let mut step = 0;
    while value % 1024 == 0 {
        value /= 1024;
        step += 1;
    }
    Some((value, SUFFIXES[step]))
}

/// `digits` × 10^`exponent`; the digits have no trailing zero unless they are `0`.
fn decimal_text(mut digits: String, exponent: i32, format: Format) -> String {
    if digits == "0" {
        return digits;
    }
    let largest = if format == Format::DecimalExponent { LARGEST_EXPONENT } else { LARGEST_LETTER };
    let padding = exponent.rem_euclid(3).max(exponent - largest);
    digits.extend(std::iter::repeat_n('0', padding as usize));
    let exponent = exponent - padding;
    if format == Format::DecimalExponent {
        if exponent != 0 {
            digits.push_str(&format!("e{exponent}"));
        }
    } else {
        digits.push_str(letter(exponent));
    }
    digits
}

fn letter(exponent: i32) -> &'static str {
    match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    }
}
