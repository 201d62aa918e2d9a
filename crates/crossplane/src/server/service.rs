//! The gRPC service `FunctionRunnerService`.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Request, Response, Status};

use super::codec::BytesCodec;
use super::metrics::Metrics;
use crate::{Answer, answer_request};

/// Full name of the service.
pub const SERVICE_NAME: &str = "apiextensions.fn.proto.v1.FunctionRunnerService";

/// Largest response Crossplane reads: its gRPC client keeps the default limit of 4 MiB.
pub const MAX_RESPONSE_BYTES: usize = 4 * 1024 * 1024;

const RUN_FUNCTION: &str = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Answers RunFunction calls.
#[derive(Debug, Clone)]
pub(super) struct FunctionService {
    metrics: Arc<Metrics>,
    max_request_bytes: usize,
}

impl FunctionService {
    pub(super) fn new(metrics: Arc<Metrics>, max_request_bytes: usize) -> Self {
        Self { metrics, max_request_bytes }
    }
}

impl NamedService for FunctionService {
    const NAME: &'static str = SERVICE_NAME;
}

impl<B> tower::Service<http::Request<B>> for FunctionService
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<tonic::codegen::StdError> + Send,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        if request.uri().path() != RUN_FUNCTION {
            return Box::pin(async { Ok(Status::unimplemented("no such method").into_http()) });
        }
        let service = RunFunction(Arc::clone(&self.metrics));
        let mut grpc =
            Grpc::new(BytesCodec).apply_max_message_size_config(Some(self.max_request_bytes), None);
        Box::pin(async move { Ok(grpc.unary(service, request).await) })
    }
}

struct RunFunction(Arc<Metrics>);

impl UnaryService<Bytes> for RunFunction {
    type Response = Vec<u8>;
    type Future = BoxFuture<Result<Response<Vec<u8>>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let metrics = Arc::clone(&self.0);
        let parent = tracing::Span::current();
        Box::pin(async move {
            let worked =
                tokio::task::spawn_blocking(move || parent.in_scope(|| run(&metrics, &request.into_inner())));
            match worked.await {
                Ok(result) => result.map(Response::new),
                Err(_) => Err(Status::internal("the call was abandoned")),
            }
        })
    }
}

/// Answers one call, counts it and says so in the log.
fn run(metrics: &Metrics, request: &[u8]) -> Result<Vec<u8>, Status> {
    let started = Instant::now();
    let Answer { kind, namespace, name, tag, fatal, bytes } = answer_request(request).map_err(|error| {
        metrics.refused();
        Status::invalid_argument(error.to_string())
    })?;
    let elapsed = started.elapsed();
    metrics.answered(&kind, request.len(), elapsed, fatal.is_some());
    match &fatal {
        Some(message) => tracing::warn!(kind, namespace, name, tag, ?elapsed, message, "fatal result"),
        None => tracing::debug!(kind, namespace, name, tag, ?elapsed, bytes = bytes.len(), "answered"),
    }
    if bytes.len() > MAX_RESPONSE_BYTES {
        tracing::error!(
            kind,
            namespace,
            name,
            bytes = bytes.len(),
            "the response is larger than Crossplane reads"
        );
    }
    Ok(bytes)
}
