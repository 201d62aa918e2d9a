//! A server behind a TLS listener, and connections to it.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use modelplane_apiserver::{ApiServer, Identity, Options};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A server that is being served.
pub(crate) struct Served {
    pub(crate) server: Arc<ApiServer>,
    pub(crate) address: SocketAddr,
    /// The administrator's.
    pub(crate) kubeconfig: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Served {
    pub(crate) async fn start(options: Options) -> Served {
        let server = Arc::new(ApiServer::start(options).await.unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = Arc::clone(&server);
        let task = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            serving.serve(listener, stopped).await.unwrap();
        });
        let kubeconfig = server.kubeconfig(&Identity::admin(), &format!("https://{address}")).unwrap();
        Served { server, address, kubeconfig, stop, task }
    }

    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap();
        if let Some(server) = Arc::into_inner(self.server) {
            server.shutdown().await;
        }
    }

    /// A client with a certificate for someone.
    pub(crate) async fn client(&self, identity: &Identity) -> Client {
        let url = format!("https://{}", self.address);
        client(Kubeconfig::from_yaml(&self.server.kubeconfig(identity, &url).unwrap()).unwrap()).await
    }

    /// A client with a bearer token, or without any credentials.
    pub(crate) async fn client_with_token(&self, token: Option<&str>) -> Client {
        let mut kubeconfig = Kubeconfig::from_yaml(&self.kubeconfig).unwrap();
        let token = token.map(|token| token.to_owned().into());
        kubeconfig.auth_infos[0].auth_info = Some(kube::config::AuthInfo { token, ..Default::default() });
        client(kubeconfig).await
    }

    /// A TLS connection as the administrator, for HTTP/1.1 written by hand.
    pub(crate) async fn connect(&self) -> TlsStream<TcpStream> {
        let kubeconfig: serde_json::Value = serde_saphyr::from_str(&self.kubeconfig).unwrap();
        let decode =
            |pointer: &str| STANDARD.decode(kubeconfig.pointer(pointer).unwrap().as_str().unwrap()).unwrap();
        let authority = decode("/clusters/0/cluster/certificate-authority-data");
        let certificate = decode("/users/0/user/client-certificate-data");
        let key = decode("/users/0/user/client-key-data");
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&authority).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(&certificate).unwrap()],
                PrivateKeyDer::from_pem_slice(&key).unwrap(),
            )
            .unwrap();
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::from(self.address.ip());
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }
}

async fn client(kubeconfig: Kubeconfig) -> Client {
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// The status code of a request without a body, and what came back.
pub(crate) async fn ask(client: &Client, method: &str, path: &str) -> (u16, String) {
    let request = http::Request::builder().method(method).uri(path).body(Vec::new()).unwrap();
    match client.request_text(request).await {
        Ok(text) => (200, text),
        Err(kube::Error::Api(status)) => (status.code, status.message),
        Err(other) => panic!("{method} {path}: {other}"),
    }
}
