//! Reading quantities: the grammar and the choice of the form, `spec/cel.md` §5.2 and §5.3.

use super::natural::Natural;
use super::{Big, Format, Quantity, QuantityError, Scaled, Verbatim};

/// Largest magnitude of an exponent that is read.
pub(super) const EXPONENT_LIMIT: i64 = 10_000;
/// Digits that always fit a signed 64-bit integer.
const SCALED_DIGITS: usize = 18;
/// Decimal places that a quantity keeps.
pub(super) const PLACES: i32 = 9;
/// Units of 10^−9 in 1.
const NANOS: i128 = 1_000_000_000;
/// Largest magnitude that a binary suffix can express.
const BINARY_LIMIT: u64 = i64::MAX as u64;

/// What a suffix multiplies by.
#[derive(Clone, Copy)]
enum Suffix {
    /// 10^exponent, written with a letter or nothing.
    Decimal(i32),
    /// 10^exponent, written as such.
    Exponent(i32),
    /// 2^exponent, and the most integer digits for which the scaled-integer form is used.
    Binary(u32, Option<usize>),
}

/// The parts of a quantity's text.
struct Parts<'text> {
    negative: bool,
    /// Integer digits without leading zeros; may be empty.
    integer: &'text [u8],
    /// Digits after the point; may be empty.
    fraction: &'text [u8],
    /// Whether there is any digit, leading zeros included.
    has_digits: bool,
    /// Whether the number is written the way this crate would write it: no `+`, leading zero or point.
    is_plain: bool,
    suffix: &'text str,
}

pub(super) fn parse(text: &str) -> Result<Quantity, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Empty);
    }
    let parts = split(text);
    match read_suffix(text, parts.suffix)? {
        Suffix::Decimal(exponent) => parse_decimal(text, &parts, exponent, Format::DecimalSi),
        Suffix::Exponent(exponent) => parse_decimal(text, &parts, exponent, Format::DecimalExponent),
        Suffix::Binary(power, scaled_digits) => parse_binary(text, &parts, power, scaled_digits),
    }
}

fn split(text: &str) -> Parts<'_> {
    let bytes = text.as_bytes();
    let signs = usize::from(matches!(bytes[0], b'+' | b'-'));
    let zeros = run(&bytes[signs..], |byte| byte == b'0');
    let integer_start = signs + zeros;
    let integer_end = integer_start + run(&bytes[integer_start..], |byte| byte.is_ascii_digit());
    let has_point = bytes.get(integer_end) == Some(&b'.');
    let fraction_start = integer_end + usize::from(has_point);
    let fraction_length =
        if has_point { run(&bytes[fraction_start..], |byte| byte.is_ascii_digit()) } else { 0 };
    let suffix_start = fraction_start + fraction_length;
    let integer = &bytes[integer_start..integer_end];
    Parts {
        negative: bytes[0] == b'-',
        integer,
        fraction: &bytes[fraction_start..suffix_start],
        has_digits: zeros + integer.len() + fraction_length > 0,
        is_plain: bytes[0] != b'+' && zeros == 0 && !has_point,
        suffix: &text[suffix_start..],
    }
}

fn run(bytes: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !belongs(*byte)).unwrap_or(bytes.len())
}

fn read_suffix(text: &str, suffix: &str) -> Result<Suffix, QuantityError> {
    Ok(match suffix {
        "" => Suffix::Decimal(0),
        "n" => Suffix::Decimal(-9),
        "u" => Suffix::Decimal(-6),
        "m" => Suffix::Decimal(-3),
        "k" => Suffix::Decimal(3),
        "M" => Suffix::Decimal(6),
        "G" => Suffix::Decimal(9),
        "T" => Suffix::Decimal(12),
        "P" => Suffix::Decimal(15),
        "E" => Suffix::Decimal(18),
        "Ki" => Suffix::Binary(10, Some(11)),
        "Mi" => Suffix::Binary(20, Some(8)),
        "Gi" => Suffix::Binary(30, Some(5)),
        "Ti" => Suffix::Binary(40, Some(2)),
        "Pi" => Suffix::Binary(50, None),
        "Ei" => Suffix::Binary(60, None),
        _ => return read_exponent(text, suffix).map(Suffix::Exponent),
    })
}

fn read_exponent(text: &str, suffix: &str) -> Result<i32, QuantityError> {
    let unknown = || QuantityError::unknown_suffix(text, suffix);
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or_else(unknown)?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(unknown());
    }
    exponent
        .parse::<i32>()
        .ok()
        .filter(|exponent| i64::from(*exponent).abs() <= EXPONENT_LIMIT)
        .ok_or_else(|| QuantityError::exponent_out_of_range(text))
}

