//! The way to a simulated API server over TCP: while the cluster is unreachable, nobody gets through it.
//!
//! Connections are passed on byte for byte. When the cluster becomes unreachable those there are break off, and new
//! ones are closed before a word is said; the port stays taken, so that the cluster is found there again.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::settings::Settings;

/// Passes connections on to `server` until dropped.
pub(super) async fn keep(listener: TcpListener, server: SocketAddr, mut settings: watch::Receiver<Settings>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((from, _)) if !settings.borrow().faults.unreachable => {
                    connections.spawn(pass(from, server));
                }
                Ok(_) => {}
                // Out of file descriptors, usually: wait for some to be closed.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            },
            changed = settings.changed() => match changed {
                Ok(()) if settings.borrow_and_update().faults.unreachable => connections.abort_all(),
                Ok(()) => {}
                Err(_) => return,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn pass(mut from: TcpStream, server: SocketAddr) {
    let Ok(mut to) = TcpStream::connect(server).await else { return };
    // Whoever broke it off knows why.
    drop(copy_bidirectional(&mut from, &mut to).await);
}
