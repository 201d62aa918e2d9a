//! TLS towards clients: certificates by name, exchanged while serving.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::routes::config::{Certificate, Problem};

/// The certificates presented now.
#[derive(Debug, Default)]
pub(crate) struct Certificates {
    current: ArcSwap<Vec<Arc<CertifiedKey>>>,
}

impl Certificates {
    /// Presents these from now on. Those that cannot be used are left out and reported.
    pub(crate) fn replace(&self, certificates: &[Certificate]) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut usable = Vec::new();
        for (index, certificate) in certificates.iter().enumerate() {
            match load(certificate) {
                Ok(key) => usable.push(Arc::new(key)),
                Err(reason) => problems.push(Problem { object: format!("TLS certificate {index}"), reason }),
            }
        }
        self.current.store(Arc::new(usable));
        problems
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.current.load().len()
    }

    /// A TLS server that presents them.
    pub(crate) fn server(self: &Arc<Self>) -> Result<Arc<rustls::ServerConfig>, rustls::Error> {
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let certificates = self.current.load();
        let name = hello.server_name().and_then(|name| ServerName::try_from(name).ok());
        let named = name.and_then(|name| certificates.iter().find(|certificate| is_for(certificate, &name)));
        named.or(certificates.first()).cloned()
    }
}

fn is_for(certificate: &CertifiedKey, name: &ServerName<'_>) -> bool {
    certificate
        .end_entity_cert()
        .and_then(ParsedCertificate::try_from)
        .is_ok_and(|parsed| verify_server_name(&parsed, name).is_ok())
}

fn load(certificate: &Certificate) -> Result<CertifiedKey, String> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&certificate.chain)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("the chain cannot be read: {error}"))?;
    if chain.is_empty() {
        return Err("the chain holds no certificate".to_owned());
    }
    // The error of a key could quote it.
    let key =
        PrivateKeyDer::from_pem_slice(&certificate.key).map_err(|_| "the key cannot be read".to_owned())?;
    CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| error.to_string())
}
