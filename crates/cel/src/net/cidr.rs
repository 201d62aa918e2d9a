//! Networks in CIDR notation, Kubernetes library `kubernetes.net.cidr`. Host bits may be set.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Ip, NetError};

/// An address and the length of its network prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    address: Ip,
    prefix_length: u8,
}

impl Cidr {
    /// Reads `address/length`.
    pub fn parse(text: &str) -> Result<Self, NetError> {
        let malformed = || NetError::Network(text.to_owned());
        let (address, length) = text.rsplit_once('/').ok_or_else(malformed)?;
        let address = Ip::parse(address).map_err(|error| match error {
            NetError::Mapped(_) => NetError::Mapped(text.to_owned()),
            _ => malformed(),
        })?;
        let is_plain = length.bytes().all(|byte| byte.is_ascii_digit())
            && !(length.len() > 1 && length.starts_with('0'));
        let prefix_length = length.parse().ok().filter(|_| is_plain).ok_or_else(malformed)?;
        let cidr = Self { address, prefix_length };
        if prefix_length <= cidr.bits() { Ok(cidr) } else { Err(malformed()) }
    }

    /// The address as written, host bits included.
    pub fn ip(self) -> Ip {
        self.address
    }

    /// The number of leading bits that name the network.
    pub fn prefix_length(self) -> i64 {
        i64::from(self.prefix_length)
    }

    /// The network with its host bits cleared.
    pub fn masked(self) -> Self {
        Self { address: masked(self.address, self.prefix_length), ..self }
    }

    /// Whether the network contains an address of its own family.
    pub fn contains_ip(self, ip: Ip) -> bool {
        self.address.family() == ip.family()
            && masked(ip, self.prefix_length) == masked(self.address, self.prefix_length)
    }

    /// Whether the network contains all of another.
    pub fn contains_cidr(self, other: Self) -> bool {
        self.prefix_length <= other.prefix_length && self.contains_ip(other.address)
    }

    fn bits(self) -> u8 {
        if self.address.0.is_ipv4() { 32 } else { 128 }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.prefix_length)
    }
}

/// The address with all but its first `length` bits cleared.
fn masked(ip: Ip, length: u8) -> Ip {
    let length = u32::from(length);
    Ip(match ip.0 {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        Cidr::parse(text).expect(text)
    }

    #[test]
    fn only_plain_networks_are_read() {
        for text in ["0.0.0.0/0", "10.1.2.3/8", "1.2.3.4/32", "::/0", "2001:db8::1/128"] {
            assert_eq!(cidr(text).to_string(), text);
        }
        let refused = [
            "",
            "1.2.3.4",
            "1.2.3.4/",
            "1.2.3.4/33",
            "::/129",
            "1.2.3.4/08",
            "1.2.3.4/+8",
            "1.2.3.4/-1",
            "::1%a/8",
            "::ffff:1.2.3.4/96",
            "1.2.3.4/8/8",
            "::/999999999999",
        ];
        for text in refused {
            assert!(Cidr::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn networks_contain_addresses_and_smaller_networks() {
        let network = cidr("192.168.1.7/24");
        assert_eq!(network.masked().to_string(), "192.168.1.0/24");
        assert_eq!(network.ip().to_string(), "192.168.1.7");
        assert_eq!(network.prefix_length(), 24);
        let addresses = [("192.168.1.255", true), ("192.168.2.0", false), ("::1", false)];
        for (address, expected) in addresses {
            assert_eq!(network.contains_ip(Ip::parse(address).expect(address)), expected, "{address}");
        }
        let networks =
            [("192.168.1.0/25", true), ("192.168.1.0/24", true), ("192.168.0.0/16", false), ("::/0", false)];
        for (other, expected) in networks {
            assert_eq!(network.contains_cidr(cidr(other)), expected, "{other}");
        }
        assert!(cidr("::/0").contains_cidr(cidr("2001:db8::/32")));
        assert_eq!(cidr("2001:db8::ff/120").masked().to_string(), "2001:db8::/120");
    }
}
