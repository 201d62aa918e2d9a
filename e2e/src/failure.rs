//! Why a step failed, and waiting for what takes time.

use std::time::{Duration, Instant};

/// How long anything may take before it counts as never.
///
/// Generous, because what is waited for is usually there within seconds, and a busy machine is no defect.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// Pause between two looks.
const INTERVAL: Duration = Duration::from_millis(250);

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The system refused something.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: String,
        /// Why not.
        source: std::io::Error,
    },
    /// An API server refused something.
    #[error("{action}: {message}")]
    Api {
        /// What was tried.
        action: String,
        /// HTTP status, 0 if there was no answer.
        code: u16,
        /// Why not.
        message: String,
    },
    /// A program ended that should run, or failed.
    #[error("{program} {what}; the end of its log:\n{log}")]
    Program {
        /// Its name.
        program: String,
        /// What it did.
        what: String,
        /// The last lines it wrote.
        log: String,
    },
    /// Something did not come about.
    #[error("after {seconds} s still not so: {statement}\n  last seen: {last}")]
    NotSo {
        /// What was waited for.
        statement: String,
        /// What was there instead.
        last: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// Something is otherwise than it should be.
    #[error("{0}")]
    Wrong(String),
}

/// What most of this crate returns.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// An I/O failure.
    pub fn io(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action: action.into(), source }
    }

    /// The failure with its causes, for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Io { source, .. } => format!("{self}: {source}"),
            _ => self.to_string(),
        }
    }

    /// Whether an API server said that there is no such object.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Api { code: 404, .. })
    }
}

/// Fails unless `holds`.
///
/// # Errors
///
/// With what `otherwise` says.
pub fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(Failure::Wrong(otherwise())) }
}

/// Looks again and again until `probe` finds what `statement` says; its error says what is there instead.
///
/// # Errors
///
/// If it does not come about within [`PATIENCE`].
pub async fn until<T>(statement: &str, mut probe: impl AsyncFnMut() -> Result<T, String>) -> Outcome<T> {
    let begun = Instant::now();
    loop {
        let last = match probe().await {
            Ok(found) => return Ok(found),
            Err(last) => last,
        };
        if begun.elapsed() > PATIENCE {
            let statement = statement.to_owned();
            return Err(Failure::NotSo { statement, last, seconds: PATIENCE.as_secs() });
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Checks that a statement stays true for a while.
///
/// # Errors
///
/// As soon as `probe` says that it is not so.
pub async fn throughout(
    statement: &str,
    time: Duration,
    mut probe: impl AsyncFnMut() -> Result<(), String>,
) -> Outcome {
    let begun = Instant::now();
    while begun.elapsed() < time {
        probe().await.map_err(|seen| Failure::Wrong(format!("not all the time so: {statement}: {seen}")))?;
        tokio::time::sleep(INTERVAL).await;
    }
    Ok(())
}

/// A failure as the reason why a probe has not succeeded yet.
pub fn not_yet(failure: Failure) -> String {
    failure.describe()
}
