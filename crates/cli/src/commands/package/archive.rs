//! An image in a file: an OCI image layout that is a Docker archive as well, so that whatever pushes one or the other
//! can push it.
//!
//! The same content gives the same bytes: names are sorted, owners and times fixed, nothing is taken from the machine.

use std::collections::BTreeMap;
use std::io::{self, Write};

use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Annotation of the layer with `package.yaml` (Crossplane's xpkg specification).
const LAYER_ANNOTATION: &str = "io.crossplane.xpkg";
const PACKAGE_LAYER: &str = "base";
/// The file in that layer.
pub(super) const PACKAGE_FILE: &str = "package.yaml";

const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";

/// The operating system byte of a gzip header that says nothing (RFC 1952).
const UNKNOWN_SYSTEM: u8 = 255;

/// What an image holds and how it runs.
#[derive(Debug, Default)]
pub(super) struct Image<'i> {
    pub(super) architecture: &'i str,
    /// Reference, tag included.
    pub(super) reference: &'i str,
    /// What the package is, as a YAML stream.
    pub(super) package: &'i str,
    /// The program and how it is started; a Configuration has none.
    pub(super) program: Option<Program<'i>>,
}

/// The program of an image.
#[derive(Debug)]
pub(super) struct Program<'i> {
    /// Name in the image's root.
    pub(super) name: &'i str,
    pub(super) bytes: &'i [u8],
    pub(super) arguments: &'i [&'i str],
    /// `uid:gid`.
    pub(super) user: &'i str,
    pub(super) ports: &'i [u16],
}

/// A finished file.
#[derive(Debug)]
pub(super) struct Archive {
    pub(super) bytes: Vec<u8>,
    /// Digest of the image's manifest.
    pub(super) digest: String,
}

/// Content that is found by its digest.
struct Blob {
    digest: String,
    size: usize,
}

struct Layer {
    blob: Blob,
    /// Digest before compression.
    diff: String,
    annotated: bool,
}

#[derive(Default)]
struct Writer {
    blobs: BTreeMap<String, Vec<u8>>,
}

impl Image<'_> {
    /// Builds the file.
    pub(super) fn archive(&self) -> io::Result<Archive> {
        let mut writer = Writer::default();
        let mut layers = Vec::new();
        if let Some(program) = &self.program {
            layers.push(writer.layer(program.name, program.bytes, 0o755, false)?);
        }
        layers.push(writer.layer(PACKAGE_FILE, self.package.as_bytes(), 0o644, true)?);
        let config = writer.json(&self.config(&layers))?;
        let manifest = writer.json(&manifest(&config, &layers))?;
        let digest = manifest.digest.clone();
        let files = [
            ("index.json", self.index(&manifest)),
            ("manifest.json", self.docker_manifest(&config, &layers)),
            ("oci-layout", json!({ "imageLayoutVersion": "1.0.0" })),
        ];
        Ok(Archive { bytes: writer.finish(&files)?, digest })
    }

    fn config(&self, layers: &[Layer]) -> Value {
        let mut config = json!({});
        if let Some(program) = &self.program {
            let start = [format!("/{}", program.name)];
            let arguments = program.arguments.iter().map(|argument| (*argument).to_owned());
            let ports = program.ports.iter().map(|port| (format!("{port}/tcp"), json!({})));
            config["User"] = json!(program.user);
            config["ExposedPorts"] = ports.collect();
            config["Entrypoint"] = start.into_iter().chain(arguments).collect();
        }
        // Pushing a Docker archive loses annotations; Crossplane's tools restore them from these labels.
        let annotated = layers.iter().filter(|layer| layer.annotated);
        let labels = annotated
            .map(|layer| (format!("{LAYER_ANNOTATION}:{}", layer.blob.digest), json!(PACKAGE_LAYER)));
        config["Labels"] = labels.collect();
        json!({
            "created": "1970-01-01T00:00:00Z",
            "architecture": self.architecture,
            "os": "linux",
            "config": config,
            "rootfs": {
                "type": "layers",
                "diff_ids": layers.iter().map(|layer| layer.diff.as_str()).collect::<Vec<_>>(),
            },
        })
    }

    fn index(&self, manifest: &Blob) -> Value {
        let mut entry = descriptor(MANIFEST_TYPE, manifest);
        entry["platform"] = json!({ "architecture": self.architecture, "os": "linux" });
        entry["annotations"] = json!({ "org.opencontainers.image.ref.name": self.reference });
        json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [entry] })
    }

    fn docker_manifest(&self, config: &Blob, layers: &[Layer]) -> Value {
        json!([{
            "Config": path(&config.digest),
            "RepoTags": [self.reference],
            "Layers": layers.iter().map(|layer| path(&layer.blob.digest)).collect::<Vec<_>>(),
        }])
    }
}

