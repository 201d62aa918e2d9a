//! A way to a server that can be cut and restored, byte for byte.

use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// Passes connections on to a server as long as it is not cut.
pub(crate) struct Relay {
    address: SocketAddr,
    target: SocketAddr,
    task: Option<JoinHandle<()>>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Relay {
    /// A relay to a server.
    pub(crate) async fn to(target: SocketAddr) -> Self {
        let mut relay = Self { address: ([127, 0, 0, 1], 0).into(), target, task: None };
        relay.restore().await;
        relay
    }

    /// Where it listens, always the same.
    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Ends all connections and refuses new ones.
    pub(crate) fn cut(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }

    /// Takes connections again.
    pub(crate) async fn restore(&mut self) {
        let listener = loop {
            // The task that held the port may not have ended yet.
            match TcpListener::bind(self.address).await {
                Ok(listener) => break listener,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        self.address = listener.local_addr().unwrap();
        let target = self.target;
        self.task = Some(tokio::spawn(async move {
            // Aborted with this task.
            let mut connections = JoinSet::new();
            while let Ok((mut from, _)) = listener.accept().await {
                connections.spawn(async move {
                    let Ok(mut to) = TcpStream::connect(target).await else { return };
                    let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
                });
            }
        }));
    }
}
