//! The order of API versions: general availability before beta before alpha, then the newest.

/// A key that sorts later versions higher, as CustomResourceDefinitions order them: `v2` > `v1` > `v1beta2` >
/// `v1alpha1` > anything else (those by name, the first in the alphabet highest).
pub(crate) fn priority(version: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let other = || (0, 0, 0, std::cmp::Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else { return other() };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (major, rest) = rest.split_at(digits);
    let Ok(major) = major.parse() else { return other() };
    let named = std::cmp::Reverse(String::new());
    if rest.is_empty() {
        return (3, major, 0, named);
    }
    for (stage, rank) in [("beta", 2), ("alpha", 1)] {
        if let Some(Ok(minor)) = rest.strip_prefix(stage).map(str::parse) {
            return (rank, major, minor, named);
        }
    }
    other()
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_sort_from_stable_to_experimental() {
        let mut versions = ["foo1", "v1alpha1", "v10", "v1beta1", "v2", "foo10", "v11beta2", "v1", "v3beta1"];
        versions.sort_by_key(|version| std::cmp::Reverse(super::priority(version)));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v11beta2", "v3beta1", "v1beta1", "v1alpha1", "foo1", "foo10"]
        );
    }
}