fn manifest(config: &Blob, layers: &[Layer]) -> Value {
    let layers = layers.iter().map(|layer| {
        let mut entry = descriptor(LAYER_TYPE, &layer.blob);
        if layer.annotated {
            entry["annotations"] = json!({ LAYER_ANNOTATION: PACKAGE_LAYER });
        }
        entry
    });
    json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": descriptor(CONFIG_TYPE, config),
        "layers": layers.collect::<Vec<_>>(),
    })
}

fn descriptor(media_type: &str, blob: &Blob) -> Value {
    json!({ "mediaType": media_type, "digest": blob.digest, "size": blob.size })
}

/// Where a blob is in the layout.
fn path(digest: &str) -> String {
    format!("blobs/{}", digest.replace(':', "/"))
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

impl Writer {
    /// A layer of one file.
    fn layer(&mut self, name: &str, content: &[u8], mode: u32, annotated: bool) -> io::Result<Layer> {
        let tar = tar([(name, content, mode)])?;
        let gzip = GzBuilder::new().mtime(0).operating_system(UNKNOWN_SYSTEM);
        let mut encoder = gzip.write(Vec::new(), Compression::best());
        encoder.write_all(&tar)?;
        Ok(Layer { blob: self.blob(encoder.finish()?), diff: sha256(&tar), annotated })
    }

    fn json(&mut self, value: &Value) -> io::Result<Blob> {
        Ok(self.blob(serde_json::to_vec(value)?))
    }

    fn blob(&mut self, bytes: Vec<u8>) -> Blob {
        let blob = Blob { digest: sha256(&bytes), size: bytes.len() };
        self.blobs.insert(path(&blob.digest), bytes);
        blob
    }

    fn finish(self, files: &[(&str, Value)]) -> io::Result<Vec<u8>> {
        let mut all = self.blobs;
        for (name, value) in files {
            all.insert((*name).to_owned(), serde_json::to_vec(value)?);
        }
        tar(all.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice(), 0o644)))
    }
}

