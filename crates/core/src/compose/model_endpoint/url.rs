//! Host, port and scheme of an endpoint's URL, read leniently (spec gateway-and-routing §3.2).
//!
//! A splitter after RFC 3986, not a WHATWG parser: nothing is percent-decoded, no IDNA, no trailing dot removed,
//! and only the authority is looked at. The path of the URL never matters for routing.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Where requests for an endpoint go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointUrl {
    /// Host in lower case, without brackets.
    pub host: String,
    /// What kind of address the host is.
    pub address_type: AddressType,
    /// Port, never 0.
    pub port: u16,
}

/// `addressType` of an EndpointSlice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressType {
    /// A dotted quad.
    Ipv4,
    /// An IPv6 literal.
    Ipv6,
    /// Anything else.
    Fqdn,
}

/// Why a URL names no place to send requests to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// No `//`, or nothing behind it.
    #[error("no host")]
    NoHost,
    /// Brackets that do not hold exactly one IPv6 address.
    #[error("host {0:?} is not one IPv6 address in brackets")]
    Brackets(String),
    /// The text behind the host's colon.
    #[error("port {0:?} is not a number from 0 to 65535")]
    Port(String),
}

impl AddressType {
    /// The type as an EndpointSlice spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
            Self::Fqdn => "FQDN",
        }
    }

    fn of(host: &str) -> Self {
        if host.parse::<Ipv4Addr>().is_ok() {
            Self::Ipv4
        } else if is_ipv6(host) {
            Self::Ipv6
        } else {
            Self::Fqdn
        }
    }
}

impl EndpointUrl {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// If there is no host, the port is malformed, or brackets hold something other than an IPv6 address.
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        let url = without_ignored_characters(url);
        let (scheme, rest) = split_scheme(&url);
        let authority = rest.strip_prefix("//").ok_or(UrlError::NoHost)?;
        let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
        let (host, port) = split_authority(authority)?;
        if host.is_empty() {
            return Err(UrlError::NoHost);
        }
        let port = match parse_port(port)? {
            0 if scheme.eq_ignore_ascii_case("https") => 443,
            0 => 80,
            port => port,
        };
        let host = lowercase_host(host);
        Ok(Self { address_type: AddressType::of(&host), host, port })
    }
}

/// The URL without leading blanks and control characters, and without tabs and line ends anywhere.
fn without_ignored_characters(url: &str) -> Cow<'_, str> {
    let url = url.trim_start_matches(|character| character <= ' ');
    let is_ignored = |character| matches!(character, '\t' | '\r' | '\n');
    if url.contains(is_ignored) { url.replace(is_ignored, "").into() } else { url.into() }
}

/// The scheme, empty if there is none, and what follows it.
fn split_scheme(url: &str) -> (&str, &str) {
    let valid = |scheme: &str| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    match url.split_once(':') {
        Some((scheme, rest)) if valid(scheme) => (scheme, rest),
        _ => ("", url),
    }
}

/// Host and port text of an authority, user information left out.
fn split_authority(authority: &str) -> Result<(&str, &str), UrlError> {
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    if !authority.contains(['[', ']']) {
        return Ok(place.split_once(':').unwrap_or((place, "")));
    }
    let malformed = || UrlError::Brackets(place.to_owned());
    let (host, behind) =
        place.strip_prefix('[').and_then(|rest| rest.split_once(']')).ok_or_else(malformed)?;
    let port = if behind.is_empty() { "" } else { behind.strip_prefix(':').ok_or_else(malformed)? };
    if is_ipv6(host) { Ok((host, port)) } else { Err(malformed()) }
}

/// The port's value, 0 if there is none.
fn parse_port(text: &str) -> Result<u16, UrlError> {
    let digits = text.trim_start_matches('0');
    match digits.parse() {
        _ if digits.is_empty() => Ok(0),
        Ok(port) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Ok(port),
        _ => Err(UrlError::Port(text.to_owned())),
    }
}

/// The host in lower case; the zone of an IPv6 address is the name of an interface and stays as written.
fn lowercase_host(host: &str) -> String {
    match host.split_once('%') {
        Some((address, zone)) => format!("{}%{zone}", address.to_lowercase()),
        None => host.to_lowercase(),
    }
}

