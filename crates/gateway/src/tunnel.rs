//! Connections that switched protocols: bytes in both directions until either side is done.

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::sync::watch;

use crate::endpoint::Lease;
use crate::record::Record;
use crate::server::{Phase, reach};

/// Runs a tunnel to its end, or until the gateway closes.
pub(crate) async fn run(
    client: OnUpgrade,
    endpoint: OnUpgrade,
    held: (Lease, Box<Record>),
    mut phase: watch::Receiver<Phase>,
) {
    let joined = async {
        let (client, endpoint) = tokio::try_join!(client, endpoint)?;
        let (mut client, mut endpoint) = (TokioIo::new(client), TokioIo::new(endpoint));
        // A tunnel ends in many ways; none is of interest.
        tokio::io::copy_bidirectional(&mut client, &mut endpoint).await.ok();
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
    let (_lease, mut record) = held;
    record.completed();
}
