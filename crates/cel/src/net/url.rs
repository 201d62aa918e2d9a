//! URLs, Kubernetes library `kubernetes.urls`: what Go's `net/url` accepts as a request URI, then taken apart.
//!
//! Where percent-decoding yields bytes that are not UTF-8 (host and query only), they read as U+FFFD: CEL strings
//! here are always UTF-8, Go's need not be.

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv6Addr;

use super::{NetError, ip};

/// An absolute URL or an absolute path; equal if written alike.
#[derive(Debug, Clone)]
pub struct Url {
    scheme: String,
    host: String,
    escaped_path: String,
    query: String,
    /// The normalised spelling of the whole.
    text: String,
}

impl Url {
    /// Whether a text is an absolute URL or an absolute path. [`Url::parse`] also checks the fragment.
    pub fn is_valid(text: &str) -> bool {
        Parts::parse(text, true).is_ok()
    }

    /// Why a text is no absolute URL or path.
    pub fn check(text: &str) -> Result<(), NetError> {
        Parts::parse(text, true).map(|_| ()).map_err(|cause| refused(text, cause))
    }

    /// Reads a URL.
    pub fn parse(text: &str) -> Result<Self, NetError> {
        Self::check(text)?;
        let (address, fragment) = text.split_once('#').unwrap_or((text, ""));
        let parts = Parts::parse(address, false).map_err(|cause| refused(text, cause))?;
        let fragment = Escaped::read(fragment, Mode::Fragment).map_err(|cause| refused(text, cause))?;
        Ok(parts.into_url(&fragment))
    }

    /// The scheme in lower case, or nothing.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Host and port, an IPv6 address in brackets, or nothing.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The host without port and brackets.
    pub fn hostname(&self) -> &str {
        let host = self.split_host().0;
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The port, or nothing.
    pub fn port(&self) -> &str {
        self.split_host().1
    }

    /// The percent-encoded path.
    pub fn escaped_path(&self) -> &str {
        &self.escaped_path
    }

    /// The decoded parameters: each key in order of first appearance with its values in order. Malformed parameters are
    /// left out.
    pub fn query(&self) -> Vec<(String, Vec<String>)> {
        let mut parameters: Vec<(String, Vec<String>)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for parameter in self.query.split('&') {
            if parameter.is_empty() || parameter.contains(';') {
                continue;
            }
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let (Ok(key), Ok(value)) = (decoded(key, Mode::Query), decoded(value, Mode::Query)) else {
                continue;
            };
            let (key, value) = (lossy(key), lossy(value));
            let place = *places.entry(key.clone()).or_insert(parameters.len());
            if place == parameters.len() {
                parameters.push((key, Vec::new()));
            }
            parameters[place].1.push(value);
        }
        parameters
    }

    fn split_host(&self) -> (&str, &str) {
        match self.host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
            _ => (&self.host, ""),
        }
    }
}

