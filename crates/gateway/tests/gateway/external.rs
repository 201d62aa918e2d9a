//! Endpoints outside the fleet, and TLS on both sides (issue 7, items 5 and 8).

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use modelplane_gateway::Snapshot;
use modelplane_gateway::routes::config::{Address, Certificate, ClientTls, Credential, EndpointConfig};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use tokio::net::{TcpListener, TcpStream};

use crate::support::*;

/// A certificate for a name, signed by itself.
pub(crate) fn certificate(name: &str) -> Certificate {
    let issued = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    Certificate { chain: issued.cert.pem().into(), key: issued.signing_key.serialize_pem().into() }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn roots(trusted: &Certificate) -> rustls::RootCertStore {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&trusted.chain).flatten());
    roots
}

/// An endpoint that speaks TLS and answers with the name it was asked by and the request's head.
async fn tls_endpoint(certificate: &Certificate) -> std::net::SocketAddr {
    demanding_endpoint(certificate, None).await
}

/// The same, which may demand a client certificate of a certain issuer.
async fn demanding_endpoint(
    certificate: &Certificate,
    clients: Option<&Certificate>,
) -> std::net::SocketAddr {
    let chain = CertificateDer::pem_slice_iter(&certificate.chain).collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(&certificate.key).unwrap();
    let verifier = match clients {
        Some(issuer) => {
            let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(issuer)), provider());
            builder.build().unwrap()
        }
        None => WebPkiClientVerifier::no_client_auth(),
    };
    let config = rustls::ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let asked = stream.get_ref().1.server_name().unwrap_or_default().to_owned();
                let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                    let text = format!("{asked} {} {:?}", request.uri(), request.headers());
                    async move { Ok::<_, std::convert::Infallible>(http::Response::new(full(text))) }
                });
                let builder = hyper::server::conn::http1::Builder::new();
                builder.serve_connection(TokioIo::new(stream), service).await.ok();
            });
        }
    });
    address
}

fn external(address: std::net::SocketAddr, tls: ClientTls) -> EndpointConfig {
    let address =
        Address { host: address.ip().to_string(), port: address.port(), tls: Some(tls), http2: false };
    let mut config = EndpointConfig::new("ml-team", "provider", address);
    config.rewrite_path = Some("/openai/".to_owned());
    config.host_header = Some(HeaderValue::from_static("api.example.com"));
    config
}

fn trusting(certificate: &Certificate, name: &str) -> ClientTls {
    ClientTls {
        server_name: Some(name.to_owned()),
        authorities: Some(certificate.chain.clone()),
        identity: None,
    }
}

