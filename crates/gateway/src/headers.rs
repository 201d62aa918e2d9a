//! Header hygiene between the two sides of a proxy (RFC 9110 §7.6, RFC 9112 §6).

use std::net::{IpAddr, SocketAddr};

use http::header::{
    CONNECTION, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{Method, Version};

use crate::http1::fields;
use crate::random;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
static X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Headers that concern one connection only and are never passed on.
const HOP_BY_HOP: [HeaderName; 7] = [
    CONNECTION,
    KEEP_ALIVE,
    PROXY_CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The protocol a request asks to switch to, if it does so properly.
pub(crate) fn upgrade(method: &Method, version: Version, headers: &HeaderMap) -> Option<HeaderValue> {
    let asks = *method == Method::GET
        && version == Version::HTTP_11
        && fields::connection_lists(headers, b"upgrade");
    if asks { headers.get(UPGRADE).cloned() } else { None }
}

/// Removes what concerns the sending side's connection only.
///
/// `TE: trailers` stays, since trailers are passed through. `Expect` goes: the server side answers
/// `100 Continue` itself as soon as an endpoint takes the body.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let concerned = |name: &HeaderName| HOP_BY_HOP.contains(name) || *name == TE || *name == EXPECT;
    if !headers.keys().any(concerned) {
        return;
    }
    if headers.contains_key(CONNECTION) {
        let listed: Vec<HeaderName> = headers
            .get_all(CONNECTION)
            .iter()
            .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
            .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
            .filter(|name| !matches!(*name, TE | TRAILER | HOST))
            .collect();
        for name in listed {
            headers.remove(name);
        }
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
    headers.remove(EXPECT);
    if headers.contains_key(TE) {
        let trailers = fields::lists(headers, &TE, b"trailers");
        headers.remove(TE);
        if trailers {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
    }
}

/// Marks a request as one that switches protocols.
pub(crate) fn set_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, protocol);
}

/// What an endpoint is told of where a request comes from.
#[derive(Debug)]
pub(crate) struct Forwarded {
    chain: HeaderValue,
    proto: HeaderValue,
    host: Option<HeaderValue>,
    /// The trace, where it begins here.
    trace: Option<HeaderValue>,
}

impl Forwarded {
    /// Says whom the request comes from and what it was sent to.
    pub(crate) fn of(
        headers: &HeaderMap,
        peer: SocketAddr,
        secure: bool,
        host: Option<HeaderValue>,
        trace: Option<HeaderValue>,
    ) -> Self {
        let address = address_value(peer.ip());
        let chain = match headers.get(&X_FORWARDED_FOR) {
            Some(earlier) => {
                let chain = [earlier.as_bytes(), b", ", address.as_bytes()].concat();
                HeaderValue::from_bytes(&chain).unwrap_or(address)
            }
            None => address,
        };
        Self { chain, proto: HeaderValue::from_static(if secure { "https" } else { "http" }), host, trace }
    }

    /// Headers to send, in place of the client's of the same names.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&'static HeaderName, &HeaderValue)> {
        let always = [(&X_FORWARDED_FOR, &self.chain), (&X_FORWARDED_PROTO, &self.proto)];
        let host = self.host.as_ref().map(|host| (&X_FORWARDED_HOST, host));
        let trace = self.trace.as_ref().map(|trace| (&TRACEPARENT, trace));
        always.into_iter().chain(host).chain(trace)
    }
}

fn address_value(address: IpAddr) -> HeaderValue {
    let mut text = Vec::with_capacity(40);
    match address.to_canonical() {
        // Formatting takes longer than all else that is done to a request's headers.
        IpAddr::V4(address) => {
            for (index, octet) in address.octets().into_iter().enumerate() {
                if index > 0 {
                    text.push(b'.');
                }
                if octet >= 100 {
                    text.push(b'0' + octet / 100);
                }
                if octet >= 10 {
                    text.push(b'0' + octet / 10 % 10);
                }
                text.push(b'0' + octet % 10);
            }
        }
        IpAddr::V6(address) => text.extend_from_slice(address.to_string().as_bytes()),
    }
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("unknown"))
}

/// The request's trace, as W3C trace context spells its identifier: the client's, or a new one with its header.
pub(crate) fn trace(headers: &HeaderMap) -> (TraceId, Option<HeaderValue>) {
    if let Some(trace) = headers.get(&TRACEPARENT).and_then(|value| TraceId::parse(value.as_bytes())) {
        return (trace, None);
    }
    let trace = TraceId::draw();
    let mut value = [0_u8; 55];
    value[..3].copy_from_slice(b"00-");
    value[3..35].copy_from_slice(&trace.0);
    value[35] = b'-';
    value[36..52].copy_from_slice(&hexadecimal(random::next().max(1)));
    value[52..].copy_from_slice(b"-00");
    (trace, HeaderValue::from_bytes(&value).ok())
}

