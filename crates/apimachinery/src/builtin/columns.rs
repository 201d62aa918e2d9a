//! What `kubectl get` prints of built-in kinds, as data.

/// A printed column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: &'static str,
    /// `string`, `integer` or `boolean`.
    pub kind: &'static str,
    /// Whether it is printed with `-o wide` only (priority 1).
    pub wide: bool,
    /// Where its values come from.
    pub cell: Cell,
}

/// Where the value of a column comes from. Paths are fields from the root, joined by dots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// The field, or `<none>`.
    Path(&'static str),
    /// The field, or the given text.
    PathOr(&'static str, &'static str),
    /// The field, or 0.
    Number(&'static str),
    /// How long ago the time in the field is, or `<unknown>`.
    Since(&'static str),
    /// The first of the two fields that has a time, as [`Cell::Since`].
    SinceEither(&'static str, &'static str),
    /// One number of another: `1/2`.
    Ratio(&'static str, &'static str),
    /// How many entries the lists and maps have together.
    Count(&'static [&'static str]),
    /// Texts of a list, joined by commas.
    List(&'static str),
    /// A field of a list's items, joined by commas: list, field.
    Each(&'static str, &'static str),
    /// Labels as `a=b,c=d`, or `<none>`.
    Labels(&'static str),
    /// A label selector object as text, or `<none>`.
    Selector(&'static str),
    /// Names of a pod template's containers; the path is that of its spec.
    Containers(&'static str),
    /// Images of a pod template's containers.
    Images(&'static str),
    /// Access modes in short (`RWO,ROX`).
    AccessModes(&'static str),
    /// Ready containers of all.
    PodReady,
    /// The phase, or why it is not running.
    PodStatus,
    /// Restarts of all containers.
    PodRestarts,
    /// Fulfilled readiness gates of all.
    PodReadinessGates,
    /// `Ready`, `NotReady` and `SchedulingDisabled`.
    NodeStatus,
    /// Roles by the labels of a node.
    NodeRoles,
    /// The address of a type.
    NodeAddress(&'static str),
    /// Where a service is reached from outside.
    ServiceExternal,
    /// Ports of a service with their protocol.
    ServicePorts,
    /// `Running`, `Complete`, `Failed` or `Suspended`.
    JobStatus,
    /// Succeeded pods of those wanted.
    JobCompletions,
    /// How long a job ran.
    JobDuration,
    /// Hosts of an ingress.
    IngressHosts,
    /// Addresses of an ingress.
    IngressAddress,
    /// Ports of an ingress.
    IngressPorts,
    /// Addresses with ports of Endpoints.
    Endpoints,
    /// Ports of an EndpointSlice.
    SlicePorts,
    /// Addresses of an EndpointSlice.
    SliceEndpoints,
    /// Kind and name of the referred object: `ClusterRole/view`.
    Reference(&'static str),
    /// Namespace and name of the referred object.
    Claim,
    /// Subjects of a kind.
    Subjects(&'static str),
    /// The kind and name an event is about.
    EventObject,
    /// Who saw an event.
    EventSource,
    /// Whether a resource claim is allocated and reserved.
    ClaimState,
    /// Whether an API service is available.
    Available,
}

const fn column(name: &'static str, kind: &'static str, cell: Cell) -> Column {
    Column { name, kind, wide: false, cell }
}

const fn text(name: &'static str, cell: Cell) -> Column {
    column(name, "string", cell)
}

const fn path(name: &'static str, path: &'static str) -> Column {
    text(name, Cell::Path(path))
}

const fn number(name: &'static str, path: &'static str) -> Column {
    column(name, "integer", Cell::Number(path))
}

const fn wide(mut column: Column) -> Column {
    column.wide = true;
    column
}

const NAME: Column = path("Name", "metadata.name");
const AGE: Column = text("Age", Cell::Since("metadata.creationTimestamp"));
const TEMPLATE: &str = "spec.template.spec";
const CONTAINERS: Column = wide(text("Containers", Cell::Containers(TEMPLATE)));
const IMAGES: Column = wide(text("Images", Cell::Images(TEMPLATE)));
const SELECTOR: Column = wide(text("Selector", Cell::Selector("spec.selector")));

/// Kinds about which there is nothing more to say.
pub(super) const PLAIN: &[Column] = &[NAME, AGE];

pub(super) const POD: &[Column] = &[
    NAME,
    text("Ready", Cell::PodReady),
    text("Status", Cell::PodStatus),
    text("Restarts", Cell::PodRestarts),
    AGE,
    wide(path("IP", "status.podIP")),
    wide(path("Node", "spec.nodeName")),
    wide(path("Nominated Node", "status.nominatedNodeName")),
    wide(text("Readiness Gates", Cell::PodReadinessGates)),
];

pub(super) const NODE: &[Column] = &[
    NAME,
    text("Status", Cell::NodeStatus),
    text("Roles", Cell::NodeRoles),
    AGE,
    path("Version", "status.nodeInfo.kubeletVersion"),
    wide(text("Internal-IP", Cell::NodeAddress("InternalIP"))),
    wide(text("External-IP", Cell::NodeAddress("ExternalIP"))),
    wide(text("OS-Image", Cell::PathOr("status.nodeInfo.osImage", "<unknown>"))),
    wide(text("Kernel-Version", Cell::PathOr("status.nodeInfo.kernelVersion", "<unknown>"))),
    wide(text("Container-Runtime", Cell::PathOr("status.nodeInfo.containerRuntimeVersion", "<unknown>"))),
];

pub(super) const NAMESPACE: &[Column] = &[NAME, path("Status", "status.phase"), AGE];
pub(super) const SECRET: &[Column] =
    &[NAME, path("Type", "type"), column("Data", "integer", Cell::Count(&["data"])), AGE];
pub(super) const CONFIG_MAP: &[Column] =
    &[NAME, column("Data", "integer", Cell::Count(&["data", "binaryData"])), AGE];

pub(super) const SERVICE: &[Column] = &[
    NAME,
    path("Type", "spec.type"),
    path("Cluster-IP", "spec.clusterIP"),
    text("External-IP", Cell::ServiceExternal),
    text("Port(s)", Cell::ServicePorts),
    AGE,
    wide(text("Selector", Cell::Labels("spec.selector"))),
];

pub(super) const EVENT: &[Column] = &[
    text("Last Seen", Cell::SinceEither("lastTimestamp", "eventTime")),
    path("Type", "type"),
    path("Reason", "reason"),
    text("Object", Cell::EventObject),
    wide(text("Subobject", Cell::PathOr("involvedObject.fieldPath", ""))),
    wide(text("Source", Cell::EventSource)),
    text("Message", Cell::PathOr("message", "")),
    wide(text("First Seen", Cell::SinceEither("firstTimestamp", "eventTime"))),
    wide(text("Count", Cell::PathOr("count", "1"))),
    wide(NAME),
];

pub(super) const NEW_EVENT: &[Column] = &[
    text("Last Seen", Cell::SinceEither("series.lastObservedTime", "eventTime")),
    path("Type", "type"),
    path("Reason", "reason"),
    text("Object", Cell::EventObject),
    wide(text("Subobject", Cell::PathOr("regarding.fieldPath", ""))),
    wide(text("Source", Cell::EventSource)),
    text("Message", Cell::PathOr("note", "")),
    wide(text("First Seen", Cell::Since("eventTime"))),
    wide(text("Count", Cell::PathOr("series.count", "1"))),
    wide(NAME),
];

pub(super) const PERSISTENT_VOLUME: &[Column] = &[
    NAME,
    path("Capacity", "spec.capacity.storage"),
    text("Access Modes", Cell::AccessModes("spec.accessModes")),
    path("Reclaim Policy", "spec.persistentVolumeReclaimPolicy"),
    path("Status", "status.phase"),
    text("Claim", Cell::Claim),
    text("StorageClass", Cell::PathOr("spec.storageClassName", "")),
    text("VolumeAttributesClass", Cell::PathOr("spec.volumeAttributesClassName", "<unset>")),
    text("Reason", Cell::PathOr("status.reason", "")),
    AGE,
    wide(text("VolumeMode", Cell::PathOr("spec.volumeMode", "<unset>"))),
];

pub(super) const PERSISTENT_VOLUME_CLAIM: &[Column] = &[
    NAME,
    path("Status", "status.phase"),
    text("Volume", Cell::PathOr("spec.volumeName", "")),
    text("Capacity", Cell::PathOr("status.capacity.storage", "")),
    text("Access Modes", Cell::AccessModes("status.accessModes")),
    text("StorageClass", Cell::PathOr("spec.storageClassName", "")),
    text("VolumeAttributesClass", Cell::PathOr("spec.volumeAttributesClassName", "<unset>")),
    AGE,
    wide(text("VolumeMode", Cell::PathOr("spec.volumeMode", "<unset>"))),
];

pub(super) const ENDPOINTS: &[Column] = &[NAME, text("Endpoints", Cell::Endpoints), AGE];

pub(super) const DEPLOYMENT: &[Column] = &[
    NAME,
    text("Ready", Cell::Ratio("status.readyReplicas", "spec.replicas")),
    number("Up-to-date", "status.updatedReplicas"),
    number("Available", "status.availableReplicas"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) const STATEFUL_SET: &[Column] =
    &[NAME, text("Ready", Cell::Ratio("status.readyReplicas", "spec.replicas")), AGE, CONTAINERS, IMAGES];

pub(super) const REPLICA_SET: &[Column] = &[
    NAME,
    number("Desired", "spec.replicas"),
    number("Current", "status.replicas"),
    number("Ready", "status.readyReplicas"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) const DAEMON_SET: &[Column] = &[
    NAME,
    number("Desired", "status.desiredNumberScheduled"),
    number("Current", "status.currentNumberScheduled"),
    number("Ready", "status.numberReady"),
    number("Up-to-date", "status.updatedNumberScheduled"),
    number("Available", "status.numberAvailable"),
    text("Node Selector", Cell::Labels("spec.template.spec.nodeSelector")),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) const JOB: &[Column] = &[
    NAME,
    text("Status", Cell::JobStatus),
    text("Completions", Cell::JobCompletions),
    text("Duration", Cell::JobDuration),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) const CRON_JOB: &[Column] = &[
    NAME,
    path("Schedule", "spec.schedule"),
    path("Timezone", "spec.timeZone"),
    column("Suspend", "boolean", Cell::PathOr("spec.suspend", "False")),
    column("Active", "integer", Cell::Count(&["status.active"])),
    text("Last Schedule", Cell::SinceEither("status.lastScheduleTime", "")),
    AGE,
    wide(text("Containers", Cell::Containers("spec.jobTemplate.spec.template.spec"))),
    wide(text("Images", Cell::Images("spec.jobTemplate.spec.template.spec"))),
    wide(text("Selector", Cell::Selector("spec.jobTemplate.spec.selector"))),
];

pub(super) const LEASE: &[Column] = &[NAME, text("Holder", Cell::PathOr("spec.holderIdentity", "")), AGE];

pub(super) const ENDPOINT_SLICE: &[Column] = &[
    NAME,
    path("AddressType", "addressType"),
    text("Ports", Cell::SlicePorts),
    text("Endpoints", Cell::SliceEndpoints),
    AGE,
];

pub(super) const ROLE: &[Column] = &[NAME, path("Created At", "metadata.creationTimestamp")];

pub(super) const ROLE_BINDING: &[Column] = &[
    NAME,
    text("Role", Cell::Reference("roleRef")),
    AGE,
    wide(text("Users", Cell::Subjects("User"))),
    wide(text("Groups", Cell::Subjects("Group"))),
    wide(text("ServiceAccounts", Cell::Subjects("ServiceAccount"))),
];

pub(super) const STORAGE_CLASS: &[Column] = &[
    NAME,
    path("Provisioner", "provisioner"),
    text("ReclaimPolicy", Cell::PathOr("reclaimPolicy", "Delete")),
    text("VolumeBindingMode", Cell::PathOr("volumeBindingMode", "<unset>")),
    text("AllowVolumeExpansion", Cell::PathOr("allowVolumeExpansion", "false")),
    AGE,
];

pub(super) const CSI_DRIVER: &[Column] = &[
    NAME,
    column("AttachRequired", "boolean", Cell::PathOr("spec.attachRequired", "true")),
    column("PodInfoOnMount", "boolean", Cell::PathOr("spec.podInfoOnMount", "false")),
    column("StorageCapacity", "boolean", Cell::PathOr("spec.storageCapacity", "false")),
    text("TokenRequests", Cell::Each("spec.tokenRequests", "audience")),
    text("RequiresRepublish", Cell::PathOr("spec.requiresRepublish", "false")),
    text("Modes", Cell::List("spec.volumeLifecycleModes")),
    AGE,
];

pub(super) const PRIORITY_CLASS: &[Column] = &[
    NAME,
    number("Value", "value"),
    column("Global-Default", "boolean", Cell::PathOr("globalDefault", "false")),
    AGE,
    text("PreemptionPolicy", Cell::PathOr("preemptionPolicy", "PreemptLowerPriority")),
];

pub(super) const DISRUPTION_BUDGET: &[Column] = &[
    NAME,
    text("Min Available", Cell::PathOr("spec.minAvailable", "N/A")),
    text("Max Unavailable", Cell::PathOr("spec.maxUnavailable", "N/A")),
    number("Allowed Disruptions", "status.disruptionsAllowed"),
    AGE,
];

pub(super) const POD_AUTOSCALER: &[Column] = &[
    NAME,
    text("Reference", Cell::Reference("spec.scaleTargetRef")),
    text("MinPods", Cell::PathOr("spec.minReplicas", "<unset>")),
    number("MaxPods", "spec.maxReplicas"),
    number("Replicas", "status.currentReplicas"),
    AGE,
];

pub(super) const NETWORK_POLICY: &[Column] =
    &[NAME, text("Pod-Selector", Cell::Selector("spec.podSelector")), AGE];

pub(super) const INGRESS: &[Column] = &[
    NAME,
    path("Class", "spec.ingressClassName"),
    text("Hosts", Cell::IngressHosts),
    text("Address", Cell::IngressAddress),
    text("Ports", Cell::IngressPorts),
    AGE,
];

pub(super) const RESOURCE_CLAIM: &[Column] = &[NAME, text("State", Cell::ClaimState), AGE];

pub(super) const RESOURCE_SLICE: &[Column] = &[
    NAME,
    text("Node", Cell::PathOr("spec.nodeName", "")),
    path("Driver", "spec.driver"),
    path("Pool", "spec.pool.name"),
    AGE,
];

pub(super) const DEFINITION: &[Column] = &[NAME, path("Created At", "metadata.creationTimestamp")];
pub(super) const WEBHOOKS: &[Column] =
    &[NAME, column("Webhooks", "integer", Cell::Count(&["webhooks"])), AGE];

pub(super) const ADMISSION_POLICY: &[Column] = &[
    NAME,
    column("Validations", "integer", Cell::Count(&["spec.validations"])),
    text("ParamKind", Cell::Reference("spec.paramKind")),
    AGE,
];

pub(super) const ADMISSION_POLICY_BINDING: &[Column] = &[
    NAME,
    path("PolicyName", "spec.policyName"),
    text("ParamRef", Cell::PathOr("spec.paramRef.name", "<unset>")),
    AGE,
];

pub(super) const API_SERVICE: &[Column] = &[
    NAME,
    text("Service", Cell::PathOr("spec.service.name", "Local")),
    text("Available", Cell::Available),
    AGE,
];