#[tokio::test]
async fn a_provider_is_reached_over_tls_by_its_name_and_with_its_own_credential_only() {
    let certificate = certificate("api.example.com");
    let address = tls_endpoint(&certificate).await;
    let mut config = external(address, trusting(&certificate, "api.example.com"));
    let mut value = HeaderValue::from_static("Bearer provider-secret");
    value.set_sensitive(true);
    config.credential = Some(Credential { header: http::header::AUTHORIZATION, value });
    config.add_headers = vec![(http::HeaderName::from_static("x-org"), HeaderValue::from_static("us"))];
    config.remove_headers = vec![http::HeaderName::from_static("x-debug")];
    let gateway = Running::start(only(chat(vec![(1, vec![config])]))).await;
    let request = Request::post("/ml-team/chat/v1/chat/completions")
        .header("host", "gateway")
        .header("authorization", "Bearer caller-secret")
        .header("x-api-key", "caller-secret")
        .header("cookie", "session=caller-secret")
        .header("x-debug", "1")
        .body(Full::from("{}"))
        .unwrap();
    let answer = ask(gateway.address, request).await;
    let text = answer.text();
    assert!(text.starts_with("api.example.com /openai/v1/chat/completions "), "{text}");
    assert!(
        text.contains("Bearer provider-secret") && text.contains(r#""host": "api.example.com""#),
        "{text}"
    );
    assert!(text.contains(r#""x-org": "us""#), "{text}");
    assert!(!text.contains("caller-secret") && !text.contains("x-debug"), "{text}");
}

#[tokio::test]
async fn a_provider_that_cannot_prove_its_name_gets_nothing() {
    let certificate = certificate("api.example.com");
    let address = tls_endpoint(&certificate).await;
    for tls in [
        trusting(&certificate, "other.example.com"),
        ClientTls { server_name: Some("api.example.com".to_owned()), ..ClientTls::default() },
    ] {
        let gateway = Running::start(only(chat(vec![(1, vec![external(address, tls)])]))).await;
        let answer = get(gateway.address, "/ml-team/chat/x").await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (StatusCode::BAD_GATEWAY, "endpoint_unreachable")
        );
    }
}

#[tokio::test]
async fn an_endpoint_with_an_unusable_bundle_is_left_out() {
    let tls = ClientTls { authorities: Some(Bytes::from("no certificate")), ..ClientTls::default() };
    let gateway = Running::start(only(chat(vec![(1, vec![external(loopback(), tls)])]))).await;
    assert_eq!(get(gateway.address, "/ml-team/chat/x").await.code(), "no_endpoints");
}

/// A client certificate's issuer, and a certificate of it.
fn client_certificate() -> (Certificate, Certificate) {
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = authority.self_signed(&key).unwrap();
    let root = Certificate { chain: certificate.pem().into(), key: key.serialize_pem().into() };
    let issuer = rcgen::Issuer::new(authority, key);
    let key = rcgen::KeyPair::generate().unwrap();
    let client = rcgen::CertificateParams::new(vec!["gateway.example.com".to_owned()]).unwrap();
    let client = client.signed_by(&key, &issuer).unwrap();
    (root, Certificate { chain: client.pem().into(), key: key.serialize_pem().into() })
}

#[tokio::test]
async fn an_endpoint_that_demands_a_client_certificate_gets_the_configured_one() {
    let server = certificate("edge.example.com");
    let (issuer, identity) = client_certificate();
    let (_, stranger) = client_certificate();
    let address = demanding_endpoint(&server, Some(&issuer)).await;
    for (identity, want) in [
        (Some(identity), StatusCode::OK),
        (Some(stranger), StatusCode::BAD_GATEWAY),
        (None, StatusCode::BAD_GATEWAY),
    ] {
        let named = identity.is_some();
        let tls = ClientTls { identity, ..trusting(&server, "edge.example.com") };
        let gateway = Running::start(only(chat(vec![(1, vec![external(address, tls)])]))).await;
        let answer = get(gateway.address, "/ml-team/chat/v1/models").await;
        assert_eq!(answer.status, want, "a certificate is sent: {named}; {answer:?}");
    }
}

#[tokio::test]
async fn over_https_other_host_names_than_the_gateways_are_refused() {
    let endpoint = Endpoint::named("one").await;
    let certificate = certificate("models.example.com");
    let mut options = options();
    options.listen_tls = Some(loopback());
    let gateway = modelplane_gateway::Gateway::bind(options).unwrap();
    let (plain, secure, routes) = (gateway.address(), gateway.tls_address().unwrap(), gateway.routes());
    let snapshot = |hostnames: &[&str]| Snapshot {
        certificates: vec![certificate.clone()],
        hostnames: hostnames.iter().map(|&name| name.to_owned()).collect(),
        ..on(&endpoint)
    };
    routes.publish(&snapshot(&[]));
    let _served = tokio::spawn(gateway.serve(snapshot(&[]), std::future::pending()));
    let path = "/ml-team/chat/x";
    let ask = || ask_tls(secure, "models.example.com", &certificate, path);
    assert_eq!(ask().await.as_deref(), Some("one"), "any host will do");
    routes.publish(&snapshot(&["models.example.com"]));
    let refused = ask().await.unwrap();
    assert!(refused.contains("unknown_host"), "the request is for host g: {refused}");
    routes.publish(&snapshot(&["models.example.com", "G"]));
    assert_eq!(ask().await.as_deref(), Some("one"));
    routes.publish(&snapshot(&["models.example.com"]));
    assert_eq!(get(plain, path).await.text(), "one", "what reaches the gateway in the clear has no name");
}

/// Opens a TLS connection for a name, and asks for a path.
pub(crate) async fn ask_tls(
    address: std::net::SocketAddr,
    name: &str,
    trusted: &Certificate,
    path: &str,
) -> Option<String> {
    let mut sender = try_open_tls(address, name, trusted).await?;
    let request = Request::get(path).header("host", "g").body(Full::default()).unwrap();
    let body = soon(sender.send_request(request)).await.unwrap().into_body().collect().await.unwrap();
    Some(String::from_utf8(body.to_bytes().to_vec()).unwrap())
}

/// Opens a TLS connection for a name.
pub(crate) async fn open_tls(
    address: std::net::SocketAddr,
    name: &str,
    trusted: &Certificate,
) -> SendRequest<Full<Bytes>> {
    try_open_tls(address, name, trusted).await.expect("a TLS session")
}

async fn try_open_tls(
    address: std::net::SocketAddr,
    name: &str,
    trusted: &Certificate,
) -> Option<SendRequest<Full<Bytes>>> {
    let config = rustls::ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots(trusted))
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let stream = soon(tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream)).await.ok()?;
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    Some(sender)
}

#[tokio::test]
async fn certificates_are_chosen_by_name_and_exchanged_while_serving() {
    let endpoint = Endpoint::named("one").await;
    let (first, second, third) =
        (certificate("a.example.com"), certificate("b.example.com"), certificate("a.example.com"));
    let with = |certificates: Vec<Certificate>| Snapshot { certificates, ..on(&endpoint) };
    let mut options = options();
    options.listen_tls = Some(loopback());
    let gateway = modelplane_gateway::Gateway::bind(options).unwrap();
    let (address, routes) = (gateway.tls_address().unwrap(), gateway.routes());
    let snapshot = with(vec![first.clone(), second.clone()]);
    routes.publish(&snapshot);
    let _served = tokio::spawn(gateway.serve(snapshot, std::future::pending()));
    let path = "/ml-team/chat/x";
    assert_eq!(ask_tls(address, "a.example.com", &first, path).await.as_deref(), Some("one"));
    assert_eq!(endpoint.last().headers["x-forwarded-proto"], "https");
    assert_eq!(ask_tls(address, "b.example.com", &second, path).await.as_deref(), Some("one"));
    assert_eq!(ask_tls(address, "b.example.com", &first, path).await, None);
    routes.publish(&with(vec![third.clone()]));
    assert_eq!(ask_tls(address, "a.example.com", &first, path).await, None);
    assert_eq!(ask_tls(address, "a.example.com", &third, path).await.as_deref(), Some("one"));
}
