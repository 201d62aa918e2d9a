//! Reading the subject of a client certificate: the common name is the user, the organization the groups.
//!
//! Only certificates whose signature was verified come here, so all of them were made by our authority; anything
//! unexpected still just means that there is no identity.

use crate::identity::Identity;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
const VERSION: u8 = 0xa0;
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0a];

/// One DER element: its tag, its contents, what follows.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 || rest.len() < count {
            return None;
        }
        let (digits, rest) = rest.split_at(count);
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
    };
    (rest.len() >= length).then(|| (tag, &rest[..length], &rest[length..]))
}

fn expect(der: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, contents, rest) = element(der)?;
    (tag == wanted).then_some((contents, rest))
}

/// The subject's name within a certificate (RFC 5280 §4.1).
fn subject(certificate: &[u8]) -> Option<&[u8]> {
    let (certificate, _) = expect(certificate, SEQUENCE)?;
    let (mut rest, _) = expect(certificate, SEQUENCE)?;
    if rest.first() == Some(&VERSION) {
        rest = element(rest)?.2;
    }
    // Serial number, signature algorithm, issuer, validity.
    for _ in 0..4 {
        rest = element(rest)?.2;
    }
    Some(expect(rest, SEQUENCE)?.0)
}

/// The identity a verified client certificate stands for.
pub(crate) fn identity_of(certificate: &[u8]) -> Option<Identity> {
    let mut names = subject(certificate)?;
    let mut user = None;
    let mut groups = Vec::new();
    while !names.is_empty() {
        let (set, rest) = expect(names, SET)?;
        names = rest;
        let (attribute, _) = expect(set, SEQUENCE)?;
        let (kind, value) = expect(attribute, OBJECT_IDENTIFIER)?;
        let (_, text, _) = element(value)?;
        let text = std::str::from_utf8(text).ok()?;
        if kind == COMMON_NAME {
            user = Some(text.to_owned());
        } else if kind == ORGANIZATION {
            groups.extend(text.split(',').filter(|group| !group.is_empty()).map(str::to_owned));
        }
    }
    groups.push("system:authenticated".to_owned());
    Some(Identity { user: user?, groups })
}
