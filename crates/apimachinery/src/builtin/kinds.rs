//! The table of built-in kinds.

use super::BuiltinKind;
use super::columns::{self, Column};

const CORE: (&str, &str) = ("", "v1");
const APPS: (&str, &str) = ("apps", "v1");
const BATCH: (&str, &str) = ("batch", "v1");
const RBAC: (&str, &str) = ("rbac.authorization.k8s.io", "v1");
const ADMISSION: (&str, &str) = ("admissionregistration.k8s.io", "v1");
const AUTHENTICATION: (&str, &str) = ("authentication.k8s.io", "v1");
const AUTHORIZATION: (&str, &str) = ("authorization.k8s.io", "v1");
const NETWORKING: (&str, &str) = ("networking.k8s.io", "v1");
const RESOURCE: (&str, &str) = ("resource.k8s.io", "v1");
const STORAGE: (&str, &str) = ("storage.k8s.io", "v1");

/// A namespaced kind without subresources; the other functions add to it.
const fn kind(
    (group, version): (&'static str, &'static str),
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    columns: &'static [Column],
) -> BuiltinKind {
    BuiltinKind {
        group,
        version,
        kind,
        plural,
        singular,
        short_names: &[],
        categories: &[],
        namespaced: true,
        status: false,
        scale: false,
        transient: false,
        selectable_fields: &[],
        columns,
    }
}

impl BuiltinKind {
    const fn short(mut self, short_names: &'static [&'static str]) -> BuiltinKind {
        self.short_names = short_names;
        self
    }

    const fn of_cluster(mut self) -> BuiltinKind {
        self.namespaced = false;
        self
    }

    const fn in_all(mut self) -> BuiltinKind {
        self.categories = &["all"];
        self
    }

    const fn extension(mut self) -> BuiltinKind {
        self.categories = &["api-extensions"];
        self
    }

    const fn with_status(mut self) -> BuiltinKind {
        self.status = true;
        self
    }

    const fn with_scale(mut self) -> BuiltinKind {
        self.scale = true;
        self
    }

    const fn review(mut self) -> BuiltinKind {
        self.transient = true;
        self
    }

    const fn selectable(mut self, fields: &'static [&'static str]) -> BuiltinKind {
        self.selectable_fields = fields;
        self
    }
}

const EVENT_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

const NEW_EVENT_FIELDS: &[&str] = &[
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
];

const POD_FIELDS: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
];

