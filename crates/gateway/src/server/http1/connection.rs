//! One connection, one exchange after another, all in the connection's own task: a request's head is read, the exchange
//! is polled, its body and its response's are moved on as far as either side lets them. Between requests nothing is held
//! but the stream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Request, Response, StatusCode};
use http_body::Body;
use tokio::io::{AsyncRead, AsyncWrite};

use super::head::{self, Manner, Unreadable};
use super::intake::{Intake, Taken};
use crate::http1::sending::{Framing, SendFailure, Sending};
use crate::http1::{Rest, poll_read, with_scratch};
use crate::incoming::{ClientBody, Pipe};
use crate::policy;
use crate::reply::ReplyBody;
use crate::server::{Client, Shared};
use crate::tunnel::Tunnel;

/// What a client is told that waits to be told to go on.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Most bytes of a body that are copied together with its head.
const TOGETHER: usize = 16 << 10;

/// A client's connection.
pub(super) struct Connection<S> {
    shared: Arc<Shared>,
    client: Client,
    stream: S,
    /// What came and was not taken in yet.
    ahead: Vec<u8>,
    /// How much of that was searched for the end of a head.
    seen: usize,
    turn: Option<Turn>,
    is_draining: bool,
    /// Exchanges begun.
    begun: u32,
}

/// One exchange.
struct Turn {
    answer: Answer,
    /// What is still to come of the request.
    intake: Option<Intake>,
    /// What is still to be said of [`CONTINUE`].
    interim: &'static [u8],
    manner: Manner,
    /// Whether another request may follow.
    lasts: bool,
    /// Whether the client may still be sending what nobody will read.
    lingers: bool,
    /// Whether what it sends is of no interest.
    is_deaf: bool,
    tunnel: Option<Box<Tunnel>>,
}

/// How far a response has come.
enum Answer {
    /// It is being found.
    Awaited(Pin<Box<dyn Future<Output = Response<ReplyBody>> + Send>>),
    /// It is being sent.
    Sending(Sending<ReplyBody>),
    /// It was sent.
    Sent,
}

/// Why a connection is over.
pub(super) enum End {
    /// The client left, or the exchange broke off.
    Broken,
    /// The last response was sent.
    Done {
        /// Whether the client may still be sending.
        lingers: bool,
    },
    /// It becomes a tunnel.
    Tunnel(Box<Tunnel>),
}

