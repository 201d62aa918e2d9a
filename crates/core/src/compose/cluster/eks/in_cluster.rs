//! What is installed inside an EKS cluster (spec clusters §5.7): EKS brings no autoscaler of its own, and
//! no driver that hands EFA interfaces to pods.

use modelplane_api::names::GPU_TAINT;

use super::EksComposer;
use crate::compose::cluster::fields;
use crate::versions;

const AUTOSCALER_KEY: &str = "release-cluster-autoscaler";
const EFA_DRIVER_KEY: &str = "release-efa-dra-driver";

/// Composes the releases once there is a cluster to install them on.
pub(super) fn compose(eks: &mut EksComposer<'_, '_>) {
    let observed = eks.cluster.observed;
    let wanted = |key: &str| observed.has("cluster") || observed.has(key);
    if wanted(AUTOSCALER_KEY) {
        let values = fields! {
            "cloudProvider": "aws",
            "awsRegion": eks.spec.region.as_str(),
            "autoDiscovery": fields! {"clusterName": eks.cluster_name.as_str()},
            "rbac": fields! {"serviceAccount": fields! {"name": "cluster-autoscaler"}},
            "extraArgs": fields! {"balance-similar-node-groups": true},
        };
        eks.cluster.release(AUTOSCALER_KEY, &versions::CLUSTER_AUTOSCALER, values);
    }
    if eks.uses_efa() && wanted(EFA_DRIVER_KEY) {
        let toleration = fields! {"key": GPU_TAINT, "operator": "Exists", "effect": "NoSchedule"};
        let values = fields! {"tolerations": [toleration]};
        eks.cluster.release(EFA_DRIVER_KEY, &versions::AWS_DRANET, values);
    }
}
