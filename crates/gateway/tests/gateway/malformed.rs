//! Requests no honest client sends: refused, with bounded memory and time (issue 7, "malformed requests").

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::*;

const HEAD: &str = "POST /ml-team/chat/v1/x HTTP/1.1\r\nhost: g\r\n";

#[tokio::test]
async fn ambiguous_framing_never_smuggles_a_second_request() {
    let endpoint = Endpoint::named("one").await;
    let gateway = Running::start(on(&endpoint)).await;
    let smuggled = "GET /ml-team/chat/smuggled HTTP/1.1\r\nhost: g\r\n\r\n";
    let cases = [
        (
            "both lengths",
            format!("content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}"),
        ),
        ("two lengths", format!("content-length: 0\r\ncontent-length: 50\r\n\r\n{smuggled}")),
        ("a list of lengths", format!("content-length: 0, 50\r\n\r\n{smuggled}")),
        ("a signed length", format!("content-length: +0\r\n\r\n{smuggled}")),
        ("a length with garbage", format!("content-length: 0x0\r\n\r\n{smuggled}")),
        ("chunked not last", format!("transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n{smuggled}")),
        ("an unknown coding", format!("transfer-encoding: xchunked\r\n\r\n0\r\n\r\n{smuggled}")),
        ("a tab before the colon", format!("transfer-encoding\t: chunked\r\n\r\n0\r\n\r\n{smuggled}")),
        ("a blank before the colon", format!("content-length : 0\r\n\r\n{smuggled}")),
        ("a folded header", format!("x-a: b\r\n transfer-encoding: chunked\r\n\r\n{smuggled}")),
        ("a bad chunk size", format!("transfer-encoding: chunked\r\n\r\n0x0\r\n\r\n{smuggled}")),
        ("a negative chunk size", format!("transfer-encoding: chunked\r\n\r\n-1\r\n\r\n{smuggled}")),
        (
            "an overlong chunk size",
            format!("transfer-encoding: chunked\r\n\r\n10000000000000000\r\n\r\n{smuggled}"),
        ),
        ("a chunk without its end", format!("transfer-encoding: chunked\r\n\r\n1\r\nXX0\r\n\r\n{smuggled}")),
        ("a bare return", format!("x-a: b\rtransfer-encoding: chunked\r\n\r\n{smuggled}")),
        ("a null", format!("x-a: \0\r\n\r\n{smuggled}")),
    ];
    for (name, rest) in cases {
        let answer = raw(gateway.address, format!("{HEAD}{rest}").as_bytes()).await;
        let seen = endpoint.seen.lock().unwrap().clone();
        let smuggled = seen.iter().any(|seen| seen.target.ends_with("/smuggled"));
        // Both lengths at once are resolved as RFC 9112 §6.3 asks: chunked wins, and the connection then closes or
        // the rest is a request of its own, which the endpoint sees as such.
        if name == "both lengths" {
            assert!(seen.iter().all(|seen| seen.body.is_empty()), "{name}: {seen:?}");
        } else {
            assert!(!smuggled, "{name}: {answer}");
            assert!(
                answer.is_empty() || answer.starts_with("HTTP/1.1 400") || answer.starts_with("HTTP/1.1 502"),
                "{name}: {answer}"
            );
        }
        for seen in &seen {
            let lengths = seen.headers.get_all("content-length").iter().count();
            assert!(
                lengths + seen.headers.get_all("transfer-encoding").iter().count() <= 1,
                "{name}: {seen:?}"
            );
        }
        endpoint.seen.lock().unwrap().clear();
    }
}

