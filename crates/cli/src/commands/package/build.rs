//! `modelplane package build`: package files, byte for byte the same each time.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use super::archive::{Archive, Image, Program};
use super::binary::Binary;
use super::contents;
use super::names::{CONFIGURATION, FUNCTION, Repository, Version};
use crate::outcome::{CommandError, CommandResult, Verdict};
use crate::output;

/// Nobody in particular, and not root.
const USER: &str = "65532:65532";
/// gRPC, and metrics and health.
const PORTS: [u16; 2] = [9443, 8080];

#[derive(Debug, Args)]
#[command(
    after_help = "Each file is an OCI image layout and a Docker archive. Push them with `crossplane xpkg push -f FILE \
                  IMAGE` (the Function's of all architectures in one call, separated by commas) or `skopeo copy \
                  oci-archive:FILE docker://IMAGE`."
)]
pub(crate) struct Arguments {
    /// Where the packages will be pushed to, as HOST/PATH; the Configuration refers to the Function there
    #[arg(long, value_name = "REPOSITORY")]
    repository: Repository,

    /// Version of the packages
    #[arg(long, default_value_t = Version::default(), value_name = "VERSION")]
    package_version: Version,

    /// Folder to write the files to
    #[arg(short, long, default_value = ".", value_name = "DIR")]
    output: PathBuf,

    /// Static program for the Function's image, once for each architecture; this program if none is named
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,

    /// Architectures there must be a program for, such as amd64,arm64
    #[arg(long, value_delimiter = ',', value_name = "ARCH")]
    arch: Vec<String>,
}

impl Arguments {
    pub(crate) fn run(self) -> CommandResult {
        let binaries = self.binaries()?;
        let mut rows = Vec::new();
        for binary in &binaries {
            let (name, reference) =
                (format!("{FUNCTION}-{}.xpkg", binary.architecture), self.reference(FUNCTION));
            let archive = function(&reference, binary)?;
            rows.push(self.write(&name, &reference, binary.architecture, &archive)?);
        }
        let (name, reference) = (format!("{CONFIGURATION}.xpkg"), self.reference(CONFIGURATION));
        let archive = self.configuration(&reference)?;
        rows.push(self.write(&name, &reference, "any", &archive)?);
        output::print(&(output::table(&["FILE", "IMAGE", "ARCH", "MB", "DIGEST"], rows) + "\n"))?;
        Ok(Verdict::Good)
    }

    /// The programs, one of each architecture, in the order of their names.
    fn binaries(&self) -> Result<Vec<Binary>, CommandError> {
        let paths = match self.binary.is_empty() {
            true => vec![Binary::this_program()?],
            false => self.binary.clone(),
        };
        let mut binaries = paths.iter().map(|path| Binary::read(path)).collect::<Result<Vec<_>, _>>()?;
        binaries.sort_by_key(|binary| binary.architecture);
        if let Some(pair) = binaries.windows(2).find(|pair| pair[0].architecture == pair[1].architecture) {
            return Err(CommandError::new(format!("--binary: two programs for {}", pair[0].architecture)));
        }
        for arch in &self.arch {
            if binaries.iter().all(|binary| binary.architecture != *arch) {
                return Err(CommandError::new(format!("--arch: there is no program for {arch}"))
                    .with_hint("build one for that architecture and name it with --binary"));
            }
        }
        match self.arch.is_empty() {
            true => {}
            false => binaries.retain(|binary| self.arch.iter().any(|arch| arch == binary.architecture)),
        }
        Ok(binaries)
    }

    fn reference(&self, name: &str) -> String {
        format!("{}:{}", self.repository.package(name), self.package_version)
    }

    fn configuration(&self, reference: &str) -> Result<Archive, CommandError> {
        let meta = contents::configuration_meta(&self.repository, &self.package_version);
        let objects: Vec<Value> = std::iter::once(meta)
            .chain(contents::definitions())
            .chain(contents::compositions(&self.repository.function_name()))
            .chain([contents::activation_policy()])
            .collect();
        let package = package_file(&objects)?;
        // Crossplane reads it on whatever it runs on; an image has to say something.
        let image = Image { architecture: "amd64", reference, package: &package, program: None };
        image.archive().map_err(unwritable)
    }

    fn write(
        &self,
        name: &str,
        reference: &str,
        architecture: &str,
        archive: &Archive,
    ) -> Result<Vec<String>, CommandError> {
        let path = self.output.join(name);
        let failed =
            |path: &Path, error| CommandError::new(format!("cannot write {}: {error}", path.display()));
        std::fs::create_dir_all(&self.output).map_err(|error| failed(&self.output, error))?;
        std::fs::write(&path, &archive.bytes).map_err(|error| failed(&path, error))?;
        let megabytes = format!("{:.1}", archive.bytes.len() as f64 / 1e6);
        let row = [&path.display().to_string(), reference, architecture, &megabytes, &archive.digest];
        Ok(row.map(str::to_owned).to_vec())
    }
}

fn function(reference: &str, binary: &Binary) -> Result<Archive, CommandError> {
    let package = package_file(&[contents::function_meta()])?;
    let image = Image {
        architecture: binary.architecture,
        reference,
        package: &package,
        program: Some(Program {
            name: "modelplane",
            bytes: &binary.bytes,
            arguments: &["function", "serve"],
            user: USER,
            ports: &PORTS,
        }),
    };
    image.archive().map_err(unwritable)
}

/// The content of `package.yaml`.
fn package_file(objects: &[Value]) -> Result<String, CommandError> {
    Ok(format!("---\n{}", output::to_yaml(objects)?))
}

fn unwritable(error: std::io::Error) -> CommandError {
    CommandError::new(format!("cannot build a package: {error}"))
}

#[cfg(test)]
mod tests {
    use super::super::binary::specimen;
    use super::*;

    fn arguments(output: &Path, binary: Vec<PathBuf>, arch: &[&str]) -> Arguments {
        Arguments {
            repository: "registry.example.org/acme".parse().expect("valid"),
            package_version: Version::default(),
            output: output.to_owned(),
            binary,
            arch: arch.iter().map(|arch| (*arch).to_owned()).collect(),
        }
    }

    #[test]
    fn a_file_is_written_for_each_architecture_and_one_for_the_configuration() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let binary = |name: &str, machine| {
            let path = folder.path().join(name);
            std::fs::write(&path, specimen(machine, 1)).expect("the folder is writable");
            path
        };
        let (amd64, arm64) = (binary("x", 62), binary("y", 183));
        let both = || vec![arm64.clone(), amd64.clone()];
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        for output in [&first, &second] {
            let verdict = arguments(output, both(), &["amd64", "arm64"]).run();
            assert_eq!(verdict.expect("it is built"), Verdict::Good);
        }
        let files = ["modelplane-function-amd64.xpkg", "modelplane-function-arm64.xpkg", "modelplane.xpkg"];
        for name in files {
            let read = |folder: &Path| std::fs::read(folder.join(name)).expect("it was written");
            assert!(read(&first) == read(&second), "{name} differs between two builds");
        }
        for (binaries, arch, text) in [
            (vec![amd64.clone()], &["amd64", "arm64"][..], "no program for arm64"),
            (vec![amd64.clone(), amd64.clone()], &[][..], "two programs for amd64"),
        ] {
            let error = arguments(&first, binaries, arch).run().expect_err("it is refused");
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
