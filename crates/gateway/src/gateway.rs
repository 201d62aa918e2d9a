//! Listeners, workers and the order of starting and stopping.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use crate::admin;
use crate::options::{Options, Workers};
use crate::probe;
use crate::server::{self, Client, Phase, Shared, reach};
use crate::source::{RouteSink, RouteSource};

/// A gateway whose listeners are open.
#[derive(Debug)]
pub struct Gateway {
    shared: Arc<Shared>,
    options: Options,
    plain: Listener,
    tls: Option<Listener>,
    admin: Option<Listener>,
}

/// An open listener and where it listens.
#[derive(Debug)]
struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct BindError {
    /// Where.
    pub address: SocketAddr,
    /// What the operating system says.
    pub source: io::Error,
}

/// A token that each connection holds; when none is left, the gateway has drained.
type Alive = mpsc::Sender<()>;

/// Time between two looks for connections to endpoints that are of no more use.
const SWEEP: Duration = Duration::from_secs(5);

impl Gateway {
    /// Opens the listeners. Connections wait until [`Gateway::serve`].
    ///
    /// # Errors
    ///
    /// If an address cannot be listened on.
    pub fn bind(options: Options) -> Result<Self, BindError> {
        let plain = listen(options.listen)?;
        let tls = options.listen_tls.map(listen).transpose()?;
        let admin = options.listen_admin.map(listen).transpose()?;
        let workers = match options.workers {
            Workers::Ambient => std::thread::available_parallelism().map_or(1, usize::from),
            Workers::Threads(count) => count.get(),
        };
        let shared = Arc::new(Shared::new(options.limits, workers));
        Ok(Self { shared, options, plain, tls, admin })
    }

    /// Where plain HTTP is served.
    pub fn address(&self) -> SocketAddr {
        self.plain.address
    }

    /// Where HTTPS is served.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.tls.as_ref().map(|listener| listener.address)
    }

    /// Where operators are answered.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|listener| listener.address)
    }

    /// Where routes can be published besides the source.
    pub fn routes(&self) -> RouteSink {
        RouteSink(self.shared.clone())
    }

    /// Serves until `shutdown` resolves, then finishes what is under way, for as long as the options allow.
    pub async fn serve(mut self, source: impl RouteSource, shutdown: impl Future<Output = ()>) {
        let (alive, mut drained) = mpsc::channel::<()>(1);
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(source.run(self.routes()));
        tasks.spawn(sweep(self.shared.clone()));
        tasks.spawn(probe::run(self.shared.clone()));
        if let Some(admin) = self.admin.take() {
            match tokio::net::TcpListener::from_std(admin.socket) {
                Ok(listener) => drop(tasks.spawn(admin::serve(self.shared.clone(), listener))),
                Err(error) => tracing::error!(%error, "operators cannot be answered"),
            }
        }
        let threads = self.start(&alive);
        drop((alive, self.plain, self.tls));
        shutdown.await;
        self.shared.phase.send_replace(Phase::Draining);
        if tokio::time::timeout(self.options.drain, drained.recv()).await.is_err() {
            tracing::warn!(after = ?self.options.drain, "exchanges are cut off");
        }
        self.shared.phase.send_replace(Phase::Closed);
        drained.recv().await;
        for thread in threads {
            if tokio::task::spawn_blocking(|| thread.join()).await.is_err() {
                tracing::error!("a worker panicked");
            }
        }
    }

    /// Starts the workers: threads of their own, or tasks on the runtime.
    fn start(&self, alive: &Alive) -> Vec<std::thread::JoinHandle<()>> {
        let mut threads = Vec::new();
        let acceptor = self.shared.certificates.server().map(TlsAcceptor::from);
        for index in 0..self.shared.workers {
            let mut listeners = vec![(self.plain.socket.try_clone(), None)];
            match (&self.tls, &acceptor) {
                (Some(tls), Ok(acceptor)) => listeners.push((tls.socket.try_clone(), Some(acceptor.clone()))),
                (Some(_), Err(error)) => tracing::error!(%error, "TLS cannot be served"),
                (None, _) => {}
            }
            let worker = Worker { index, shared: self.shared.clone(), alive: alive.clone() };
            let run = worker.run(listeners);
            match self.options.workers {
                Workers::Ambient => drop(tokio::spawn(run)),
                Workers::Threads(_) => threads.extend(spawn_thread(index, self.shared.clone(), run)),
            }
        }
        threads
    }
}

