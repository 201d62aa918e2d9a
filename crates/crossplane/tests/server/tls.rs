//! mTLS, and certificates that are renewed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use modelplane_crossplane::json::request_from_json;
use modelplane_crossplane::server::Options;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::support::{call, call_raw, class, options, start};

#[tokio::test(flavor = "multi_thread")]
async fn clients_without_a_certificate_are_turned_away_and_renewed_ones_are_served() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let first = write_certificates(folder.path());
    let running = start(Options { certificates: Some(folder.path().to_owned()), ..options() }).await;

    let anonymous = ClientTlsConfig::new().ca_certificate(first.ca.clone()).domain_name("localhost");
    let endpoint = Endpoint::from_shared(format!("https://{}", running.address)).expect("a valid address");
    let channel = endpoint.clone().tls_config(anonymous).expect("a valid configuration").connect_lazy();
    let bytes = request_from_json(&class("x")).expect("well formed");
    call_raw(&channel, bytes).await.expect_err("no certificate was presented");

    let channel =
        endpoint.clone().tls_config(first.client()).expect("valid").connect().await.expect("it is served");
    assert_eq!(call(&channel, &class("first")).await["meta"]["tag"], "first");

    // A renewed authority: the old client is turned away, the new one served.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let second = write_certificates(folder.path());
    let channel = endpoint.tls_config(second.client()).expect("valid").connect().await.expect("it is served");
    assert_eq!(call(&channel, &class("second")).await["meta"]["tag"], "second");
    drop(channel);
    running.stop().await;
}

struct Certificates {
    ca: Certificate,
    identity: Identity,
}

impl Certificates {
    fn client(&self) -> ClientTlsConfig {
        ClientTlsConfig::new()
            .ca_certificate(self.ca.clone())
            .identity(self.identity.clone())
            .domain_name("localhost")
    }
}

/// A new authority with a server and a client certificate; the server's files go to `folder`.
fn write_certificates(folder: &Path) -> Certificates {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(params, key).expect("an authority");
    let issue = |name: &str| {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a valid name");
        let certificate = params.signed_by(&key, &authority).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    };
    let (server, server_key) = issue("localhost");
    let (client, client_key) = issue("crossplane");
    let files = [("tls.crt", server), ("tls.key", server_key), ("ca.crt", authority.pem())];
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("the folder is writable");
    }
    Certificates {
        ca: Certificate::from_pem(authority.pem()),
        identity: Identity::from_pem(client, client_key),
    }
}
