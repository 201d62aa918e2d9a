//! Crossplane, provider-kubernetes, and our packages as `kubectl apply` would install them.
//!
//! Crossplane finds a function by a FunctionRevision's label and dials what its status says. The package
//! manager would write that; here it is written by hand, so no registry is needed, and the revision is paused
//! so that the package manager leaves it alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome, not_yet, until};
use crate::kube_api::{Kube, Target, conditions, is_true, list, name, text};
use crate::manifests;
use crate::process::{Process, Program, free_port};
use crate::resources::{
    COMPOSITE_DEFINITION, CUSTOM_RESOURCE_DEFINITION, FUNCTION_REVISION, NAMESPACE, SECRET, SERVICE,
};
use crate::tools::{Tools, repository};

/// Namespace of Crossplane itself.
pub const NAMESPACE_OF_CROSSPLANE: &str = "crossplane-system";

/// Name of the Service in front of Crossplane's webhooks.
///
/// Crossplane issues its server certificate for this name. Being `localhost`, the certificate also fits our
/// function server, so both ends of every call use certificates that Crossplane itself has made.
const WEBHOOK_SERVICE: &str = "localhost";
const AUTHORITY_SECRET: &str = "crossplane-root-ca";
const SERVER_SECRET: &str = "crossplane-tls-server";
const CLIENT_SECRET: &str = "crossplane-tls-client";

/// Folders with the certificates that Crossplane has made.
#[derive(Debug, Clone)]
pub struct Certificates {
    /// For servers on `localhost`.
    pub server: PathBuf,
    /// For Crossplane as a client of functions.
    pub client: PathBuf,
}

/// Crossplane and the provider, if it runs.
#[derive(Debug)]
pub struct Crossplane {
    core: Process,
    provider: Option<Process>,
}

/// What there is of the providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// provider-kubernetes runs; of provider-helm only its kinds are there.
    Kubernetes,
    /// Only the kinds of both are there.
    DefinitionsOnly,
}

/// What is needed to start Crossplane.
#[derive(Clone, Copy)]
pub struct Installation<'i> {
    /// The binaries.
    pub tools: &'i Tools,
    /// The control plane.
    pub kube: &'i Kube,
    /// Where logs and certificates go.
    pub folder: &'i Path,
    /// Port of Crossplane's webhooks.
    pub webhook_port: u16,
}

impl<'i> Installation<'i> {
    /// Installs definitions, webhooks and certificates as `crossplane core init` does.
    ///
    /// # Errors
    ///
    /// If Crossplane cannot be initialised.
    pub async fn initialise(&self) -> Outcome<Certificates> {
        for namespace in [NAMESPACE_OF_CROSSPLANE, modelplane_api::names::SYSTEM_NAMESPACE] {
            create_namespace(self.kube, namespace).await?;
        }
        self.kube.apply(&webhook_service()).await?;
        let mut environment = self.environment();
        environment.extend([
            ("CRDS_PATH", self.tools.definitions("crossplane").display().to_string()),
            ("WEBHOOK_CONFIGS_PATH", self.tools.definitions("crossplane-webhooks").display().to_string()),
            ("WEBHOOK_SERVICE_NAME", WEBHOOK_SERVICE.to_owned()),
            ("WEBHOOK_SERVICE_NAMESPACE", NAMESPACE_OF_CROSSPLANE.to_owned()),
            ("WEBHOOK_SERVICE_PORT", self.webhook_port.to_string()),
            ("TLS_CA_SECRET_NAME", AUTHORITY_SECRET.to_owned()),
            ("TLS_SERVER_SECRET_NAME", SERVER_SECRET.to_owned()),
            ("TLS_CLIENT_SECRET_NAME", CLIENT_SECRET.to_owned()),
        ]);
        // It fails while its own definitions are not served yet; a kubelet would start it again, too.
        until("Crossplane is initialised", async || {
            let arguments = ["core", "init", "--debug"].map(str::to_owned).to_vec();
            let (binary, environment) = (self.tools.binary("crossplane"), environment.clone());
            let program = Program { name: "crossplane-init", binary, arguments, environment };
            program.run(self.folder).await.map_err(not_yet)
        })
        .await?;
        Ok(Certificates {
            server: self.unpack(SERVER_SECRET).await?,
            client: self.unpack(CLIENT_SECRET).await?,
        })
    }

