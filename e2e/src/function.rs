//! Our function server, run as the process that a Function package's Deployment would run.

use std::path::{Path, PathBuf};

use crate::crossplane::Certificates;
use crate::failure::{Outcome, until};
use crate::process::{Process, Program, free_port};
use crate::tools;

/// The function server; it can be killed and started again under the same address.
#[derive(Debug)]
pub struct FunctionServer {
    binary: PathBuf,
    certificates: PathBuf,
    folder: PathBuf,
    port: u16,
    process: Process,
}

impl FunctionServer {
    /// Starts it with mTLS.
    ///
    /// # Errors
    ///
    /// If there is no binary or it cannot be started.
    pub fn start(certificates: &Certificates, folder: &Path) -> Outcome<Self> {
        let binary = tools::modelplane()?;
        let port = free_port()?;
        let process = program(&binary, &certificates.server, port).start(folder)?;
        Ok(Self {
            binary,
            certificates: certificates.server.clone(),
            folder: folder.to_owned(),
            port,
            process,
        })
    }

    /// What Crossplane is to dial.
    pub fn endpoint(&self) -> String {
        format!("localhost:{}", self.port)
    }

    /// Kills it without warning.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again after [`Self::kill`] and waits until it listens.
    ///
    /// # Errors
    ///
    /// If it does not.
    pub async fn start_again(&mut self) -> Outcome {
        self.process = program(&self.binary, &self.certificates, self.port).start(&self.folder)?;
        self.listens().await
    }

    /// Waits until it listens.
    ///
    /// # Errors
    ///
    /// If it does not.
    pub async fn listens(&self) -> Outcome {
        let address = ("127.0.0.1", self.port);
        until("the function server listens", async || {
            tokio::net::TcpStream::connect(address).await.map(drop).map_err(|error| error.to_string())
        })
        .await
    }

    /// Fails if it has ended.
    ///
    /// # Errors
    ///
    /// With the end of its log.
    pub fn check(&mut self) -> Outcome {
        self.process.check()
    }

    /// Peak memory in KiB, where the system tells.
    pub fn peak_memory(&self) -> Option<u64> {
        self.process.peak_memory()
    }
}

fn program<'p>(binary: &Path, certificates: &Path, port: u16) -> Program<'p> {
    let arguments = ["function", "serve", "--metrics-address=none", &format!("--address=127.0.0.1:{port}")];
    Program {
        name: "function",
        binary: binary.to_owned(),
        arguments: arguments.map(str::to_owned).to_vec(),
        environment: vec![("TLS_SERVER_CERTS_DIR", certificates.display().to_string())],
    }
}
