//! Numbers as texts and as numbers of other types: Go's `strconv` syntax and cel-go's range rules.

use std::borrow::Cow;
use std::num::FpCategory;

/// Why a conversion has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// The value does not fit an int.
    #[error("integer overflow")]
    IntOverflow,
    /// The value does not fit a uint.
    #[error("unsigned integer overflow")]
    UintOverflow,
    /// The text does not write a value of the type.
    #[error("\"{text}\" is not a {kind}")]
    Malformed {
        /// The refused text, shortened.
        text: String,
        /// The type's name.
        kind: &'static str,
    },
}

impl NumberError {
    fn malformed(text: &str, kind: &'static str) -> Self {
        Self::Malformed { text: text.chars().take(64).collect(), kind }
    }
}

/// `int(string)`: an optional sign and digits.
pub fn parse_int(text: &str) -> Result<i64, NumberError> {
    text.parse().map_err(|_| NumberError::malformed(text, "int"))
}

/// `uint(string)`: digits only.
pub fn parse_uint(text: &str) -> Result<u64, NumberError> {
    let has_sign = text.starts_with('+');
    text.parse().ok().filter(|_| !has_sign).ok_or_else(|| NumberError::malformed(text, "uint"))
}

/// `bool(string)`: `true`, `True`, `TRUE`, `t`, `T`, `1` and their opposites.
pub fn parse_bool(text: &str) -> Result<bool, NumberError> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(NumberError::malformed(text, "bool")),
    }
}

