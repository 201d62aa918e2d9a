//! IP addresses, Kubernetes library `kubernetes.net.ip`: neither zones nor IPv4-mapped IPv6 addresses.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use super::NetError;

/// An IPv4 address or an IPv6 address that is not IPv4-mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ip(pub(super) IpAddr);

impl Ip {
    /// Reads an address.
    pub fn parse(text: &str) -> Result<Self, NetError> {
        match text.parse() {
            Ok(IpAddr::V6(address)) if is_mapped(address) => Err(NetError::Mapped(text.to_owned())),
            Ok(address) => Ok(Self(address)),
            Err(_) if has_zone(text) => Err(NetError::Zone(text.to_owned())),
            Err(_) => Err(NetError::Address(text.to_owned())),
        }
    }

    /// Whether a text is an address in its canonical spelling; an error if it is no address.
    pub fn is_canonical(text: &str) -> Result<bool, NetError> {
        Self::parse(text).map(|address| address.to_string() == text)
    }

    /// 4 or 6.
    pub fn family(self) -> i64 {
        if self.0.is_ipv4() { 4 } else { 6 }
    }

    /// `0.0.0.0` or `::`.
    pub fn is_unspecified(self) -> bool {
        self.0.is_unspecified()
    }

    /// `127.0.0.0/8` or `::1`.
    pub fn is_loopback(self) -> bool {
        self.0.is_loopback()
    }

    /// `224.0.0.0/24` or link-local scope of `ff00::/8`.
    pub fn is_link_local_multicast(self) -> bool {
        match self.0 {
            IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
            IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
        }
    }

    /// `169.254.0.0/16` or `fe80::/10`.
    pub fn is_link_local_unicast(self) -> bool {
        match self.0 {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
        }
    }

    /// Unicast beyond the link, private networks included.
    pub fn is_global_unicast(self) -> bool {
        let is_broadcast = matches!(self.0, IpAddr::V4(address) if address.is_broadcast());
        !(is_broadcast
            || self.is_unspecified()
            || self.is_loopback()
            || self.0.is_multicast()
            || self.is_link_local_unicast())
    }
}

impl fmt::Display for Ip {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

fn is_mapped(address: Ipv6Addr) -> bool {
    address.to_ipv4_mapped().is_some()
}

/// Whether a text is an IPv6 address followed by a zone.
pub(super) fn has_zone(text: &str) -> bool {
    text.split_once('%')
        .is_some_and(|(address, zone)| !zone.is_empty() && address.parse::<Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_addresses_are_read() {
        for text in ["127.0.0.1", "::1", "2001:db8::1", "::", "1:2:3:4:5:6:7::", "2001:DB8::A", "::1.2.3.4"] {
            assert!(Ip::parse(text).is_ok(), "{text}");
        }
        let refused = [
            "",
            "1.2.3",
            "01.2.3.4",
            "1.2.3.256",
            "1.2.3.4.5",
            " ::1",
            "::1%eth0",
            "::ffff:1.2.3.4",
            "1::2::3",
            "[::1]",
        ];
        for text in refused {
            assert!(Ip::parse(text).is_err(), "{text}");
        }
        assert_eq!(Ip::parse("::1%eth0"), Err(NetError::Zone("::1%eth0".into())));
    }

    #[test]
    fn the_canonical_spelling_is_short_and_lower_case() {
        assert_eq!(Ip::is_canonical("2001:db8::1"), Ok(true));
        assert_eq!(Ip::is_canonical("2001:DB8::1"), Ok(false));
        assert_eq!(Ip::is_canonical("2001:db8:0:0:0:0:0:1"), Ok(false));
        assert!(Ip::is_canonical("nope").is_err());
    }

    #[test]
    fn addresses_are_classified() {
        // family, unspecified, loopback, link-local multicast, link-local unicast, global unicast
        let cases = [
            ("0.0.0.0", (4, true, false, false, false, false)),
            ("127.3.2.1", (4, false, true, false, false, false)),
            ("224.0.0.7", (4, false, false, true, false, false)),
            ("224.0.1.7", (4, false, false, false, false, false)),
            ("169.254.1.1", (4, false, false, false, true, false)),
            ("255.255.255.255", (4, false, false, false, false, false)),
            ("10.0.0.1", (4, false, false, false, false, true)),
            ("::", (6, true, false, false, false, false)),
            ("::1", (6, false, true, false, false, false)),
            ("ff02::1", (6, false, false, true, false, false)),
            ("ff05::1", (6, false, false, false, false, false)),
            ("fe80::1", (6, false, false, false, true, false)),
            ("fc00::1", (6, false, false, false, false, true)),
        ];
        for (text, expected) in cases {
            let ip = Ip::parse(text).expect(text);
            let found = (
                ip.family(),
                ip.is_unspecified(),
                ip.is_loopback(),
                ip.is_link_local_multicast(),
                ip.is_link_local_unicast(),
                ip.is_global_unicast(),
            );
            assert_eq!(found, expected, "{text}");
        }
    }
}