/// How busy a connection is, for those who watch over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Progress {
    /// Exchanges begun, and bytes sent of the last response.
    pub(super) moves: (u32, u64),
    /// Whether it is the endpoint that is waited for.
    pub(super) waits_for_endpoint: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// A connection on which nothing was said yet.
    pub(super) fn new(shared: Arc<Shared>, client: Client, stream: S) -> Self {
        let (ahead, is_draining) = (Vec::new(), false);
        Self { shared, client, stream, ahead, seen: 0, turn: None, is_draining, begun: 0 }
    }

    /// The connection ends after the exchange under way, at once if there is none.
    pub(super) fn drain(&mut self) {
        self.is_draining = true;
    }

    /// How busy it is.
    pub(super) fn progress(&self) -> Progress {
        let (sent, waits_for_endpoint) = match self.turn.as_ref().map(|turn| &turn.answer) {
            None | Some(Answer::Sent) => (0, false),
            Some(Answer::Awaited(_)) => (0, true),
            Some(Answer::Sending(sending)) => (sending.sent(), !sending.is_blocked()),
        };
        Progress { moves: (self.begun, sent), waits_for_endpoint }
    }

    /// The stream, and what came over it and was not taken in.
    pub(super) fn into_parts(self) -> (S, Vec<u8>) {
        (self.stream, self.ahead)
    }

    /// Moves everything on until the connection is over.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            if self.turn.is_none() {
                if self.is_draining {
                    return Poll::Ready(End::Done { lingers: false });
                }
                self.turn = Some(match ready!(self.poll_head(cx)) {
                    Ok(Some(turn)) => turn,
                    Ok(None) => return Poll::Ready(End::Broken),
                    Err(unreadable) => self.refused(unreadable),
                });
                self.begun = self.begun.wrapping_add(1);
            }
            if let Some(end) = ready!(self.poll_turn(cx)) {
                return Poll::Ready(end);
            }
            self.turn = None;
        }
    }

    /// Reads the next request's head. Nothing if the client leaves.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Turn>, Unreadable>> {
        if self.seen < self.ahead.len() {
            // What came behind the last request.
            let ahead = std::mem::take(&mut self.ahead);
            if let Some(turn) = self.take_in(&ahead)? {
                return Poll::Ready(Ok(Some(turn)));
            }
            self.ahead = ahead;
        }
        with_scratch(|scratch| {
            loop {
                let Ok(count @ 1..) = ready!(poll_read(&mut self.stream, scratch, cx)) else {
                    return Poll::Ready(Ok(None));
                };
                let piece = &scratch[..count];
                let mut ahead = std::mem::take(&mut self.ahead);
                let turn = if ahead.is_empty() {
                    self.take_in(piece)?
                } else {
                    ahead.extend_from_slice(piece);
                    self.take_in(&ahead)?
                };
                if turn.is_some() {
                    return Poll::Ready(Ok(turn));
                }
                if ahead.is_empty() {
                    ahead.extend_from_slice(piece);
                }
                self.ahead = ahead;
            }
        })
    }

    /// Takes in all that came, if it holds a whole head. What is behind the request is kept.
    fn take_in(&mut self, text: &[u8]) -> Result<Option<Turn>, Unreadable> {
        let limits = self.shared.limits;
        let (whole, empty) = (text, head::empty_lines(text));
        let text = &text[empty..];
        let end = head::end(text, self.seen.saturating_sub(empty))?;
        if let Some(length) = end.filter(|&length| length <= limits.head_bytes) {
            self.seen = 0;
            return self.begin(text, length).map(Some);
        }
        if whole.len() > limits.head_bytes {
            let has_line = memchr::memchr(b'\n', &text[..text.len().min(limits.head_bytes)]).is_some();
            return Err(if has_line { Unreadable::LongHead } else { Unreadable::LongTarget });
        }
        if self.seen == 0 {
            head::doubt(text)?;
        }
        self.seen = whole.len();
        Ok(None)
    }

    /// Begins the exchange of a request whose head is whole.
    fn begin(&mut self, text: &[u8], length: usize) -> Result<Turn, Unreadable> {
        // A small body lies behind its head in the same memory.
        let together = if text.len() - length <= TOGETHER { text.len() } else { length };
        let whole = Bytes::copy_from_slice(&text[..together]);
        let head = head::parse(&whole, length, self.shared.limits.headers)?;
        let came = &text[length..];
        let (body, intake, used) = match head.body {
            Rest::Length(size) if size <= came.len() as u64 => {
                let end = length + size as usize;
                let body = if end <= whole.len() {
                    whole.slice(length..end)
                } else {
                    Bytes::copy_from_slice(&text[length..end])
                };
                (ClientBody::Whole(body), None, end - length)
            }
            Rest::Done => (ClientBody::Whole(Bytes::new()), None, 0),
            rest => {
                let (pipe, end) = Pipe::new(rest.size_hint().exact());
                let waits = head.manner.expects_continue && came.is_empty();
                (ClientBody::Piped(end), Some(Intake::new(rest, pipe, waits)), 0)
            }
        };
        self.ahead = came[used..].to_vec();
        let mut request = Request::new(body);
        *request.method_mut() = head.method;
        *request.uri_mut() = head.uri;
        *request.version_mut() = head.version;
        *request.headers_mut() = head.headers;
        let answer = policy::answer(self.shared.clone(), self.client, request);
        Ok(Turn::new(Answer::Awaited(Box::pin(answer)), intake, head.manner))
    }

    /// The answer to what cannot be read. Where the next request would begin is anybody's guess.
    fn refused(&mut self, unreadable: Unreadable) -> Turn {
        let refusal = unreadable.refusal();
        self.shared.metrics.malformed.add(1);
        self.shared.metrics.refused(refusal.code);
        tracing::debug!(client = %self.client.address, %refusal, "a request cannot be read");
        let manner = Manner {
            is_modern: true,
            lasts: false,
            is_head: false,
            trailers: false,
            expects_continue: false,
        };
        let mut turn = Turn::new(Answer::Sent, None, manner);
        (turn.lingers, turn.is_deaf) = (true, true);
        turn.respond(refusal.response());
        turn
    }

    /// Moves an exchange on. Ready when it is over, with the end of the connection if that is over too.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Option<End>> {
        let Self { turn: Some(turn), stream, ahead, shared, .. } = self else { return Poll::Ready(None) };
        turn.lasts &= !self.is_draining;
        loop {
            match turn.poll_answer(stream, cx) {
                Poll::Ready(Ok(())) => return turn.poll_end(stream, ahead, cx),
                Poll::Ready(Err(Broken)) => return Poll::Ready(Some(End::Broken)),
                Poll::Pending => {}
            }
            match ready!(turn.poll_client(stream, ahead, cx)) {
                Ok(malformed) => shared.metrics.malformed.add(malformed.into()),
                Err(Broken) => return Poll::Ready(Some(End::Broken)),
            }
        }
    }
}

/// The connection is of no more use.
struct Broken;

impl Turn {
    fn new(answer: Answer, intake: Option<Intake>, manner: Manner) -> Self {
        Self {
            answer,
            intake,
            interim: b"",
            manner,
            lasts: manner.lasts,
            lingers: false,
            is_deaf: false,
            tunnel: None,
        }
    }

