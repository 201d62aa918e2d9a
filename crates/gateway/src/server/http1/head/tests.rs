use http::{HeaderValue, header};

use super::*;

fn parsed(text: &str) -> Result<Head, Unreadable> {
    let length = end(text.as_bytes(), 0)?.expect("a whole head");
    parse(&Bytes::copy_from_slice(text.as_bytes()), length, USUAL_HEADERS)
}

fn malformed(text: &str) -> &'static str {
    match parsed(text) {
        Err(Unreadable::Malformed(Malformed(reason))) => reason,
        other => panic!("{text:?}: {other:?}"),
    }
}

#[test]
fn a_head_is_whole_at_its_empty_line_and_not_before() {
    let text = b"GET /x HTTP/1.1\r\nhost: g\r\n\r\nbody\n";
    let whole = text.len() - 5;
    for length in 0..text.len() {
        for seen in 0..length.min(whole) {
            let want = (length >= whole).then_some(whole);
            assert_eq!(end(&text[..length], seen), Ok(want), "{length} {seen}");
        }
    }
    for text in ["GET / HTTP/1.1\nhost: g\n\n", "GET / HTTP/1.1\r\nhost: g\n\r\n", "\n", "a\r\n\n"] {
        assert!(end(text.as_bytes(), 0).is_err(), "{text:?}");
    }
}

#[test]
fn empty_lines_before_a_request_are_let_pass() {
    for (text, want) in [("", 0), ("\r", 0), ("\r\n", 2), ("\r\n\r\nGET", 4), ("\r\n\r", 2), ("GET\r\n", 0)] {
        assert_eq!(empty_lines(text.as_bytes()), want, "{text:?}");
    }
}

#[test]
fn a_head_says_what_follows_it_and_how_it_is_to_be_answered() {
    let text = "POST /a?b HTTP/1.1\r\nHost: g\r\nTE: gzip, trailers\r\nexpect: 100-Continue\r\ncontent-length: 5\r\n\r\n";
    let head = parsed(text).unwrap();
    assert_eq!((head.method, head.uri.to_string()), (Method::POST, "/a?b".to_owned()));
    assert_eq!(head.headers[header::HOST], HeaderValue::from_static("g"));
    assert!(matches!(head.body, Rest::Length(5)));
    let Manner { is_modern, lasts, is_head, trailers, expects_continue } = head.manner;
    assert!(is_modern && lasts && trailers && expects_continue && !is_head);
}

#[test]
fn connections_last_as_the_client_says() {
    let cases = [
        ("1.1", "", true),
        ("1.1", "connection: close\r\n", false),
        ("1.1", "connection: x, Close\r\n", false),
        ("1.1", "connection: keep-alive\r\n", true),
        ("1.0", "", false),
        ("1.0", "connection: Keep-Alive\r\n", true),
        ("1.0", "connection: keep-alive, close\r\n", false),
    ];
    for (version, header, want) in cases {
        let head = parsed(&format!("HEAD / HTTP/{version}\r\nhost: g\r\n{header}\r\n")).unwrap();
        assert_eq!(head.manner.lasts, want, "{version} {header}");
        assert!(head.manner.is_head);
    }
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    let cases = [
        ("1.1", "content-length: 4\r\ntransfer-encoding: chunked\r\n", "it has both a length and chunks"),
        ("1.1", "transfer-encoding: chunked\r\ncontent-length: 0\r\n", "it has both a length and chunks"),
        ("1.1", "content-length: 1\r\ncontent-length: 2\r\n", "it has two lengths"),
        ("1.1", "content-length: 1,2\r\n", "it has two lengths"),
        ("1.1", "content-length: 1,\r\n", "its length is no number"),
        ("1.1", "transfer-encoding: gzip, chunked\r\n", "it has an unknown transfer coding"),
        ("1.1", "transfer-encoding: chunked, gzip\r\n", "it has an unknown transfer coding"),
        ("1.1", "transfer-encoding: chunked;q=1\r\n", "it has an unknown transfer coding"),
        ("1.1", "transfer-encoding:\r\n", "it has an unknown transfer coding"),
        ("1.1", "transfer-encoding: \u{b}chunked\r\n", "it has a malformed header"),
        ("1.0", "transfer-encoding: chunked\r\n", "it has chunks in HTTP/1.0"),
        ("1.1", "a: b\r\n c: d\r\n", "it has a malformed header"),
        ("1.1", "a : b\r\n", "it has a malformed header"),
        ("1.1", " a: b\r\n", "it has a malformed header"),
        ("1.1", "a: b\rc: d\r\n", "it has a malformed header"),
        ("1.1", ": b\r\n", "it has a malformed header"),
        ("2.0", "", "its version is none of HTTP/1"),
    ];
    for (version, header, want) in cases {
        let text = format!("POST / HTTP/{version}\r\nhost: g\r\n{header}\r\n");
        assert_eq!(malformed(&text), want, "{text:?}");
    }
    assert!(matches!(
        parsed("POST / HTTP/1.1\r\ncontent-length: 3, 3\r\n\r\n").unwrap().body,
        Rest::Length(3)
    ));
}

#[test]
fn more_headers_than_allowed_are_too_many() {
    let text = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(4));
    let whole = Bytes::from(text);
    assert!(parse(&whole, whole.len(), 4).is_ok());
    assert_eq!(parse(&whole, whole.len(), 3).unwrap_err(), Unreadable::LongHead);
}

#[test]
fn a_response_is_framed_whatever_its_headers_say() {
    let manner = |is_modern| Manner {
        is_modern,
        lasts: true,
        is_head: false,
        trailers: false,
        expects_continue: false,
    };
    let chunked = Framing::Chunked { trailers: false };
    let cases = [
        (
            200,
            Framing::Length(3),
            true,
            true,
            "HTTP/1.1 200 OK\r\nx-a: 1\r\ndate: D\r\ncontent-length: 3\r\n\r\n",
        ),
        (
            200,
            chunked,
            true,
            false,
            "HTTP/1.1 200 OK\r\nx-a: 1\r\ndate: D\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n",
        ),
        (
            404,
            Framing::Length(0),
            false,
            true,
            "HTTP/1.1 404 Not Found\r\nx-a: 1\r\ndate: D\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n",
        ),
        (204, Framing::Bodiless, true, true, "HTTP/1.1 204 No Content\r\nx-a: 1\r\ndate: D\r\n\r\n"),
        (
            304,
            Framing::Bodiless,
            true,
            true,
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 77\r\nx-a: 1\r\ndate: D\r\n\r\n",
        ),
    ];
    for (status, framing, is_modern, lasts, want) in cases {
        let response = http::Response::builder()
            .status(status)
            .header("content-length", "77")
            .header("transfer-encoding", "gzip")
            .header("connection", "x")
            .header("x-a", "1")
            .header("date", "D");
        let (head, ()) = response.body(()).unwrap().into_parts();
        let text = String::from_utf8(write(&head, framing, manner(is_modern), lasts)).unwrap();
        let want = want.replacen("date: D\r\n", "", 1);
        assert_eq!(text.replacen("date: D\r\n", "", 1), want);
        assert_eq!(text.matches("date:").count(), 1);
    }
}

#[test]
fn dates_are_spelt_as_http_does() {
    assert_eq!(&spelt(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
    assert!(date().ends_with(b" GMT"));
    assert_eq!(date(), date());
}