impl PartialEq for Url {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Url {}

impl fmt::Display for Url {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

fn refused(text: &str, cause: &'static str) -> NetError {
    NetError::Url { text: text.to_owned(), cause }
}

/// What was found in a URL, decoded.
#[derive(Default)]
struct Parts<'text> {
    scheme: String,
    /// User name and password in normal spelling.
    user: Option<String>,
    host: Vec<u8>,
    path: Escaped<'text>,
    query: Option<&'text str>,
    /// What follows the scheme if that is no path.
    opaque: &'text str,
    /// Whether a scheme is followed by a path without authority.
    omits_host: bool,
}

impl<'text> Parts<'text> {
    /// Reads a URL without fragment; `absolute` refuses relative paths.
    fn parse(text: &'text str, absolute: bool) -> Result<Self, &'static str> {
        if text.bytes().any(|byte| byte.is_ascii_control()) {
            return Err("it has a control character");
        }
        if text.is_empty() && absolute {
            return Err("it is empty");
        }
        let mut parts = Self::default();
        if text == "*" {
            parts.path = Escaped { written: None, decoded: Cow::Borrowed(b"*") };
            return Ok(parts);
        }
        let (scheme, rest) = split_scheme(text)?;
        parts.scheme = scheme.to_ascii_lowercase();
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        parts.query = query;
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                parts.opaque = rest;
                return Ok(parts);
            }
            if absolute {
                return Err("it is neither absolute nor an absolute path");
            }
            if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return Err("its first path segment has a colon");
            }
        }
        let path = parts.read_authority(rest, absolute)?;
        parts.path = Escaped::read(path, Mode::Path)?;
        Ok(parts)
    }

    /// Takes the authority off the text, if there is one, and returns the rest, which is the path.
    fn read_authority(&mut self, rest: &'text str, absolute: bool) -> Result<&'text str, &'static str> {
        let may_have = !self.scheme.is_empty() || (!absolute && !rest.starts_with("///"));
        let Some(authority) = rest.strip_prefix("//").filter(|_| may_have) else {
            self.omits_host = !self.scheme.is_empty() && rest.starts_with('/');
            return Ok(rest);
        };
        let (authority, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        self.host = read_host(&self.scheme, host)?;
        self.user = user.map(read_user).transpose()?;
        Ok(path)
    }

    fn into_url(self, fragment: &Escaped<'_>) -> Url {
        let escaped_path = self.path.spelling(Mode::Path);
        let text = self.spelling(&escaped_path, fragment);
        Url {
            scheme: self.scheme,
            host: lossy(Cow::Owned(self.host)),
            escaped_path,
            query: self.query.unwrap_or_default().to_owned(),
            text,
        }
    }

    /// The normalised spelling, which decides equality.
    fn spelling(&self, escaped_path: &str, fragment: &Escaped<'_>) -> String {
        let mut text = String::new();
        if !self.scheme.is_empty() {
            text.push_str(&self.scheme);
            text.push(':');
        }
        if self.opaque.is_empty() {
            self.push_hierarchy(escaped_path, &mut text);
        } else {
            text.push_str(self.opaque);
        }
        if let Some(query) = self.query {
            text.push('?');
            text.push_str(query);
        }
        if !fragment.decoded.is_empty() {
            text.push('#');
            text.push_str(&fragment.spelling(Mode::Fragment));
        }
        text
    }

    fn push_hierarchy(&self, escaped_path: &str, text: &mut String) {
        let has_authority = !self.host.is_empty() || self.user.is_some();
        if has_authority || (!self.scheme.is_empty() && !self.omits_host && !escaped_path.is_empty()) {
            text.push_str("//");
        }
        if let Some(user) = &self.user {
            text.push_str(user);
            text.push('@');
        }
        escape(&self.host, Mode::Host, text);
        text.push_str(escaped_path);
    }
}

fn split_scheme(text: &str) -> Result<(&str, &str), &'static str> {
    let end = text.bytes().position(|byte| !(byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)));
    match end {
        Some(0) if text.starts_with(':') => Err("its scheme is missing"),
        Some(end) if text.as_bytes()[0].is_ascii_alphabetic() && text.as_bytes()[end] == b':' => {
            Ok((&text[..end], &text[end + 1..]))
        }
        _ => Ok(("", text)),
    }
}

fn read_user(user: &str) -> Result<String, &'static str> {
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user.bytes().all(valid) {
        return Err("its user name or password has a character that is not allowed");
    }
    let (name, password) =
        user.split_once(':').map_or((user, None), |(name, password)| (name, Some(password)));
    let mut spelling = String::new();
    escape(&decoded(name, Mode::User)?, Mode::User, &mut spelling);
    if let Some(password) = password {
        spelling.push(':');
        escape(&decoded(password, Mode::User)?, Mode::User, &mut spelling);
    }
    Ok(spelling)
}