    /// Finds the response and sends it.
    fn poll_answer<S>(&mut self, stream: &mut S, cx: &mut Context<'_>) -> Poll<Result<(), Broken>>
    where
        S: AsyncWrite + Unpin,
    {
        if let Answer::Awaited(future) = &mut self.answer {
            let response = ready!(future.as_mut().poll(cx));
            self.respond(response);
        }
        let Answer::Sending(sending) = &mut self.answer else { return Poll::Ready(Ok(())) };
        if !self.interim.is_empty() {
            // Begun, so it must be finished first.
            return Poll::Pending;
        }
        match sending.poll(stream, cx) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => {
                self.answer = Answer::Sent;
                Poll::Ready(Ok(()))
            }
            Err(SendFailure::Io(error)) => {
                tracing::debug!(%error, "a response cannot be sent");
                Poll::Ready(Err(Broken))
            }
            Err(SendFailure::Body(error)) => {
                tracing::debug!(%error, "a response breaks off");
                Poll::Ready(Err(Broken))
            }
        }
    }

    /// Begins to send a response.
    fn respond(&mut self, response: Response<ReplyBody>) {
        let (mut head, mut body) = response.into_parts();
        self.tunnel = body.take_tunnel();
        if body.is_whole() && self.intake.as_ref().is_some_and(|intake| !intake.is_small()) {
            // Reading on only to keep the connection would take longer than a new one.
            (self.lasts, self.lingers) = (false, true);
        }
        let framing = self.framing(head.status, &body);
        self.lasts &= framing != Framing::UntilClosed;
        let length = body.size_hint().exact().filter(|&length| length > 0);
        if let Some(length) = length.filter(|_| framing == Framing::Bodiless) {
            head.headers.entry(CONTENT_LENGTH).or_insert(length.into());
        }
        let text = head::write(&head, framing, self.manner, self.lasts);
        self.answer = Answer::Sending(Sending::new(text, body, framing));
    }

    /// How the response's body is delimited (RFC 9112 §6.3).
    fn framing(&self, status: StatusCode, body: &ReplyBody) -> Framing {
        let is_bodiless = self.manner.is_head || matches!(status.as_u16(), 100..=199 | 204 | 304);
        match body.size_hint().exact() {
            _ if is_bodiless => Framing::Bodiless,
            Some(length) => Framing::Length(length),
            None if self.manner.is_modern => Framing::Chunked { trailers: self.manner.trailers },
            None => Framing::UntilClosed,
        }
    }

    /// While the response waits: moves the request's body on, or looks whether the client is still there. Ready when
    /// that may have changed something, with whether the client sent what is malformed.
    fn poll_client<S>(
        &mut self,
        stream: &mut S,
        ahead: &mut Vec<u8>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<bool, Broken>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        if !self.interim.is_empty() {
            let Ok(count @ 1..) = ready!(Pin::new(&mut *stream).poll_write(cx, self.interim)) else {
                return Poll::Ready(Err(Broken));
            };
            self.interim = &self.interim[count..];
            if self.interim.is_empty() {
                // What cannot be flushed now goes out with what is written next.
                let _ = Pin::new(stream).poll_flush(cx);
            }
            return Poll::Ready(Ok(false));
        }
        let Some(intake) = &mut self.intake else {
            if self.is_deaf || !ahead.is_empty() {
                return Poll::Pending;
            }
            return with_scratch(|scratch| {
                let Ok(count @ 1..) = ready!(poll_read(stream, scratch, cx)) else {
                    return Poll::Ready(Err(Broken));
                };
                ahead.extend_from_slice(&scratch[..count]);
                Poll::Pending
            });
        };
        match ready!(intake.poll(stream, ahead, cx)) {
            Taken::Some => {}
            Taken::All => self.intake = None,
            Taken::Continue => self.interim = CONTINUE,
            Taken::Failed { malformed } => {
                self.intake = None;
                (self.lasts, self.lingers, self.is_deaf) = (false, true, true);
                return Poll::Ready(Ok(malformed));
            }
        }
        Poll::Ready(Ok(false))
    }

    /// What follows a response that was sent: another request, or the end of the connection.
    fn poll_end<S>(&mut self, stream: &mut S, ahead: &mut Vec<u8>, cx: &mut Context<'_>) -> Poll<Option<End>>
    where
        S: AsyncRead + Unpin,
    {
        if let Some(tunnel) = self.tunnel.take() {
            let end = if self.intake.is_none() { End::Tunnel(tunnel) } else { End::Broken };
            return Poll::Ready(Some(end));
        }
        let waits = self.intake.as_ref().is_some_and(|intake| intake.waits);
        if !self.lasts || waits {
            let lingers = self.lingers || self.intake.is_some() || !ahead.is_empty();
            return Poll::Ready(Some(End::Done { lingers }));
        }
        if let Some(intake) = &mut self.intake
            && !ready!(intake.discard(stream, ahead, cx))
        {
            return Poll::Ready(Some(End::Done { lingers: true }));
        }
        Poll::Ready(None)
    }
}
