//! Query strings and percent-encoded path segments.

use crate::status::{ApiError, ApiResult};

/// The decoded parameters of a request, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Reads `a=1&b=2`; malformed escapes are kept as they are.
    pub(crate) fn parse(text: Option<&str>) -> Query {
        let pairs = text
            .unwrap_or_default()
            .split('&')
            .filter(|part| !part.is_empty())
            .map(|part| {
                let (key, value) = part.split_once('=').unwrap_or((part, ""));
                (decode(key, true), decode(value, true))
            })
            .collect();
        Query { pairs }
    }

    /// The first value given for `name`, `None` when absent or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.pairs.iter().find(|(key, _)| key == name)?;
        (!value.is_empty()).then_some(value.as_str())
    }

    /// Every value given for `name`.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether `name` is given at all, even empty.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.pairs.iter().any(|(key, _)| key == name)
    }

    /// A boolean as `meta/v1` converts it: present and neither `false` nor `0`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.optional_flag(name).unwrap_or(false)
    }

    /// A boolean that may be absent.
    pub(crate) fn optional_flag(&self, name: &str) -> Option<bool> {
        let (_, value) = self.pairs.iter().find(|(key, _)| key == name)?;
        Some(!matches!(value.to_ascii_lowercase().as_str(), "false" | "0"))
    }

    /// An unsigned integer that may be absent.
    pub(crate) fn number(&self, name: &str) -> ApiResult<Option<u64>> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match text.parse::<i64>() {
            Ok(number) if number >= 0 => Ok(Some(number.unsigned_abs())),
            _ => Err(ApiError::bad_request(format!("invalid value {text:?} for parameter {name}"))),
        }
    }
}

/// Decodes `%41` and, in queries, `+`.
pub(crate) fn decode(text: &str, plus_is_space: bool) -> String {
    if !text.bytes().any(|byte| byte == b'%' || byte == b'+') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let escaped = (bytes[index] == b'%')
            .then(|| bytes.get(index + 1..index + 3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(byte) => {
                decoded.push(byte);
                index += 3;
            }
            None => {
                decoded.push(if plus_is_space && bytes[index] == b'+' { b' ' } else { bytes[index] });
                index += 1;
            }
        }
    }
    String::from_utf8(decoded).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_once() {
        let query = Query::parse(Some("labelSelector=a%3Db%2Cc&watch&limit=5&dryRun=All&x=%zz"));
        assert_eq!(query.get("labelSelector"), Some("a=b,c"));
        assert!(query.flag("watch"));
        assert_eq!(query.number("limit").unwrap(), Some(5));
        assert_eq!(query.get("x"), Some("%zz"));
        assert!(Query::parse(Some("limit=-1")).number("limit").is_err());
        assert!(!Query::parse(Some("watch=false")).flag("watch"));
    }
}
