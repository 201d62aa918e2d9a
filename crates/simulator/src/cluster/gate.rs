//! What stands before a simulated API server in this process: while the cluster is unreachable, no request passes,
//! and watches under way end.

use std::task::{Context, Poll};

use axum::body::Body;
use futures_util::StreamExt;
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
    type Response = Response<Body>;
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
        let lasts = request.uri().query().is_some_and(|query| query.contains("watch="));
        let settings = lasts.then(|| self.settings.clone());
        async move {
            let response = inner.call(request).await?;
            Ok(match settings {
                None => response,
                Some(settings) => response.map(|body| until_unreachable(body, settings)),
            })
        }
        .boxed()
    }
}

/// A body that ends when the cluster becomes unreachable.
fn until_unreachable(body: Body, mut settings: watch::Receiver<Settings>) -> Body {
    let unreachable = async move {
        // An error is the end of the cluster, which ends the body too.
        drop(settings.wait_for(|settings| settings.faults.unreachable).await);
    };
    Body::from_stream(body.into_data_stream().take_until(Box::pin(unreachable)))
}
