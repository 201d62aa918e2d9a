//! TLS towards endpoints.

use std::sync::{Arc, OnceLock};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use crate::routes::config::{Address, ClientTls};

/// A prepared TLS client for one address.
#[derive(Debug)]
pub(crate) struct TlsClient {
    /// Offers HTTP/2 and HTTP/1.1.
    pub(crate) any: Arc<ClientConfig>,
    /// Offers HTTP/1.1 only, for upgrades.
    pub(crate) http1: Arc<ClientConfig>,
    /// Name asked for and verified.
    pub(crate) server_name: ServerName<'static>,
}

/// Why an endpoint cannot be spoken to over TLS.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    /// The name to verify.
    #[error("server name {0:?} is neither a host name nor an IP address")]
    ServerName(String),
    /// The CA bundle.
    #[error("the CA bundle holds no usable certificate")]
    Authorities,
    /// The client certificate.
    #[error("the client certificate or its key cannot be used: {0}")]
    Identity(String),
    /// The TLS library.
    #[error("{0}")]
    Config(#[from] rustls::Error),
}

impl TlsClient {
    /// Prepares a client for an address, or none for a plain one.
    pub(crate) fn prepare(address: &Address) -> Result<Option<Self>, TlsError> {
        let Some(tls) = &address.tls else { return Ok(None) };
        let name = tls.server_name.as_ref().unwrap_or(&address.host);
        let server_name =
            ServerName::try_from(name.clone()).map_err(|_| TlsError::ServerName(name.clone()))?;
        let mut any = client_config(tls)?;
        let mut http1 = any.clone();
        any.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        http1.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Some(Self { any: Arc::new(any), http1: Arc::new(http1), server_name }))
    }
}

fn client_config(tls: &ClientTls) -> Result<ClientConfig, TlsError> {
    let roots = match &tls.authorities {
        None => system_roots(),
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(CertificateDer::pem_slice_iter(pem).flatten());
            if roots.is_empty() {
                return Err(TlsError::Authorities);
            }
            Arc::new(roots)
        }
    };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let Some(identity) = &tls.identity else { return Ok(config.with_no_client_auth()) };
    let unusable = |error: rustls::pki_types::pem::Error| TlsError::Identity(error.to_string());
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(&identity.chain).collect::<Result<_, _>>().map_err(unusable)?;
    let key = PrivateKeyDer::from_pem_slice(&identity.key).map_err(unusable)?;
    config.with_client_auth_cert(chain, key).map_err(|error| TlsError::Identity(error.to_string()))
}

/// The authorities the operating system trusts, read once.
fn system_roots() -> Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let load = || {
        let loaded = rustls_native_certs::load_native_certs();
        for error in &loaded.errors {
            tracing::warn!(%error, "a system certificate cannot be read");
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(loaded.certs);
        Arc::new(roots)
    };
    ROOTS.get_or_init(load).clone()
}