/// Whether the text is an IPv6 address, with or without a zone.
fn is_ipv6(host: &str) -> bool {
    let (address, zone) = host.split_once('%').map_or((host, None), |(address, zone)| (address, Some(zone)));
    address.parse::<Ipv6Addr>().is_ok() && zone.is_none_or(|zone| !zone.is_empty() && !zone.contains('%'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_as_the_specification_tabulates() {
        use AddressType::{Fqdn, Ipv4, Ipv6};
        let cases: &[(&str, &str, u16, AddressType)] = &[
            ("http://34.55.100.10/v1", "34.55.100.10", 80, Ipv4),
            ("https://api.together.xyz/v1", "api.together.xyz", 443, Fqdn),
            ("http://[2001:db8::1]/v1", "2001:db8::1", 80, Ipv6),
            ("http://[::1]:8080", "::1", 8080, Ipv6),
            ("http://[::ffff:1.2.3.4]:1", "::ffff:1.2.3.4", 1, Ipv6),
            ("http://[FE80::1%25eth0]/", "fe80::1%25eth0", 80, Ipv6),
            ("HTTPS://H.Example.COM/x", "h.example.com", 443, Fqdn),
            ("http://h:0", "h", 80, Fqdn),
            ("https://h:0", "h", 443, Fqdn),
            ("http://h:", "h", 80, Fqdn),
            ("http://h:080", "h", 80, Fqdn),
            ("http://h:00000000000000000000000080", "h", 80, Fqdn),
            ("//h/v1", "h", 80, Fqdn),
            ("ftp://h", "h", 80, Fqdn),
            ("grpc://h:50051", "h", 50051, Fqdn),
            ("http://user:pw@h:81/", "h", 81, Fqdn),
            ("http://a:b@c:d@e:9/", "e", 9, Fqdn),
            ("http://010.0.0.1", "010.0.0.1", 80, Fqdn),
            ("http://127.1", "127.1", 80, Fqdn),
            ("http://1.2.3.4.", "1.2.3.4.", 80, Fqdn),
            ("http://h?x=1", "h", 80, Fqdn),
            ("http://h#f", "h", 80, Fqdn),
            ("http://a b/", "a b", 80, Fqdn),
            ("http://h\\x", "h\\x", 80, Fqdn),
            (" \u{1}http://h", "h", 80, Fqdn),
            ("ht\ttp://\nh\r", "h", 80, Fqdn),
            ("http://h:65535", "h", 65535, Fqdn),
        ];
        for &(url, host, port, address_type) in cases {
            let want = EndpointUrl { host: host.to_owned(), address_type, port };
            assert_eq!(EndpointUrl::parse(url), Ok(want), "{url}");
        }
    }

    #[test]
    fn urls_without_a_usable_host_or_port_are_refused() {
        let no_host = [
            "",
            "not-a-url",
            "h",
            "h:8080/v1",
            "https:h",
            "http:/h",
            "http://",
            "https:///v1",
            "http://:8080",
            "http://h@",
            "1http://h",
        ];
        for url in no_host {
            assert_eq!(EndpointUrl::parse(url), Err(UrlError::NoHost), "{url}");
        }
        let ports = ["abc", "65536", "-1", "+80", "8_0", "8 0", "80:81", "٣", "99999999999999999999"];
        for port in ports {
            let got = EndpointUrl::parse(&format!("http://h:{port}"));
            assert_eq!(got, Err(UrlError::Port(port.to_owned())), "{port}");
        }
        for place in
            ["[::1", "[nope]", "[1.2.3.4]", "[]", "x[::1]", "[::1]x", "[::1]80", "::1]", "[v1.x]", "[::1%]"]
        {
            let got = EndpointUrl::parse(&format!("http://{place}/v1"));
            assert_eq!(got, Err(UrlError::Brackets(place.to_owned())), "{place}");
        }
        assert!(matches!(EndpointUrl::parse("http://[::1]:x"), Err(UrlError::Port(_))));
    }
}
