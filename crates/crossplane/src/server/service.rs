//! The gRPC service `FunctionRunnerService`.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Request, Response, Status};

use super::codec::BytesCodec;
use super::metrics::Metrics;
use super::traces::Tracer;
use crate::{Answer, answer_request};

/// Full name of the service.
pub const SERVICE_NAME: &str = "apiextensions.fn.proto.v1.FunctionRunnerService";

const RUN_FUNCTION: &str = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Answers RunFunction calls.
#[derive(Debug, Clone)]
pub(super) struct FunctionService {
    pub(super) metrics: Arc<Metrics>,
    pub(super) tracer: Option<Tracer>,
    pub(super) max_request_bytes: usize,
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
        let service = RunFunction { metrics: Arc::clone(&self.metrics), tracer: self.tracer.clone() };
        let mut grpc =
            Grpc::new(BytesCodec).apply_max_message_size_config(Some(self.max_request_bytes), None);
        Box::pin(async move { Ok(grpc.unary(service, request).await) })
    }
}

struct RunFunction {
    metrics: Arc<Metrics>,
    tracer: Option<Tracer>,
}

impl UnaryService<Bytes> for RunFunction {
    type Response = Vec<u8>;
    type Future = BoxFuture<Result<Response<Vec<u8>>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let (metrics, tracer) = (Arc::clone(&self.metrics), self.tracer.clone());
        Box::pin(async move {
            let worked = tokio::task::spawn_blocking(move || run(&metrics, tracer.as_ref(), &request));
            match worked.await {
                Ok(result) => result.map(Response::new),
                Err(_) => Err(Status::internal("the call was abandoned")),
            }
        })
    }
}

/// Answers one call, counts it and says so in the log and the trace.
fn run(metrics: &Metrics, tracer: Option<&Tracer>, request: &Request<Bytes>) -> Result<Vec<u8>, Status> {
    let started = Instant::now();
    let parent = request.metadata().get("traceparent").and_then(|value| value.to_str().ok());
    let begun = tracer.and_then(|tracer| Some((tracer, tracer.begin(parent)?)));
    let request = request.get_ref();
    let answer = answer_request(request).map_err(|error| {
        metrics.refused();
        tracing::warn!(%error, bytes = request.len(), "refused a call");
        Status::invalid_argument(error.to_string())
    })?;
    let elapsed = started.elapsed();
    metrics.answered(&answer, request.len(), elapsed);
    if let Some((tracer, begun)) = begun {
        tracer.end(begun, &answer, request.len(), elapsed);
    }
    log(&answer, request.len(), elapsed, begun.map(|(_, begun)| begun.context.trace_id()));
    Ok(answer.bytes)
}

fn log(answer: &Answer, request_bytes: usize, elapsed: Duration, trace_id: Option<String>) {
    let Answer { kind, namespace, name, tag, fatal, bytes, .. } = answer;
    let (milliseconds, response_bytes) = (elapsed.as_secs_f64() * 1000.0, bytes.len());
    match fatal {
        Some(result) => tracing::warn!(
            kind,
            namespace,
            name,
            tag,
            trace_id,
            milliseconds,
            request_bytes,
            response_bytes,
            result,
            "answered with a fatal result"
        ),
        None => tracing::debug!(
            kind,
            namespace,
            name,
            tag,
            trace_id,
            milliseconds,
            request_bytes,
            response_bytes,
            "answered"
        ),
    }
}
