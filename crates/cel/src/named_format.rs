//! The Kubernetes `format` library: named formats and what is wrong with a text that should have one.
//!
//! Which texts are accepted, and how many errors the others get, follows Kubernetes 1.36; the wording is this crate's.

use crate::net::Url;
use crate::timestamp;

/// A format with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NamedFormat {
    /// `dns1123Label`: lower-case letters, digits and inner hyphens, at most 63.
    Dns1123Label,
    /// `dns1123Subdomain`: such labels with dots in between, at most 253 characters.
    Dns1123Subdomain,
    /// `dns1035Label`: like `dns1123Label`, starting with a letter.
    Dns1035Label,
    /// `qualifiedName`: a label key, with or without a subdomain and a slash in front.
    QualifiedName,
    /// `dns1123LabelPrefix`: the start of a label; may end with a hyphen.
    Dns1123LabelPrefix,
    /// `dns1123SubdomainPrefix`: the start of a subdomain; may end with a hyphen.
    Dns1123SubdomainPrefix,
    /// `dns1035LabelPrefix`: the start of a label; may end with a hyphen.
    Dns1035LabelPrefix,
    /// `labelValue`: nothing, or at most 63 letters, digits and inner `-`, `_`, `.`.
    LabelValue,
    /// `uri`: an absolute URL or an absolute path.
    Uri,
    /// `uuid`: 32 hexadecimal digits, with or without hyphens.
    Uuid,
    /// `byte`: base64 with padding, not empty.
    Byte,
    /// `date`: an RFC 3339 date.
    Date,
    /// `datetime`: an RFC 3339 date and time.
    DateTime,
}

use NamedFormat::*;

/// Each format with its name and the size of the pattern that Kubernetes charges for.
const FORMATS: [(NamedFormat, &str, u64); 13] = [
    (Dns1123Label, "dns1123Label", 30),
    (Dns1123Subdomain, "dns1123Subdomain", 60),
    (Dns1035Label, "dns1035Label", 30),
    (QualifiedName, "qualifiedName", 60),
    (Dns1123LabelPrefix, "dns1123LabelPrefix", 30),
    (Dns1123SubdomainPrefix, "dns1123SubdomainPrefix", 60),
    (Dns1035LabelPrefix, "dns1035LabelPrefix", 30),
    (LabelValue, "labelValue", 40),
    (Uri, "uri", 1103),
    (Uuid, "uuid", UUID_PATTERN_SIZE),
    (Byte, "byte", 84),
    (Date, "date", DATE_TIME_PATTERN_SIZE),
    (DateTime, "datetime", DATE_TIME_PATTERN_SIZE),
];
const UUID_PATTERN_SIZE: u64 = 70;
const DATE_TIME_PATTERN_SIZE: u64 = 71;

/// Longest label and longest name part in bytes.
const LABEL_LIMIT: usize = 63;
/// Longest subdomain in bytes.
const SUBDOMAIN_LIMIT: usize = 253;

const LABEL_RULE: &str =
    "must consist of lower-case letters, digits and '-', and start and end with a letter or digit";
const SUBDOMAIN_RULE: &str = "must consist of lower-case letters, digits, '-' and '.', and each part between dots must start and end with a letter or digit";
const DNS1035_RULE: &str =
    "must consist of lower-case letters, digits and '-', start with a letter, and end with a letter or digit";
const KEY_RULE: &str =
    "must consist of letters, digits, '-', '_' and '.', and start and end with a letter or digit";

impl NamedFormat {
    /// All formats.
    pub fn all() -> impl Iterator<Item = Self> {
        FORMATS.iter().map(|(format, _, _)| *format)
    }

    /// The format with that name.
    pub fn named(name: &str) -> Option<Self> {
        FORMATS.iter().find(|(_, known, _)| *known == name).map(|(format, _, _)| *format)
    }

    /// The name under which the `format` library has it.
    pub fn name(self) -> &'static str {
        self.entry().1
    }

    /// Length of the pattern that Kubernetes' cost model assumes for a validation.
    pub fn pattern_size(self) -> u64 {
        self.entry().2
    }

    /// What is wrong with a text; nothing if it has the format.
    pub fn validate(self, text: &str) -> Option<Vec<String>> {
        let errors = self.errors(text);
        (!errors.is_empty()).then_some(errors)
    }

    fn entry(self) -> &'static (Self, &'static str, u64) {
        // The table is in the order of the declaration, which a test checks.
        &FORMATS[self as usize]
    }

    fn errors(self, text: &str) -> Vec<String> {
        let single = |valid: bool, error: &str| if valid { Vec::new() } else { vec![error.to_owned()] };
        match self {
            Dns1123Label => label_errors(text.as_bytes()),
            Dns1123LabelPrefix => label_errors(&completed(text)),
            Dns1123Subdomain => subdomain_errors(text.as_bytes()),
            Dns1123SubdomainPrefix => subdomain_errors(&completed(text)),
            Dns1035Label => dns1035_errors(text.as_bytes()),
            Dns1035LabelPrefix => dns1035_errors(&completed(text)),
            QualifiedName => qualified_name_errors(text),
            LabelValue => {
                let valid = text.is_empty() || is_key(text.as_bytes());
                errors(text.len(), LABEL_LIMIT, valid, &format!("must be empty, or {KEY_RULE}"))
            }
            Uri => Url::check(text).err().map(|error| error.to_string()).into_iter().collect(),
            Uuid => single(is_uuid(text), "must be a UUID of 32 hexadecimal digits"),
            Byte => single(is_base64(text), "must be base64 with padding"),
            Date => single(timestamp::read_date(text).is_some(), "must be a date such as 2006-01-02"),
            DateTime => single(is_date_time(text), "must be a date and time such as 2006-01-02T15:04:05Z"),
        }
    }
}

