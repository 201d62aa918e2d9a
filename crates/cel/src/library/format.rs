//! `string.format(list)`: the clauses `%s %d %f %e %b %x %X %o`.

use crate::eval::{Budget, Exhausted, List, Value};
use crate::numbers;

/// The precision of `%f` and `%e` without one.
const DEFAULT_PRECISION: u32 = 6;
/// A larger precision is refused; it could only produce zeros.
const MAXIMUM_PRECISION: u32 = 1000;

/// A part of a format string.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Piece<'f> {
    Text(&'f str),
    Clause(Clause),
}

/// How an argument is rendered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Clause {
    Text,
    Decimal,
    Fixed(Option<u32>),
    Scientific(Option<u32>),
    Binary,
    Hexadecimal { upper: bool },
    Octal,
}

/// The parts of a format string in order; a malformed clause ends them.
pub(crate) fn pieces(format: &str) -> impl Iterator<Item = Result<Piece<'_>, String>> {
    let mut rest = format;
    std::iter::from_fn(move || {
        let position = match rest.find('%') {
            _ if rest.is_empty() => return None,
            Some(0) => {
                let (piece, tail) = match clause(&rest[1..]) {
                    Ok((piece, length)) => (Ok(piece), &rest[1 + length..]),
                    Err(error) => (Err(error), ""),
                };
                rest = tail;
                return Some(piece);
            }
            position => position.unwrap_or(rest.len()),
        };
        let (text, tail) = rest.split_at(position);
        rest = tail;
        Some(Ok(Piece::Text(text)))
    })
}

fn clause(text: &str) -> Result<(Piece<'_>, usize), String> {
    if text.starts_with('%') {
        return Ok((Piece::Text("%"), 1));
    }
    let mut length = 0;
    let mut precision = None;
    if let Some(digits) = text.strip_prefix('.') {
        let count = digits.bytes().take_while(u8::is_ascii_digit).count();
        let value = digits[..count].parse().ok().filter(|value| *value <= MAXIMUM_PRECISION);
        precision =
            Some(value.ok_or_else(|| format!("the precision {:?} is not supported", &digits[..count]))?);
        length = count + 1;
    }
    let Some(letter) = text[length..].chars().next() else {
        return Err("the format ends in a clause".to_owned());
    };
    let clause = match letter {
        's' => Clause::Text,
        'd' => Clause::Decimal,
        'f' => Clause::Fixed(precision),
        'e' => Clause::Scientific(precision),
        'b' => Clause::Binary,
        'x' => Clause::Hexadecimal { upper: false },
        'X' => Clause::Hexadecimal { upper: true },
        'o' => Clause::Octal,
        other => return Err(format!("%{other} is not a format clause")),
    };
    Ok((Piece::Clause(clause), length + 1))
}

/// Renders a format string.
pub(super) fn format<'a>(
    text: &str,
    arguments: &List<'a>,
    budget: &mut Budget,
) -> Result<Value<'a>, Exhausted> {
    let mut output = String::new();
    let mut next = 0;
    for piece in pieces(text) {
        let clause = match piece {
            Ok(Piece::Text(text)) => {
                output.push_str(text);
                continue;
            }
            Ok(Piece::Clause(clause)) => clause,
            Err(error) => return Ok(Value::message(error)),
        };
        let Some(argument) = arguments.get(next) else {
            return Ok(Value::message(format!("the format has no argument {next}")));
        };
        next += 1;
        let before = output.len();
        if let Err(failure) = render(&mut output, clause, &argument, budget) {
            return match failure {
                Failure::Refused(error) => Ok(Value::message(error)),
                Failure::Exhausted(exhausted) => Err(exhausted),
            };
        }
        budget.work((output.len() - before) / 4 + 1)?;
    }
    Ok(Value::text(output))
}

/// Why a value cannot be rendered.
enum Failure {
    Refused(String),
    Exhausted(Exhausted),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Failure::Refused(message)
    }
}

