//! The worked fleets under `examples/`.

use crate::environment::Environment;
use crate::failure::{Failure, Outcome, ensure};
use crate::kube_api::{Mode, name};
use crate::manifests;
use crate::tools::repository;

/// The API server would create every document of every example, with strict field validation.
pub(super) async fn accepted(environment: &mut Environment) -> Outcome {
    let mut problems = Vec::new();
    let folders = manifests::entries(&repository().join("examples"))?;
    let folders: Vec<_> = folders.into_iter().filter(|path| path.is_dir()).collect();
    ensure(!folders.is_empty(), || "there are no examples".to_owned())?;
    for folder in folders {
        for document in manifests::read_folder(&folder)? {
            if let Err(failure) = environment.control().create(&document, Mode::DryRun).await {
                problems.push(format!("{}: {}: {}", folder.display(), name(&document), failure.describe()));
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure::Wrong(problems.join("\n"))) }
}