    /// Starts Crossplane and, if asked to, provider-kubernetes.
    ///
    /// # Errors
    ///
    /// If one cannot be started.
    pub async fn start(&self, certificates: &Certificates, runs: Provider) -> Outcome<Crossplane> {
        for provider in ["provider-kubernetes", "provider-helm"] {
            let mut definitions = manifests::read_folder(&self.tools.definitions(provider))?;
            // The kinds without namespaces are from before Crossplane 2, need a conversion webhook, and are
            // not used by anything composed.
            definitions.retain(|definition| text(definition, "/spec/group").contains(".m."));
            install_definitions(self.kube, &definitions).await?;
        }
        let core = self.core(certificates)?;
        let provider = match runs {
            Provider::Kubernetes => Some(self.provider(certificates)?),
            Provider::DefinitionsOnly => None,
        };
        Ok(Crossplane { core, provider })
    }

    fn core(&self, certificates: &Certificates) -> Outcome<Process> {
        let folder = |name: &str| self.folder.join(name).display().to_string();
        let mut arguments =
            ["core", "start", "--debug", "--package-runtime=External"].map(str::to_owned).to_vec();
        arguments.extend([
            format!("--webhook-port={}", self.webhook_port),
            format!("--metrics-port={}", free_port()?),
            format!("--health-probe-port={}", free_port()?),
            format!("--tls-server-certs-dir={}", certificates.server.display()),
            format!("--tls-client-certs-dir={}", certificates.client.display()),
            format!("--xpkg-cache-dir={}", folder("packages")),
            // With the defaults (100 and 1) the burst of events when a serving stack is made opens the circuit,
            // and its watches are all but ignored for five minutes.
            "--circuit-breaker-burst=1000".to_owned(),
            "--circuit-breaker-refill-rate=50".to_owned(),
        ]);
        let binary = self.tools.binary("crossplane");
        Program { name: "crossplane", binary, arguments, environment: self.environment() }.start(self.folder)
    }

    fn provider(&self, certificates: &Certificates) -> Outcome<Process> {
        let mut environment = self.environment();
        environment.push(("TLS_SERVER_CERTS_DIR", certificates.server.display().to_string()));
        let arguments = vec![
            // Without watches this is how remote changes are noticed; the default is ten minutes.
            "--poll=3s".to_owned(),
            format!("--health-probe-bind-addr=127.0.0.1:{}", free_port()?),
        ];
        let binary = self.tools.binary("provider-kubernetes");
        Program { name: "provider-kubernetes", binary, arguments, environment }.start(self.folder)
    }

    fn environment(&self) -> Vec<(&'i str, String)> {
        vec![
            ("KUBECONFIG", self.kube.kubeconfig_file.display().to_string()),
            ("POD_NAMESPACE", NAMESPACE_OF_CROSSPLANE.to_owned()),
        ]
    }

    /// Writes a TLS Secret's entries as files, as a mounted volume would show them.
    async fn unpack(&self, secret: &str) -> Outcome<PathBuf> {
        let object = self.kube.get(SECRET, NAMESPACE_OF_CROSSPLANE, secret).await?;
        let folder = self.folder.join(secret);
        std::fs::create_dir_all(&folder).map_err(Failure::io("make a folder"))?;
        for file in ["ca.crt", "tls.crt", "tls.key"] {
            let bytes = STANDARD.decode(object["data"][file].as_str().unwrap_or_default());
            let bytes = bytes.map_err(|error| Failure::Wrong(format!("Secret {secret}: {file}: {error}")))?;
            std::fs::write(folder.join(file), bytes).map_err(Failure::io("write a certificate"))?;
        }
        Ok(folder)
    }
}