fn parse_decimal(
    text: &str,
    parts: &Parts<'_>,
    exponent: i32,
    format: Format,
) -> Result<Quantity, QuantityError> {
    // Kubernetes counts a missing integer part as one digit.
    let digits = parts.integer.len().max(1) + parts.fraction.len();
    if digits <= SCALED_DIGITS {
        let scale = exponent - parts.fraction.len() as i32;
        if scale >= -PLACES {
            let scaled = Scaled { value: small_value(parts), scale, format };
            return Ok(scaled_quantity(scaled, keeps_decimal_text(parts, scale), text, parts));
        }
    }
    let (number, places) = whole_number(text, parts)?;
    Ok(big_quantity(parts.negative, number, places - i64::from(exponent), format))
}

fn parse_binary(
    text: &str,
    parts: &Parts<'_>,
    power: u32,
    scaled_digits: Option<usize>,
) -> Result<Quantity, QuantityError> {
    let is_scaled =
        parts.fraction.is_empty() && scaled_digits.is_some_and(|most| parts.integer.len().max(1) <= most);
    if is_scaled {
        let value = small_value(parts);
        let scaled = Scaled { value: value << power, scale: 0, format: Format::BinarySi };
        return Ok(scaled_quantity(scaled, value & 7 != 0, text, parts));
    }
    let (number, places) = whole_number(text, parts)?;
    let number = number.times(1 << power);
    let big = big(parts.negative, number, places, Format::BinarySi);
    // Whatever does not fit 128 bits lies above the cap, too.
    let nanos = big.nanos.to_small().unwrap_or(i128::MAX);
    Ok(Quantity::big(if nanos > i128::from(BINARY_LIMIT) * NANOS {
        let nanos = Natural::from_u64(BINARY_LIMIT).shifted_up(PLACES as usize);
        Big { nanos, scale: 0, ..big }
    } else {
        let format = if 0 < nanos && nanos < NANOS { Format::DecimalSi } else { Format::BinarySi };
        Big { format, ..big }
    }))
}

/// The signed value of at most 18 digits, the point ignored.
fn small_value(parts: &Parts<'_>) -> i64 {
    let value = parts
        .integer
        .iter()
        .chain(parts.fraction)
        .fold(0i64, |value, digit| value * 10 + i64::from(digit - b'0'));
    if parts.negative { -value } else { value }
}

/// The value of all digits, the point ignored, and how many of them stand behind the point.
fn whole_number(text: &str, parts: &Parts<'_>) -> Result<(Natural, i64), QuantityError> {
    if !parts.has_digits {
        return Err(QuantityError::no_digits(text));
    }
    let number = if parts.fraction.is_empty() {
        Natural::from_digits(parts.integer)
    } else {
        Natural::from_digits(&[parts.integer, parts.fraction].concat())
    };
    let places = i64::try_from(parts.fraction.len()).unwrap_or(i64::MAX / 2);
    Ok((number, places))
}

/// Whether Kubernetes writes a decimal quantity back as it was read instead of computing its text.
fn keeps_decimal_text(parts: &Parts<'_>, scale: i32) -> bool {
    let mut backwards = parts.integer.iter().chain(parts.fraction).rev();
    let ends_in_three_zeros = (0..3).all(|_| backwards.next() == Some(&b'0'));
    scale % 3 == 0 && !ends_in_three_zeros && !parts.integer.is_empty()
}

fn scaled_quantity(scaled: Scaled, keeps_text: bool, text: &str, parts: &Parts<'_>) -> Quantity {
    if keeps_text && !(parts.is_plain && has_plain_suffix(parts.suffix, scaled)) {
        Quantity::verbatim(Verbatim { scaled, text: text.into() })
    } else {
        Quantity::scaled(scaled)
    }
}

/// Whether an exponent is written the way this crate would write it; always so for a letter.
fn has_plain_suffix(suffix: &str, scaled: Scaled) -> bool {
    scaled.format != Format::DecimalExponent
        || matches!(suffix.as_bytes(), [b'e', b'1'..=b'9', ..] | [b'e', b'-', b'1'..=b'9', ..])
}

fn big_quantity(negative: bool, number: Natural, places: i64, format: Format) -> Quantity {
    Quantity::big(big(negative, number, places, format))
}

/// `number` × 10^−`places`, rounded away from zero to a multiple of 10^−9.
fn big(negative: bool, number: Natural, places: i64, format: Format) -> Big {
    if number.is_zero() {
        let scale = places.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        return Big { negative: false, nanos: number, scale, format };
    }
    let shift = i64::from(PLACES) - places;
    let distance = usize::try_from(shift.unsigned_abs()).unwrap_or(usize::MAX);
    let nanos = if shift >= 0 {
        number.shifted_up(distance)
    } else {
        let (quotient, exact) = number.shifted_down(distance);
        if exact { quotient } else { quotient.plus(&Natural::from_u64(1)) }
    };
    Big { negative, nanos, scale: PLACES, format }
}