/// `double(string)`: decimal or hexadecimal floating-point notation, infinities and NaN; out of range is an error.
/// As in Go, single underscores may stand between digits.
pub fn parse_double(text: &str) -> Result<f64, NumberError> {
    let malformed = || NumberError::malformed(text, "double");
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if unsigned.eq_ignore_ascii_case("inf") || unsigned.eq_ignore_ascii_case("infinity") {
        return Ok(if negative { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    if text.eq_ignore_ascii_case("nan") {
        return Ok(f64::NAN);
    }
    let unseparated = without_underscores(unsigned).ok_or_else(malformed)?;
    let is_number = unseparated.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    let magnitude = match hexadecimal_digits(&unseparated) {
        Some(digits) => parse_hexadecimal(digits),
        None if is_number => unseparated.parse().ok(),
        None => None,
    };
    let magnitude = magnitude.filter(|magnitude: &f64| magnitude.is_finite()).ok_or_else(malformed)?;
    Ok(if negative { -magnitude } else { magnitude })
}

fn hexadecimal_digits(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

/// The text without underscores, if each stands between two digits or a hexadecimal prefix and a digit.
fn without_underscores(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('_') {
        return Some(Cow::Borrowed(text));
    }
    let is_hexadecimal = hexadecimal_digits(text).is_some();
    let is_digit = |byte: u8| if is_hexadecimal { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() };
    let bytes = text.as_bytes();
    let separates = |place: usize| {
        let behind_prefix = is_hexadecimal && place == 2;
        place > 0
            && (behind_prefix || is_digit(bytes[place - 1]))
            && bytes.get(place + 1).is_some_and(|next| is_digit(*next))
    };
    text.match_indices('_').all(|(place, _)| separates(place)).then(|| Cow::Owned(text.replace('_', "")))
}

/// The magnitude of `h.hhh…p±d`, rounded to the nearest double, ties to even; infinite if too large.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once(['p', 'P'])?;
    let mut significand = Significand::default();
    for character in digits.chars() {
        if character == '.' && !significand.has_point {
            significand.has_point = true;
        } else {
            significand.push(character.to_digit(16)?);
        }
    }
    let exponent_digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let is_exponent =
        !exponent_digits.is_empty() && exponent_digits.bytes().all(|byte| byte.is_ascii_digit());
    if !significand.has_digits || !is_exponent {
        return None;
    }
    // Beyond this the result is 0 or infinite for every text that fits memory.
    let magnitude = exponent_digits.parse::<i64>().unwrap_or(i64::MAX).min(1 << 40);
    let exponent = if exponent.starts_with('-') { -magnitude } else { magnitude };
    Some(significand.scaled(exponent))
}

/// The digits of a hexadecimal number: at most 60 bits, and whether anything was dropped behind them.
#[derive(Default)]
struct Significand {
    bits: u64,
    exponent: i64,
    has_point: bool,
    has_digits: bool,
    is_inexact: bool,
}

impl Significand {
    fn push(&mut self, digit: u32) {
        self.has_digits = true;
        if self.bits >> 56 == 0 {
            self.bits = self.bits << 4 | u64::from(digit);
            self.exponent -= if self.has_point { 4 } else { 0 };
        } else {
            self.is_inexact |= digit != 0;
            self.exponent += if self.has_point { 0 } else { 4 };
        }
    }

    /// The value times 2^`exponent`, rounded once.
    fn scaled(&self, exponent: i64) -> f64 {
        if self.bits == 0 {
            return 0.0;
        }
        // The value is `bits` × 2^`exponent` with the top bit of `bits` at 63.
        let shift = self.bits.leading_zeros();
        let bits = self.bits << shift;
        let exponent = self.exponent + exponent - i64::from(shift);
        // Doubles have 53 bits, fewer below 2^-1022; their smallest bit is 2^-1074.
        let dropped = (-1074 - exponent).max(11);
        if dropped > 64 {
            return 0.0;
        }
        let wide = u128::from(bits) << 64 | u128::from(self.is_inexact);
        let kept = (u128::from(bits) >> dropped) as u64;
        let rest = wide << (64 - dropped);
        let half = 1 << 127;
        let round_up = rest > half || (rest == half && kept & 1 == 1);
        let kept = kept + u64::from(round_up);
        let exponent = exponent + dropped;
        if exponent > 971 {
            return f64::INFINITY;
        }
        // Adding to the exponent field carries a rounded-up significand over into the next power of two.
        let field = (exponent + 1074) as u64;
        let bits = if kept >> 52 == 0 { kept } else { kept + (field << 52) };
        f64::from_bits(bits)
    }
}

/// `string(double)`: the shortest decimal that reads back as the same value, as Go's `%g` writes it.
pub fn double_to_string(value: f64) -> String {
    match value.classify() {
        FpCategory::Nan => return "NaN".to_owned(),
        FpCategory::Infinite if value > 0.0 => return "+Inf".to_owned(),
        FpCategory::Infinite => return "-Inf".to_owned(),
        _ => {}
    }
    let scientific = format!("{value:e}");
    let Some((significand, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return shortest_decimal(value);
    }
    // Rust and Go agree on how many digits are needed, but only exact formatting breaks ties to even as Go does.
    let places = significand.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let rounded = format!("{value:.places$e}");
    let significand = rounded.split_once('e').map_or(significand, |(significand, _)| significand);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{significand}e{sign}{:02}", exponent.unsigned_abs())
}

/// The shortest decimal without exponent that reads back as the same value, for magnitudes below 2^53.
pub(crate) fn shortest_decimal(value: f64) -> String {
    let shortest = value.to_string();
    let places = shortest.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    format!("{value:.places$}")
}

/// `int(double)`: towards zero; the two ends of the range are excluded, as in cel-go.
pub fn double_to_int(value: f64) -> Result<i64, NumberError> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if value > -LIMIT && value < LIMIT { Ok(value as i64) } else { Err(NumberError::IntOverflow) }
}

/// `uint(double)`: towards zero.
pub fn double_to_uint(value: f64) -> Result<u64, NumberError> {
    const LIMIT: f64 = 18_446_744_073_709_551_616.0;
    if (0.0..LIMIT).contains(&value) { Ok(value as u64) } else { Err(NumberError::UintOverflow) }
}

/// `uint(int)`.
pub fn int_to_uint(value: i64) -> Result<u64, NumberError> {
    u64::try_from(value).map_err(|_| NumberError::UintOverflow)
}

/// `int(uint)`.
pub fn uint_to_int(value: u64) -> Result<i64, NumberError> {
    i64::try_from(value).map_err(|_| NumberError::IntOverflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_read_as_go_reads_them() {
        let cases = [
            ("1.5", Some(1.5)),
            ("+.5e1", Some(5.0)),
            ("5.", Some(5.0)),
            ("1e-400", Some(0.0)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("INF", Some(f64::INFINITY)),
            ("0x1p-2", Some(0.25)),
            ("0X1.8P1", Some(3.0)),
            ("0x_1_fp0", Some(31.0)),
            ("0x1p-1074", Some(5e-324)),
            ("0x1p-1075", Some(0.0)),
            ("0x1.8p-1075", Some(5e-324)),
            ("0x1.fffffffffffff7fffffffffp0", Some(1.999_999_999_999_999_8)),
            ("0x1.fffffffffffff8p0", Some(2.0)),
            ("0x1p1024", None),
            ("1e400", None),
            ("0x1", None),
            ("0xp1", None),
            ("1_0", Some(10.0)),
            ("1__0", None),
            ("_1", None),
            ("0x1_p0", None),
            ("+nan", None),
            ("", None),
            (".", None),
            ("e5", None),
            (" 1", None),
            ("infinit", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_double(text).ok(), expected, "{text}");
        }
        assert!(parse_double("nAn").is_ok_and(f64::is_nan));
        assert!(parse_double("-0").is_ok_and(|zero| zero.is_sign_negative()));
    }

    #[test]
    fn doubles_are_written_as_go_writes_them() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (100_000.0, "100000"),
            (1e6, "1e+06"),
            (f64::from_bits(0x4310_33f7_d546_b46d), "1.1401847888724752e+15"),
            (123_456_789.0, "1.23456789e+08"),
            (123_456.5, "123456.5"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e100, "1e+100"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        ];
        for (value, expected) in cases {
            assert_eq!(double_to_string(value), expected);
        }
    }

    #[test]
    fn integers_are_read_without_underscores_and_within_their_range() {
        let ints = [
            ("+5", Some(5)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("1_0", None),
            ("0x1", None),
            ("", None),
        ];
        for (text, expected) in ints {
            assert_eq!(parse_int(text).ok(), expected, "{text}");
        }
        let uints = [
            ("5", Some(5)),
            ("18446744073709551615", Some(u64::MAX)),
            ("+5", None),
            ("-0", None),
            ("", None),
        ];
        for (text, expected) in uints {
            assert_eq!(parse_uint(text).ok(), expected, "{text}");
        }
        assert_eq!(parse_bool("T"), Ok(true));
        assert_eq!(
            parse_bool("tRUE").map_err(|error| error.to_string()),
            Err("\"tRUE\" is not a bool".to_owned())
        );
    }

    #[test]
    fn conversions_outside_the_range_are_errors() {
        assert_eq!(double_to_int(-1.9), Ok(-1));
        assert_eq!(double_to_int(-9_223_372_036_854_775_808.0), Err(NumberError::IntOverflow));
        assert_eq!(double_to_int(f64::NAN), Err(NumberError::IntOverflow));
        assert_eq!(double_to_uint(-0.5), Err(NumberError::UintOverflow));
        assert_eq!(double_to_uint(1.8e19), Ok(18_000_000_000_000_000_000));
        assert_eq!(int_to_uint(-1), Err(NumberError::UintOverflow));
        assert_eq!(uint_to_int(u64::MAX), Err(NumberError::IntOverflow));
    }
}
