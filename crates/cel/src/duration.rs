//! Durations: signed 64-bit nanoseconds, Go's syntax, cel-go's overflow rules.
//!
//! Unlike there, a text whose terms add up to 2^64 nanoseconds or more never wraps around to a short duration.

use std::fmt;

use crate::numbers::shortest_decimal;

/// Nanoseconds in a second.
pub(crate) const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
/// Magnitude of the smallest duration in nanoseconds; the largest is one less.
const LIMIT: u64 = 1 << 63;

/// A span of time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(i64);

/// Why an operation on durations or timestamps has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// The text is not a duration.
    #[error("\"{text}\" is not a duration: {cause}")]
    Duration {
        /// The refused text, shortened.
        text: String,
        /// What is wrong with it.
        cause: &'static str,
    },
    /// The text is not an RFC 3339 timestamp.
    #[error("\"{text}\" is not an RFC 3339 timestamp: {cause}")]
    Timestamp {
        /// The refused text, shortened.
        text: String,
        /// What is wrong with it.
        cause: &'static str,
    },
    /// The text names no time zone and is no offset.
    #[error("\"{0}\" is not a time zone")]
    Zone(String),
    /// The result does not fit a duration.
    #[error("integer overflow")]
    DurationOverflow,
    /// The result lies outside the years 1 to 9999.
    #[error("timestamp overflow")]
    TimestampOverflow,
}

impl Duration {
    /// The duration of that many nanoseconds.
    pub const fn from_nanoseconds(nanoseconds: i64) -> Self {
        Self(nanoseconds)
    }

    /// The length in nanoseconds, which is also `int(duration)`.
    pub const fn nanoseconds(self) -> i64 {
        self.0
    }

    /// Reads signed decimal numbers with units, such as `-1.5h`, `300ms` or `1h15m`.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        parse(text)
            .map(Self)
            .map_err(|cause| TimeError::Duration { text: text.chars().take(64).collect(), cause })
    }

    /// The sum.
    pub fn checked_add(self, other: Self) -> Result<Self, TimeError> {
        self.0.checked_add(other.0).map(Self).ok_or(TimeError::DurationOverflow)
    }

    /// The difference.
    pub fn checked_sub(self, other: Self) -> Result<Self, TimeError> {
        self.0.checked_sub(other.0).map(Self).ok_or(TimeError::DurationOverflow)
    }

    /// The opposite.
    pub fn checked_neg(self) -> Result<Self, TimeError> {
        self.0.checked_neg().map(Self).ok_or(TimeError::DurationOverflow)
    }

    /// Whole hours.
    pub fn hours(self) -> i64 {
        self.whole(HOUR)
    }

    /// Whole minutes.
    pub fn minutes(self) -> i64 {
        self.whole(MINUTE)
    }

    /// Whole seconds.
    pub fn seconds(self) -> i64 {
        self.whole(SECOND)
    }

    /// Whole milliseconds.
    pub fn milliseconds(self) -> i64 {
        self.0 / 1_000_000
    }

    /// Goes through a double because the reference does, which shows just below a whole unit of very long durations.
    fn whole(self, unit: i64) -> i64 {
        self.in_units(unit) as i64
    }

    fn in_units(self, unit: i64) -> f64 {
        (self.0 / unit) as f64 + (self.0 % unit) as f64 / unit as f64
    }
}

impl fmt::Display for Duration {
    /// Seconds in decimal notation, `1.5s`, as `string(duration)` gives them.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}s", shortest_decimal(self.in_units(SECOND)))
    }
}

fn parse(text: &str) -> Result<i64, &'static str> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err("there is no number");
    }
    let mut total = 0u64;
    while !rest.is_empty() {
        let (term, behind) = parse_term(rest)?;
        total = total.checked_add(term).filter(|total| *total <= LIMIT).ok_or(TOO_LONG)?;
        rest = behind;
    }
    match (negative, total) {
        (true, LIMIT) => Ok(i64::MIN),
        (true, _) => Ok(-total.cast_signed()),
        (false, LIMIT) => Err(TOO_LONG),
        (false, _) => Ok(total.cast_signed()),
    }
}

