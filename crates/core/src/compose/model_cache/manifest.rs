//! The objects a cache has on a cluster: volume claim, token and download Job (spec cache §4).
//!
//! The repository and its revision are user input and reach the Job's shell only as the values of variables: they are
//! never part of a command line that a shell parses, and Kubernetes' own `$(VAR)` expansion is escaped.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Container, EnvVar, EnvVarSource, PersistentVolumeClaim, PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource, PodSpec, PodTemplateSpec, SecretKeySelector, Volume, VolumeMount,
    VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use modelplane_api::model_cache::HuggingFace;
use modelplane_api::names::{
    MODEL_CACHE_LABEL, WORKLOAD_NAMESPACE, cache_claim_name, cache_job_name, cache_secret_name, label_value,
};
use serde::Serialize;

use super::Access;
use crate::compose::object::{KubernetesObject, Metadata, ProviderConfigRef, Readiness};
use crate::contract::Body;

const BOUND: &str = "object.status.phase == \"Bound\"";
const COMPLETE: &str = "object.status.conditions.exists(c, c.type == \"Complete\" && c.status == \"True\")";

/// All but `Delete`: a finished Job goes by its own time limit, together with its pod, whereas deleting it would
/// leave the pod to pin the volume.
const NO_DELETE: &[&str] = &["Observe", "Create", "Update", "LateInitialize"];

const IMAGE: &str = "python:3.11-slim";
const MOUNT: &str = "/mnt/artifact";
const VOLUME: &str = "artifact";
const TOKEN_VARIABLE: &str = "HF_TOKEN";
const REPOSITORY_VARIABLE: &str = "MODELPLANE_REPO";
const REVISION_VARIABLE: &str = "MODELPLANE_REVISION";

/// Downloads into the volume. The marker, not the directory's content, tells a finished download: an interrupted
/// one is resumed.
const SCRIPT: &str = "set -e; \
    if [ -f /mnt/artifact/.modelplane-hydrated ]; then echo 'already hydrated, skipping'; exit 0; fi; \
    pip install --quiet huggingface_hub; \
    hf download ${MODELPLANE_REVISION:+\"--revision=$MODELPLANE_REVISION\"} --local-dir /mnt/artifact \
    -- \"$MODELPLANE_REPO\"; \
    touch /mnt/artifact/.modelplane-hydrated";

/// A cache, for building its manifests.
pub(super) struct Manifests<'c> {
    pub(super) namespace: &'c str,
    pub(super) name: &'c str,
    pub(super) source: &'c HuggingFace,
}

#[derive(Serialize)]
struct SecretData<'s> {
    data: BTreeMap<&'s str, &'s str>,
}

impl Manifests<'_> {
    /// The volume the weights go to.
    pub(super) fn claim<'a>(&self, access: Access<'_>) -> Body<'a> {
        let storage = Quantity(format!("{}Gi", self.source.size_gib));
        let requests = BTreeMap::from([("storage".to_owned(), storage)]);
        let claim = PersistentVolumeClaim {
            metadata: self.metadata(self.claim_name()),
            spec: Some(PersistentVolumeClaimSpec {
                access_modes: Some(vec!["ReadWriteMany".to_owned()]),
                storage_class_name: Some(access.storage_class.to_owned()),
                resources: Some(VolumeResourceRequirements { requests: Some(requests), limits: None }),
                ..PersistentVolumeClaimSpec::default()
            }),
            status: None,
        };
        object(access, Some(BOUND), &[], &claim)
    }

    /// The token, `value` being base64 as it was read.
    pub(super) fn secret<'a>(&self, access: Access<'_>, key: &str, value: &str) -> Body<'a> {
        let name = cache_secret_name(self.namespace, self.name);
        let metadata = Metadata::named(name)
            .and_namespace(WORKLOAD_NAMESPACE)
            .and_label(MODEL_CACHE_LABEL, label_value(self.name));
        let data = SecretData { data: BTreeMap::from([(key, value)]) };
        let secret = KubernetesObject::with_content("v1", "Secret", data).with_metadata(metadata);
        object(access, None, &[], &secret)
    }

    /// The Job that downloads the weights.
    pub(super) fn job<'a>(&self, access: Access<'_>) -> Body<'a> {
        let pod = PodTemplateSpec {
            metadata: Some(ObjectMeta { labels: Some(self.labels()), ..ObjectMeta::default() }),
            spec: Some(self.pod()),
        };
        let job = Job {
            metadata: self.metadata(cache_job_name(self.namespace, self.name)),
            spec: Some(JobSpec {
                backoff_limit: Some(3),
                ttl_seconds_after_finished: Some(180),
                template: pod,
                ..JobSpec::default()
            }),
            status: None,
        };
        object(access, Some(COMPLETE), NO_DELETE, &job)
    }

    fn pod(&self) -> PodSpec {
        let container = Container {
            name: "hydrate".to_owned(),
            image: Some(IMAGE.to_owned()),
            command: Some(["/bin/sh", "-c", SCRIPT].map(str::to_owned).to_vec()),
            env: Some(self.environment()),
            volume_mounts: Some(vec![VolumeMount {
                name: VOLUME.to_owned(),
                mount_path: MOUNT.to_owned(),
                ..VolumeMount::default()
            }]),
            ..Container::default()
        };
        let claim = PersistentVolumeClaimVolumeSource { claim_name: self.claim_name(), read_only: None };
        let volume =
            Volume { name: VOLUME.to_owned(), persistent_volume_claim: Some(claim), ..Volume::default() };
        PodSpec {
            restart_policy: Some("OnFailure".to_owned()),
            containers: vec![container],
            volumes: Some(vec![volume]),
            ..PodSpec::default()
        }
    }

    fn environment(&self) -> Vec<EnvVar> {
        let literal = |name: &str, value: &str| EnvVar {
            name: name.to_owned(),
            value: Some(value.replace('$', "$$")),
            value_from: None,
        };
        let token = self.source.auth_secret.as_ref().map(|secret| EnvVar {
            name: TOKEN_VARIABLE.to_owned(),
            value: None,
            value_from: Some(EnvVarSource {
                secret_key_ref: Some(SecretKeySelector {
                    name: cache_secret_name(self.namespace, self.name),
                    key: secret.key().to_owned(),
                    optional: None,
                }),
                ..EnvVarSource::default()
            }),
        });
        let revision = self.source.revision.as_deref().unwrap_or_default();
        let source = [literal(REPOSITORY_VARIABLE, &self.source.repo), literal(REVISION_VARIABLE, revision)];
        token.into_iter().chain(source).collect()
    }

    fn claim_name(&self) -> String {
        cache_claim_name(self.namespace, self.name)
    }

    fn labels(&self) -> BTreeMap<String, String> {
        BTreeMap::from([(MODEL_CACHE_LABEL.to_owned(), label_value(self.name).into_owned())])
    }

    fn metadata(&self, name: String) -> ObjectMeta {
        ObjectMeta {
            name: Some(name),
            namespace: Some(WORKLOAD_NAMESPACE.to_owned()),
            labels: Some(self.labels()),
            ..ObjectMeta::default()
        }
    }
}