/// The errors of a text that may be too long, break a rule, or both.
fn errors(length: usize, limit: usize, keeps_rule: bool, rule: &str) -> Vec<String> {
    let too_long = (length > limit).then(|| format!("must not be longer than {limit} characters"));
    let broken = (!keeps_rule).then(|| rule.to_owned());
    too_long.into_iter().chain(broken).collect()
}

/// A prefix with its final hyphen made a letter. Kubernetes drops the character in front of it too.
fn completed(prefix: &str) -> Vec<u8> {
    match prefix.as_bytes() {
        [start @ .., _, b'-'] => [start, b"a"].concat(),
        other => other.to_vec(),
    }
}

fn label_errors(text: &[u8]) -> Vec<String> {
    let rule = if is_subdomain(text) { "must not contain dots" } else { LABEL_RULE };
    errors(text.len(), LABEL_LIMIT, is_label(text), rule)
}

fn subdomain_errors(text: &[u8]) -> Vec<String> {
    errors(text.len(), SUBDOMAIN_LIMIT, is_subdomain(text), SUBDOMAIN_RULE)
}

fn dns1035_errors(text: &[u8]) -> Vec<String> {
    let valid = is_label(text) && text[0].is_ascii_lowercase();
    errors(text.len(), LABEL_LIMIT, valid, DNS1035_RULE)
}

fn qualified_name_errors(text: &str) -> Vec<String> {
    let (prefix, name) = match text.split_once('/') {
        Some((_, name)) if name.contains('/') => {
            return vec!["must be a name, with or without a DNS subdomain and one '/' in front".to_owned()];
        }
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let mut found = match prefix {
        None => Vec::new(),
        Some("") => vec!["must not be empty".to_owned()],
        Some(prefix) => subdomain_errors(prefix.as_bytes()),
    };
    for error in &mut found {
        error.insert_str(0, "the part before the slash ");
    }
    let mut name_errors = errors(name.len(), LABEL_LIMIT, is_key(name.as_bytes()), KEY_RULE);
    if name.is_empty() {
        name_errors.insert(0, "must not be empty".to_owned());
    }
    found.extend(name_errors.into_iter().map(|error| format!("the name {error}")));
    found
}

fn is_label(text: &[u8]) -> bool {
    has_ends_and_middle(text, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(), b"-")
}

fn is_subdomain(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'.').all(is_label)
}

fn is_key(text: &[u8]) -> bool {
    has_ends_and_middle(text, |byte| byte.is_ascii_alphanumeric(), b"-_.")
}

/// Whether a text starts and ends with an `outer` character and has only those and `inner` ones in between.
fn has_ends_and_middle(text: &[u8], outer: impl Fn(u8) -> bool, inner: &[u8]) -> bool {
    let (Some(first), Some(last)) = (text.first(), text.last()) else { return false };
    outer(*first) && outer(*last) && text.iter().all(|byte| outer(*byte) || inner.contains(byte))
}

fn is_uuid(text: &str) -> bool {
    let mut rest = text.as_bytes();
    for (index, digits) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        match rest.split_at_checked(digits) {
            Some((group, behind)) if group.iter().all(u8::is_ascii_hexdigit) => rest = behind,
            _ => return false,
        }
    }
    rest.is_empty()
}

