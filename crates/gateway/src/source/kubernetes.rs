//! Routes from a control plane, watched. Nothing is published before every kind has been listed once; afterwards
//! a lost connection leaves the routes as they were.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use k8s_openapi::api::core::v1;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use modelplane_api::kind::{KindInfo, Object};
use tokio::sync::mpsc;

use crate::source::translate::{self, Documents, Secret};
use crate::source::{RouteSink, RouteSource};

/// How long to wait for more changes before publishing. Well below the 100 ms a change may take to show.
const SETTLE: Duration = Duration::from_millis(10);

/// Changes waiting to be taken in.
const WAITING: usize = 1024;

/// Kinds that are watched.
const KINDS: usize = 4;

/// Watches the objects of a control plane.
#[derive(Clone)]
pub struct KubernetesRoutes {
    client: Client,
}

impl Debug for KubernetesRoutes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("KubernetesRoutes").finish_non_exhaustive()
    }
}

impl KubernetesRoutes {
    /// Routes from the control plane a client talks to.
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

type Key = (String, String);

/// A change to one kind's objects.
enum Change {
    Services(Event<modelplane_api::model_service::ModelService>),
    Endpoints(Event<modelplane_api::model_endpoint::ModelEndpoint>),
    Gateways(Event<modelplane_api::inference_gateway::InferenceGateway>),
    Secrets(Event<Secret>),
}

/// A change to objects of one kind.
enum Event<T> {
    /// These are all there are.
    All(BTreeMap<Key, T>),
    /// There is this one, perhaps anew.
    Put(Key, T),
    /// This one is gone.
    Gone(Key),
}

impl RouteSource for KubernetesRoutes {
    async fn run(self, sink: RouteSink) {
        let (changes, mut incoming) = mpsc::channel(WAITING);
        let mut watches = tokio::task::JoinSet::new();
        watches.spawn(watch(
            self.objects::<modelplane_api::model_service::ModelService>(),
            parse,
            Change::Services,
            changes.clone(),
        ));
        watches.spawn(watch(
            self.objects::<modelplane_api::model_endpoint::ModelEndpoint>(),
            parse,
            Change::Endpoints,
            changes.clone(),
        ));
        watches.spawn(watch(
            self.objects::<modelplane_api::inference_gateway::InferenceGateway>(),
            parse,
            Change::Gateways,
            changes.clone(),
        ));
        let secrets = watcher(Api::<v1::Secret>::all(self.client.clone()), watcher::Config::default());
        watches.spawn(watch(secrets, secret, Change::Secrets, changes));
        let mut state = State::default();
        while let Some(change) = incoming.recv().await {
            state.take_in(change);
            tokio::time::sleep(SETTLE).await;
            while let Ok(change) = incoming.try_recv() {
                state.take_in(change);
            }
            if state.listed.iter().all(|listed| *listed) {
                sink.publish(&translate::snapshot(&state.documents));
            }
        }
    }
}

impl KubernetesRoutes {
    /// A watch of every object of a kind.
    fn objects<K: Object>(
        &self,
    ) -> impl futures_util::Stream<Item = watcher::Result<watcher::Event<DynamicObject>>> + Send + use<K>
    {
        let resource = resource(K::INFO);
        watcher(Api::<DynamicObject>::all_with(self.client.clone(), &resource), watcher::Config::default())
    }
}

fn resource(kind: &KindInfo) -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk(kind.group, kind.version, kind.kind),
        kind.plural,
    )
}

#[derive(Default)]
struct State {
    documents: Documents,
    listed: [bool; KINDS],
}

