//! What upstream's gateway does, and what HTTP asks of any proxy (issue 7, item 1).

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper_util::rt::TokioIo;
use modelplane_gateway::Snapshot;
use modelplane_gateway::routes::config::Address;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::*;

#[tokio::test]
async fn a_path_is_forwarded_with_its_prefix_replaced() {
    let endpoint = Endpoint::named("one").await;
    let gateway = Running::start(on(&endpoint)).await;
    let cases = [
        ("/ml-team/chat/v1/chat/completions", "/ml-team/one/v1/chat/completions"),
        ("/ml-team/chat/v1/models?limit=2&after=a%20b", "/ml-team/one/v1/models?limit=2&after=a%20b"),
        ("/ml-team/chat/", "/ml-team/one/"),
        ("/ml-team/chat", "/ml-team/one"),
        ("/ml-team/chat/metrics", "/ml-team/one/metrics"),
    ];
    for (path, want) in cases {
        let answer = get(gateway.address, path).await;
        assert_eq!((answer.status, answer.text()), (StatusCode::OK, "one"));
        assert_eq!(endpoint.last().target, want);
    }
    for path in ["/ml-team/chatty/v1/models", "/ml-team", "/", "/other/chat/"] {
        let answer = get(gateway.address, path).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (StatusCode::NOT_FOUND, "model_not_found"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn weights_are_exact_over_entries_and_even_within_them() {
    let endpoints = [Endpoint::named("a").await, Endpoint::named("b").await, Endpoint::named("c").await];
    let [a, b, c] = &endpoints;
    let mut service = chat(vec![(3, vec![a.config("a")]), (1, vec![b.config("b"), c.config("c")])]);
    service.policy.balancing = modelplane_gateway::routes::config::Balancing::RoundRobin;
    let gateway = Running::start(only(service)).await;
    let mut client = Client::<Full<Bytes>>::connect(gateway.address).await;
    for _ in 0..80 {
        let request = Request::get("/ml-team/chat/x").body(Full::default()).unwrap();
        client.send(request).await.into_body().collect().await.unwrap();
    }
    assert_eq!(endpoints.each_ref().map(Endpoint::hits), [60, 10, 10]);
}

#[tokio::test]
async fn headers_are_passed_on_without_those_of_the_connection() {
    let endpoint = Endpoint::answering(|_| {
        let response = Response::builder().header("x-engine", "vllm").header("keep-alive", "timeout=1");
        response.header("connection", "x-inner").header("x-inner", "1").body(full("ok")).unwrap()
    })
    .await;
    let gateway = Running::start(on(&endpoint)).await;
    let request = Request::post("/ml-team/chat/v1/x")
        .header("host", "models.example.com")
        .header("authorization", "Bearer mine")
        .header("connection", "x-private")
        .header("x-private", "1")
        .header("x-forwarded-for", "10.1.1.1")
        .header("te", "trailers")
        .body(Full::from("{}"))
        .unwrap();
    let answer = ask(gateway.address, request).await;
    assert_eq!(answer.headers["x-engine"], "vllm");
    assert!(!answer.headers.contains_key("x-inner"));
    let seen = endpoint.last();
    assert_eq!(seen.headers["authorization"], "Bearer mine");
    assert_eq!(seen.headers["x-forwarded-for"], "10.1.1.1, 127.0.0.1");
    assert_eq!(seen.headers["x-forwarded-host"], "models.example.com");
    assert_eq!(seen.headers["x-forwarded-proto"], "http");
    assert_eq!(seen.headers["te"], "trailers");
    assert_eq!(seen.headers["host"], endpoint.address.to_string());
    assert!(seen.headers.contains_key("traceparent"));
    assert!(!seen.headers.contains_key("x-private"));
    assert_eq!(seen.headers["content-length"], "2");
}

#[tokio::test]
async fn every_piece_of_a_stream_arrives_as_soon_as_it_is_sent() {
    let (feed, mut feeds) = tokio::sync::mpsc::unbounded_channel();
    let endpoint = Endpoint::serving(move |_| {
        let (sender, body) = channel();
        feed.send(sender).unwrap();
        let response = Response::builder().header("content-type", "text/event-stream").body(body).unwrap();
        Box::pin(async { response })
    })
    .await;
    let gateway = Running::start(on(&endpoint)).await;
    let mut client = Client::<Full<Bytes>>::connect(gateway.address).await;
    let request = Request::post("/ml-team/chat/v1/chat/completions").body(Full::from("{}")).unwrap();
    let mut response = client.send(request).await;
    let sender = soon(feeds.recv()).await.unwrap();
    for index in 0..50 {
        let piece = format!("data: {{\"n\":{index}}}\n\n");
        sender.send(Frame::data(piece.clone().into())).await.unwrap();
        let got = soon(response.frame()).await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(got, piece);
    }
    drop(sender);
    assert!(soon(response.frame()).await.is_none());
}

#[tokio::test]
async fn connections_to_endpoints_are_reused() {
    let endpoint = Endpoint::named("one").await;
    let gateway = Running::start(on(&endpoint)).await;
    let mut client = Client::<Full<Bytes>>::connect(gateway.address).await;
    for _ in 0..20 {
        let request = Request::post("/ml-team/chat/v1/x").body(Full::from("hello")).unwrap();
        let body = client.send(request).await.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "one");
    }
    assert_eq!(endpoint.connections.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_large_body_passes_in_both_directions_under_backpressure() {
    const PIECE: usize = 64 << 10;
    const PIECES: usize = 2_000;
    let endpoint = Endpoint::serving(|request| {
        // Echoes what it gets while it gets it.
        let body = request.into_body().map_err(|_| -> std::convert::Infallible { panic!("broke off") });
        Box::pin(async { Response::new(BodyExt::boxed(body)) })
    })
    .await;
    let gateway = Running::start(on(&endpoint)).await;
    let pieces =
        futures_util::stream::iter((0..PIECES).map(|index| {
            Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from(vec![index as u8; PIECE])))
        }));
    let mut client = Client::connect(gateway.address).await;
    let request = Request::post("/ml-team/chat/v1/echo").body(StreamBody::new(pieces)).unwrap();
    let mut body = client.send(request).await.into_body();
    let mut total = 0;
    while let Some(frame) = soon(body.frame()).await {
        for byte in frame.unwrap().into_data().unwrap() {
            assert_eq!(byte, (total / PIECE) as u8);
            total += 1;
        }
    }
    assert_eq!(total, PIECE * PIECES);
}

#[tokio::test]
async fn trailers_pass_in_both_directions() {
    let endpoint = Endpoint::answering(|_| {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", "42".parse().unwrap());
        let frames = [Frame::data(Bytes::from("body")), Frame::trailers(trailers)];
        let body = StreamBody::new(futures_util::stream::iter(frames.map(Ok)));
        Response::builder().header("trailer", "x-sum").body(BodyExt::boxed(body)).unwrap()
    })
    .await;
    let gateway = Running::start(on(&endpoint)).await;
    let mut trailers = HeaderMap::new();
    trailers.insert("x-check", "7".parse().unwrap());
    let frames = [Frame::data(Bytes::from("ask")), Frame::trailers(trailers)];
    let body = StreamBody::new(futures_util::stream::iter(frames.map(Ok::<_, std::convert::Infallible>)));
    let mut client = Client::connect(gateway.address).await;
    let request = Request::post("/ml-team/chat/v1/x")
        .header("host", "g")
        .header("te", "trailers")
        .header("trailer", "x-check")
        .body(body)
        .unwrap();
    let answer = soon(client.send(request).await.into_body().collect()).await.unwrap();
    assert_eq!(answer.trailers().unwrap()["x-sum"], "42");
    let seen = endpoint.last();
    assert_eq!(seen.body, "ask");
    assert_eq!(seen.trailers.unwrap()["x-check"], "7");
}

#[tokio::test]
async fn a_client_that_expects_continue_is_told_to() {
    let endpoint = Endpoint::named("one").await;
    let gateway = Running::start(on(&endpoint)).await;
    let mut stream = tokio::net::TcpStream::connect(gateway.address).await.unwrap();
    let head =
        "POST /ml-team/chat/x HTTP/1.1\r\nhost: g\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut told = [0; 25];
    soon(stream.read_exact(&mut told)).await.unwrap();
    assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hello").await.unwrap();
    let mut answer = [0; 15];
    soon(stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    assert_eq!(endpoint.last().body, "hello");
    assert!(!endpoint.last().headers.contains_key("expect"));
}

#[tokio::test]
async fn a_websocket_becomes_a_tunnel() {
    let endpoint = Endpoint::serving(|mut request| {
        assert_eq!(request.headers()["upgrade"], "websocket");
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let mut stream = TokioIo::new(upgrade.await.unwrap());
            let mut bytes = [0; 4];
            stream.read_exact(&mut bytes).await.unwrap();
            stream.write_all(&[b"echo ", &bytes[..]].concat()).await.unwrap();
        });
        let response =
            Response::builder().status(101).header("connection", "upgrade").header("upgrade", "websocket");
        let response = response.header("sec-websocket-accept", "x").body(empty()).unwrap();
        Box::pin(async { response })
    })
    .await;
    let gateway = Running::start(on(&endpoint)).await;
    let mut client = Client::<Full<Bytes>>::connect(gateway.address).await;
    let request = Request::get("/ml-team/chat/v1/realtime")
        .header("host", "g")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .body(Full::default())
        .unwrap();
    let mut response = client.send(request).await;
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    assert_eq!(response.headers()["sec-websocket-accept"], "x");
    let mut stream = TokioIo::new(soon(hyper::upgrade::on(&mut response)).await.unwrap());
    stream.write_all(b"ping").await.unwrap();
    let mut echo = [0; 9];
    soon(stream.read_exact(&mut echo)).await.unwrap();
    assert_eq!(&echo, b"echo ping");
}

#[tokio::test]
async fn http2_is_spoken_on_both_sides() {
    let endpoint = Endpoint::named("two").await;
    let mut config = endpoint.config("one");
    config.address = Address { http2: true, ..config.address };
    let gateway = Running::start(only(chat(vec![(1, vec![config])]))).await;
    let stream = tokio::net::TcpStream::connect(gateway.address).await.unwrap();
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(executor, TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..3 {
        let request = Request::post("http://models.example.com/ml-team/chat/v1/x?q=1");
        let request = request.body(Full::new(Bytes::from("hello"))).unwrap();
        let response = soon(sender.send_request(request)).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "two");
        let seen = endpoint.last();
        assert_eq!((seen.target.as_str(), &seen.body[..]), ("/ml-team/one/v1/x?q=1", &b"hello"[..]));
        assert_eq!(seen.headers["x-forwarded-host"], "models.example.com");
    }
    assert_eq!(endpoint.connections.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test]
async fn answers_without_a_body_pass_as_they_are() {
    let endpoint = Endpoint::answering(|seen| {
        let status = if seen.target.ends_with("none") { 204 } else { 200 };
        let response = Response::builder().status(status);
        if seen.method == http::Method::HEAD {
            return response.header("content-length", "1234").body(empty()).unwrap();
        }
        response.body(empty()).unwrap()
    })
    .await;
    let gateway = Running::start(on(&endpoint)).await;
    assert_eq!(get(gateway.address, "/ml-team/chat/none").await.status, StatusCode::NO_CONTENT);
    let head = Request::head("/ml-team/chat/x").header("host", "g").body(Full::default()).unwrap();
    assert_eq!(ask(gateway.address, head).await.headers["content-length"], "1234");
    assert_eq!(get(gateway.address, "/ml-team/chat/x").await.headers["content-length"], "0");
}

#[tokio::test]
async fn a_change_of_routes_holds_from_the_next_request_and_requests_under_way_finish() {
    let (feed, mut feeds) = tokio::sync::mpsc::unbounded_channel();
    let old = Endpoint::serving(move |_| {
        let (sender, body) = channel();
        feed.send(sender).unwrap();
        Box::pin(async { Response::new(body) })
    })
    .await;
    let new = Endpoint::named("new").await;
    let gateway = Running::start(on(&old)).await;
    let mut client = Client::<Full<Bytes>>::connect(gateway.address).await;
    let mut response = client.send(Request::get("/ml-team/chat/x").body(Full::default()).unwrap()).await;
    let sender = soon(feeds.recv()).await.unwrap();
    gateway.routes.publish(&on(&new));
    assert_eq!(get(gateway.address, "/ml-team/chat/x").await.text(), "new");
    sender.send(Frame::data("still here".into())).await.unwrap();
    assert_eq!(soon(response.frame()).await.unwrap().unwrap().into_data().unwrap(), "still here");
    drop(sender);
    assert!(soon(response.frame()).await.is_none());
    gateway.routes.publish(&Snapshot::default());
    assert_eq!(get(gateway.address, "/ml-team/chat/x").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_service_without_endpoints_says_so() {
    let gateway = Running::start(only(chat(vec![(1, vec![])]))).await;
    let answer = get(gateway.address, "/ml-team/chat/v1/models").await;
    assert_eq!((answer.status, answer.code().as_str()), (StatusCode::SERVICE_UNAVAILABLE, "no_endpoints"));
    assert!(answer.headers.contains_key("retry-after"));
}

#[tokio::test]
async fn stopping_waits_for_requests_under_way_and_takes_no_new_ones() {
    let (endpoint, mut arrivals, release) = Endpoint::held().await;
    let gateway = Running::start(on(&endpoint)).await;
    let address = gateway.address;
    let idle = tokio::net::TcpStream::connect(address).await.unwrap();
    let under_way = tokio::spawn(get_text(address));
    soon(arrivals.recv()).await.unwrap();
    let mut stopped = gateway.stop();
    assert!(
        tokio::time::timeout(Duration::from_millis(200), &mut stopped).await.is_err(),
        "a request is under way"
    );
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens");
    release.notify_one();
    assert_eq!(soon(under_way).await.unwrap(), "done");
    soon(stopped).await.unwrap();
    drop(idle);
}

async fn get_text(address: std::net::SocketAddr) -> String {
    get(address, "/ml-team/chat/x").await.text().to_owned()
}

#[tokio::test]
async fn a_connection_that_idled_goes_on_where_it_was() {
    let endpoint = Endpoint::named("one").await;
    let gateway = Running::start(on(&endpoint)).await;
    let mut stream = tokio::net::TcpStream::connect(gateway.address).await.unwrap();
    for round in 0..3 {
        // The first half of a head is not idling.
        stream.write_all(b"GET /ml-team/chat/x HT").await.unwrap();
        tokio::time::sleep(Duration::from_millis(if round == 1 { 2_500 } else { 0 })).await;
        stream.write_all(b"TP/1.1\r\nhost: g\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\none") {
            answer.push(soon(stream.read_u8()).await.unwrap());
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
        tokio::time::sleep(Duration::from_millis(if round == 0 { 2_500 } else { 0 })).await;
    }
    assert_eq!(endpoint.hits(), 3);
}