fn is_base64(text: &str) -> bool {
    let data = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && data.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

/// Kubernetes checks only what stands between the first two letters T, in either case, as the time.
fn is_date_time(text: &str) -> bool {
    let mut parts = text.split(['t', 'T']);
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    timestamp::read_date(date).is_some() && is_time(time)
}

fn is_time(text: &str) -> bool {
    let Some((time, rest)) = text.split_at_checked(8) else { return false };
    let bytes = time.as_bytes();
    let number = |start: usize| time.get(start..start + 2).filter(|digits| is_digits(digits));
    let in_range = number(0).is_some_and(|hour| hour <= "23")
        && number(3).is_some_and(|minute| minute <= "59")
        && number(6).is_some_and(|second| second <= "59");
    in_range && bytes[2] == b':' && bytes[5] == b':' && is_fraction_and_offset(rest)
}

/// `z` or an offset, behind nothing or any one character and digits.
fn is_fraction_and_offset(text: &str) -> bool {
    let fraction = match text.strip_suffix(['z', 'Z']) {
        Some(fraction) => fraction,
        None => {
            let Some((fraction, offset)) = text.len().checked_sub(6).and_then(|at| text.split_at_checked(at))
            else {
                return false;
            };
            let (sign, time) = offset.split_at(offset.chars().next().map_or(0, char::len_utf8));
            let is_offset = matches!(sign, "+" | "-")
                && time.split_once(':').is_some_and(|(hours, minutes)| {
                    hours.len() == 2 && is_digits(hours) && minutes.len() == 2 && is_digits(minutes)
                });
            if !is_offset {
                return false;
            }
            fraction
        }
    };
    let mut characters = fraction.chars();
    match characters.next() {
        None => true,
        Some(point) => point != '\n' && !characters.as_str().is_empty() && is_digits(characters.as_str()),
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_found_by_its_name() {
        for (index, (format, name, _)) in FORMATS.into_iter().enumerate() {
            assert_eq!(format as usize, index, "{name}");
            assert_eq!((NamedFormat::named(name), format.name()), (Some(format), name));
        }
        assert_eq!(NamedFormat::named("DNS1123Label"), None);
        // As recorded from Kubernetes 1.36.2.
        let sizes: Vec<u64> = NamedFormat::all().map(NamedFormat::pattern_size).collect();
        assert_eq!(sizes, [30, 60, 30, 60, 30, 60, 30, 40, 1103, 70, 84, 71, 71]);
    }

    #[test]
    fn texts_are_accepted_or_get_as_many_errors_as_in_kubernetes() {
        let long = "a".repeat(64);
        let longer = "a".repeat(254);
        let bad = format!("{longer}-");
        let cases: [(NamedFormat, &str, usize); 56] = [
            (Dns1123Label, "my-name", 0),
            (Dns1123Label, "1a", 0),
            (Dns1123Label, "a.b", 1),
            (Dns1123Label, "", 1),
            (Dns1123Label, "-a", 1),
            (Dns1123Label, "A", 1),
            (Dns1123Label, &long, 1),
            (Dns1123Label, &bad, 2),
            (Dns1123Subdomain, "a.b-c.d", 0),
            (Dns1123Subdomain, &long, 0),
            (Dns1123Subdomain, "a..b", 1),
            (Dns1123Subdomain, &bad, 2),
            (Dns1035Label, "a1", 0),
            (Dns1035Label, "1a", 1),
            (Dns1035Label, "", 1),
            (Dns1123LabelPrefix, "a-", 0),
            (Dns1123LabelPrefix, "-", 1),
            (Dns1123LabelPrefix, "a_-", 0),
            (Dns1123SubdomainPrefix, "a.b-", 0),
            (Dns1123SubdomainPrefix, "a.-", 0),
            (Dns1035LabelPrefix, "a-", 0),
            (Dns1035LabelPrefix, "1b-", 1),
            (QualifiedName, "My_Name.1", 0),
            (QualifiedName, "a.b/My_Name", 0),
            (QualifiedName, "/a", 1),
            (QualifiedName, "A/a", 1),
            (QualifiedName, "a/", 2),
            (QualifiedName, "/", 3),
            (QualifiedName, "a/b/c", 1),
            (QualifiedName, "", 2),
            (QualifiedName, "-", 1),
            (LabelValue, "", 0),
            (LabelValue, "My_value.1", 0),
            (LabelValue, "a-", 1),
            (LabelValue, &bad, 2),
            (Uri, "https://example.com/x", 0),
            (Uri, "example.com", 1),
            (Uuid, "123e4567-e89b-12d3-A456-426614174000", 0),
            (Uuid, "123e4567e89b12d3a456426614174000", 0),
            (Uuid, "123e4567--e89b12d3a456426614174000", 1),
            (Uuid, "", 1),
            (Byte, "aGVsbG8=", 0),
            (Byte, "aGVsbA==", 0),
            (Byte, "aGVsbA=", 1),
            (Byte, "", 1),
            (Byte, "====", 1),
            (Byte, "aGVs_-==", 1),
            (Date, "2024-02-29", 0),
            (Date, "2023-02-29", 1),
            (DateTime, "2021-01-01T00:00:00Z", 0),
            (DateTime, "2021-01-01t00:00:00.5+99:99", 0),
            (DateTime, "2021-01-01T00:00:00x5z", 0),
            (DateTime, "2021-01-01T00:00:00ZT", 0),
            (DateTime, "2021-01-01T24:00:00Z", 1),
            (DateTime, "2021-01-01T00:00:00.Z", 1),
            (DateTime, "2021-01-01T00:00:00", 1),
        ];
        for (format, text, expected) in cases {
            let errors = format.validate(text).unwrap_or_default();
            assert_eq!(errors.len(), expected, "{} {text}: {errors:?}", format.name());
        }
    }
}