impl State {
    fn take_in(&mut self, change: Change) {
        let documents = &mut self.documents;
        match change {
            Change::Services(event) => self.listed[0] |= event.apply(&mut documents.services),
            Change::Endpoints(event) => self.listed[1] |= event.apply(&mut documents.endpoints),
            Change::Secrets(event) => self.listed[2] |= event.apply(&mut documents.secrets),
            Change::Gateways(event) => {
                let mut gateways: BTreeMap<Key, _> = std::mem::take(&mut documents.gateways)
                    .into_iter()
                    .map(|(name, gateway)| ((String::new(), name), gateway))
                    .collect();
                self.listed[3] |= event.apply(&mut gateways);
                documents.gateways =
                    gateways.into_iter().map(|((_, name), gateway)| (name, gateway)).collect();
            }
        }
    }
}

impl<T> Event<T> {
    /// Applies the change and says whether it was a complete list.
    fn apply(self, objects: &mut BTreeMap<Key, T>) -> bool {
        match self {
            Self::All(all) => {
                *objects = all;
                return true;
            }
            Self::Put(key, object) => drop(objects.insert(key, object)),
            Self::Gone(key) => drop(objects.remove(&key)),
        }
        false
    }
}

/// Turns a watch into changes until nobody takes them.
async fn watch<O, T>(
    stream: impl futures_util::Stream<Item = watcher::Result<watcher::Event<O>>> + Send,
    read: fn(O) -> (Key, Option<T>),
    wrap: fn(Event<T>) -> Change,
    changes: mpsc::Sender<Change>,
) where
    O: kube::ResourceExt + Clone + Send,
    T: Send,
{
    let mut stream = std::pin::pin!(stream.default_backoff());
    let mut listing = BTreeMap::new();
    while let Some(event) = stream.next().await {
        let change = match event {
            Ok(watcher::Event::Init) => {
                listing = BTreeMap::new();
                continue;
            }
            Ok(watcher::Event::InitApply(object)) => {
                if let (key, Some(object)) = read(object) {
                    listing.insert(key, object);
                }
                continue;
            }
            Ok(watcher::Event::InitDone) => Event::All(std::mem::take(&mut listing)),
            Ok(watcher::Event::Apply(object)) => match read(object) {
                (key, Some(object)) => Event::Put(key, object),
                (key, None) => Event::Gone(key),
            },
            Ok(watcher::Event::Delete(object)) => Event::Gone(read(object).0),
            // A server keeps the changes of a while; whoever is behind that lists again.
            Err(watcher::Error::WatchError(status)) if status.code == 410 => {
                tracing::debug!(%status, "a watch of the control plane begins anew");
                continue;
            }
            Err(error) => {
                tracing::warn!(%error, "a watch of the control plane is interrupted");
                continue;
            }
        };
        if changes.send(wrap(change)).await.is_err() {
            return;
        }
    }
}

/// Reads an object of the API. One that cannot be read is as good as gone.
fn parse<T: serde::de::DeserializeOwned>(object: DynamicObject) -> (Key, Option<T>) {
    let key = (
        object.metadata.namespace.clone().unwrap_or_default(),
        object.metadata.name.clone().unwrap_or_default(),
    );
    let read = serde_json::to_value(object).and_then(serde_json::from_value);
    let read = read.inspect_err(
        |error| tracing::warn!(namespace = %key.0, name = %key.1, %error, "an object cannot be read"),
    );
    (key, read.ok())
}

/// Reads a Secret. Helm's releases are left out: large, and never of interest.
fn secret(secret: v1::Secret) -> (Key, Option<Secret>) {
    let key = (secret.metadata.namespace.unwrap_or_default(), secret.metadata.name.unwrap_or_default());
    if secret.type_.as_deref().is_some_and(|kind| kind.starts_with("helm.sh/")) {
        return (key, None);
    }
    let data =
        secret.data.unwrap_or_default().into_iter().map(|(entry, value)| (entry, Bytes::from(value.0)));
    let read = Secret {
        labels: secret.metadata.labels.unwrap_or_default(),
        annotations: secret.metadata.annotations.unwrap_or_default(),
        data: data.collect(),
    };
    (key, Some(read))
}