#[rustfmt::skip]
pub(super) const KINDS: &[BuiltinKind] = &[
    kind(CORE, "ConfigMap", "configmaps", "configmap", columns::CONFIG_MAP).short(&["cm"]),
    kind(CORE, "Endpoints", "endpoints", "endpoints", columns::ENDPOINTS).short(&["ep"]),
    kind(CORE, "Event", "events", "event", columns::EVENT).short(&["ev"]).selectable(EVENT_FIELDS),
    kind(CORE, "Namespace", "namespaces", "namespace", columns::NAMESPACE).short(&["ns"]).of_cluster().with_status().selectable(&["status.phase"]),
    kind(CORE, "Node", "nodes", "node", columns::NODE).short(&["no"]).of_cluster().with_status().selectable(&["spec.unschedulable"]),
    kind(CORE, "PersistentVolume", "persistentvolumes", "persistentvolume", columns::PERSISTENT_VOLUME).short(&["pv"]).of_cluster().with_status(),
    kind(CORE, "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim", columns::PERSISTENT_VOLUME_CLAIM).short(&["pvc"]).with_status(),
    kind(CORE, "Pod", "pods", "pod", columns::POD).short(&["po"]).in_all().with_status().selectable(POD_FIELDS),
    kind(CORE, "ResourceQuota", "resourcequotas", "resourcequota", columns::PLAIN).short(&["quota"]).with_status(),
    kind(CORE, "Secret", "secrets", "secret", columns::SECRET).selectable(&["type"]),
    kind(CORE, "Service", "services", "service", columns::SERVICE).short(&["svc"]).in_all().with_status().selectable(&["spec.clusterIP", "spec.type"]),
    kind(CORE, "ServiceAccount", "serviceaccounts", "serviceaccount", columns::PLAIN).short(&["sa"]),
    kind(ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "mutatingwebhookconfiguration", columns::WEBHOOKS).of_cluster().extension(),
    kind(ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", "validatingadmissionpolicy", columns::ADMISSION_POLICY).of_cluster().extension().with_status(),
    kind(ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", "validatingadmissionpolicybinding", columns::ADMISSION_POLICY_BINDING).of_cluster().extension(),
    kind(ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "validatingwebhookconfiguration", columns::WEBHOOKS).of_cluster().extension(),
    kind(("apiextensions.k8s.io", "v1"), "CustomResourceDefinition", "customresourcedefinitions", "customresourcedefinition", columns::DEFINITION).short(&["crd", "crds"]).of_cluster().extension().with_status(),
    kind(("apiregistration.k8s.io", "v1"), "APIService", "apiservices", "apiservice", columns::API_SERVICE).of_cluster().extension().with_status(),
    kind(APPS, "DaemonSet", "daemonsets", "daemonset", columns::DAEMON_SET).short(&["ds"]).in_all().with_status(),
    kind(APPS, "Deployment", "deployments", "deployment", columns::DEPLOYMENT).short(&["deploy"]).in_all().with_status().with_scale(),
    kind(APPS, "ReplicaSet", "replicasets", "replicaset", columns::REPLICA_SET).short(&["rs"]).in_all().with_status().with_scale().selectable(&["status.replicas"]),
    kind(APPS, "StatefulSet", "statefulsets", "statefulset", columns::STATEFUL_SET).short(&["sts"]).in_all().with_status().with_scale(),
    kind(AUTHENTICATION, "SelfSubjectReview", "selfsubjectreviews", "selfsubjectreview", columns::PLAIN).of_cluster().review(),
    kind(AUTHENTICATION, "TokenReview", "tokenreviews", "tokenreview", columns::PLAIN).of_cluster().review(),
    kind(AUTHORIZATION, "LocalSubjectAccessReview", "localsubjectaccessreviews", "localsubjectaccessreview", columns::PLAIN).review(),
    kind(AUTHORIZATION, "SelfSubjectAccessReview", "selfsubjectaccessreviews", "selfsubjectaccessreview", columns::PLAIN).of_cluster().review(),
    kind(AUTHORIZATION, "SelfSubjectRulesReview", "selfsubjectrulesreviews", "selfsubjectrulesreview", columns::PLAIN).of_cluster().review(),
    kind(AUTHORIZATION, "SubjectAccessReview", "subjectaccessreviews", "subjectaccessreview", columns::PLAIN).of_cluster().review(),
    kind(("autoscaling", "v2"), "HorizontalPodAutoscaler", "horizontalpodautoscalers", "horizontalpodautoscaler", columns::POD_AUTOSCALER).short(&["hpa"]).in_all().with_status(),
    kind(BATCH, "CronJob", "cronjobs", "cronjob", columns::CRON_JOB).short(&["cj"]).in_all().with_status(),
    kind(BATCH, "Job", "jobs", "job", columns::JOB).in_all().with_status().selectable(&["status.successful"]),
    kind(("coordination.k8s.io", "v1"), "Lease", "leases", "lease", columns::LEASE),
    kind(("discovery.k8s.io", "v1"), "EndpointSlice", "endpointslices", "endpointslice", columns::ENDPOINT_SLICE),
    kind(("events.k8s.io", "v1"), "Event", "events", "event", columns::NEW_EVENT).short(&["ev"]).selectable(NEW_EVENT_FIELDS),
    kind(NETWORKING, "Ingress", "ingresses", "ingress", columns::INGRESS).short(&["ing"]).with_status(),
    kind(NETWORKING, "NetworkPolicy", "networkpolicies", "networkpolicy", columns::NETWORK_POLICY).short(&["netpol"]),
    kind(("policy", "v1"), "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget", columns::DISRUPTION_BUDGET).short(&["pdb"]).with_status(),
    kind(RBAC, "ClusterRole", "clusterroles", "clusterrole", columns::ROLE).of_cluster(),
    kind(RBAC, "ClusterRoleBinding", "clusterrolebindings", "clusterrolebinding", columns::ROLE_BINDING).of_cluster(),
    kind(RBAC, "Role", "roles", "role", columns::ROLE),
    kind(RBAC, "RoleBinding", "rolebindings", "rolebinding", columns::ROLE_BINDING),
    kind(RESOURCE, "DeviceClass", "deviceclasses", "deviceclass", columns::PLAIN).of_cluster(),
    kind(RESOURCE, "ResourceClaim", "resourceclaims", "resourceclaim", columns::RESOURCE_CLAIM).with_status(),
    kind(RESOURCE, "ResourceClaimTemplate", "resourceclaimtemplates", "resourceclaimtemplate", columns::PLAIN),
    kind(RESOURCE, "ResourceSlice", "resourceslices", "resourceslice", columns::RESOURCE_SLICE).of_cluster().selectable(&["spec.nodeName", "spec.driver"]),
    kind(("scheduling.k8s.io", "v1"), "PriorityClass", "priorityclasses", "priorityclass", columns::PRIORITY_CLASS).short(&["pc"]).of_cluster(),
    kind(STORAGE, "CSIDriver", "csidrivers", "csidriver", columns::CSI_DRIVER).of_cluster(),
    kind(STORAGE, "StorageClass", "storageclasses", "storageclass", columns::STORAGE_CLASS).short(&["sc"]).of_cluster(),
];
