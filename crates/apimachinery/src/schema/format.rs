//! The values of `format` that an API server checks, others are ignored (KEP-3488 and `supportedVersionedFormats`).

use std::net::{Ipv4Addr, Ipv6Addr};

use modelplane_cel::duration::Duration;
use modelplane_cel::named_format::NamedFormat;

use super::Kind;

/// A known format.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Format {
    /// 32-bit integers.
    Int32,
    /// 64-bit integers.
    Int64,
    /// 32-bit floats.
    Float,
    /// 64-bit floats.
    Double,
    /// Texts of this form.
    Text(TextFormat),
}

/// A known format of texts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TextFormat {
    Named(NamedFormat),
    Checked(fn(&str) -> bool),
}

const TEXT_FORMATS: [(&str, TextFormat); 25] = [
    ("bsonobjectid", TextFormat::Checked(is_object_id)),
    ("uri", TextFormat::Named(NamedFormat::Uri)),
    ("email", TextFormat::Checked(is_email)),
    ("hostname", TextFormat::Checked(is_hostname)),
    ("ipv4", TextFormat::Checked(is_ipv4)),
    ("ipv6", TextFormat::Checked(is_ipv6)),
    ("cidr", TextFormat::Checked(is_cidr)),
    ("mac", TextFormat::Checked(is_mac)),
    ("uuid", TextFormat::Named(NamedFormat::Uuid)),
    ("uuid3", TextFormat::Checked(|text| is_uuid(text, '3', false))),
    ("uuid4", TextFormat::Checked(|text| is_uuid(text, '4', true))),
    ("uuid5", TextFormat::Checked(|text| is_uuid(text, '5', true))),
    ("isbn", TextFormat::Checked(|text| is_isbn10(text) || is_isbn13(text))),
    ("isbn10", TextFormat::Checked(is_isbn10)),
    ("isbn13", TextFormat::Checked(is_isbn13)),
    ("creditcard", TextFormat::Checked(is_credit_card)),
    ("ssn", TextFormat::Checked(is_social_security_number)),
    ("hexcolor", TextFormat::Checked(is_hex_color)),
    ("rgbcolor", TextFormat::Checked(is_rgb_color)),
    ("byte", TextFormat::Named(NamedFormat::Byte)),
    ("password", TextFormat::Checked(|_| true)),
    ("date", TextFormat::Named(NamedFormat::Date)),
    ("duration", TextFormat::Checked(is_duration)),
    ("datetime", TextFormat::Named(NamedFormat::DateTime)),
    ("k8sshortname", TextFormat::Named(NamedFormat::Dns1123Label)),
];

impl Format {
    /// The format of that name for values of that type; `None` if it is not checked.
    pub(crate) fn named(name: &str, kind: Option<Kind>) -> Option<Self> {
        match (kind, name) {
            (Some(Kind::Integer), "int32") => Some(Self::Int32),
            (Some(Kind::Integer), "int64") => Some(Self::Int64),
            (Some(Kind::Number), "float") => Some(Self::Float),
            (Some(Kind::Number), "double") => Some(Self::Double),
            (None | Some(Kind::String), _) => {
                let normal = name.replace('-', "");
                if normal == "k8slongname" {
                    return Some(Self::Text(TextFormat::Named(NamedFormat::Dns1123Subdomain)));
                }
                let known = TEXT_FORMATS.iter().find(|(known, _)| *known == normal);
                known.map(|(_, format)| Self::Text(*format))
            }
            _ => None,
        }
    }
}

impl TextFormat {
    pub(crate) fn accepts(self, text: &str) -> bool {
        match self {
            Self::Named(format) => format.validate(text).is_none(),
            Self::Checked(accepts) => accepts(text),
        }
    }
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_object_id(text: &str) -> bool {
    text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Leading zeros are allowed, as in Go before 1.17.
fn is_ipv4(text: &str) -> bool {
    sloppy_ipv4(text).is_some()
        || text.contains('.') && text.contains(':') && text.parse::<Ipv6Addr>().is_ok()
}

fn sloppy_ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next().filter(|part| digits(part))?;
        let significant = part.trim_start_matches('0');
        *octet = if significant.is_empty() { 0 } else { significant.parse().ok()? };
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

fn is_ipv6(text: &str) -> bool {
    text.contains(':') && text.parse::<Ipv6Addr>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, prefix)) = text.split_once('/') else { return false };
    let longest = match (sloppy_ipv4(address), address.parse::<Ipv6Addr>()) {
        (Some(_), _) => 32,
        (None, Ok(_)) => 128,
        (None, Err(_)) => return false,
    };
    digits(prefix) && prefix.parse::<u32>().is_ok_and(|prefix| prefix <= longest)
}