impl Crossplane {
    /// Fails if Crossplane or the provider has ended.
    ///
    /// # Errors
    ///
    /// With the end of its log.
    pub fn check(&mut self) -> Outcome {
        self.core.check()?;
        self.provider.as_mut().map_or(Ok(()), Process::check)
    }
}

/// Installs our definitions and compositions, and the functions they name, all served at `endpoint`.
///
/// # Errors
///
/// If the control plane refuses something or a definition is never established.
pub async fn install_packages(kube: &Kube, endpoint: &str) -> Outcome {
    let package = repository().join("package");
    let definitions = manifests::read_folder(&package.join("xrds"))?;
    for definition in &definitions {
        kube.apply(definition).await?;
    }
    let compositions = manifests::read_folder(&package.join("compositions"))?;
    let steps = compositions.iter().flat_map(|composition| list(composition, "/spec/pipeline"));
    let functions: BTreeSet<&str> = steps.map(|step| text(step, "/functionRef/name")).collect();
    for function in functions {
        install_function(kube, function, endpoint).await?;
    }
    for composition in &compositions {
        kube.apply(composition).await?;
    }
    for definition in &definitions {
        let name = name(definition);
        until(&format!("XRD {name} is Established"), async || {
            let found = kube.get(COMPOSITE_DEFINITION, "", name).await.map_err(not_yet)?;
            if is_true(&found, "Established") { Ok(()) } else { Err(conditions(&found)) }
        })
        .await?;
    }
    Ok(())
}

async fn install_function(kube: &Kube, function: &str, endpoint: &str) -> Outcome {
    let revision = format!("{function}-e2e");
    kube.apply(&json!({
        "apiVersion": FUNCTION_REVISION.api_version(),
        "kind": FUNCTION_REVISION.kind,
        "metadata": {
            "name": revision,
            "labels": {"pkg.crossplane.io/package": function},
            "annotations": {"crossplane.io/paused": "true"},
        },
        "spec": {
            "desiredState": "Active",
            "image": format!("localhost/{function}:e2e"),
            "revision": 1,
        },
    }))
    .await?;
    let status = json!({"status": {"endpoint": endpoint, "capabilities": ["composition"]}});
    kube.merge(Target::new(FUNCTION_REVISION, "", &revision), "status", &status).await.map(drop)
}

/// Installs resource definitions and waits until they are served.
///
/// # Errors
///
/// If the API server refuses one or never serves it.
pub async fn install_definitions(kube: &Kube, definitions: &[Value]) -> Outcome {
    for definition in definitions {
        kube.apply(definition).await?;
    }
    for definition in definitions {
        let name = name(definition);
        until(&format!("CRD {name} is Established"), async || {
            let found = kube.get(CUSTOM_RESOURCE_DEFINITION, "", name).await.map_err(not_yet)?;
            if is_true(&found, "Established") { Ok(()) } else { Err(conditions(&found)) }
        })
        .await?;
    }
    Ok(())
}

/// Makes a namespace unless it exists.
///
/// # Errors
///
/// If the API server refuses it.
pub async fn create_namespace(kube: &Kube, namespace: &str) -> Outcome {
    let manifest = json!({
        "apiVersion": NAMESPACE.api_version(),
        "kind": NAMESPACE.kind,
        "metadata": {"name": namespace},
    });
    kube.apply(&manifest).await.map(drop)
}

/// There is no cluster network; a Service of this type is resolved to this machine.
fn webhook_service() -> Value {
    json!({
        "apiVersion": SERVICE.api_version(),
        "kind": SERVICE.kind,
        "metadata": {"name": WEBHOOK_SERVICE, "namespace": NAMESPACE_OF_CROSSPLANE},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    })
}
