//! A `modelplane function serve` of our own, and what the system says about it.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Result;

/// How long the server may take to listen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that is stopped when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// From starting the process to the first accepted connection.
    pub(crate) started_in: Duration,
    process: Child,
}

impl Server {
    pub(crate) fn start(program: &Path) -> Result<Self> {
        // The port is free for the moment between these lines.
        let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let started = Instant::now();
        let process = Command::new(program)
            .args(["function", "serve", "--insecure", "--metrics-address", "none", "--address"])
            .arg(address.to_string())
            .stderr(Stdio::null())
            .spawn()?;
        let mut server = Self { address, started_in: Duration::ZERO, process };
        while TcpStream::connect(address).is_err() {
            if started.elapsed() > PATIENCE || server.process.try_wait()?.is_some() {
                return Err(format!("{} does not listen", program.display()).into());
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        server.started_in = started.elapsed();
        Ok(server)
    }

    /// Resident memory now, in KiB.
    pub(crate) fn memory(&self) -> Result<u64> {
        self.status("VmRSS:")
    }

    /// The most there ever was, in KiB.
    pub(crate) fn peak_memory(&self) -> Result<u64> {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix(field)).ok_or("no such field")?;
        Ok(line.trim().trim_end_matches("kB").trim().parse()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
