//! The server's own certificate authority: its server certificate, and client certificates for kubeconfigs.
//!
//! The authority is made once and kept in the store, so that kubeconfigs stay valid over restarts.

mod subject;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use modelplane_store::{Store, Write};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use serde::{Deserialize, Serialize};
use serde_json::json;
pub(crate) use subject::identity_of;

use crate::error::StartError;
use crate::identity::Identity;

/// Where the authority is stored; no served resource has this prefix.
const KEY: &str = "internal/certificate-authority";
const LOOPBACK: [&str; 6] =
    ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];

/// The authority as stored, in PEM.
#[derive(Serialize, Deserialize)]
struct Stored {
    certificate: String,
    key: String,
}

/// A certificate authority.
pub(crate) struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

fn failed(error: impl std::fmt::Display) -> StartError {
    StartError::Certificates { detail: error.to_string() }
}

impl Authority {
    /// The stored authority, or a new one.
    pub(crate) async fn load(store: &Store) -> Result<Authority, StartError> {
        if let Some(entry) = store.get(KEY).map_err(failed)? {
            let stored: Stored = serde_json::from_slice(&entry.value).map_err(failed)?;
            return Authority::of(stored);
        }
        let key = KeyPair::generate().map_err(failed)?;
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = DistinguishedName::new();
        parameters.distinguished_name.push(DnType::CommonName, "modelplane-ca");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let certificate = parameters.self_signed(&key).map_err(failed)?;
        let stored = Stored { certificate: certificate.pem(), key: key.serialize_pem() };
        let value = serde_json::to_vec(&stored).map_err(failed)?.into();
        store.write(Write::Create { key: KEY.to_owned(), value }).await.map_err(failed)?;
        let issuer = Issuer::new(parameters, key);
        Ok(Authority { certificate: stored.certificate, issuer })
    }

    fn of(stored: Stored) -> Result<Authority, StartError> {
        let key = KeyPair::from_pem(&stored.key).map_err(failed)?;
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = DistinguishedName::new();
        parameters.distinguished_name.push(DnType::CommonName, "modelplane-ca");
        Ok(Authority { certificate: stored.certificate, issuer: Issuer::new(parameters, key) })
    }

    /// The authority's certificate in PEM.
    pub(crate) fn certificate(&self) -> &str {
        &self.certificate
    }

    fn issue(
        &self,
        mut parameters: CertificateParams,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<(String, String), StartError> {
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![usage];
        parameters.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = parameters.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }

    /// What a TLS listener needs: a fresh server certificate, client certificates of this authority accepted.
    pub(crate) fn server_config(&self, hosts: &[String]) -> Result<ServerConfig, StartError> {
        let names: Vec<String> =
            LOOPBACK.iter().map(|name| (*name).to_owned()).chain(hosts.iter().cloned()).collect();
        let mut parameters = CertificateParams::new(names).map_err(failed)?;
        parameters.distinguished_name = DistinguishedName::new();
        parameters.distinguished_name.push(DnType::CommonName, "modelplane-apiserver");
        let (certificate, key) = self.issue(parameters, ExtendedKeyUsagePurpose::ServerAuth)?;
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(failed)?;
        let key = PrivatePkcs8KeyDer::from_pem_slice(key.as_bytes()).map_err(failed)?;
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(self.certificate.as_bytes()).map_err(failed)?;
        roots.add(root.clone()).map_err(failed)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()
            .map_err(failed)?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![certificate, root], PrivateKeyDer::Pkcs8(key))
            .map_err(failed)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    /// A kubeconfig with a fresh client certificate.
    pub(crate) fn kubeconfig(&self, identity: &Identity, server: &str) -> Result<String, StartError> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = DistinguishedName::new();
        // The server adds `system:authenticated` itself; a name holds one value per attribute type.
        let groups: Vec<&str> = identity
            .groups
            .iter()
            .map(String::as_str)
            .filter(|group| *group != "system:authenticated")
            .collect();
        parameters.distinguished_name.push(DnType::OrganizationName, groups.join(","));
        parameters.distinguished_name.push(DnType::CommonName, identity.user.as_str());
        let (certificate, key) = self.issue(parameters, ExtendedKeyUsagePurpose::ClientAuth)?;
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "modelplane",
            "clusters": [{"name": "modelplane", "cluster": {
                "server": server, "certificate-authority-data": STANDARD.encode(&self.certificate),
            }}],
            "users": [{"name": identity.user, "user": {
                "client-certificate-data": STANDARD.encode(certificate), "client-key-data": STANDARD.encode(key),
            }}],
            "contexts": [{"name": "modelplane", "context": {"cluster": "modelplane", "user": identity.user}}],
        });
        serde_saphyr::to_string(&config).map_err(failed)
    }
}
