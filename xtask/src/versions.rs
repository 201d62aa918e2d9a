//! `xtask versions`: lists what is newer than the versions in `modelplane_core::versions`.
//!
//! Nobody's registry is a precondition: Go modules are asked through the Go tool, charts through `helm`
//! and images through `skopeo` where those are installed; what cannot be asked is listed as not reachable
//! and fails nothing. The table itself is edited by hand.

use std::cmp::Ordering;
use std::fmt;
use std::process::Command;

use modelplane_core::versions::{CHARTS, CRD_BUNDLES, Chart, CrdBundle, IMAGES, Image};
use serde::Deserialize;

/// Every row of the table with what was found.
#[derive(Debug)]
pub(crate) struct Report {
    /// Rows: charts, images, bundles.
    pub rows: Vec<Row>,
}

/// One row.
#[derive(Debug)]
pub(crate) struct Row {
    /// What it is: `chart`, `image` or `definitions`.
    pub what: &'static str,
    /// Name, with the repository it comes from.
    pub name: String,
    /// Version in the table; empty if users always choose it.
    pub version: String,
    /// What the registry says.
    pub found: Found,
}

/// What a registry says about a version.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing newer.
    Newest,
    /// Newer releases, oldest first.
    Newer(Vec<String>),
    /// The registry, or the tool to ask it with, is not there.
    NotReachable(String),
}

/// Looks up every row; a row that cannot be looked up says so.
pub(crate) fn run() -> Report {
    let charts = CHARTS.iter().map(|chart| chart_row(chart));
    let images = IMAGES.iter().map(|image| image_row(image));
    let bundles = CRD_BUNDLES.iter().map(|bundle| bundle_row(bundle));
    Report { rows: charts.chain(images).chain(bundles).collect() }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Row { what, name, version, found } in &self.rows {
            let version = if version.is_empty() { "(user's)" } else { version };
            write!(f, "{what:<12} {name:<78} {version:<12} ")?;
            match found {
                Found::Newest => writeln!(f, "newest")?,
                Found::Newer(versions) => writeln!(f, "newer: {}", versions.join(", "))?,
                Found::NotReachable(why) => writeln!(f, "not reachable: {why}")?,
            }
        }
        Ok(())
    }
}

fn chart_row(chart: &Chart) -> Row {
    let found = match helm(chart) {
        Found::NotReachable(why) => match chart.go_module {
            Some(module) => newer_of(go_versions(module), chart.version),
            None => Found::NotReachable(why),
        },
        found => found,
    };
    let name = format!("{} ({})", chart.name, chart.repository);
    Row { what: "chart", name, version: chart.version.to_owned(), found }
}

fn image_row(image: &Image) -> Row {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Tags {
        tags: Vec<String>,
    }
    let repository = format!("{}/{}", image.registry, image.repository);
    let tags = output("skopeo", &["list-tags", &format!("docker://{repository}")])
        .and_then(|text| serde_json::from_str::<Tags>(&text).map_err(|error| error.to_string()))
        .map(|tags| tags.tags);
    Row { what: "image", name: repository, version: image.tag.to_owned(), found: newer_of(tags, image.tag) }
}

fn bundle_row(bundle: &CrdBundle) -> Row {
    let found = newer_of(go_versions(bundle.go_module), bundle.version);
    Row { what: "definitions", name: bundle.go_module.to_owned(), version: bundle.version.to_owned(), found }
}

/// Asks a chart repository for its newest release.
fn helm(chart: &Chart) -> Found {
    #[derive(Deserialize)]
    struct Metadata {
        version: String,
    }
    let text = if chart.repository.starts_with("oci://") {
        output("helm", &["show", "chart", &format!("{}/{}", chart.repository, chart.name)])
    } else {
        output("helm", &["show", "chart", chart.name, "--repo", chart.repository])
    };
    let newest = text
        .and_then(|text| serde_saphyr::from_str::<Metadata>(&text).map_err(|error| error.to_string()))
        .map(|metadata| vec![metadata.version]);
    newer_of(newest, chart.version)
}

