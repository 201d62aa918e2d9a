//! Requests no honest client sends: refused, with bounded memory and time (issue 7, "malformed requests").

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::*;

const HEAD: &str = "POST /ml-team/chat/v1/x HTTP/1.1\r\nhost: g\r\n";

/// A request with a malformed body, and what becomes of it.
struct Case {
    name: &'static str,
    /// Headers and all that follows.
    rest: &'static str,
    /// Beginning of the answer's status line behind the version; empty where the connection just closes.
    status: &'static str,
}

const fn case(name: &'static str, rest: &'static str, status: &'static str) -> Case {
    Case { name, rest, status }
}

/// Every case is followed by a request that must not be taken for one of its own.
const FRAMING: [Case; 46] = [
    case(
        "a length, then chunks",
        "content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "400",
    ),
    case(
        "chunks, then a length",
        "transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "400",
    ),
    case("chunks of no length", "content-length: 0\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", "400"),
    case("two lengths", "content-length: 0\r\ncontent-length: 50\r\n\r\n", "400"),
    case("a list of lengths", "content-length: 0, 50\r\n\r\n", "400"),
    case("a signed length", "content-length: +0\r\n\r\n", "400"),
    case("a negative length", "content-length: -1\r\n\r\n", "400"),
    case("a length with garbage", "content-length: 0x0\r\n\r\n", "400"),
    case("a length in other digits", "content-length: \u{ff10}\r\n\r\n", "400"),
    case("an empty length", "content-length:\r\n\r\n", "400"),
    case("a length beyond all bounds", "content-length: 99999999999999999999\r\n\r\n", "400"),
    case("chunked not last", "transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n", "400"),
    case(
        "chunked in one of two lines",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
        "400",
    ),
    case("a coding before chunked", "transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "400"),
    case("chunked twice", "transfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "400"),
    case(
        "chunked twice in two lines",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "400",
    ),
    case("a coding that is none", "transfer-encoding:\r\n\r\n", "400"),
    case("identity", "transfer-encoding: identity\r\ncontent-length: 0\r\n\r\n", "400"),
    case("a vertical tab before chunked", "transfer-encoding: \u{b}chunked\r\n\r\n0\r\n\r\n", "400"),
    case("an unknown coding", "transfer-encoding: xchunked\r\n\r\n0\r\n\r\n", "400"),
    case("a coding in quotes", "transfer-encoding: \"chunked\"\r\n\r\n0\r\n\r\n", "400"),
    case("a tab before the colon", "transfer-encoding\t: chunked\r\n\r\n0\r\n\r\n", "400"),
    case("a blank before the colon", "content-length : 0\r\n\r\n", "400"),
    case("a folded header", "x-a: b\r\n transfer-encoding: chunked\r\n\r\n", "400"),
    case("a fold in a length", "content-length:\r\n 0\r\n\r\n", "400"),
    case("a fold in the first header", " x-a: b\r\n\r\n", "400"),
    case("a header that ends in a line feed", "x-a: b\nx-c: d\r\n\r\n", "400"),
    case("a head that ends in line feeds", "x-a: b\n\n", "400"),
    case("a head that ends in a line feed", "x-a: b\r\n\n", "400"),
    case("a return and no line feed at the end", "x-a: b\r\n\r", "400"),
    case("a name that is empty", ": b\r\n\r\n", "400"),
    case("a line without a colon", "x-a\r\n\r\n", "400"),
    case("a name that is none", "x(a): b\r\n\r\n", "400"),
    case("a bare return", "x-a: b\rtransfer-encoding: chunked\r\n\r\n", "400"),
    case("a null", "x-a: \0\r\n\r\n", "400"),
    case("a bad chunk size", "transfer-encoding: chunked\r\n\r\n0x0\r\n\r\n", "400"),
    case("a negative chunk size", "transfer-encoding: chunked\r\n\r\n-1\r\n\r\n", "400"),
    case("no chunk size", "transfer-encoding: chunked\r\n\r\n\r\n0\r\n\r\n", "400"),
    case("an overlong chunk size", "transfer-encoding: chunked\r\n\r\n10000000000000000\r\n\r\n", "400"),
    case(
        "a chunk size that wraps around",
        "transfer-encoding: chunked\r\n\r\n100000000000000000000000000000001\r\nX\r\n",
        "400",
    ),
    case("a chunk without its end", "transfer-encoding: chunked\r\n\r\n1\r\nXX0\r\n\r\n", "400"),
    case(
        "a line feed in a chunk's extension",
        "transfer-encoding: chunked\r\n\r\n1;a\nb\r\nX\r\n0\r\n\r\n",
        "400",
    ),
    case(
        "a line feed alone behind a chunk size",
        "transfer-encoding: chunked\r\n\r\n1\nX\r\n0\r\n\r\n",
        "400",
    ),
    case("a line feed alone behind a chunk", "transfer-encoding: chunked\r\n\r\n1\r\nX\n0\r\n\r\n", "400"),
    case("a line feed alone behind the last chunk", "transfer-encoding: chunked\r\n\r\n0\r\n\n", "400"),
    case(
        "a trailer that ends in a line feed",
        "transfer-encoding: chunked\r\n\r\n0\r\nx-a: b\nx-c: d\r\n\r\n",
        "400",
    ),
];

#[tokio::test]
async fn ambiguous_framing_never_smuggles_a_second_request() {
    let endpoint = Endpoint::named("one").await;
    let gateway = Running::start(on(&endpoint)).await;
    for Case { name, rest, status } in FRAMING {
        let smuggled = "GET /ml-team/chat/smuggled HTTP/1.1\r\nhost: g\r\n\r\n";
        let answer = raw(gateway.address, format!("{HEAD}{rest}{smuggled}").as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{name}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{name}: {answer}");
        assert!(answer.contains("\"type\":\"invalid_request_error\""), "{name}: {answer}");
        let seen = std::mem::take(&mut *endpoint.seen.lock().unwrap());
        assert!(seen.is_empty(), "{name}: {seen:?}");
    }
    // HTTP/1.0 knows no chunks.
    let chunked = "POST /ml-team/chat/x HTTP/1.0\r\nhost: g\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    let answer = raw(gateway.address, chunked.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.") && answer[8..].starts_with(" 400 "), "{answer}");
    assert!(endpoint.seen.lock().unwrap().is_empty());
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
        ("a huge target", long, "414"),
        ("no version", "GET /ml-team/chat/x\r\n\r\n".to_owned(), "400"),
        ("a wrong version", "GET /ml-team/chat/x HTTP/3.7\r\nhost: g\r\n\r\n".to_owned(), "400"),
        ("no target", "GET  HTTP/1.1\r\nhost: g\r\n\r\n".to_owned(), "400"),
        ("no host", "GET /ml-team/chat/x HTTP/1.1\r\n\r\n".to_owned(), "400"),
        ("two hosts", "GET /ml-team/chat/x HTTP/1.1\r\nhost: g\r\nhost: h\r\n\r\n".to_owned(), "400"),
        ("dot segments", "GET /ml-team/chat/../other/x HTTP/1.1\r\nhost: g\r\n\r\n".to_owned(), "400"),
        ("encoded dot segments", "GET /ml-team/chat/%2e%2E/x HTTP/1.1\r\nhost: g\r\n\r\n".to_owned(), "400"),
        ("a tunnel", "CONNECT other:443 HTTP/1.1\r\nhost: g\r\n\r\n".to_owned(), "405"),
        ("a trace", "TRACE /ml-team/chat/x HTTP/1.1\r\nhost: g\r\n\r\n".to_owned(), "405"),
        ("empty lines and no request", "\r\n".repeat(100_000), "4"),
        ("a target with a blank", "GET /ml-team/chat/a b HTTP/1.1\r\nhost: g\r\n\r\n".to_owned(), "400"),
        ("a line feed for an end", "GET /ml-team/chat/x HTTP/1.1\nhost: g\n\n".to_owned(), "400"),
        ("another protocol", "\u{16}\u{3}\u{1}\u{2}".to_owned(), "400"),
        ("HTTP/2 said as HTTP/1", "GET /ml-team/chat/x HTTP/2.0\r\nhost: g\r\n\r\n".to_owned(), "400"),
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

#[tokio::test]
async fn text_that_is_no_utf8_names_no_model_and_passes_by_path_as_it_is() {
    let endpoint = Endpoint::named("one").await;
    let gateway = Running::start(on(&endpoint)).await;
    let bodies: [&[u8]; 4] = [
        b"{\"model\":\"ml-team/\xff\xfe\"}",
        b"{\"model\":\"ml-team/\\ud800\"}",
        b"\xff\xfe{\x00\"\x00m\x00",
        b"{\"\xc3\x28\":1,\"model\":12}",
    ];
    for body in bodies {
        let answer = post(gateway.address, "/v1/chat/completions", body).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (StatusCode::BAD_REQUEST, "missing_model"),
            "{body:?}"
        );
        assert_eq!(
            post(gateway.address, "/ml-team/chat/v1/chat/completions", body).await.status,
            StatusCode::OK
        );
        assert_eq!(endpoint.last().body, body);
    }
}

#[tokio::test]
async fn a_body_that_ends_too_soon_reaches_no_endpoint_as_whole() {
    let endpoint = Endpoint::named("one").await;
    let gateway = Running::start(on(&endpoint)).await;
    for rest in [
        "content-length: 10\r\n\r\nhalf",
        "transfer-encoding: chunked\r\n\r\na\r\nhalf",
        "transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ] {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        stream.write_all(format!("{HEAD}{rest}").as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        soon(stream.read_to_end(&mut answer)).await.ok();
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{rest}: {answer}");
    }
    assert!(endpoint.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_client_that_does_not_take_its_answer_is_cut_off() {
    let (feed, mut feeds) = tokio::sync::mpsc::unbounded_channel();
    let endpoint = Endpoint::serving(move |_| {
        let (sender, body) = channel();
        feed.send(sender).unwrap();
        Box::pin(async { http::Response::new(body) })
    })
    .await;
    let mut options = options();
    options.limits.idle = Duration::from_millis(400);
    let gateway = Running::start_with(options, on(&endpoint));
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(b"GET /ml-team/chat/x HTTP/1.1\r\nhost: g\r\n\r\n").await.unwrap();
    let sender = soon(feeds.recv()).await.unwrap();
    // Longer than the limit: an endpoint may think for as long as it likes.
    tokio::time::sleep(Duration::from_millis(900)).await;
    let endless = async {
        let mut sent = 0_usize;
        while sender.send(hyper::body::Frame::data(vec![b'x'; 1 << 16].into())).await.is_ok() {
            sent += 1 << 16;
            assert!(sent < 1 << 30, "nobody stops it");
        }
        assert!(sent > 0, "the endpoint was heard");
    };
    soon(endless).await;
    drop(stream);
}

/// Resident memory of this process, in bytes; nothing where the system does not say.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok().map(|kibibytes| kibibytes << 10)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_bodies_to_a_slow_endpoint_wait_in_the_network_and_not_in_memory() {
    const CLIENTS: usize = 64;
    const SIZE: usize = 32 << 20;
    const BOUND: usize = 256 << 20;
    let (arrived, mut arrivals) = tokio::sync::mpsc::unbounded_channel();
    // Reads the beginning of each body and then nothing until told.
    let go = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let gate = go.clone();
    let endpoint = Endpoint::serving(move |request| {
        let (arrived, gate) = (arrived.clone(), gate.clone());
        Box::pin(async move {
            let mut body = request.into_body();
            let mut length = 0;
            let mut is_told = false;
            while let Some(frame) = http_body_util::BodyExt::frame(&mut body).await {
                length += frame.unwrap().into_data().map_or(0, |data| data.len());
                if !std::mem::replace(&mut is_told, true) {
                    arrived.send(()).unwrap();
                    drop(gate.acquire().await.unwrap());
                }
            }
            http::Response::new(full(length.to_string()))
        })
    })
    .await;
    let gateway = Running::start(on(&endpoint)).await;
    let Some(before) = resident() else {
        eprintln!("SKIPPED: the system does not say how much memory a process has");
        return;
    };
    let address = gateway.address;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                stream.write_all(format!("{HEAD}content-length: {SIZE}\r\n\r\n").as_bytes()).await.unwrap();
                let piece = [b'x'; 64 << 10];
                for _ in 0..SIZE / piece.len() {
                    stream.write_all(&piece).await.unwrap();
                }
                let mut answer = vec![0; 4096];
                let mut length = 0;
                while !answer[..length].ends_with(SIZE.to_string().as_bytes()) {
                    let count = stream.read(&mut answer[length..]).await.unwrap();
                    assert_ne!(count, 0, "{}", String::from_utf8_lossy(&answer[..length]));
                    length += count;
                }
            })
        })
        .collect();
    for _ in 0..CLIENTS {
        soon(arrivals.recv()).await.unwrap();
    }
    // Whatever anyone would take in without being asked for it is in by now.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let held = resident().unwrap_or(before).saturating_sub(before);
    assert!(held < BOUND, "{held} bytes are held of {} on their way", CLIENTS * SIZE);
    go.add_permits(CLIENTS);
    for client in clients {
        tokio::time::timeout(PATIENCE * 6, client).await.expect("all of it arrives").unwrap();
    }
    let held = resident().unwrap_or(before).saturating_sub(before);
    assert!(held < BOUND, "{held} bytes are held of {}", CLIENTS * SIZE);
}