/// A trace's identifier, 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceId([u8; 32]);

impl TraceId {
    /// Reads `version-trace-span-flags`.
    fn parse(value: &[u8]) -> Option<Self> {
        let digits = |part: &[u8]| part.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let well_formed = value.len() >= 55
            && value[2] == b'-'
            && value[35] == b'-'
            && value[52] == b'-'
            && digits(&value[..2])
            && digits(&value[3..35])
            && digits(&value[36..52])
            && &value[..2] != b"ff"
            && (value.len() == 55 || value[55] == b'-');
        let trace: [u8; 32] = value.get(3..35)?.try_into().ok()?;
        (well_formed && trace != [b'0'; 32]).then_some(Self(trace))
    }

    fn draw() -> Self {
        let mut trace = [0; 32];
        trace[..16].copy_from_slice(&hexadecimal(random::next()));
        trace[16..].copy_from_slice(&hexadecimal(random::next().max(1)));
        Self(trace)
    }

    /// The digits.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

fn hexadecimal(number: u64) -> [u8; 16] {
    let digit = |index: usize| b"0123456789abcdef"[(number >> (60 - 4 * index)) as usize & 15];
    std::array::from_fn(digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let parse = |&(name, value): &(&str, &str)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
        };
        lines.iter().map(parse).collect()
    }

    #[test]
    fn hop_by_hop_headers_are_removed_with_those_they_list() {
        let mut got = headers(&[
            ("connection", "close, X-Secret , te"),
            ("x-secret", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "Basic x"),
            ("transfer-encoding", "chunked"),
            ("te", "gzip, Trailers"),
            ("expect", "100-continue"),
            ("upgrade", "h2c"),
            ("trailer", "x-sum"),
            ("accept", "*/*"),
        ]);
        remove_hop_by_hop(&mut got);
        assert_eq!(got, headers(&[("te", "trailers"), ("trailer", "x-sum"), ("accept", "*/*")]));
    }

    #[test]
    fn connection_cannot_remove_the_host() {
        let mut got = headers(&[("connection", "host"), ("host", "a")]);
        remove_hop_by_hop(&mut got);
        assert_eq!(got, headers(&[("host", "a")]));
    }

    #[test]
    fn the_chain_of_addresses_grows() {
        let mut got = headers(&[("x-forwarded-for", "10.0.0.1"), ("x-forwarded-proto", "gopher")]);
        let peer = "[::ffff:192.0.2.7]:5".parse().unwrap();
        let host = Some(HeaderValue::from_static("models.example.com"));
        for (name, value) in Forwarded::of(&got.clone(), peer, true, host, None).headers() {
            got.insert(name, value.clone());
        }
        let want = [
            ("x-forwarded-for", "10.0.0.1, 192.0.2.7"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "models.example.com"),
        ];
        assert_eq!(got, headers(&want));
    }

    #[test]
    fn addresses_are_written_as_usual() {
        for text in ["0.0.0.0", "127.0.0.1", "10.20.200.255", "2001:db8::1", "::1"] {
            assert_eq!(address_value(text.parse().unwrap()), text);
        }
    }

    #[test]
    fn a_trace_is_taken_over_or_begun() {
        let given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let (got, begun) = trace(&headers(&[("traceparent", given)]));
        assert_eq!((got.as_str(), begun), ("4bf92f3577b34da6a3ce929d0e0e4736", None));
        for malformed in ["", "00-0-0-0", &given.replace("4bf9", "4BF9"), &given.replace("00-4", "ff-4")] {
            let (got, begun) = trace(&headers(&[("traceparent", malformed)]));
            assert_eq!(TraceId::parse(begun.unwrap().as_bytes()), Some(got), "{malformed}");
        }
    }

    #[test]
    fn only_proper_requests_upgrade() {
        let asks = headers(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")]);
        assert_eq!(upgrade(&Method::GET, Version::HTTP_11, &asks).unwrap(), "websocket");
        assert_eq!(upgrade(&Method::POST, Version::HTTP_11, &asks), None);
        assert_eq!(upgrade(&Method::GET, Version::HTTP_2, &asks), None);
        assert_eq!(upgrade(&Method::GET, Version::HTTP_11, &headers(&[("upgrade", "websocket")])), None);
    }
}
