//! Calls that are answered, refused and finished.

use std::time::Duration;

use bytes::Bytes;
use modelplane_crossplane::json::{request_from_json, response_to_json};
use modelplane_crossplane::server::Options;
use serde_json::json;
use tonic::client::Grpc;

use crate::support::{RUN_FUNCTION, Raw, call, call_method, call_raw, class, connect, fetch, options, start};

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_answered_and_counted() {
    let running = start(options()).await;
    let channel = connect(&running).await;
    let answer = call(&channel, &class("a-tag")).await;
    assert_eq!(answer["meta"], json!({"tag": "a-tag", "ttl": "60s"}));
    assert_eq!(answer["desired"]["composite"]["ready"], "READY_TRUE");
    let metrics = fetch(running.http, "/metrics").await;
    assert!(metrics.contains("modelplane_function_calls_total{kind=\"InferenceClass\"} 1"), "{metrics}");
    assert!(fetch(running.http, "/readyz").await.ends_with("ok\n"));
    drop(channel);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_kind_is_a_fatal_result_and_others_go_on() {
    let running = start(options()).await;
    let channel = connect(&running).await;
    let unknown = json!({"observed": {"composite": {"resource": {
        "apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "t"}
    }}}});
    let answer = call(&channel, &unknown).await;
    assert_eq!(answer["results"][0]["severity"], "SEVERITY_FATAL");
    assert!(answer["results"][0]["message"].as_str().is_some_and(|text| text.contains("Thing")));
    let refused = call_raw(&channel, vec![0xff; 16]).await.expect_err("that is no request");
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert_eq!(call(&channel, &class("still here")).await["meta"]["tag"], "still here");
    drop(channel);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_over_the_limit_are_refused() {
    let running = start(Options { max_request_bytes: 1000, ..options() }).await;
    let channel = connect(&running).await;
    let refused = call_raw(&channel, vec![0; 2000]).await.expect_err("it is too large");
    assert_eq!(refused.code(), tonic::Code::OutOfRange);
    drop(channel);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_under_way_is_finished_before_the_server_stops() {
    let running = start(options()).await;
    let channel = connect(&running).await;
    let (send, receive) = tokio::sync::mpsc::channel(1);
    let under_way = tokio::spawn({
        let channel = channel.clone();
        async move {
            let mut grpc = Grpc::new(channel);
            grpc.ready().await.expect("it is reachable");
            let message = tokio_stream::wrappers::ReceiverStream::new(receive);
            let path = http::uri::PathAndQuery::from_static(RUN_FUNCTION);
            grpc.client_streaming(tonic::Request::new(message), path, Raw).await
        }
    });
    // The call is open, its message not sent; a later call on the same connection proves that the server knows of it.
    tokio::time::sleep(Duration::from_millis(200)).await;
    call(&channel, &class("before")).await;
    let stopped = tokio::spawn(running.stop());
    tokio::time::sleep(Duration::from_millis(200)).await;
    send.send(request_from_json(&class("late")).expect("well formed")).await.expect("the call is open");
    drop((send, channel));
    let answer = under_way.await.expect("no panic").expect("the call is answered").into_inner();
    assert_eq!(response_to_json(&answer).expect("well formed")["meta"]["tag"], "late");
    stopped.await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_served() {
    let running = start(options()).await;
    let channel = connect(&running).await;
    let check = "/grpc.health.v1.Health/Check";
    let answer = call_method(&channel, check, tonic::Request::new(Vec::new())).await;
    assert_eq!(answer.expect("it is answered"), Bytes::from_static(&[8, 1]), "status SERVING");
    drop(channel);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reflection_names_the_service() {
    let running = start(options()).await;
    let channel = connect(&running).await;
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.expect("it is reachable");
    let path =
        http::uri::PathAndQuery::from_static("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
    // Field 7: list the services.
    let requests = tokio_stream::iter([vec![0x3a, 1, b'*']]);
    let answers = grpc.streaming(tonic::Request::new(requests), path, Raw).await.expect("it is answered");
    let answer = answers.into_inner().message().await.expect("a message").expect("one answer");
    let text = String::from_utf8_lossy(&answer);
    assert!(text.contains("apiextensions.fn.proto.v1.FunctionRunnerService"), "{text}");
    drop(grpc);
    drop(channel);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_in_parallel_get_their_own_answers() {
    let running = start(options()).await;
    let channel = connect(&running).await;
    let calls = (0..64).map(|number| {
        let channel = channel.clone();
        tokio::spawn(async move {
            if number % 20 == 7 {
                call_raw(&channel, vec![0xff; 16]).await.expect_err("that is no request");
                return;
            }
            let tag = format!("tag-{number}");
            assert_eq!(call(&channel, &class(&tag)).await["meta"]["tag"], tag);
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.expect("the call was answered");
    }
    drop(channel);
    running.stop().await;
}
