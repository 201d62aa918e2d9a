//! Processes that never outlive the run.
//!
//! A process is killed when its value is dropped, which happens on panics too. Where `setpriv` exists the
//! kernel also kills it if this program dies without unwinding; that is tied to the thread that started it,
//! hence everything here runs on one thread.

use std::collections::BTreeSet;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::failure::{Failure, Outcome};

/// Lines of a log that are shown when its program failed.
const SHOWN_LINES: usize = 15;

/// A program to run.
#[derive(Debug)]
pub struct Program<'p> {
    /// What its log is called and messages say.
    pub name: &'p str,
    /// The binary.
    pub binary: PathBuf,
    /// Arguments.
    pub arguments: Vec<String>,
    /// Environment, beside the inherited one.
    pub environment: Vec<(&'p str, String)>,
}

/// A running program.
#[derive(Debug)]
pub struct Process {
    name: String,
    log: PathBuf,
    child: Child,
}

impl Program<'_> {
    /// Starts it; it writes to `<name>.log` in `folder`.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn start(self, folder: &Path) -> Outcome<Process> {
        let name = self.name.to_owned();
        let log = folder.join(format!("{name}.log"));
        let mut command = self.command(&log)?;
        let child = command.spawn().map_err(Failure::io(format!("start {name}")))?;
        Ok(Process { name, log, child })
    }

    /// Runs it to its end.
    ///
    /// # Errors
    ///
    /// If it fails.
    pub async fn run(self, folder: &Path) -> Outcome {
        let mut process = self.start(folder)?;
        loop {
            let status =
                process.child.try_wait().map_err(Failure::io(format!("wait for {}", process.name)))?;
            match status {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(process.failure(&format!("failed ({status})"))),
                None => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
            }
        }
    }

    fn command(self, log: &Path) -> Outcome<Command> {
        let open = |path: &Path| {
            File::options()
                .create(true)
                .append(true)
                .open(path)
                .map_err(Failure::io(format!("open {}", path.display())))
        };
        let output = open(log)?;
        let errors = output.try_clone().map_err(Failure::io("open a log"))?;
        let mut command = match tied_to_this_program() {
            Some(setpriv) => {
                let mut command = Command::new(setpriv);
                command.args(["--pdeathsig", "KILL", "--"]).arg(&self.binary);
                command
            }
            None => Command::new(&self.binary),
        };
        command.args(&self.arguments).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        Ok(command)
    }
}

fn tied_to_this_program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("setpriv")).find(|path| path.is_file())
}

impl Process {
    /// Fails if the program has ended.
    ///
    /// # Errors
    ///
    /// With the end of its log.
    pub fn check(&mut self) -> Outcome {
        match self.child.try_wait().map_err(Failure::io(format!("look after {}", self.name)))? {
            None => Ok(()),
            Some(status) => Err(self.failure(&format!("has ended ({status})"))),
        }
    }

    /// Kills it, without giving it time to say goodbye.
    pub fn kill(&mut self) {
        // Both fail only if the process is gone already, which is what is wanted.
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// Peak memory in KiB, where the system tells.
    pub fn peak_memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    }

    fn failure(&self, what: &str) -> Failure {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let log = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
        Failure::Program { program: self.name.clone(), what: what.to_owned(), log }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port on loopback that nothing listens on; never the same twice in a run.
///
/// # Errors
///
/// If the system has none.
pub fn free_port() -> Outcome<u16> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(Failure::io("find a free port"))?;
        let port = listener.local_addr().map_err(Failure::io("find a free port"))?.port();
        if GIVEN.lock().unwrap_or_else(PoisonError::into_inner).insert(port) {
            return Ok(port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(script: &str) -> Program<'static> {
        let arguments = vec!["-c".to_owned(), script.to_owned()];
        Program { name: "script", binary: PathBuf::from("/bin/sh"), arguments, environment: Vec::new() }
    }

    #[test]
    fn a_process_ends_when_it_is_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let process = program("exec sleep 1000").start(folder.path()).expect("it starts");
        let of_process = PathBuf::from(format!("/proc/{}", process.child.id()));
        let had_proc = of_process.exists();
        drop(process);
        assert!(!had_proc || !of_process.exists(), "it still runs");
    }

    #[test]
    fn an_ended_program_is_reported_with_the_end_of_its_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut process = program("echo no such luck; exit 3").start(folder.path()).expect("it starts");
        let failure = loop {
            if let Err(failure) = process.check() {
                break failure.describe();
            }
            std::thread::yield_now();
        };
        assert!(failure.contains("no such luck") && failure.contains("3"), "{failure}");
    }

    #[test]
    fn free_ports_are_given_once() {
        let ports: BTreeSet<u16> = (0..50).map(|_| free_port().expect("a port")).collect();
        assert_eq!(ports.len(), 50);
    }
}