fn listen(address: SocketAddr) -> Result<Listener, BindError> {
    let open = || {
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(Listener { socket, address })
    };
    open().map_err(|source| BindError { address, source })
}

/// A thread with a runtime of its own, which lives until all its connections are closed.
fn spawn_thread(
    index: usize,
    shared: Arc<Shared>,
    run: impl Future<Output = ()> + Send + 'static,
) -> Option<std::thread::JoinHandle<()>> {
    let body = move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return tracing::error!(%error, "a worker has no runtime"),
        };
        runtime.block_on(async {
            run.await;
            reach(&mut shared.phase.subscribe(), Phase::Closed).await;
        });
    };
    match std::thread::Builder::new().name(format!("gateway-{index}")).spawn(body) {
        Ok(thread) => Some(thread),
        Err(error) => {
            tracing::error!(%error, "a worker cannot start");
            None
        }
    }
}

/// One of the tasks or threads that accept connections.
#[derive(Clone)]
struct Worker {
    index: usize,
    shared: Arc<Shared>,
    alive: Alive,
}

impl Worker {
    /// Accepts connections on all listeners until the gateway drains.
    async fn run(self, listeners: Vec<(io::Result<TcpListener>, Option<TlsAcceptor>)>) {
        let accepting = listeners.into_iter().map(|(listener, acceptor)| {
            let worker = self.clone();
            async move {
                match listener.and_then(tokio::net::TcpListener::from_std) {
                    Ok(listener) => worker.accept(listener, acceptor).await,
                    Err(error) => tracing::error!(%error, "a worker cannot listen"),
                }
            }
        });
        futures_util::future::join_all(accepting).await;
    }

    async fn accept(self, listener: tokio::net::TcpListener, acceptor: Option<TlsAcceptor>) {
        let mut phase = self.shared.phase.subscribe();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = reach(&mut phase, Phase::Draining) => return,
            };
            match accepted {
                Ok((stream, address)) => self.serve(stream, address, acceptor.clone()),
                Err(error) => {
                    // Out of file descriptors, most likely: trying again at once would only burn time.
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    /// Serves a connection in a task of its own, unless there are too many.
    fn serve(&self, stream: tokio::net::TcpStream, address: SocketAddr, acceptor: Option<TlsAcceptor>) {
        stream.set_nodelay(true).ok();
        let client = Client { address, secure: acceptor.is_some(), worker: self.index };
        let (shared, alive) = (self.shared.clone(), self.alive.clone());
        let metrics = &self.shared.metrics;
        let open = metrics.accepted.get().saturating_sub(metrics.ended.get());
        if open >= self.shared.limits.connections as u64 {
            return;
        }
        metrics.accepted.add(1);
        tokio::spawn(async move {
            let ended = Ended(shared.clone());
            match acceptor {
                // Boxed: the room for a handshake is of no use to the many connections without one.
                Some(acceptor) => Box::pin(server::serve_tls(shared, client, stream, acceptor)).await,
                None => server::serve_plain(shared, client, stream).await,
            }
            drop((ended, alive));
        });
    }
}

/// Counts a connection out, also when its task is dropped.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.metrics.ended.add(1);
    }
}

/// Drops connections to endpoints that are of no more use, again and again.
async fn sweep(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let now = Instant::now();
        for endpoint in shared.table.load().endpoints().values() {
            endpoint.live.sweep(now);
        }
    }
}
