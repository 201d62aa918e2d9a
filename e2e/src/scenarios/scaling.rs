//! The scale subresource, through kubectl.

use std::process::Command;

use super::view::{MODEL_DEPLOYMENT, serves, uids};
use crate::environment::{Environment, TEAM};
use crate::failure::{Failure, Outcome, ensure};
use crate::kube_api::Target;

/// Up to four, down to two: what stays is not touched, what goes is gone from its cluster too.
pub(super) async fn up_and_down(environment: &mut Environment) -> Outcome {
    let before = uids(&super::view::replicas(environment, "qwen").await?);
    scale(environment, 4)?;
    let more = uids(&serves(environment, "qwen", 4).await?);
    let kept = before.iter().all(|(name, uid)| more.get(name) == Some(uid));
    ensure(kept, || format!("scaling up replaced replicas: {before:?}, then {more:?}"))?;
    let scale_of = environment.control().subresource(Target::new(MODEL_DEPLOYMENT, TEAM, "qwen"), "scale");
    let reported = scale_of.await?["status"]["replicas"].clone();
    ensure(reported == 4, || format!("the scale subresource reports {reported}"))?;

    scale(environment, 2)?;
    let left = uids(&serves(environment, "qwen", 2).await?);
    let kept = left.iter().all(|(name, uid)| more.get(name) == Some(uid));
    ensure(kept, || format!("scaling down made new replicas: {more:?}, then {left:?}"))
}

fn scale(environment: &Environment, replicas: u32) -> Outcome {
    let kubeconfig = &environment.control().kubeconfig_file;
    let output = Command::new("kubectl")
        .env("KUBECONFIG", kubeconfig)
        .args(["--namespace", TEAM, "scale", "modeldeployment/qwen", &format!("--replicas={replicas}")])
        .output()
        .map_err(Failure::io("run kubectl"))?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure(output.status.success(), || format!("kubectl scale: {errors}"))
}
