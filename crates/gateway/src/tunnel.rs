//! Connections that switched protocols: bytes in both directions until either side is done.

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;

use crate::endpoint::Lease;
use crate::record::Record;
use crate::server::{Phase, reach};

/// What a client's connection is to be joined with.
#[derive(Debug)]
pub(crate) struct Tunnel {
    /// The endpoint's side.
    pub(crate) endpoint: OnUpgrade,
    /// The request's place at the endpoint.
    pub(crate) lease: Lease,
    /// What becomes of it.
    pub(crate) record: Box<Record>,
}

/// Runs a tunnel to its end, or until the gateway closes. `ahead` is what the client sent already.
pub(crate) async fn run<S>(tunnel: Tunnel, mut client: S, ahead: Vec<u8>, mut phase: watch::Receiver<Phase>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Tunnel { endpoint, lease, mut record } = tunnel;
    let joined = async {
        let mut endpoint = TokioIo::new(endpoint.await?);
        if endpoint.write_all(&ahead).await.is_ok() {
            // A tunnel ends in many ways; none is of interest.
            tokio::io::copy_bidirectional(&mut client, &mut endpoint).await.ok();
        }
        Ok::<_, hyper::Error>(())
    };
    tokio::select! {
        joined = joined => {
            if let Err(error) = joined {
                tracing::debug!(%error, "a switch of protocols failed");
            }
        }
        _ = reach(&mut phase, Phase::Closed) => {}
    }
    record.completed();
    drop(lease);
}
