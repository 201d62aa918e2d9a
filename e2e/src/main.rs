//! `e2e`: runs the end-to-end tests, or leaves a real API server running to compare with.

use std::process::ExitCode;
use std::time::Instant;

use e2e::environment::{Environment, Workspace, identities};
use e2e::failure::{Failure, Outcome};
use e2e::report::{self, say};
use e2e::scenarios::SCENARIOS;
use e2e::servers::{Cluster, Etcd, Role, Site};
use e2e::tools::Tools;

const USAGE: &str =
    "usage: e2e [--keep] [--only WORD]   run the scenarios, or those with WORD in their statement
       e2e up-real                  run etcd and a kube-apiserver until interrupted
       e2e --versions               print the components' versions
--keep leaves the folder with logs and data behind.";

/// What the command line asks for.
#[derive(Debug, Default)]
struct Arguments {
    up_real: bool,
    versions: bool,
    keep: bool,
    only: Option<String>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let mut arguments = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "up-real" => arguments.up_real = true,
                "--versions" => arguments.versions = true,
                "--keep" => arguments.keep = true,
                "--only" => arguments.only = Some(words.next()?),
                _ => return None,
            }
        }
        Some(arguments)
    }
}

/// One thread: the kernel ties processes to the thread that started them.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(arguments) = Arguments::parse(std::env::args().skip(1)) else {
        say(USAGE);
        return ExitCode::from(2);
    };
    let work = async {
        match arguments {
            Arguments { versions: true, .. } => {
                say(&report::versions(&Tools::find()?));
                Ok(true)
            }
            Arguments { up_real: true, keep, .. } => up_real(keep).await,
            Arguments { keep, only, .. } => run(keep, only.as_deref()).await,
        }
    };
    // Interrupted, the work is dropped, and with it every process.
    let local = tokio::task::LocalSet::new();
    let done = tokio::select! {
        done = local.run_until(work) => done,
        _ = tokio::signal::ctrl_c() => Err(Failure::Wrong("interrupted".to_owned())),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            say(&format!("e2e: {}", failure.describe()));
            ExitCode::FAILURE
        }
    }
}

async fn run(keep: bool, only: Option<&str>) -> Outcome<bool> {
    let tools = Tools::find()?;
    say(&format!("components:\n{}", report::versions(&tools)));
    let workspace = Workspace::new(keep)?;
    say(&format!("logs and data: {}", workspace.path().display()));
    let begun = Instant::now();
    let progress = |step: &str| say(&format!("[{:>5.1} s] starting {step}", begun.elapsed().as_secs_f64()));
    let mut environment = Environment::start(&tools, workspace, progress).await?;
    say(&format!("[{:>5.1} s] all up", begun.elapsed().as_secs_f64()));
    let mut results = Vec::new();
    for scenario in SCENARIOS {
        if !scenario.always && only.is_some_and(|word| !scenario.statement.contains(word)) {
            continue;
        }
        let started = Instant::now();
        let mut outcome = (scenario.run)(&mut environment).await;
        if let Err(ended) = environment.check() {
            outcome = outcome.and(Err(ended));
        }
        let failed = outcome.is_err();
        let time = started.elapsed();
        let verdict = if failed { "FAILS" } else { "holds" };
        say(&format!("[{:>5.1} s] {verdict}: {}", begun.elapsed().as_secs_f64(), scenario.statement));
        if let Err(failure) = &outcome {
            // The table repeats it at the end, but a run may be cut off before.
            say(&format!("  {}", failure.describe()));
        }
        results.push(report::Result { statement: scenario.statement, time, outcome });
        if failed && scenario.always {
            break;
        }
    }
    say(&format!("\n{}", report::table(&results)));
    if let Some(memory) = environment.function.peak_memory() {
        say(&format!("\nfunction server: peak memory {:.1} MiB", memory as f64 / 1024.0));
    }
    Ok(results.iter().all(|result| result.outcome.is_ok()))
}

/// A real API server for others to compare behaviour with.
async fn up_real(keep: bool) -> Outcome<bool> {
    let tools = Tools::find()?;
    let workspace = Workspace::new(keep)?;
    let (authority, administrator) = identities()?;
    let site = Site {
        tools: &tools,
        folder: workspace.path(),
        authority: &authority,
        administrator: &administrator,
    };
    let _etcd = Etcd::start(&site)?;
    let mut cluster = Cluster::start(&site, &_etcd, "real", Role::Bare).await?;
    cluster.serves().await?;
    say(&format!("export KUBECONFIG={}", cluster.kube.kubeconfig_file.display()));
    std::future::pending::<()>().await;
    Ok(true)
}