fn object<'a, M: Serialize>(
    access: Access<'_>,
    ready_when: Option<&str>,
    policies: &[&str],
    manifest: &M,
) -> Body<'a> {
    let readiness = ready_when.map(|query| Readiness::DeriveFromCelQuery { cel_query: query.into() });
    let object = KubernetesObject::provider_object(
        ProviderConfigRef::cluster(access.provider_config),
        readiness,
        manifest,
    )
    .with_management_policies(policies);
    Body::of(&object)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::*;

    /// A folder for one test, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("modelplane-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).expect("a temporary folder");
            Self(folder)
        }

        /// Puts an executable there that runs `script`.
        #[cfg(unix)]
        fn command(&self, name: &str, script: &str) {
            use std::os::unix::fs::PermissionsExt;
            let path = self.0.join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a writable folder");
            let executable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&path, executable).expect("own files");
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            // A folder left behind harms nobody.
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Runs the script with stubs for what it installs and downloads; the arguments `hf` got, if it ran.
    #[cfg(unix)]
    fn run(folder: &Folder, repository: &str, revision: &str) -> Option<String> {
        folder.command("pip", "true");
        folder.command("touch", ": > \"$1\"");
        let arguments = folder.0.join("arguments");
        folder.command("hf", "for argument; do printf '<%s>' \"$argument\"; done > \"$ARGUMENTS\"");
        let artifact = folder.0.join("artifact");
        std::fs::create_dir_all(&artifact).expect("a writable folder");
        let script = SCRIPT.replace(MOUNT, artifact.to_str().expect("a plain path"));
        let output = Command::new("/bin/sh")
            .args(["-c", &script])
            .env_clear()
            .env("PATH", &folder.0)
            .env("ARGUMENTS", &arguments)
            .env(REPOSITORY_VARIABLE, repository)
            .env(REVISION_VARIABLE, revision)
            .current_dir(&folder.0)
            .output()
            .expect("a shell");
        assert!(output.status.success(), "{repository:?} {revision:?}");
        assert!(artifact.join(".modelplane-hydrated").is_file(), "the download is marked finished");
        let got = std::fs::read_to_string(&arguments).ok();
        got.map(|text| text.replace(artifact.to_str().expect("a plain path"), MOUNT))
    }

    #[cfg(unix)]
    #[test]
    fn the_script_passes_hostile_values_on_as_single_arguments() {
        let cases = [
            ("Qwen/Qwen3-0.6B", "", "<download><--local-dir></mnt/artifact><--><Qwen/Qwen3-0.6B>"),
            ("o/m", "v1", "<download><--revision=v1><--local-dir></mnt/artifact><--><o/m>"),
            (
                "o/m; : > pwned",
                "$(: > pwned)",
                "<download><--revision=$(: > pwned)><--local-dir></mnt/artifact><--><o/m; : > pwned>",
            ),
            ("--help", "a b\n*", "<download><--revision=a b\n*><--local-dir></mnt/artifact><--><--help>"),
        ];
        for (index, (repository, revision, want)) in cases.into_iter().enumerate() {
            let folder = Folder::new(&format!("hydrate-{index}"));
            assert_eq!(run(&folder, repository, revision).as_deref(), Some(want));
            assert!(!Path::new(&folder.0).join("pwned").exists(), "{repository:?} {revision:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_script_downloads_once() {
        let folder = Folder::new("hydrate-twice");
        assert!(run(&folder, "o/m", "").is_some());
        std::fs::remove_file(folder.0.join("arguments")).expect("hf ran");
        assert_eq!(run(&folder, "o/m", ""), None, "the marker is there");
    }
}