#[tokio::test]
async fn malformed_heads_are_refused() {
    let endpoint = Endpoint::named("one").await;
    let gateway = Running::start(on(&endpoint)).await;
    let many = "x-h: 1\r\n".repeat(500);
    let huge = format!("x-h: {}\r\n", "a".repeat(200_000));
    let long = format!("GET /ml-team/chat/{} HTTP/1.1\r\nhost: g\r\n\r\n", "a".repeat(100_000));
    let cases = [
        ("too many headers", format!("{HEAD}{many}\r\n"), "431"),
        ("a huge header", format!("{HEAD}{huge}\r\n"), "431"),
        ("a huge target", long, "4"),
        ("no version", "GET /ml-team/chat/x\r\n\r\n".to_owned(), "400"),
        ("a wrong version", "GET /ml-team/chat/x HTTP/3.7\r\nhost: g\r\n\r\n".to_owned(), "400"),
        ("no target", "GET  HTTP/1.1\r\nhost: g\r\n\r\n".to_owned(), "400"),
        ("two hosts", "GET /ml-team/chat/x HTTP/1.1\r\nhost: g\r\nhost: h\r\n\r\n".to_owned(), "400"),
        ("dot segments", "GET /ml-team/chat/../other/x HTTP/1.1\r\nhost: g\r\n\r\n".to_owned(), "400"),
        ("encoded dot segments", "GET /ml-team/chat/%2e%2E/x HTTP/1.1\r\nhost: g\r\n\r\n".to_owned(), "400"),
        ("a tunnel", "CONNECT other:443 HTTP/1.1\r\nhost: g\r\n\r\n".to_owned(), "405"),
        ("a trace", "TRACE /ml-team/chat/x HTTP/1.1\r\nhost: g\r\n\r\n".to_owned(), "405"),
        ("garbage", "\u{0}\u{1}\u{2}\u{3}\r\n\r\n".to_owned(), "400"),
    ];
    for (name, request, status) in cases {
        let answer = raw(gateway.address, request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{name}: {answer}");
    }
    assert_eq!(endpoint.hits(), 0);
    let invalid = [
        b"GET /ml-team/chat/\xff\xfe HTTP/1.1\r\nhost: g\r\nx-a: \xc3\x28\r\n\r\n".as_slice(),
        b"G\xc3T / HTTP/1.1\r\n\r\n",
    ];
    for bytes in invalid {
        let answer = raw(gateway.address, bytes).await;
        assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
    }
}

#[tokio::test]
async fn a_head_that_trickles_in_is_cut_off() {
    let endpoint = Endpoint::named("one").await;
    let mut options = options();
    options.limits.idle = Duration::from_millis(300);
    let gateway = Running::start_with(options, on(&endpoint));
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    let trickle = async {
        for byte in HEAD.bytes().cycle() {
            if stream.write_all(&[byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            let mut answer = [0; 1];
            if matches!(
                tokio::time::timeout(Duration::from_millis(1), stream.read(&mut answer)).await,
                Ok(Ok(0) | Err(_))
            ) {
                return;
            }
        }
    };
    soon(trickle).await;
    let mut silent = TcpStream::connect(gateway.address).await.unwrap();
    assert_eq!(soon(silent.read(&mut [0; 1])).await.unwrap(), 0, "so is one that says nothing");
}

#[tokio::test]
async fn a_body_that_pauses_or_never_ends_is_refused() {
    let endpoint = Endpoint::named("one").await;
    let mut options = options();
    options.limits.body_pause = Duration::from_millis(200);
    options.limits.body_bytes = 1_000_000;
    let gateway = Running::start_with(options, on(&endpoint));
    let answer = raw(gateway.address, format!("{HEAD}content-length: 10\r\n\r\nhalf").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    let answer = raw(gateway.address, format!("{HEAD}content-length: 1000001\r\n\r\n").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(format!("{HEAD}transfer-encoding: chunked\r\n\r\n").as_bytes()).await.unwrap();
    let chunk = [b"4000\r\n".as_slice(), &[b'x'; 0x4000], b"\r\n"].concat();
    let endless = async {
        let mut sent = 0_usize;
        while stream.write_all(&chunk).await.is_ok() {
            sent += 0x4000;
            assert!(sent < 1 << 30, "nobody stops it");
        }
    };
    soon(endless).await;
    assert_eq!(endpoint.seen.lock().unwrap().len(), 0, "no endpoint took it for whole");
}

#[tokio::test]
async fn bodies_kept_in_memory_are_bounded_over_all_requests() {
    let endpoint = Endpoint::named("one").await;
    let mut options = options();
    options.limits.memory_bytes = 100_000;
    options.limits.model_bytes = 1 << 30;
    let gateway = Running::start_with(options, on(&endpoint));
    let body = format!(r#"{{"prompt":"{}","model":"ml-team/chat"}}"#, "x".repeat(200_000));
    let answer = post(gateway.address, "/v1/completions", body).await;
    assert_eq!((answer.status, answer.code().as_str()), (StatusCode::SERVICE_UNAVAILABLE, "overloaded"));
    // What was held is given back.
    for _ in 0..5 {
        let body = format!(r#"{{"prompt":"{}","model":"ml-team/chat"}}"#, "x".repeat(60_000));
        assert_eq!(post(gateway.address, "/v1/completions", body).await.status, StatusCode::OK);
    }
    assert_eq!(endpoint.hits.load(Ordering::SeqCst), 6, "five requests, and a look for the model's name");
}
