//! What is told of calls: metrics, traces, logs.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use modelplane_crossplane::json::request_from_json;
use modelplane_crossplane::server::{Collector, Options};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::json;
use tonic::metadata::MetadataValue;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::fleet::{FieldOrder, Fleet, Situation, Size};
use crate::support::{RUN_FUNCTION, call_method, call_raw, class, connect, fetch, options, start};

#[tokio::test(flavor = "multi_thread")]
async fn scheduling_is_measured() {
    let running = start(options()).await;
    let channel = connect(&running).await;
    let size = Size { clusters: 64, replicas: 64 };
    let fleet = Fleet::generate(size, Situation::Placing, FieldOrder::Random).request();
    for _ in 0..2 {
        call_raw(&channel, fleet.clone()).await.expect("it is answered");
    }
    let metrics = fetch(running.http, "/metrics").await;
    let value = |name: &str| -> u64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} in {metrics}")).trim().parse().expect("a number")
    };
    // Eight kinds of accelerator and a network card per node; three selectors. Not every pair is looked at, and each
    // that is, once per call.
    let evaluations = value("modelplane_function_selector_evaluations_total");
    assert!((2..=2 * 9 * 3).contains(&evaluations) && evaluations % 2 == 0, "{evaluations}");
    let (placed, unplaced) =
        (value("modelplane_function_placed_replicas"), value("modelplane_function_unplaced_replicas"));
    assert_eq!((placed, unplaced), (4, 0), "the second call of a deployment replaces the first");
    assert!(metrics.contains("modelplane_function_response_bytes_count{kind=\"ModelDeployment\"} 2"));
    drop(channel);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_without_a_place_are_measured_and_made_up_kinds_are_no_labels() {
    let running = start(options()).await;
    let channel = connect(&running).await;
    let deployment = json!({"observed": {"composite": {"resource": {
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelDeployment",
        "metadata": {"name": "d", "namespace": "ml-team"},
        "spec": {"replicas": 3, "template": {"spec": {"engines": [{"name": "main", "members": [
            {"role": "Standalone", "template": {"spec": {"containers": []}}, "nodeSelector": {"devices": [{"name": "gpu", "selectors": [{"cel": "true"}]}]}},
        ]}]}}},
    }}}, "requiredResources": {
        "clusters": {"items": [{"resource": {"kind": "InferenceCluster", "metadata": {"name": "c"}}}]},
        "all-replicas": {"items": []},
    }});
    let unknown =
        json!({"observed": {"composite": {"resource": {"kind": "Thing", "metadata": {"name": "t"}}}}});
    for request in [deployment, unknown] {
        call_raw(&channel, request_from_json(&request).expect("well formed")).await.expect("answered");
    }
    let metrics = fetch(running.http, "/metrics").await;
    assert!(metrics.contains("modelplane_function_unplaced_replicas 3\n"), "{metrics}");
    assert!(metrics.contains("modelplane_function_fatal_results_total{kind=\"unknown\"} 1"), "{metrics}");
    drop(channel);
    running.stop().await;
}

/// A collector that keeps what it gets.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<ExportTraceServiceRequest>>>);