/// 6, 8 or 20 bytes in pairs between `:` or `-`, or in groups of four digits between dots.
fn is_mac(text: &str) -> bool {
    let is_hex =
        |part: &str, length: usize| part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let grouped = |separator: char, length: usize, counts: [usize; 3]| {
        let mut count = 0;
        text.split(separator).all(|part| {
            count += 1;
            is_hex(part, length)
        }) && counts.contains(&count)
    };
    grouped(':', 2, [6, 8, 20]) || grouped('-', 2, [6, 8, 20]) || grouped('.', 4, [3, 4, 10])
}

/// A UUID of one version; `variant` if the variant of RFC 4122 is required too.
fn is_uuid(text: &str, version: char, variant: bool) -> bool {
    if NamedFormat::Uuid.validate(text).is_some() {
        return false;
    }
    let mut compact = text.chars().filter(|character| *character != '-');
    let matches_version = compact.nth(12) == Some(version);
    let eighth = compact.nth(3);
    matches_version
        && (!variant
            || eighth.is_some_and(|digit| matches!(digit.to_ascii_lowercase(), '8' | '9' | 'a' | 'b')))
}

/// One address as in a mail header, with or without a display name.
///
/// Covers what RFC 5322 writes without comments and folding, unlike Go's `net/mail`.
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.strip_suffix('>').and_then(|text| text.rsplit_once('<')) {
        Some((name, _)) if name.contains(['<', '>', ',', '@']) && !name.trim().starts_with('"') => {
            return false;
        }
        Some((_, address)) => address,
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let is_atom = |text: &str| {
        text.split('.').all(|atom| {
            !atom.is_empty()
                && atom
                    .chars()
                    .all(|character| character.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(character))
        })
    };
    let is_quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let is_literal = domain.starts_with('[') && domain.ends_with(']');
    (is_atom(local) || is_quoted) && (is_atom(domain) || is_literal)
}

/// A host name; one label alone may be followed by anything its pattern in Kubernetes leaves open: nothing.
fn is_hostname(text: &str) -> bool {
    let letter = |character: char| {
        character.is_ascii_digit()
            || character.is_alphabetic()
            || (!character.is_ascii() && is_symbol(character))
            || "$+<=>^`|~".contains(character)
    };
    if text.is_empty() || text.len() > 255 || text.split('.').any(|label| label.len() > 63) {
        return false;
    }
    let labels: Vec<&str> = text.split('.').collect();
    let is_label = |label: &str| {
        let mut characters = label.chars();
        let first = characters.next().is_some_and(letter);
        first && label.chars().next_back().is_some_and(letter) && characters.all(|c| letter(c) || c == '-')
    };
    match labels.as_slice() {
        [single] => is_label(single) && single.bytes().skip(2).all(|byte| byte != b'-'),
        [parts @ .., top] => {
            let top_length = top.chars().count();
            parts.iter().all(|part| is_label(part))
                && (2..=63).contains(&top_length)
                && top.chars().all(char::is_alphabetic)
        }
        [] => false,
    }
}

/// Roughly the Unicode category S beyond ASCII: neither letter, digit, mark, space nor control.
fn is_symbol(character: char) -> bool {
    matches!(u32::from(character), 0xA2..=0xA9 | 0xAC | 0xAE..=0xB1 | 0xB4 | 0xD7 | 0xF7 | 0x2044..=0x2052
        | 0x20A0..=0x20C0 | 0x2100..=0x214F | 0x2190..=0x23FF | 0x2500..=0x2BFF | 0x1F000..=0x1FAFF)
}

fn without_separators(text: &str) -> Vec<u8> {
    text.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'-').collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = without_separators(text);
    if digits.len() != 10 || !digits[..9].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let last = match digits[9] {
        b'X' => 10,
        digit if digit.is_ascii_digit() => u32::from(digit - b'0'),
        _ => return false,
    };
    let sum: u32 = (1..).zip(&digits[..9]).map(|(weight, digit)| weight * u32::from(digit - b'0')).sum();
    (sum + 10 * last).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = without_separators(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 = weights.zip(&digits).map(|(weight, digit)| weight * u32::from(digit - b'0')).sum();
    sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let number: Vec<u32> = text.chars().filter_map(|character| character.to_digit(10)).collect();
    let starts = |prefixes: &[&[u32]]| prefixes.iter().any(|prefix| number.starts_with(prefix));
    let issued = match number.len() {
        13 | 16 if number.first() == Some(&4) => true,
        16 => matches!(number[..2], [5, 1..=5]) || starts(&[&[6, 0, 1, 1], &[6, 5]]) || starts(&[&[3, 5]]),
        15 => starts(&[&[3, 4], &[3, 7], &[2, 1, 3, 1], &[1, 8, 0, 0]]),
        14 => starts(&[&[3, 6], &[3, 8]]) || matches!(number[..3], [3, 0, 0..=5]),
        _ => false,
    };
    let sum: u32 = number
        .iter()
        .rev()
        .enumerate()
        .map(|(place, &digit)| match place % 2 {
            0 => digit,
            _ if digit >= 5 => digit * 2 - 9,
            _ => digit * 2,
        })
        .sum();
    issued && sum.is_multiple_of(10)
}

