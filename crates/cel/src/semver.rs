//! Semantic versions as Kubernetes reads and orders them (`spec/cel.md` §6).
//!
//! Not a full semver.org implementation: numbers are limited to 64 bits, and there are no ranges.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

/// A semantic version; compared by precedence, so build metadata does not count. Copies are cheap.
#[derive(Debug, Clone)]
pub struct Semver {
    major: u64,
    minor: u64,
    patch: u64,
    /// Prerelease and build as written: `-rc.1+linux`.
    labels: Option<Arc<str>>,
}

/// Why a text is not a semantic version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SemverError {
    /// Fewer than three parts.
    #[error("a version has three parts, major.minor.patch")]
    MissingPart,
    /// A shortened version may not have a prerelease or build (normalised reading only).
    #[error("a version of fewer than three parts cannot have a prerelease or build")]
    ShortWithLabels,
    /// A numeric part is empty or has other characters than digits.
    #[error("the {part} version is not a number")]
    NotANumber {
        /// Which part.
        part: &'static str,
    },
    /// A number starts with an unneeded zero.
    #[error("the {part} version has a leading zero")]
    LeadingZero {
        /// Which part.
        part: &'static str,
    },
    /// A number does not fit 64 bits.
    #[error("the {part} version does not fit 64 bits")]
    TooLarge {
        /// Which part.
        part: &'static str,
    },
    /// A dot-separated identifier is empty or has a character outside `[0-9A-Za-z-]`.
    #[error("the {part} version has an identifier that is empty or not of letters, digits and hyphens")]
    BadIdentifier {
        /// Which part.
        part: &'static str,
    },
}

impl Semver {
    /// Reads a version strictly: three parts, no `v`, no leading zeros.
    pub fn parse(text: &str) -> Result<Self, SemverError> {
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(SemverError::MissingPart);
        };
        let major = number(major, "major")?;
        let minor = number(minor, "minor")?;
        let labels_start = rest.find(['+', '-']).unwrap_or(rest.len());
        let (patch, labels) = rest.split_at(labels_start);
        let patch = number(patch, "patch")?;
        check_labels(labels)?;
        let labels = (!labels.is_empty()).then(|| labels.into());
        Ok(Self { major, minor, patch, labels })
    }

    /// Reads a version leniently: one leading `v`, leading zeros and missing minor or patch are mended first (§6.3).
    pub fn parse_normalized(text: &str) -> Result<Self, SemverError> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut normalized = String::with_capacity(text.len() + 4);
        let mut count = 0;
        for part in text.splitn(3, '.') {
            if count > 0 {
                normalized.push('.');
            }
            push_normalized(part, &mut normalized);
            count += 1;
        }
        let last_part = text.rsplit('.').next().unwrap_or(text);
        if count < 3 && last_part.contains(['+', '-']) {
            return Err(SemverError::ShortWithLabels);
        }
        for _ in count..3 {
            normalized.push_str(".0");
        }
        Self::parse(&normalized)
    }

    /// The major version; from 2^63 on it turns negative, as in Kubernetes.
    pub fn major(&self) -> i64 {
        self.major.cast_signed()
    }

    /// The minor version; from 2^63 on it turns negative, as in Kubernetes.
    pub fn minor(&self) -> i64 {
        self.minor.cast_signed()
    }

    /// The patch version; from 2^63 on it turns negative, as in Kubernetes.
    pub fn patch(&self) -> i64 {
        self.patch.cast_signed()
    }

    /// The prerelease without its hyphen; empty if there is none.
    pub fn prerelease(&self) -> &str {
        let labels = self.labels.as_deref().unwrap_or_default();
        let end = labels.find('+').unwrap_or(labels.len());
        labels[..end].strip_prefix('-').unwrap_or_default()
    }

    /// The build metadata without its plus sign; empty if there is none.
    pub fn build(&self) -> &str {
        self.labels.as_deref().and_then(|labels| labels.split_once('+')).map_or("", |(_, build)| build)
    }
}

fn number(text: &str, part: &'static str) -> Result<u64, SemverError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(SemverError::NotANumber { part });
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(SemverError::LeadingZero { part });
    }
    text.parse().map_err(|_| SemverError::TooLarge { part })
}

/// Checks `-prerelease+build`, either of which may be missing.
fn check_labels(labels: &str) -> Result<(), SemverError> {
    let (prerelease, build) = match labels.split_once('+') {
        Some((prerelease, build)) => (prerelease, Some(build)),
        None => (labels, None),
    };
    if let Some(prerelease) = prerelease.strip_prefix('-') {
        for identifier in identifiers(prerelease, "prerelease") {
            let identifier = identifier?;
            if is_numeric(identifier) {
                number(identifier, "prerelease")?;
            }
        }
    }
    build
        .map_or(Ok(()), |build| identifiers(build, "build").try_for_each(|identifier| identifier.map(|_| ())))
}

fn identifiers<'text>(
    labels: &'text str,
    part: &'static str,
) -> impl Iterator<Item = Result<&'text str, SemverError>> {
    labels.split('.').map(move |identifier| {
        let valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_valid = !identifier.is_empty() && identifier.bytes().all(valid);
        if is_valid { Ok(identifier) } else { Err(SemverError::BadIdentifier { part }) }
    })
}

fn is_numeric(identifier: &str) -> bool {
    identifier.bytes().all(|byte| byte.is_ascii_digit())
}

