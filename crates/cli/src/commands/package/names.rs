//! What the packages and what Crossplane makes of them are called.

use std::fmt::{self, Display};
use std::str::FromStr;

/// Repository of the Configuration package, below where packages are pushed to.
pub(super) const CONFIGURATION: &str = "modelplane";
/// Repository of the Function package; the Function's name where no package manager derives one.
pub(super) const FUNCTION: &str = "modelplane-function";

/// Longest label, and so longest name of a Function (RFC 1123).
const MAX_LABEL: usize = 63;

/// Where packages are pushed to: `HOST/PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    host: String,
    path: String,
}

impl Repository {
    /// The reference of a package, without its version.
    pub(super) fn package(&self, name: &str) -> String {
        format!("{self}/{name}")
    }

    /// The name Crossplane gives the Function when it installs it for the Configuration.
    pub(super) fn function_name(&self) -> String {
        dns_label(&format!("{}/{FUNCTION}", self.path))
    }
}

impl FromStr for Repository {
    type Err = String;

    /// Crossplane takes fully qualified references only: no default host, and none without a dot.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some((host, path)) = text.split_once('/') else {
            return Err("write HOST/PATH, such as registry.example.org/acme".to_owned());
        };
        let host_ok = host.contains('.')
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:".contains(&byte));
        if !host_ok {
            return Err(format!("{host:?} is not the host of a registry, such as registry.example.org"));
        }
        let part_ok = |part: &str| {
            let inner =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
            !part.is_empty() && part.bytes().all(inner) && !part.starts_with(['.', '_', '-'])
        };
        if !path.split('/').all(part_ok) {
            return Err(format!(
                "{path:?} is not a path in a registry: lower-case names separated by slashes"
            ));
        }
        Ok(Self { host: host.to_owned(), path: path.to_owned() })
    }
}

impl Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.path)
    }
}

/// The version of the packages: a semantic version behind a `v`, as Crossplane wants tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version(String);

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let core = text.strip_prefix('v').unwrap_or_default();
        let (core, pre_release) = core.split_once('-').unwrap_or((core, "0"));
        let parts: Vec<&str> = core.split('.').collect();
        let suffix_ok = !pre_release.is_empty()
            && pre_release.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
        match parts.len() == 3 && parts.iter().all(|part| number(part)) && suffix_ok {
            true => Ok(Self(text.to_owned())),
            false => Err("write a version such as v0.1.0 or v0.1.0-rc.1".to_owned()),
        }
    }
}

impl Default for Version {
    fn default() -> Self {
        Self(concat!("v", env!("CARGO_PKG_VERSION")).to_owned())
    }
}

impl Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A name made of a repository's path as Crossplane makes it: letters and digits stay, separators become hyphens,
/// anything else goes, and what does not fit a label is cut off.
pub(super) fn dns_label(path: &str) -> String {
    let last = path.len().saturating_sub(1);
    let mut label = String::with_capacity(path.len());
    for (position, byte) in path.bytes().enumerate().take(MAX_LABEL) {
        let inside = position != 0 && position != MAX_LABEL - 1 && position != last;
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => label.push(char::from(byte)),
            b'.' | b'/' | b':' | b'-' if inside => label.push('-'),
            _ => {}
        }
    }
    label.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_called_what_crossplane_calls_them() {
        let cases = [
            ("registry.example.org/modelplane", "modelplane-modelplane-function"),
            ("127.0.0.1:5000/a/b.c", "a-b-c-modelplane-function"),
            ("registry.example.org/with_underscore", "withunderscore-modelplane-function"),
        ];
        for (repository, name) in cases {
            let repository: Repository = repository.parse().expect("a valid repository");
            assert_eq!(repository.function_name(), name);
        }
        let long = dns_label(&format!("{}/{FUNCTION}", "x".repeat(60)));
        assert_eq!(long, format!("{}-mo", "x".repeat(60)), "the rest is cut off");
    }

    #[test]
    fn what_is_no_repository_is_refused() {
        for text in [
            "acme",
            "acme/x",
            "localhost:5000/acme",
            "https://registry.example.org/acme",
            "registry.example.org/",
            "a.b/A",
            "a.b/c:tag",
        ] {
            assert!(text.parse::<Repository>().is_err(), "{text}");
        }
    }

    #[test]
    fn versions_are_those_registries_are_asked_for() {
        for (text, valid) in [
            ("v0.1.0", true),
            ("v1.2.3-rc.1", true),
            ("0.1.0", false),
            ("v1.2", false),
            ("v1.2.x", false),
            ("v1.2.3-", false),
            ("v1.2.3-a+b", false),
        ] {
            assert_eq!(text.parse::<Version>().is_ok(), valid, "{text}");
        }
        assert!(Version::default().0.parse::<Version>().is_ok());
    }
}