fn is_social_security_number(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 11
        && bytes.iter().enumerate().all(|(place, byte)| match place {
            3 | 6 => matches!(byte, b'-' | b' '),
            _ => byte.is_ascii_digit(),
        })
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_rgb_color(text: &str) -> bool {
    let Some(parts) = text.strip_prefix("rgb(").and_then(|text| text.strip_suffix(')')) else { return false };
    let is_part = |part: &str| {
        let part = part.trim_matches([' ', '\t', '\n', '\r', '\u{c}']);
        digits(part) && (part == "0" || !part.starts_with('0')) && part.parse::<u8>().is_ok()
    };
    parts.split(',').count() == 3 && parts.split(',').all(is_part)
}

/// A Go duration, or any text with a number and a unit in it, such as `2 days`.
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 12] =
        ["nano", "micro", "milli", "sec", "min", "hour", "day", "week", "µs", "wk", "hr", ""];
    if Duration::parse(text).is_ok() {
        return true;
    }
    let mut rest = text;
    while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
        rest = &rest[start..];
        let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        if rest[..end].parse::<i64>().is_err() {
            return false;
        }
        rest = rest[end..].trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let is_letter = |character: char| character.is_ascii_alphabetic() || character == 'µ';
        let end = rest.find(|character: char| !is_letter(character)).unwrap_or(rest.len());
        let unit = rest[..end].to_lowercase();
        let named = UNITS.iter().any(|known| !known.is_empty() && unit.starts_with(known));
        if named || matches!(unit.as_str(), "ns" | "us" | "ms" | "s" | "m" | "h" | "d" | "w") {
            return true;
        }
        rest = &rest[end..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_accepted_as_an_api_server_does() {
        for (format, good, bad) in [
            ("ipv4", vec!["10.0.0.1", "010.0.0.1"], vec!["10.0.0", "::1", "256.0.0.1", ""]),
            ("ipv6", vec!["::1", "fe80::1", "::ffff:10.0.0.1"], vec!["10.0.0.1", "fe80::1%eth0", ":"]),
            ("cidr", vec!["10.0.0.0/8", "fd00::/64"], vec!["10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "x/8"]),
            (
                "mac",
                vec!["01:23:45:67:89:ab", "01-23-45-67-89-AB", "0123.4567.89ab"],
                vec!["01:23", "01:23:45:67:89-ab"],
            ),
            ("email", vec!["a@b.c", "Joe <joe@example.com>"], vec!["a", "a@", "@b", "a b@c"]),
            (
                "hostname",
                vec!["example.com", "localhost", "a-b.example.com"],
                vec!["", "-a.com", "a..com", "a.b.1"],
            ),
            (
                "uuid4",
                vec!["123e4567-e89b-42d3-a456-426614174000"],
                vec!["123e4567-e89b-12d3-a456-426614174000", "x"],
            ),
            ("isbn", vec!["0321751043", "978-0321751041"], vec!["0321751044", "x"]),
            ("creditcard", vec!["4111 1111 1111 1111"], vec!["4111 1111 1111 1112", "1"]),
            ("ssn", vec!["111-11-1111"], vec!["111111111", "111-11-111x"]),
            ("hexcolor", vec!["#FFF", "a0b1c2"], vec!["#FFFF", "#GGG"]),
            ("rgbcolor", vec!["rgb(0, 10,255)"], vec!["rgb(0,10,256)", "rgb(0,10)"]),
            ("duration", vec!["1h30m", "22 ns", "2 days", "1w"], vec!["", "x", "5", "5 parsecs"]),
            ("date-time", vec!["2024-01-01T00:00:00Z"], vec!["2024-01-01"]),
            ("k8s-short-name", vec!["a-b"], vec!["a.b", "A"]),
            ("k8s-long-name", vec!["a.b"], vec!["a..b"]),
        ] {
            let Some(Format::Text(checked)) = Format::named(format, Some(Kind::String)) else {
                panic!("{format} is known");
            };
            for text in good {
                assert!(checked.accepts(text), "{format}: {text}");
            }
            for text in bad {
                assert!(!checked.accepts(text), "{format}: {text}");
            }
        }
    }

    #[test]
    fn a_format_of_another_type_is_ignored() {
        assert!(Format::named("int32", Some(Kind::Number)).is_none());
        assert!(Format::named("uri", Some(Kind::Object)).is_none());
        assert!(Format::named("semver", Some(Kind::String)).is_none());
        assert!(matches!(Format::named("int32", Some(Kind::Integer)), Some(Format::Int32)));
    }
}
