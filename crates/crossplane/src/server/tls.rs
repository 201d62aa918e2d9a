//! mTLS whose certificates are read anew when their files change.
//!
//! Crossplane mounts `tls.crt`, `tls.key` and `ca.crt` from a Secret and renews them; a connection made
//! after that uses the new ones, connections under way are left alone. If the new files cannot be used the
//! old ones stay in force and the log says so.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;

/// How often files are looked at, at most.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long a client may take for its handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Handshaken connections waiting to be served.
const BACKLOG: usize = 128;

/// The files in the folder, in the order they are read.
const FILES: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file is not what its name says.
    #[error("{path} is not usable: {message}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Certificate and key do not make a server.
    #[error("the certificate in {folder} cannot be served")]
    Config {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        source: rustls::Error,
    },
}

/// Certificates in a folder, as last read.
#[derive(Debug)]
pub(super) struct Certificates {
    folder: PathBuf,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    config: Arc<ServerConfig>,
    stamp: Stamp,
    checked: Instant,
}

/// When each file last changed.
type Stamp = [Option<SystemTime>; 3];

impl Certificates {
    pub(super) fn load(folder: &Path) -> Result<Self, TlsError> {
        let stamp = stamp(folder);
        let config = Arc::new(read(folder)?);
        let current = Mutex::new(Current { config, stamp, checked: Instant::now() });
        Ok(Self { folder: folder.to_owned(), current })
    }

    /// The configuration for a new connection.
    fn config(&self) -> Arc<ServerConfig> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.checked.elapsed() >= CHECK_INTERVAL {
            current.checked = Instant::now();
            let stamp = stamp(&self.folder);
            if stamp != current.stamp {
                current.stamp = stamp;
                match read(&self.folder) {
                    Ok(config) => {
                        tracing::info!(folder = %self.folder.display(), "certificates reloaded");
                        current.config = Arc::new(config);
                    }
                    Err(error) => {
                        tracing::error!(%error, "changed certificates are not usable; keeping the old ones")
                    }
                }
            }
        }
        Arc::clone(&current.config)
    }
}

fn stamp(folder: &Path) -> Stamp {
    FILES.map(|name| fs::metadata(folder.join(name)).and_then(|metadata| metadata.modified()).ok())
}

fn read(folder: &Path) -> Result<ServerConfig, TlsError> {
    let [certificate, key, authority] = FILES.map(|name| folder.join(name));
    let chain = certificates(&certificate)?;
    let key_bytes = bytes(&key)?;
    let private = PrivateKeyDer::from_pem_slice(&key_bytes).map_err(|error| unusable(&key, &error))?;
    let mut roots = RootCertStore::empty();
    for root in certificates(&authority)? {
        roots.add(root).map_err(|error| unusable(&authority, &error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .build()
        .map_err(|error| unusable(&authority, &error))?;
    let failed = |source| TlsError::Config { folder: folder.to_owned(), source };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, private)
        .map_err(failed)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = bytes(path)?;
    let found = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(list) if !list.is_empty() => Ok(list),
        Ok(_) => Err(unusable(path, &"it holds no certificate")),
        Err(error) => Err(unusable(path, &error)),
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> TlsError {
    TlsError::Unusable { path: path.to_owned(), message: error.to_string() }
}

/// Connections whose handshake is done; a slow handshake holds nobody up.
pub(super) fn incoming(
    listener: TcpListener,
    certificates: Certificates,
) -> ReceiverStream<io::Result<TlsStream<TcpStream>>> {
    let (sender, receiver) = mpsc::channel(BACKLOG);
    tokio::spawn(async move {
        while !sender.is_closed() {
            let stream = tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
                () = sender.closed() => return,
            };
            // See the plain-text listener; without it a call only takes longer.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "cannot send small packets at once");
            }
            let acceptor = TlsAcceptor::from(certificates.config());
            let sender = sender.clone();
            tokio::spawn(async move {
                match tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => drop(sender.send(Ok(stream)).await),
                    Ok(Err(error)) => tracing::info!(%error, "TLS handshake failed"),
                    Err(_) => tracing::info!("TLS handshake took too long"),
                }
            });
        }
    });
    ReceiverStream::new(receiver)
}
