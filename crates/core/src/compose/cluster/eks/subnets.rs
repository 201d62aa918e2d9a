//! Address ranges of an EKS cluster: one public and one private subnet for each availability zone.
//!
//! The user states the public ranges. A private range lies 48 blocks of 256 addresses above its public one
//! (spec clusters §5), as long as that is inside the VPC and free; otherwise it is the first free range of
//! the same size. A private subnet that exists keeps its range: AWS cannot change it.

use modelplane_api::eks_cluster::{DEFAULT_SUBNETS, EKSClusterSpec, Networking};

use crate::compose::cluster::AddressRange;
use crate::contract::Observed;

/// The subnets of a cluster, in order of their zones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subnets {
    /// AddressRange of the VPC.
    pub vpc: String,
    /// Subnets of each zone.
    pub zones: Vec<Zone>,
    /// What is wrong with the ranges without making them unusable.
    pub warnings: Vec<String>,
}

/// The subnets of one availability zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Zone {
    /// Name of the zone.
    pub name: String,
    /// Public range.
    pub public: String,
    /// Private range.
    pub private: String,
}

/// How far above a public range its private range lies, in addresses.
const PRIVATE_OFFSET: u32 = 48 << 8;

impl Subnets {
    /// Plans the subnets of a cluster. The error names the field and its value.
    pub(super) fn plan(spec: &EKSClusterSpec, observed: &Observed<'_>) -> Result<Self, String> {
        let fallback = Networking::default();
        let networking = spec.networking.as_ref().unwrap_or(&fallback);
        let vpc = AddressRange::parse("spec.networking.vpcCidr", networking.vpc_cidr())?;
        let given: Vec<&str> = match networking.subnet_cidrs.as_slice() {
            [] => DEFAULT_SUBNETS.to_vec(),
            given => given.iter().map(String::as_str).collect(),
        };
        let parse = |(index, text): (usize, &&str)| {
            AddressRange::parse(&format!("spec.networking.subnetCidrs[{index}]"), text)
        };
        let public: Vec<AddressRange> = given.iter().enumerate().map(parse).collect::<Result<_, _>>()?;
        let existing: Vec<Option<AddressRange>> =
            (0..public.len()).map(|index| existing_private(observed, index)).collect();
        let private = private_ranges(vpc, &public, &existing)?;
        let zones = given.iter().zip(&private).enumerate();
        let zones = zones.map(|(index, (public, private))| Zone {
            name: format!("{}{}", spec.region, zone_letter(index)),
            public: (*public).to_owned(),
            private: private.to_string(),
        });
        let warnings = overlaps(vpc, &public, &private);
        Ok(Self { vpc: networking.vpc_cidr().to_owned(), zones: zones.collect(), warnings })
    }
}

/// The zones of a region are lettered.
fn zone_letter(index: usize) -> char {
    u8::try_from(index).ok().filter(|index| *index < 26).map_or('?', |index| char::from(b'a' + index))
}

fn existing_private(observed: &Observed<'_>, index: usize) -> Option<AddressRange> {
    let subnet = observed.resources.get(format!("private-subnet-{index}").as_str())?;
    AddressRange::parse("", subnet.document.text_at(&["spec", "forProvider", "cidrBlock"])?).ok()
}

/// A private range for each public one.
fn private_ranges(
    vpc: AddressRange,
    public: &[AddressRange],
    existing: &[Option<AddressRange>],
) -> Result<Vec<AddressRange>, String> {
    let mut planned: Vec<Option<AddressRange>> = Vec::with_capacity(public.len());
    for (public_range, existing) in public.iter().zip(existing) {
        let usual = public_range.raised(PRIVATE_OFFSET).filter(|range| {
            let taken = public.iter().chain(planned.iter().flatten()).any(|other| other.overlaps(*range));
            vpc.contains(*range) && !taken
        });
        planned.push(existing.or(usual));
    }
    for index in 0..planned.len() {
        if planned[index].is_none() {
            let taken: Vec<AddressRange> = public.iter().chain(planned.iter().flatten()).copied().collect();
            let free = vpc.first_free(public[index], &taken).ok_or_else(|| {
                format!(
                    "spec.networking.vpcCidr {vpc} has no room for a private subnet the size of \
                     subnetCidrs[{index}] {}; use a larger VPC or smaller subnets",
                    public[index]
                )
            })?;
            planned[index] = Some(free);
        }
    }
    Ok(planned.into_iter().flatten().collect())
}

