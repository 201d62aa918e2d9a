//! Ranges of IPv4 addresses (CIDR), for networks that must not overlap.

use std::fmt;
use std::net::Ipv4Addr;

/// A range of IPv4 addresses. Its address may lie anywhere in it, as users write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    address: u32,
    prefix: u32,
}

impl AddressRange {
    /// Reads a range such as `10.0.0.0/20`; the error names the field and the value.
    pub fn parse(field: &str, text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let parsed = parts.and_then(|(address, prefix)| {
            let address = address.parse::<Ipv4Addr>().ok()?.to_bits();
            let prefix = prefix.parse().ok().filter(|prefix| *prefix <= 32)?;
            Some(Self { address, prefix })
        });
        parsed.ok_or_else(|| format!("{field}: {text:?} is not an IPv4 range such as 10.0.0.0/20"))
    }

    /// Whether all of `other` is in this range.
    pub fn contains(self, other: Self) -> bool {
        self.first() <= other.first() && other.end() <= self.end()
    }

    /// Whether any address is in both.
    pub fn overlaps(self, other: Self) -> bool {
        self.first() < other.end() && other.first() < self.end()
    }

    /// The range `by` addresses above this one, if there are as many.
    pub fn raised(self, by: u32) -> Option<Self> {
        Some(Self { address: self.address.checked_add(by)?, prefix: self.prefix })
    }

    /// The lowest range the size of `like` that is inside this one and overlaps none that is taken.
    pub fn first_free(self, like: Self, taken: &[Self]) -> Option<Self> {
        let mut start = self.first();
        loop {
            let candidate = Self { address: u32::try_from(start).ok()?, prefix: like.prefix };
            if !self.contains(candidate) {
                return None;
            }
            // The next candidate starts behind what is in the way, so there are no more steps than ranges.
            match taken.iter().filter(|other| other.overlaps(candidate)).map(|other| other.end()).max() {
                None => return Some(candidate),
                Some(end) => start = end.next_multiple_of(candidate.size()),
            }
        }
    }

    fn first(self) -> u64 {
        u64::from(self.address) & !(self.size() - 1)
    }

    fn end(self) -> u64 {
        self.first() + self.size()
    }

    fn size(self) -> u64 {
        1 << (32 - self.prefix)
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from_bits(self.address), self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> AddressRange {
        AddressRange::parse("range", text).expect(text)
    }

    #[test]
    fn ranges_overlap_when_one_address_is_in_both() {
        let cases = [
            ("10.0.0.0/24", "10.0.1.0/24", false),
            ("10.0.0.0/23", "10.0.1.0/24", true),
            ("10.0.1.77/24", "10.0.1.0/26", true),
            ("0.0.0.0/0", "255.255.255.255/32", true),
        ];
        for (one, other, expected) in cases {
            assert_eq!(range(one).overlaps(range(other)), expected, "{one} and {other}");
            assert_eq!(range(other).overlaps(range(one)), expected, "{other} and {one}");
        }
    }

    #[test]
    fn the_first_free_range_is_aligned_and_inside() {
        let taken = [range("10.0.0.0/25"), range("10.0.2.0/24")];
        let free = range("10.0.0.0/16").first_free(range("1.1.1.0/24"), &taken);
        assert_eq!(free, Some(range("10.0.1.0/24")));
        assert_eq!(range("10.0.0.0/24").first_free(range("1.1.1.0/24"), &taken), None);
        assert_eq!(range("0.0.0.0/0").first_free(range("0.0.0.0/0"), &[range("1.0.0.0/8")]), None);
        let last = range("255.255.255.0/24");
        assert_eq!(last.first_free(range("1.1.1.0/25"), &[range("255.255.255.0/24")]), None);
    }
}