/// A part of a version for [`Semver::parse_normalized`]: without leading zeros, but never without a number unless the
/// part is at most one character long.
fn push_normalized(part: &str, normalized: &mut String) {
    let trimmed = if part.len() > 1 { part.trim_start_matches('0') } else { part };
    if part.len() > 1 && !trimmed.starts_with(|first: char| first.is_ascii_digit()) {
        normalized.push('0');
    }
    normalized.push_str(trimmed);
}

/// Precedence of two prereleases (§6.4); none comes after any.
fn compare_prereleases(left: &str, right: &str) -> Ordering {
    match (left.is_empty(), right.is_empty()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => left.split('.').map(Identifier).cmp(right.split('.').map(Identifier)),
    }
}

/// One dot-separated part of a prerelease; numeric ones come before the others.
#[derive(PartialEq, Eq)]
struct Identifier<'text>(&'text str);

impl Ord for Identifier<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let (left, right) = (is_numeric(self.0), is_numeric(other.0));
        match (left, right) {
            // There are no leading zeros, so the longer number is the larger one.
            (true, true) => self.0.len().cmp(&other.0.len()).then_with(|| self.0.cmp(other.0)),
            (false, false) => self.0.cmp(other.0),
            _ => right.cmp(&left),
        }
    }
}

impl PartialOrd for Identifier<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Semver {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch).cmp(&(other.major, other.minor, other.patch)).then_with(|| {
            if self.labels.is_none() && other.labels.is_none() {
                return Ordering::Equal;
            }
            compare_prereleases(self.prerelease(), other.prerelease())
        })
    }
}

impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Semver {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Semver {}

impl Hash for Semver {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.major, self.minor, self.patch, self.prerelease()).hash(state);
    }
}

impl fmt::Display for Semver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = self.labels.as_deref().unwrap_or_default();
        write!(formatter, "{}.{}.{}{labels}", self.major, self.minor, self.patch)
    }
}

impl FromStr for Semver {
    type Err = SemverError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl Serialize for Semver {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Semver {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn semver(text: &str) -> Semver {
        Semver::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn strict_versions_are_written_back_as_read() {
        for text in ["0.0.0", "1.2.3", "1.2.3-rc.1", "1.2.3+001.x", "1.2.3--+-", "18446744073709551615.0.0"] {
            assert_eq!(semver(text).to_string(), text);
        }
        assert_eq!(semver("1.2.3-a-b.c+d-e+f".trim_end_matches("+f")).prerelease(), "a-b.c");
        assert_eq!(semver("1.2.3+d-e").build(), "d-e");
        assert_eq!(semver("1.2.3+d-e").prerelease(), "");
        assert_eq!(semver("18446744073709551615.2.3").major(), -1);
    }

    #[test]
    fn malformed_versions_are_refused() {
        let cases = [
            ("", "a part is missing"),
            ("1.2", "a part is missing"),
            ("v1.2.3", "no prefix"),
            ("1.2.3.4", "four parts"),
            ("1.02.3", "a leading zero"),
            ("1.2.3-", "an empty prerelease"),
            ("1.2.3+", "an empty build"),
            ("1.2.3-a..b", "an empty identifier"),
            ("1.2.3-01", "a numeric identifier with a leading zero"),
            ("1.2.3-99999999999999999999", "a numeric identifier beyond 64 bits"),
            ("18446744073709551616.0.0", "beyond 64 bits"),
            (" 1.2.3", "white space"),
            ("1.2.3+a+b", "two builds"),
            ("+1.2.3", "a sign"),
        ];
        for (text, reason) in cases {
            assert!(Semver::parse(text).is_err(), "{text}: {reason}");
        }
    }

    #[test]
    fn normalisation_mends_short_versions_zeros_and_one_prefix() {
        let accepted = [
            ("v1", "1.0.0"),
            ("1", "1.0.0"),
            ("1.0", "1.0.0"),
            ("v01.01", "1.1.0"),
            ("00", "0.0.0"),
            ("1.2.00-rc1", "1.2.0-rc1"),
            ("01.002.0003", "1.2.3"),
            ("1.2.00", "1.2.0"),
            ("1.2.-rc1", "1.2.0-rc1"),
        ];
        for (text, expected) in accepted {
            assert_eq!(Semver::parse_normalized(text).expect(text).to_string(), expected, "{text}");
        }
        let refused = [
            "v",
            "V1.2.3",
            "vv1.2.3",
            "1.",
            ".1",
            "1..2",
            "1.2-rc",
            "1-rc",
            "1.2+b",
            "1.2.3.4",
            " 1.0.0",
            "",
            "1.2.3-rc.01",
        ];
        for text in refused {
            assert!(Semver::parse_normalized(text).is_err(), "{text}");
        }
    }

    #[test]
    fn order_is_that_of_precedence() {
        let ascending = [
            "0.9.9",
            "1.0.0-1",
            "1.0.0-2",
            "1.0.0-10",
            "1.0.0-A",
            "1.0.0-a",
            "1.0.0-a.1",
            "1.0.0-a.a",
            "1.0.0-rc.2",
            "1.0.0-rc.10",
            "1.0.0-rc10",
            "1.0.0-rc2",
            "1.0.0",
            "1.0.1",
            "1.1.0",
            "2.0.0",
        ];
        for (left_index, left) in ascending.iter().enumerate() {
            for (right_index, right) in ascending.iter().enumerate() {
                assert_eq!(semver(left).cmp(&semver(right)), left_index.cmp(&right_index), "{left} {right}");
            }
        }
        assert_eq!(semver("1.2.3+a"), semver("1.2.3+b"));
    }
}