/// A tar file of files that belong to root and are as old as time.
fn tar<'f>(files: impl IntoIterator<Item = (&'f str, &'f [u8], u32)>) -> io::Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes, mode) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        builder.append_data(&mut header, name, bytes)?;
    }
    builder.into_inner()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    const PROGRAM: Program<'_> = Program {
        name: "modelplane",
        bytes: b"a program",
        arguments: &["function", "serve"],
        user: "65532:65532",
        ports: &[9443, 8080],
    };

    fn image() -> Image<'static> {
        Image {
            architecture: "amd64",
            reference: "registry.example.org/acme/f:v1.2.3",
            package: "---\nkind: Function\n",
            program: Some(PROGRAM),
        }
    }

    fn untar(bytes: &[u8]) -> BTreeMap<String, (Vec<u8>, tar::Header)> {
        let mut archive = tar::Archive::new(bytes);
        let entries = archive.entries().expect("a tar file");
        entries
            .map(|entry| {
                let mut entry = entry.expect("a readable entry");
                let name = entry.path().expect("a path").display().to_string();
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).expect("readable content");
                (name, (bytes, entry.header().clone()))
            })
            .collect()
    }

    fn json_of(files: &BTreeMap<String, (Vec<u8>, tar::Header)>, name: &str) -> Value {
        serde_json::from_slice(&files[name].0).expect("valid JSON")
    }

    #[test]
    fn the_same_content_gives_the_same_bytes() {
        let (first, second) =
            (image().archive().expect("it is built"), image().archive().expect("it is built"));
        assert!(first.bytes == second.bytes);
        let other = Image { package: "---\nkind: Other\n", ..image() };
        assert_ne!(first.digest, other.archive().expect("it is built").digest);
    }

    #[test]
    fn everything_is_found_by_a_digest_that_is_right() {
        let archive = image().archive().expect("it is built");
        let files = untar(&archive.bytes);
        for (name, (bytes, header)) in &files {
            if let Some(hex) = name.strip_prefix("blobs/sha256/") {
                assert_eq!(sha256(bytes), format!("sha256:{hex}"));
            }
            let owner = (header.uid().ok(), header.gid().ok(), header.mtime().ok());
            assert_eq!(owner, (Some(0), Some(0), Some(0)), "{name}");
        }
        let index = json_of(&files, "index.json");
        assert_eq!(index["manifests"][0]["digest"], archive.digest.as_str());
        let manifest = json_of(&files, &path(&archive.digest));
        let config = json_of(&files, &path(manifest["config"]["digest"].as_str().expect("a digest")));
        let entries =
            std::iter::once(&manifest["config"]).chain(manifest["layers"].as_array().expect("layers"));
        for entry in entries {
            let blob = &files[&path(entry["digest"].as_str().expect("a digest"))];
            assert_eq!(entry["size"], blob.0.len());
        }
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(config["config"]["Entrypoint"], json!(["/modelplane", "function", "serve"]));
        let docker = json_of(&files, "manifest.json");
        assert_eq!(docker[0]["Config"], path(manifest["config"]["digest"].as_str().expect("a digest")));
        assert_eq!(docker[0]["RepoTags"], json!(["registry.example.org/acme/f:v1.2.3"]));
        assert_eq!(files.len(), 3 + 4);
    }

    #[test]
    fn the_layers_hold_the_program_and_the_package_and_nothing_else() {
        let archive = image().archive().expect("it is built");
        let files = untar(&archive.bytes);
        let manifest = json_of(&files, &path(&archive.digest));
        let config = json_of(&files, &path(manifest["config"]["digest"].as_str().expect("a digest")));
        let expected =
            [("modelplane", 0o755, PROGRAM.bytes), (PACKAGE_FILE, 0o644, image().package.as_bytes())];
        let layers = manifest["layers"].as_array().expect("layers");
        assert_eq!(layers.len(), expected.len());
        for (position, (layer, (name, mode, content))) in layers.iter().zip(expected).enumerate() {
            let digest = layer["digest"].as_str().expect("a digest");
            let mut tar = Vec::new();
            GzDecoder::new(files[&path(digest)].0.as_slice()).read_to_end(&mut tar).expect("gzip");
            assert_eq!(config["rootfs"]["diff_ids"][position], sha256(&tar));
            let inside = untar(&tar);
            assert_eq!(inside.keys().collect::<Vec<_>>(), [name]);
            assert_eq!((inside[name].0.as_slice(), inside[name].1.mode().ok()), (content, Some(mode)));
            let annotation = layer["annotations"][LAYER_ANNOTATION].as_str();
            let label = config["config"]["Labels"][format!("{LAYER_ANNOTATION}:{digest}")].as_str();
            let base = (name == PACKAGE_FILE).then_some("base");
            assert_eq!((annotation, label), (base, base), "{name}");
        }
    }
}
