//! What stands before a simulated API server: while the cluster is unreachable, no request passes.

use std::task::{Context, Poll};

use futures_util::future::{BoxFuture, FutureExt};
use http::{Request, Response};
use modelplane_apiserver::InProcess;
use tokio::sync::watch;
use tower::Service;

use crate::settings::Settings;

/// An API server that can be made not to answer.
#[derive(Clone)]
pub(super) struct Gate {
    inner: InProcess,
    settings: watch::Receiver<Settings>,
}

/// The cluster does not answer.
#[derive(Debug, thiserror::Error)]
#[error("simulated cluster {0} is unreachable: connection timed out")]
struct Unreachable(String);

impl Gate {
    pub(super) fn new(inner: InProcess, settings: watch::Receiver<Settings>) -> Self {
        Self { inner, settings }
    }
}

impl Service<Request<kube::client::Body>> for Gate {
    type Response = Response<axum::body::Body>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let settings = self.settings.borrow();
        if settings.faults.unreachable {
            let error = Unreachable(settings.name.clone());
            return std::future::ready(Err(error.into())).boxed();
        }
        drop(settings);
        let mut inner = self.inner.clone();
        async move { inner.call(request).await.map_err(Into::into) }.boxed()
    }
}