fn read_host(scheme: &str, host: &str) -> Result<Vec<u8>, &'static str> {
    match host.rfind('[') {
        Some(0) => return read_bracketed_host(host),
        Some(_) => return Err("its host has a bracket in the middle"),
        None => {}
    }
    // More than one colon is refused for web addresses and tolerated for those of databases.
    let strict = matches!(scheme, "http" | "https");
    if let Some(colon) = if strict { host.find(':') } else { host.rfind(':') } {
        check_port(&host[colon..])?;
    }
    decoded(host, Mode::Host).map(Cow::into_owned)
}

fn read_bracketed_host(host: &str) -> Result<Vec<u8>, &'static str> {
    let close = host.rfind(']').ok_or("its host lacks a closing bracket")?;
    let (name, port) = (&host[1..close], &host[close + 1..]);
    check_port(port)?;
    // RFC 6874: an escaped percent sign introduces the zone, which may escape more than a host may.
    let (address, zone) = name.split_at(name.find("%25").unwrap_or(name.len()));
    let mut literal = decoded(address, Mode::Host)?.into_owned();
    literal.extend_from_slice(&decoded(zone, Mode::Zone)?);
    let is_address = std::str::from_utf8(&literal)
        .is_ok_and(|literal| literal.parse::<Ipv6Addr>().is_ok() || ip::has_zone(literal));
    if !is_address {
        return Err("its host in brackets is not an IPv6 address");
    }
    Ok([b"[", literal.as_slice(), b"]", port.as_bytes()].concat())
}

/// Checks nothing, or a colon and digits.
fn check_port(port: &str) -> Result<(), &'static str> {
    let valid = port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if valid { Ok(()) } else { Err("its port is not a number") }
}

/// A part of a URL, as written and decoded.
#[derive(Default)]
struct Escaped<'text> {
    /// Nothing where no spelling is to be kept.
    written: Option<&'text str>,
    decoded: Cow<'text, [u8]>,
}

impl<'text> Escaped<'text> {
    fn read(written: &'text str, mode: Mode) -> Result<Self, &'static str> {
        decoded(written, mode).map(|decoded| Self { written: Some(written), decoded })
    }

    /// The spelling as written if that is a valid one, else the normal one.
    fn spelling(&self, mode: Mode) -> String {
        let kept = |byte: u8| mode.keeps(byte) || b"!$&'()*+,;=:@[]%".contains(&byte);
        if let Some(written) = self.written.filter(|written| written.bytes().all(kept)) {
            return written.to_owned();
        }
        if *self.decoded == *b"*" {
            return "*".to_owned();
        }
        let mut spelling = String::new();
        escape(&self.decoded, mode, &mut spelling);
        spelling
    }
}

/// The part of a URL that is coded, which decides what must be escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Path,
    User,
    Host,
    Zone,
    Query,
    Fragment,
}

impl Mode {
    /// Whether a byte stands for itself.
    fn keeps(self, byte: u8) -> bool {
        let others: &[u8] = match self {
            Self::Path => b"$&+,/:;=@",
            Self::User => b"$&+,;=",
            Self::Host | Self::Zone => b"!$&'()*+,;=:[]<>\"",
            Self::Query => b"",
            Self::Fragment => b"$&+,/:;=@?!()*",
        };
        byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || others.contains(&byte)
    }
}

