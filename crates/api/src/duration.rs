//! `Duration`: a span of time as manifests spell it, e.g. `90s` or `1h30m` (Gateway API GEP-2257).

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Up to four numbers of at most five digits, each with its unit.
pub(crate) const PATTERN: &str = "^([0-9]{1,5}(h|m|s|ms)){1,4}$";

/// A span of time in the syntax of GEP-2257: whole hours, minutes, seconds and milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Duration(String);

impl Duration {
    /// The span, or nothing if the text does not follow the syntax.
    pub fn to_std(&self) -> Option<std::time::Duration> {
        let mut rest = self.0.as_str();
        let mut milliseconds = 0u64;
        for terms in 0.. {
            if rest.is_empty() {
                return (terms > 0).then(|| std::time::Duration::from_millis(milliseconds));
            }
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if terms == 4 || !(1..=5).contains(&digits) {
                return None;
            }
            let (number, after) = rest.split_at(digits);
            let (unit, after) = unit(after)?;
            milliseconds += number.parse::<u64>().ok()? * unit;
            rest = after;
        }
        None
    }
}

impl From<&str> for Duration {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": PATTERN })
    }
}

/// The unit a text starts with, in milliseconds, and what follows it.
fn unit(text: &str) -> Option<(u64, &str)> {
    // `ms` before `m`, of which it is a longer form.
    [("ms", 1), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)]
        .into_iter()
        .find_map(|(suffix, milliseconds)| Some((milliseconds, text.strip_prefix(suffix)?)))
}

#[cfg(test)]
mod tests {
    use super::Duration;

    #[test]
    fn spans_follow_the_gateway_api_syntax() {
        for (text, expected) in [
            ("5s", Some(5_000)),
            ("1h30m", Some(5_400_000)),
            ("250ms", Some(250)),
            ("1m1ms", Some(60_001)),
            ("0s", Some(0)),
            ("", None),
            ("5", None),
            ("1.5s", None),
            ("-1s", None),
            ("100000s", None),
            ("1h1m1s1ms1s", None),
            ("5 s", None),
            ("5d", None),
        ] {
            let span = Duration::from(text).to_std();
            assert_eq!(span, expected.map(std::time::Duration::from_millis), "{text:?}");
        }
    }
}
