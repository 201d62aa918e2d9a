//! Values as the messages of an API server show them.
//!
//! Go's `%v` of numbers, `%q` of texts and `encoding/json` with sorted keys, because users compare and grep messages.

use std::fmt::Write;

use serde_json::{Number, Value};

/// A value in a message: numbers and bools bare, texts quoted, the rest as JSON.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(number) => shown_number(number),
        Value::Bool(flag) => flag.to_string(),
        other => go_json(other),
    }
}

/// A number as `%v` shows it.
pub(crate) fn shown_number(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => integer.to_string(),
        (None, Some(float)) => shown_float(float),
        (None, None) => number.to_string(),
    }
}

/// A float as `%v` shows it: with an exponent from 1e+06 on and below 1e-04.
pub(crate) fn shown_float(float: f64) -> String {
    let magnitude = float.abs();
    if magnitude != 0.0 && !(1e-4..1e6).contains(&magnitude) {
        return with_exponent(float, 2);
    }
    float.to_string()
}

/// The shortest digits with a signed exponent of at least so many digits.
fn with_exponent(float: f64, width: usize) -> String {
    let text = format!("{float:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>width$}")
}

/// A text as `%q` shows it.
pub(crate) fn quoted(text: &str) -> String {
    let mut output = String::with_capacity(text.len() + 2);
    output.push('"');
    for character in text.chars() {
        match character {
            '"' => output.push_str("\\\""),
            '\\' => output.push_str("\\\\"),
            '\u{7}' => output.push_str("\\a"),
            '\u{8}' => output.push_str("\\b"),
            '\u{c}' => output.push_str("\\f"),
            '\n' => output.push_str("\\n"),
            '\r' => output.push_str("\\r"),
            '\t' => output.push_str("\\t"),
            '\u{b}' => output.push_str("\\v"),
            control if control.is_ascii_control() => {
                escape(&mut output, format_args!("\\x{:02x}", u32::from(control)))
            }
            control if control.is_control() || is_blank(control) => {
                escape(&mut output, format_args!("\\u{:04x}", u32::from(control)));
            }
            other => output.push(other),
        }
    }
    output.push('"');
    output
}

fn is_blank(character: char) -> bool {
    character != ' ' && character.is_whitespace()
}

fn escape(output: &mut String, escaped: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = output.write_fmt(escaped);
}

/// A value as `encoding/json` writes it: keys sorted, `<`, `>` and `&` escaped.
pub(crate) fn go_json(value: &Value) -> String {
    let mut output = String::new();
    write_json(&mut output, value);
    output
}

fn write_json(output: &mut String, value: &Value) {
    match value {
        Value::Null => output.push_str("null"),
        Value::Bool(flag) => output.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (None, Some(float)) if float == 0.0 || (1e-6..1e21).contains(&float.abs()) => {
                escape(output, format_args!("{float}"));
            }
            (None, Some(float)) => output.push_str(&with_exponent(float, 1)),
            _ => escape(output, format_args!("{number}")),
        },
        Value::String(text) => write_text(output, text),
        Value::Array(items) => {
            output.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    output.push(',');
                }
                write_json(output, item);
            }
            output.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            output.push('{');
            for (index, (name, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    output.push(',');
                }
                write_text(output, name);
                output.push(':');
                write_json(output, value);
            }
            output.push('}');
        }
    }
}

fn write_text(output: &mut String, text: &str) {
    output.push('"');
    for character in text.chars() {
        match character {
            '"' => output.push_str("\\\""),
            '\\' => output.push_str("\\\\"),
            '\n' => output.push_str("\\n"),
            '\r' => output.push_str("\\r"),
            '\t' => output.push_str("\\t"),
            '\u{8}' => output.push_str("\\b"),
            '\u{c}' => output.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                escape(output, format_args!("\\u{:04x}", u32::from(character)));
            }
            other => output.push(other),
        }
    }
    output.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_look_as_go_shows_them() {
        for (value, expected) in [
            (json!(5), "5"),
            (json!(1.5), "1.5"),
            (json!(2.0), "2"),
            (json!(1e6), "1e+06"),
            (json!(1234567.5), "1.2345675e+06"),
            (json!(0.00001), "1e-05"),
            (json!("a\"\n\u{1}é"), r#""a\"\n\x01é""#),
            (json!(null), "null"),
            (json!({"b": [1.0, 1e-7], "a": "<&>"}), r#"{"a":"\u003c\u0026\u003e","b":[1,1e-7]}"#),
        ] {
            assert_eq!(shown(&value), expected, "{value}");
        }
    }
}