fn escape(bytes: &[u8], mode: Mode, spelling: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in bytes {
        if mode.keeps(*byte) {
            spelling.push(char::from(*byte));
        } else {
            spelling.push('%');
            spelling.push(char::from(DIGITS[usize::from(byte >> 4)]));
            spelling.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

fn decoded(text: &str, mode: Mode) -> Result<Cow<'_, [u8]>, &'static str> {
    let is_host = matches!(mode, Mode::Host | Mode::Zone);
    let bytes = text.as_bytes();
    if is_host && !bytes.iter().all(|byte| *byte == b'%' || !byte.is_ascii() || mode.keeps(*byte)) {
        return Err("its host has a character that is not allowed");
    }
    if !bytes.iter().any(|byte| *byte == b'%' || (*byte == b'+' && mode == Mode::Query)) {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'%' => {
                let (byte, behind) = escaped_byte(behind).ok_or("it has a malformed percent escape")?;
                if !may_be_escaped(byte, mode) {
                    return Err("its host escapes a character that must not be escaped");
                }
                decoded.push(byte);
                rest = behind;
            }
            b'+' if mode == Mode::Query => decoded.push(b' '),
            other => decoded.push(*other),
        }
    }
    Ok(Cow::Owned(decoded))
}

/// The byte written by two hexadecimal digits, and what follows them.
fn escaped_byte(rest: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, rest) = rest.split_at_checked(2)?;
    let value = |digit: u8| char::from(digit).to_digit(16);
    let byte = value(digits[0])? * 16 + value(digits[1])?;
    Some((u8::try_from(byte).ok()?, rest))
}

fn may_be_escaped(byte: u8, mode: Mode) -> bool {
    match mode {
        Mode::Host => byte == b'%' || !byte.is_ascii(),
        Mode::Zone => byte == b'%' || byte == b' ' || Mode::Host.keeps(byte),
        _ => true,
    }
}

fn lossy(bytes: Cow<'_, [u8]>) -> String {
    String::from_utf8(bytes.into_owned())
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect(text)
    }

    #[test]
    fn urls_are_taken_apart() {
        // text, scheme, host, hostname, port, path
        let cases = [
            (
                "https://u:p@example.com:80/a b?k=v#f",
                ("https", "example.com:80", "example.com", "80", "/a%20b"),
            ),
            ("HTTPS://[::1]:80/", ("https", "[::1]:80", "::1", "80", "/")),
            ("https://[fe80::1%25eth0]", ("https", "[fe80::1%eth0]", "fe80::1%eth0", "", "")),
            ("/absolute//path", ("", "", "", "", "/absolute//path")),
            ("///path", ("", "", "", "", "///path")),
            ("mailto:a@b.c", ("mailto", "", "", "", "")),
            ("file:/x%2fy", ("file", "", "", "", "/x%2fy")),
            ("postgres://a:1,b:2/db", ("postgres", "a:1,b:2", "a:1,b", "2", "/db")),
            ("*", ("", "", "", "", "*")),
        ];
        for (text, expected) in cases {
            let url = url(text);
            let found = (url.scheme(), url.host(), url.hostname(), url.port(), url.escaped_path());
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_request_uri_is_refused() {
        let refused = [
            "",
            "../relative",
            "example.com",
            "https://a:b:c/",
            "http://a:1:2/",
            "://x",
            "http://[::1",
            "http://[1.2.3.4]/",
            "http://a b/",
            "/a%zz",
            "http://a/\n",
            "http://a:x/",
            "http://%41/",
            "http://u ser@a/",
            "1http://a",
        ];
        for text in refused {
            assert!(Url::parse(text).is_err(), "{text}");
            assert!(!Url::is_valid(text), "{text}");
        }
        assert!(Url::is_valid("/a?b#%zz") && Url::parse("/a?b#%zz").is_err());
    }

    #[test]
    fn parameters_are_decoded_and_grouped() {
        let parameters = url("/p?k1=a&k2=b&k2=c&with+space=x%20y&bad=%z&a;b=c&&lone").query();
        let expected =
            [("k1", vec!["a"]), ("k2", vec!["b", "c"]), ("with space", vec!["x y"]), ("lone", vec![""])];
        let found: Vec<(&str, Vec<&str>)> = parameters
            .iter()
            .map(|(key, values)| (key.as_str(), values.iter().map(String::as_str).collect()))
            .collect();
        assert_eq!(found, expected);
        assert!(url("/p?").query().is_empty());
    }

    #[test]
    fn equality_ignores_what_normalisation_changes() {
        assert_eq!(url("HTTP://a/x y"), url("http://a/x%20y"));
        assert_ne!(url("http://a/x"), url("http://a/x?"));
        assert_eq!(url("http://a/#é").to_string(), "http://a/#%C3%A9");
    }
}