#[tonic::async_trait]
impl TraceService for Kept {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.lock().expect("nobody panicked").push(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Kept {
    fn spans(&self) -> Vec<Span> {
        let kept = self.0.lock().expect("nobody panicked");
        let resources = kept.iter().flat_map(|request| &request.resource_spans);
        resources.flat_map(|resource| &resource.scope_spans).flat_map(|scope| scope.spans.clone()).collect()
    }
}

fn attribute(span: &Span, key: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key == key);
    match found.and_then(|attribute| attribute.value.clone()?.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_reach_a_collector_with_their_parents() {
    let kept = Kept::default();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let service = TraceServiceServer::new(kept.clone());
    let collector =
        tokio::spawn(Server::builder().add_service(service).serve_with_incoming(TcpIncoming::from(listener)));

    let collector_options = Collector { endpoint: format!("http://{address}"), authority: None };
    let running = start(Options { collector: Some(collector_options), ..options() }).await;
    let channel = connect(&running).await;
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parents = [("sampled", "01"), ("unsampled", "00")];
    for (tag, flags) in parents {
        let bytes = request_from_json(&class(tag)).expect("well formed");
        let mut request = Request::new(bytes);
        let header = format!("00-{trace}-b7ad6b7169203331-{flags}");
        request.metadata_mut().insert("traceparent", MetadataValue::try_from(header).expect("plain text"));
        call_method(&channel, RUN_FUNCTION, request).await.expect("it is answered");
    }
    let unknown =
        json!({"observed": {"composite": {"resource": {"kind": "Thing", "metadata": {"name": "t"}}}}});
    call_raw(&channel, request_from_json(&unknown).expect("well formed")).await.expect("it is answered");
    drop(channel);
    // What is not sent yet is sent on the way out.
    running.stop().await;
    collector.abort();

    let spans = kept.spans();
    let calls: Vec<&Span> = spans.iter().filter(|span| span.name == "RunFunction").collect();
    assert_eq!((spans.len(), calls.len()), (8, 2), "the call that is not sampled has no spans");
    let sampled = calls.iter().find(|span| attribute(span, "modelplane.request.tag") == "sampled");
    let sampled = sampled.expect("a span of the first call");
    assert_eq!(sampled.parent_span_id, [0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]);
    assert_eq!(sampled.trace_id[..4], [0x0a, 0xf7, 0x65, 0x19]);
    assert_eq!(attribute(sampled, "modelplane.composite.kind"), "InferenceClass");
    assert_eq!(attribute(sampled, "modelplane.composite.name"), "l4");
    assert!(sampled.end_time_unix_nano >= sampled.start_time_unix_nano && sampled.status.is_none());
    let children = spans.iter().filter(|span| span.parent_span_id == sampled.span_id);
    let names: Vec<&str> = children.map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["read", "compose", "encode"]);
    let failed = calls.iter().find_map(|span| span.status.as_ref()).expect("a status of the second call");
    assert!(failed.code == 2 && failed.message.contains("Thing"), "{failed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_disturbs_no_call() {
    // Nobody listens on a port that was free a moment ago.
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    let collector = Collector { endpoint: format!("http://{address}"), authority: None };
    let running = start(Options { collector: Some(collector), ..options() }).await;
    let channel = connect(&running).await;
    let bytes = request_from_json(&class("x")).expect("well formed");
    call_raw(&channel, bytes).await.expect("it is answered");
    let lost = async {
        while !fetch(running.http, "/metrics").await.contains("modelplane_function_lost_spans_total 1") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), lost).await.expect("the loss is counted");
    drop(channel);
    running.stop().await;
}

/// What a subscriber wrote.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_say_which_composite_and_which_request() {
    let written = Written::default();
    let writer = written.clone();
    let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || writer.clone());
    // Calls run on threads of their own, so the subscriber has to be everybody's.
    tracing::subscriber::set_global_default(subscriber.finish()).expect("the only one of this program");
    let running = start(options()).await;
    let channel = connect(&running).await;
    let invalid = json!({"meta": {"tag": "log-tag"}, "observed": {"composite": {"resource": {
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelDeployment",
        "metadata": {"name": "d", "namespace": "ml-team"}, "spec": {"replicas": 100_000, "template": {"spec": {"engines": []}}},
    }}}});
    call_raw(&channel, request_from_json(&invalid).expect("well formed")).await.expect("it is answered");
    drop(channel);
    running.stop().await;
    let text = String::from_utf8(written.0.lock().expect("nobody panicked").clone()).expect("text");
    let lines = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let line = lines.into_iter().find(|line| line["tag"] == "log-tag").expect("a line about the call");
    assert_eq!(line["level"], "WARN");
    assert_eq!(
        (&line["kind"], &line["namespace"], &line["name"]),
        (&json!("ModelDeployment"), &json!("ml-team"), &json!("d"))
    );
    assert!(line["result"].as_str().is_some_and(|text| text.contains("spec.replicas")), "{line}");
}