/// Asks the Go module proxy for the releases of a module.
fn go_versions(module: &str) -> Result<Vec<String>, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Listing {
        #[serde(default)]
        versions: Vec<String>,
    }
    let text = output("go", &["list", "-m", "-versions", "-json", module])?;
    serde_json::from_str::<Listing>(&text).map(|listing| listing.versions).map_err(|error| error.to_string())
}

/// Runs a tool; an error is one line about why there is no answer.
fn output(tool: &str, arguments: &[&str]) -> Result<String, String> {
    // The folder keeps an enclosing Go module, if there is one, out of it.
    let output = Command::new(tool)
        .args(arguments)
        .current_dir(std::env::temp_dir())
        .output()
        .map_err(|_| format!("{tool} is not installed"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(message.lines().next().unwrap_or("no answer").trim().to_owned())
}

/// The releases newer than `current`; those that are not plain versions are passed over.
fn newer_of(candidates: Result<Vec<String>, String>, current: &str) -> Found {
    let candidates = match candidates {
        Ok(candidates) => candidates,
        Err(why) => return Found::NotReachable(why),
    };
    let current = Release::parse(current);
    let mut newer: Vec<(Release<'_>, &String)> = candidates
        .iter()
        .filter_map(|candidate| Some((Release::parse(candidate)?, candidate)))
        .filter(|(release, _)| match &current {
            Some(current) => release.suffix == current.suffix && release.cmp(current) == Ordering::Greater,
            None => release.suffix.is_empty(),
        })
        .collect();
    newer.sort();
    newer.dedup();
    if newer.is_empty() {
        return Found::Newest;
    }
    Found::Newer(newer.into_iter().map(|(_, text)| text.clone()).collect())
}

/// A version or tag of dotted numbers: `v1.2.3`, `72.6.2`, `3.11-slim`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Release<'a> {
    numbers: Vec<u64>,
    suffix: &'a str,
}

impl<'a> Release<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (numbers, suffix) = text.split_once('-').unwrap_or((text, ""));
        let numbers: Option<Vec<u64>> = numbers.split('.').map(|number| number.parse().ok()).collect();
        numbers.map(|numbers| Self { numbers, suffix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newer(candidates: &[&str], current: &str) -> Found {
        newer_of(Ok(candidates.iter().map(|&text| text.to_owned()).collect()), current)
    }

    #[test]
    fn only_newer_releases_of_the_same_flavour_are_listed_in_order() {
        let cases: [(&str, &[&str], &str, &[&str]); 5] = [
            (
                "numeric, not alphabetic, order",
                &["v1.10.0", "v1.9.0", "v1.5.1"],
                "v1.5.1",
                &["v1.9.0", "v1.10.0"],
            ),
            ("release candidates are passed over", &["v1.6.0-rc.1", "v1.6.0"], "v1.5.1", &["v1.6.0"]),
            ("the prefix does not matter", &["0.19.0", "0.18.3"], "v0.18.3", &["0.19.0"]),
            (
                "flavours of an image are kept apart",
                &["3.12-slim", "3.12", "3.12-alpine"],
                "3.11-slim",
                &["3.12-slim"],
            ),
            ("digests and names are passed over", &["latest", "sha256:ab"], "1.0.0", &[]),
        ];
        for (reason, candidates, current, expected) in cases {
            let expected = match expected {
                [] => Found::Newest,
                versions => Found::Newer(versions.iter().map(|&text| text.to_owned()).collect()),
            };
            assert_eq!(newer(candidates, current), expected, "{reason}");
        }
    }

    #[test]
    fn a_registry_that_does_not_answer_is_reported_and_fails_nothing() {
        let found = newer_of(output("no-such-tool-anywhere", &[]).map(|text| vec![text]), "v1.0.0");
        assert_eq!(found, Found::NotReachable("no-such-tool-anywhere is not installed".to_owned()));
    }
}
