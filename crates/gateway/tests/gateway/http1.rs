//! What clients may do with an HTTP/1 connection (RFC 9112), over raw sockets.

use std::time::Duration;

use bytes::Bytes;
use http::Response;
use hyper::body::Frame;
use modelplane_gateway::routes::config::{Address, EndpointConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::*;

/// Reads until what came ends with this.
async fn read_to(stream: &mut TcpStream, end: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) {
        text.push(soon(stream.read_u8()).await.unwrap_or_else(|error| {
            panic!("{error} after {}", String::from_utf8_lossy(&text));
        }));
    }
    String::from_utf8(text).unwrap()
}

async fn read_all(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    soon(stream.read_to_end(&mut text)).await.unwrap();
    String::from_utf8(text).unwrap()
}

/// An endpoint that answers with what it was sent.
async fn echo() -> Endpoint {
    Endpoint::answering(|seen| Response::new(full(seen.body.clone()))).await
}

#[tokio::test]
async fn requests_sent_ahead_are_answered_in_order() {
    let endpoint = echo().await;
    let gateway = Running::start(on(&endpoint)).await;
    let mut requests = String::new();
    for index in 0..20 {
        let body = format!("<{index}>");
        match index % 3 {
            0 => {
                requests += &format!(
                    "POST /ml-team/chat/x HTTP/1.1\r\nhost: g\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                )
            }
            1 => {
                requests += &format!(
                    "POST /ml-team/chat/x HTTP/1.1\r\nhost: g\r\ntransfer-encoding: chunked\r\n\r\n1\r\n<\r\n{:x};x=y\r\n{}\r\n0\r\nx-sum: 1\r\n\r\n",
                    body.len() - 1,
                    &body[1..]
                )
            }
            _ => requests += "\r\nGET /ml-team/other/x HTTP/1.1\r\nhost: g\r\n\r\n",
        }
    }
    for size in [1, 7, 64, requests.len()] {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (mut reader, mut writer) = stream.split();
        let writing = async {
            for piece in requests.as_bytes().chunks(size) {
                writer.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let reading = async {
            let mut text = Vec::new();
            while !text.ends_with(b"<19>") {
                text.push(soon(reader.read_u8()).await.unwrap());
            }
            String::from_utf8(text).unwrap()
        };
        let ((), text) = tokio::join!(writing, reading);
        let mut at = 0;
        for index in 0..20 {
            let want =
                if index % 3 == 2 { "\"model_not_found\"".to_owned() } else { format!("\r\n\r\n<{index}>") };
            let found = text[at..].find(&want);
            at += found.unwrap_or_else(|| panic!("{index} in pieces of {size}: {text}")) + want.len();
        }
        assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 13 + 1, "in pieces of {size}");
    }
}

#[tokio::test]
async fn connections_last_as_the_client_asks() {
    let endpoint = echo().await;
    let gateway = Running::start(on(&endpoint)).await;
    let cases = [
        ("1.1", "", true, None),
        ("1.1", "connection: close\r\n", false, Some("connection: close")),
        ("1.0", "", false, Some("connection: close")),
        ("1.0", "connection: keep-alive\r\n", true, Some("connection: keep-alive")),
    ];
    for (version, header, lasts, says) in cases {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        let request =
            format!("POST /ml-team/chat/x HTTP/{version}\r\nhost: g\r\n{header}content-length: 2\r\n\r\nhi");
        for round in 0..if lasts { 3 } else { 1 } {
            stream.write_all(request.as_bytes()).await.unwrap();
            let answer = read_to(&mut stream, "\r\n\r\nhi").await;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{version} {header} {round}: {answer}");
            assert!(
                answer.contains("\r\ncontent-length: 2\r\n") && answer.contains("\r\ndate: "),
                "{answer}"
            );
            let got = answer.lines().find(|line| line.starts_with("connection:"));
            assert_eq!(got, says, "{version} {header}");
        }
        if !lasts {
            assert_eq!(read_all(&mut stream).await, "");
        }
    }
}

#[tokio::test]
async fn an_old_client_reads_a_stream_until_the_connection_closes() {
    let (endpoint, mut feeds) = Endpoint::fed().await;
    let gateway = Running::start(on(&endpoint)).await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    let request = "GET /ml-team/chat/x HTTP/1.0\r\nhost: g\r\nconnection: keep-alive\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let sender = soon(feeds.recv()).await.unwrap();
    sender.send(Frame::data(Bytes::from("one "))).await.unwrap();
    let answer = read_to(&mut stream, "\r\n\r\none ").await;
    assert!(!answer.contains("transfer-encoding") && !answer.contains("content-length"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    sender.send(Frame::data(Bytes::from("two"))).await.unwrap();
    drop(sender);
    assert_eq!(read_all(&mut stream).await, "two");
}

#[tokio::test]
async fn trailers_are_for_those_who_ask_for_them() {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_to(&mut stream, "\r\n\r\n").await;
            let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n4\r\nbody\r\n0\r\nx-sum: 42\r\n\r\n";
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let address = Address::plain(address.ip().to_string(), address.port());
    let config = EndpointConfig::new("ml-team", "one", address);
    let gateway = Running::start(only(chat(vec![(1, vec![config])]))).await;
    for (te, want) in [("te: trailers\r\n", "0\r\nx-sum: 42\r\n\r\n"), ("", "0\r\n\r\n")] {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        let request = format!("GET /ml-team/chat/x HTTP/1.1\r\nhost: g\r\n{te}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_to(&mut stream, want).await;
        assert!(answer.ends_with(&format!("\r\n\r\n4\r\nbody\r\n{want}")), "{answer}");
    }
}

#[tokio::test]
async fn nobody_is_told_to_go_on_with_a_body_that_is_not_wanted() {
    let endpoint = echo().await;
    let gateway = Running::start(on(&endpoint)).await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    let request =
        "POST /ml-team/other/x HTTP/1.1\r\nhost: g\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = read_all(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "the body may come or not: {answer}");
}

#[tokio::test]
async fn a_small_body_that_nobody_reads_costs_no_connection() {
    let endpoint = echo().await;
    let gateway = Running::start(on(&endpoint)).await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    for _ in 0..3 {
        let head = "POST /ml-team/other/x HTTP/1.1\r\nhost: g\r\ncontent-length: 20000\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let answer = read_to(&mut stream, "}}").await;
        assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{answer}");
        stream.write_all(&[b'x'; 20_000]).await.unwrap();
    }
    stream
        .write_all(b"POST /ml-team/chat/x HTTP/1.1\r\nhost: g\r\ncontent-length: 2\r\n\r\nhi")
        .await
        .unwrap();
    read_to(&mut stream, "\r\n\r\nhi").await;
}

#[tokio::test]
async fn a_client_that_sends_before_it_reads_still_reads_why_it_is_refused() {
    let endpoint = echo().await;
    let mut options = options();
    options.limits.body_bytes = 1_000_000;
    let gateway = Running::start_with(options, on(&endpoint));
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    let head = "POST /ml-team/chat/x HTTP/1.1\r\nhost: g\r\ncontent-length: 4000000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..400 {
        stream.write_all(&[b'x'; 10_000]).await.unwrap();
    }
    let answer = read_to(&mut stream, "}}").await;
    assert!(answer.starts_with("HTTP/1.1 413 Payload Too Large\r\n"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
}

#[tokio::test]
async fn an_endpoint_may_answer_before_the_body_is_whole() {
    let endpoint = Endpoint::serving(|_| Box::pin(async { Response::new(full("enough")) })).await;
    let gateway = Running::start(on(&endpoint)).await;
    for framing in ["content-length: 10000000", "transfer-encoding: chunked"] {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        let head = format!("POST /ml-team/chat/x HTTP/1.1\r\nhost: g\r\n{framing}\r\n\r\n5\r\nhello\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let answer = read_to(&mut stream, "enough").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn a_chunked_body_arrives_however_it_is_cut() {
    let endpoint = echo().await;
    let gateway = Running::start(on(&endpoint)).await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let request = "POST /ml-team/chat/x HTTP/1.1\r\nhost: g\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nx-sum: 7\r\ncontent-length: 3\r\n\r\n";
    for size in [1, 3, 50, request.len()] {
        for piece in request.as_bytes().chunks(size) {
            stream.write_all(piece).await.unwrap();
            tokio::task::yield_now().await;
        }
        read_to(&mut stream, "\r\n\r\nhello world").await;
        let seen = endpoint.last();
        assert_eq!(seen.body, "hello world");
        let trailers = seen.trailers.unwrap();
        assert_eq!((&trailers["x-sum"], trailers.len()), (&"7".parse::<http::HeaderValue>().unwrap(), 1));
    }
}

#[tokio::test]
async fn answers_to_head_have_no_body() {
    let endpoint =
        Endpoint::answering(|_| Response::builder().header("content-length", "1234").body(empty()).unwrap())
            .await;
    let gateway = Running::start(on(&endpoint)).await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    let heads = "HEAD /ml-team/chat/x HTTP/1.1\r\nhost: g\r\n\r\nHEAD /ml-team/other/x HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n";
    stream.write_all(heads.as_bytes()).await.unwrap();
    let answers = read_all(&mut stream).await;
    let (first, second) = answers.split_once("\r\n\r\n").unwrap();
    assert!(first.contains("\r\ncontent-length: 1234\r\n"), "{answers}");
    assert!(second.starts_with("HTTP/1.1 404 Not Found\r\n") && second.ends_with("\r\n\r\n"), "{answers}");
}

#[tokio::test]
async fn while_stopping_answers_say_that_the_connection_closes() {
    let (endpoint, mut arrivals, release) = Endpoint::held().await;
    let gateway = Running::start(on(&endpoint)).await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(b"GET /ml-team/chat/x HTTP/1.1\r\nhost: g\r\n\r\n").await.unwrap();
    soon(arrivals.recv()).await.unwrap();
    let stopped = gateway.stop();
    tokio::time::sleep(Duration::from_millis(100)).await;
    release.notify_one();
    let answer = read_all(&mut stream).await;
    assert!(answer.contains("\r\nconnection: close\r\n") && answer.ends_with("done"), "{answer}");
    soon(stopped).await.unwrap();
}

#[tokio::test]
async fn what_a_client_sends_ahead_goes_through_the_tunnel() {
    let endpoint = Endpoint::serving(|mut request| {
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let mut stream = hyper_util::rt::TokioIo::new(upgrade.await.unwrap());
            let mut bytes = [0; 4];
            stream.read_exact(&mut bytes).await.unwrap();
            stream.write_all(&[b"echo ", &bytes[..]].concat()).await.unwrap();
        });
        let response =
            Response::builder().status(101).header("connection", "upgrade").header("upgrade", "websocket");
        let response = response.body(empty()).unwrap();
        Box::pin(async { response })
    })
    .await;
    let gateway = Running::start(on(&endpoint)).await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    let request =
        "GET /ml-team/chat/x HTTP/1.1\r\nhost: g\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nping";
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = read_all(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\necho ping"), "{answer}");
}