fn render(
    output: &mut String,
    clause: Clause,
    value: &Value<'_>,
    budget: &mut Budget,
) -> Result<(), Failure> {
    let refused = || {
        Err(Failure::from(format!("this format clause cannot render a value of type {}", value.type_name())))
    };
    match (clause, value) {
        (Clause::Text, value) => return plain(output, value, budget),
        (Clause::Decimal, Value::Int(value)) => output.push_str(&value.to_string()),
        (Clause::Decimal, Value::Uint(value)) => output.push_str(&value.to_string()),
        (Clause::Fixed(precision), value) => match double(value) {
            Some(number) => output.push_str(&fixed(number, precision)),
            None => return refused(),
        },
        (Clause::Scientific(precision), value) => match double(value) {
            Some(number) => output.push_str(&scientific(number, precision)),
            None => return refused(),
        },
        (Clause::Binary, Value::Bool(value)) => output.push(if *value { '1' } else { '0' }),
        (Clause::Binary, Value::Int(value)) => signed(output, *value, |value| format!("{value:b}")),
        (Clause::Binary, Value::Uint(value)) => output.push_str(&format!("{value:b}")),
        (Clause::Octal, Value::Int(value)) => signed(output, *value, |value| format!("{value:o}")),
        (Clause::Octal, Value::Uint(value)) => output.push_str(&format!("{value:o}")),
        (Clause::Hexadecimal { upper }, value) => {
            let digits = match value {
                Value::Int(value) => {
                    let sign = if *value < 0 { "-" } else { "" };
                    format!("{sign}{:x}", value.unsigned_abs())
                }
                Value::Uint(value) => format!("{value:x}"),
                Value::String(text) => hexadecimal(text.as_str().as_bytes()),
                Value::Bytes(bytes) => hexadecimal(bytes),
                _ => return refused(),
            };
            output.push_str(&if upper { digits.to_ascii_uppercase() } else { digits });
        }
        _ => return refused(),
    }
    Ok(())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn signed(output: &mut String, value: i64, digits: impl Fn(u64) -> String) {
    if value < 0 {
        output.push('-');
    }
    output.push_str(&digits(value.unsigned_abs()));
}

fn double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(value) => Some(*value),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// Infinities and NaN as the locale-aware printer of Kubernetes writes them.
fn special(number: f64) -> Option<String> {
    if number.is_nan() {
        return Some("NaN".to_owned());
    }
    number.is_infinite().then(|| if number > 0.0 { "∞" } else { "-∞" }.to_owned())
}

fn fixed(number: f64, precision: Option<u32>) -> String {
    if let Some(text) = special(number) {
        return text;
    }
    let digits = format!("{:.*}", precision.unwrap_or(DEFAULT_PRECISION) as usize, number.abs());
    let (whole, fraction) = digits.split_once('.').map_or((digits.as_str(), None), |(a, b)| (a, Some(b)));
    let mut text = String::from(if number.is_sign_negative() { "-" } else { "" });
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(fraction) = fraction {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

fn scientific(number: f64, precision: Option<u32>) -> String {
    if let Some(text) = special(number) {
        return text;
    }
    let digits = format!("{:.*e}", precision.unwrap_or(DEFAULT_PRECISION) as usize, number);
    let (mantissa, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { "\u{207b}" } else { "" };
    // The printer writes exponents as superscripts, with two digits at least.
    const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let power: String = format!("{:02}", exponent.abs())
        .bytes()
        .map(|digit| SUPERSCRIPTS[usize::from(digit - b'0')])
        .collect();
    format!("{mantissa}×10{sign}{power}")
}

/// `%s`.
fn plain(output: &mut String, value: &Value<'_>, budget: &mut Budget) -> Result<(), Failure> {
    match value {
        Value::Null => output.push_str("null"),
        Value::Bool(value) => output.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => output.push_str(&value.to_string()),
        Value::Uint(value) => output.push_str(&value.to_string()),
        Value::Double(value) => output.push_str(&numbers::double_to_string(*value)),
        Value::String(text) => output.push_str(text.as_str()),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => output.push_str(text),
            Err(_) => return Err("the bytes are not a text".to_owned().into()),
        },
        Value::Timestamp(value) => output.push_str(&value.to_string()),
        Value::Duration(value) => output.push_str(&value.to_string()),
        Value::Type(name) => output.push_str(name),
        Value::List(_) | Value::Map(_) => return nested(output, value, budget),
        other => return Err(format!("%s cannot render a value of type {}", other.type_name()).into()),
    }
    Ok(())
}

/// A value inside a list or map: texts are quoted, times are written as calls.
fn nested(output: &mut String, value: &Value<'_>, budget: &mut Budget) -> Result<(), Failure> {
    budget.work(4).map_err(Failure::Exhausted)?;
    match value {
        Value::String(text) => output.push_str(&go_quoted(text.as_str())),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => output.push_str(&format!("b{}", go_quoted(text))),
            Err(_) => return Err("the bytes are not a text".to_owned().into()),
        },
        Value::Double(value) if value.is_finite() => output.push_str(&format!("{value:.6}")),
        Value::Double(value) if value.is_nan() => output.push_str("\"NaN\""),
        Value::Double(value) => output.push_str(if *value > 0.0 { "\"+Inf\"" } else { "\"-Inf\"" }),
        Value::Timestamp(value) => output.push_str(&format!("timestamp(\"{value}\")")),
        Value::Duration(value) => output.push_str(&format!("duration(\"{value}\")")),
        Value::List(list) => {
            output.push('[');
            for (index, element) in list.iter().enumerate() {
                if index > 0 {
                    output.push_str(", ");
                }
                nested(output, &element, budget)?;
            }
            output.push(']');
        }
        Value::Map(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for key in map.keys() {
                let mut shown = String::new();
                match &key {
                    Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_) => {
                        nested(&mut shown, &key, budget)?
                    }
                    other => {
                        return Err(
                            format!("%s cannot render a map key of type {}", other.type_name()).into()
                        );
                    }
                }
                entries.push((shown, key));
            }
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            output.push('{');
            for (index, (shown, key)) in entries.iter().enumerate() {
                if index > 0 {
                    output.push_str(", ");
                }
                output.push_str(shown);
                output.push(':');
                if let Some(value) = map.find(key) {
                    nested(output, &value, budget)?;
                }
            }
            output.push('}');
        }
        other => return plain(output, other, budget),
    }
    Ok(())
}

/// A text as Go's `%q` writes it.
fn go_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            control if control.is_ascii_control() => {
                quoted.push_str(&format!("\\x{:02x}", u32::from(control)))
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
