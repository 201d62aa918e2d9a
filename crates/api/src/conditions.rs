//! Condition types and reasons, each once for the whole system.
//!
//! Types and reasons are part of the published API: people and programs match on them. Messages are not, and
//! are written where the condition is derived. `Ready` and `Synced` belong to Crossplane (or to the engine in
//! embedded mode); compositions read them and never write them.

use std::fmt;

/// Declares an enum of published words with `as_str`, `ALL` and `Display`.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident $(= $text:literal)?,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$word_doc])* $word,)*
        }

        impl $name {
            /// All words, in order of declaration.
            pub const ALL: &[Self] = &[$(Self::$word,)*];

            /// The word as it is published.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => words!(@text $word $($text)?),)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.as_str())
            }
        }
    };
    (@text $word:ident) => { stringify!($word) };
    (@text $word:ident $text:literal) => { $text };
}

words! {
    /// Type of a condition.
    ConditionType {
        /// Everything composed is ready. Crossplane's.
        Ready,
        /// The composition ran. Crossplane's.
        Synced,

        /// InferenceClass: usable.
        Accepted,
        /// InferenceCluster: the cluster itself runs.
        ClusterReady,
        /// InferenceCluster: the serving stack on it is ready.
        BackendReady,
        /// InferenceGateway: the gateway's controller runs.
        ControllerReady,

        /// ModelCache: clusters to stage on were found.
        ClustersMatched,
        /// ModelCache: the weights are staged.
        ArtifactReady,

        /// ModelDeployment: the cache it names could be read.
        ModelCacheResolved,
        /// ModelDeployment: replicas were placed.
        ReplicasScheduled,
        /// ModelDeployment: replicas serve.
        ReplicasReady,

        /// ModelReplica: the cluster took the workloads.
        ModelAccepted,
        /// ModelReplica: the workloads serve.
        ModelReady,

        /// ModelService: endpoints were found.
        EndpointsResolved,
        /// ModelService, ModelEndpoint: traffic can flow.
        RoutingReady,

        /// LLMInference: both resources are composed.
        ResourcesComposed,
    }
}

words! {
    /// Reason of a condition.
    Reason {
        /// `Accepted`: usable.
        Available,

        /// `ClusterReady`: a class that a pool names does not exist.
        WaitingForClasses,
        /// `ClusterReady`: a pool's class has no recipe for the cluster's source.
        InvalidNodePool,
        /// `ClusterReady`: the cluster runs.
        ClusterRunning,
        /// `ClusterReady`: the cluster is being provisioned.
        Provisioning,
        /// `BackendReady`: the serving stack is ready.
        BackendHealthy,
        /// `BackendReady`, `ControllerReady`: being installed.
        Installing,
        /// `ControllerReady`: the controller runs.
        ControllerHealthy,

        /// `ClustersMatched`: clusters match.
        Matched,
        /// `ClustersMatched`, `ArtifactReady`, `ReplicasScheduled`: no cluster matches.
        NoClusters,
        /// `ArtifactReady`: the Secret with the token, or its key, is missing.
        AuthSecretMissing,
        /// `ArtifactReady`: a download failed.
        Failed,
        /// `ArtifactReady`: staged on every matched cluster.
        Staged,
        /// `ArtifactReady`: staged on some of the matched clusters.
        Partial,
        /// `ArtifactReady`: being downloaded.
        Hydrating,

        /// `ModelCacheResolved`: the cache was read.
        ModelCacheResolved,
        /// `ModelCacheResolved`: the cache does not exist.
        ModelCacheNotFound,
        /// `ModelCacheResolved`: the cache has not been fetched yet.
        ModelCacheUnresolved,
        /// `ReplicasScheduled`: a device selector does not compile.
        InvalidNodeSelector,
        /// `ReplicasScheduled`: no cluster has room for a replica.
        InsufficientCapacity,
        /// `ReplicasScheduled`: replicas exist.
        ReplicasCreated,
        /// `ReplicasScheduled`: replicas were placed and are about to be created.
        Scheduling,
        /// `ReplicasReady`: there is no replica.
        NoReplicasScheduled,
        /// `ReplicasReady`: every replica is ready.
        AllReplicasReady,
        /// `ReplicasReady`, `ModelReady`: engines are starting.
        ModelStarting,

        /// `ModelAccepted`, `BackendReady`: the cluster is not there yet.
        WaitingForCluster,
        /// `ModelAccepted`: the workloads are being created.
        Deploying,
        /// `ModelAccepted`: the workloads exist on the cluster.
        WorkloadsAccepted = "Accepted",
        /// `ModelReady`: the workloads do not exist yet.
        WaitingForModel,
        /// `ModelReady`: every engine serves.
        Serving,

        /// `EndpointsResolved`: endpoints match.
        Resolved,
        /// `EndpointsResolved`: no endpoint matches.
        NoEndpoints,
        /// `RoutingReady`: traffic can flow to the endpoint.
        BackendConfigured,
        /// `RoutingReady`: the endpoint's backing objects are being created.
        WaitingForBackend,
        /// `RoutingReady`: the endpoint's URL cannot be used.
        InvalidUrl = "InvalidURL",
        /// `RoutingReady`: traffic can flow through the service.
        RouteConfigured,
        /// `RoutingReady`: the route is being set up.
        Configuring,
        /// `RoutingReady`: the fleet has no gateway.
        WaitingForGateway,

        /// `ResourcesComposed`: all are composed.
        AllComposed,
        /// Result of a composed LLMInference.
        Composed,

        /// Any type: a field of the object cannot be read; what exists is held.
        InvalidSpec,
        /// Any type: an input has not been fetched yet; what exists is held.
        WaitingForInput,
        /// Any type: an input object cannot be read; what exists is held.
        InvalidInput,
        /// Any type: the field asks for something that is reserved and not implemented.
        NotImplemented,
    }
}