const TOO_LONG: &str = "it is longer than 292 years";

/// Reads one number with its unit and returns its nanoseconds and what follows.
fn parse_term(text: &str) -> Result<(u64, &str), &'static str> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), digits);
    if whole.is_empty() && fraction.is_empty() {
        return Err("a number is missing");
    }
    let end = rest.find(|next: char| next == '.' || next.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let unit = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => SECOND.unsigned_abs(),
        "m" => MINUTE.unsigned_abs(),
        "h" => HOUR.unsigned_abs(),
        "" => return Err("a unit is missing"),
        _ => return Err("the units are h, m, s, ms, us and ns"),
    };
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().map_err(|_| TOO_LONG)? };
    let nanoseconds = whole
        .checked_mul(unit)
        .and_then(|nanoseconds| nanoseconds.checked_add(fraction_of(fraction, unit)))
        .filter(|nanoseconds| *nanoseconds <= LIMIT)
        .ok_or(TOO_LONG)?;
    Ok((nanoseconds, rest))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|next: char| !next.is_ascii_digit()).unwrap_or(text.len()))
}

/// A decimal fraction of a unit, rounded as Go does it: as many digits as 63 bits hold, in doubles, towards zero.
fn fraction_of(digits: &str, unit: u64) -> u64 {
    let mut value = 0u64;
    let mut scale = 1.0;
    for digit in digits.bytes() {
        if value > (LIMIT - 1) / 10 {
            break;
        }
        let next = value * 10 + u64::from(digit - b'0');
        if next > LIMIT {
            break;
        }
        value = next;
        scale *= 10.0;
    }
    if value == 0 { 0 } else { (value as f64 * (unit as f64 / scale)) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let cases = [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("1h15m30.918273645s", Some(4_530_918_273_645)),
            ("-1.5h", Some(-5_400_000_000_000)),
            (".5s", Some(500_000_000)),
            ("5.s", Some(5_000_000_000)),
            ("1µs1us1μs", Some(3_000)),
            ("9223372036854775807ns", Some(i64::MAX)),
            ("-9223372036854775808ns", Some(i64::MIN)),
            ("9223372036854775808ns", None),
            ("2562048h", None),
            ("0.9223372036854775808h", Some(3_320_413_933_267)),
            ("", None),
            ("-", None),
            ("3", None),
            (".s", None),
            ("1d", None),
            ("1 s", None),
            ("+-1s", None),
            ("1s-1s", None),
            ("99999999999999999999s", None),
        ];
        for (text, expected) in cases {
            assert_eq!(Duration::parse(text).ok().map(Duration::nanoseconds), expected, "{text}");
        }
    }

    #[test]
    fn durations_are_written_in_seconds() {
        let cases =
            [(0, "0s"), (1, "0.000000001s"), (-1_500_000_000, "-1.5s"), (i64::MAX, "9223372036.854776s")];
        for (nanoseconds, expected) in cases {
            assert_eq!(Duration::from_nanoseconds(nanoseconds).to_string(), expected);
        }
    }

    #[test]
    fn parts_are_totals_towards_zero() {
        let duration = Duration::parse("-1h59m59.9999s").expect("a duration");
        assert_eq!(
            (duration.hours(), duration.minutes(), duration.seconds(), duration.milliseconds()),
            (-1, -119, -7199, -7_199_999)
        );
    }

    #[test]
    fn arithmetic_beyond_64_bits_is_an_error() {
        let (smallest, one) = (Duration::from_nanoseconds(i64::MIN), Duration::from_nanoseconds(1));
        assert_eq!(smallest.checked_sub(one), Err(TimeError::DurationOverflow));
        assert_eq!(smallest.checked_neg(), Err(TimeError::DurationOverflow));
        assert_eq!(one.checked_add(one), Ok(Duration::from_nanoseconds(2)));
    }
}