/// Ranges that AWS will refuse, which the user has to put right.
fn overlaps(vpc: AddressRange, public: &[AddressRange], private: &[AddressRange]) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, range) in public.iter().enumerate() {
        let field = format!("spec.networking.subnetCidrs[{index}] {range}");
        if !vpc.contains(*range) {
            warnings.push(format!("{field} is outside vpcCidr {vpc}"));
        }
        let earlier = public[..index].iter().map(|other| ("subnetCidrs", other));
        let existing = private.iter().map(|other| ("a private subnet", other));
        if let Some((what, other)) = earlier.chain(existing).find(|(_, other)| other.overlaps(*range)) {
            warnings.push(format!("{field} overlaps {what} {other}; use a range that is free"));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(vpc: &str, subnets: &[&str]) -> Result<Vec<String>, String> {
        let networking = Networking {
            vpc_cidr: Some(vpc.to_owned()),
            subnet_cidrs: subnets.iter().map(|cidr| (*cidr).to_owned()).collect(),
        };
        let spec = EKSClusterSpec { networking: Some(networking), ..EKSClusterSpec::default() };
        let subnets = Subnets::plan(&spec, &Observed::default())?;
        Ok(subnets.zones.into_iter().map(|zone| zone.private).collect())
    }

    #[test]
    fn private_ranges_never_overlap() {
        let cases: [(&str, &str, &[&str], &[&str]); 5] = [
            (
                "the defaults",
                "10.0.0.0/16",
                &["10.0.0.0/20", "10.0.16.0/20", "10.0.32.0/20"],
                &["10.0.48.0/20", "10.0.64.0/20", "10.0.80.0/20"],
            ),
            (
                "the fourth public range is where the first private one would be",
                "10.0.0.0/16",
                &["10.0.0.0/20", "10.0.16.0/20", "10.0.32.0/20", "10.0.48.0/20"],
                &["10.0.112.0/20", "10.0.64.0/20", "10.0.80.0/20", "10.0.96.0/20"],
            ),
            (
                "the third octet would exceed 255",
                "10.0.0.0/16",
                &["10.0.224.0/20", "10.0.240.0/20"],
                &["10.0.0.0/20", "10.0.16.0/20"],
            ),
            (
                "the private range would be outside the VPC",
                "10.0.0.0/18",
                &["10.0.0.0/20", "10.0.16.0/20"],
                &["10.0.48.0/20", "10.0.32.0/20"],
            ),
            (
                "ranges larger than the offset",
                "10.0.0.0/16",
                &["10.0.0.0/18", "10.0.64.0/18"],
                &["10.0.128.0/18", "10.0.192.0/18"],
            ),
        ];
        for (reason, vpc, subnets, expected) in cases {
            assert_eq!(plan(vpc, subnets).as_deref(), Ok(&expected.map_to_strings()[..]), "{reason}");
        }
    }

    #[test]
    fn a_full_vpc_is_reported_with_its_range() {
        let error = plan("10.0.0.0/19", &["10.0.0.0/20", "10.0.16.0/20"]).expect_err("no room");
        assert!(error.contains("10.0.0.0/19") && error.contains("10.0.0.0/20"), "{error}");
    }

    #[test]
    fn a_malformed_range_is_reported_with_its_field() {
        for text in ["not-a-cidr/20", "10.0.x.0/20", "10.0.0.0", "10.0.0.0/33", "10.0.0/20", ""] {
            let error = plan("10.0.0.0/16", &["10.0.0.0/20", text]).expect_err(text);
            assert!(error.contains("subnetCidrs[1]") && error.contains(text), "{error}");
        }
    }

    trait MapToStrings {
        fn map_to_strings(&self) -> Vec<String>;
    }

    impl MapToStrings for &[&str] {
        fn map_to_strings(&self) -> Vec<String> {
            self.iter().map(|text| (*text).to_owned()).collect()
        }
    }
}
