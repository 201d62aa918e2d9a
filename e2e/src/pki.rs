//! One certificate authority for the API servers of a run.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};

use crate::failure::{Failure, Outcome};

/// Group whose members may do everything.
const ADMINISTRATORS: &str = "system:masters";

/// Issues certificates; made anew for each run.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl Authority {
    /// A new authority.
    ///
    /// # Errors
    ///
    /// If no key can be made.
    pub fn new() -> Outcome<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, "modelplane e2e");
        let key = KeyPair::generate().map_err(cannot)?;
        Ok(Self { issuer: CertifiedIssuer::self_signed(params, key).map_err(cannot)? })
    }

    /// The authority's own certificate, in PEM.
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// An identity of a server on this machine.
    ///
    /// # Errors
    ///
    /// If no key can be made.
    pub fn server(&self) -> Outcome<Identity> {
        let names = ["localhost", "127.0.0.1", "kubernetes.default.svc"].map(str::to_owned);
        self.issue(CertificateParams::new(names).map_err(cannot)?, "server")
    }

    /// An identity that may do everything.
    ///
    /// # Errors
    ///
    /// If no key can be made.
    pub fn administrator(&self) -> Outcome<Identity> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::OrganizationName, ADMINISTRATORS);
        self.issue(params, "e2e")
    }

    fn issue(&self, mut params: CertificateParams, name: &str) -> Outcome<Identity> {
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().map_err(cannot)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(cannot)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

fn cannot(error: rcgen::Error) -> Failure {
    Failure::Wrong(format!("cannot make a certificate: {error}"))
}
