//! A gRPC client that sends requests as the bytes they are.

use std::net::SocketAddr;

use bytes::{Buf, BufMut, Bytes};
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use crate::Result;

/// A connection of its own.
pub(crate) struct Client(Grpc<Channel>);

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self> {
        Ok(Self(Grpc::new(Endpoint::from_shared(format!("http://{address}"))?.connect().await?)))
    }

    /// One call; Crossplane's limit for answers applies.
    pub(crate) async fn call(&mut self, request: Bytes) -> std::result::Result<Bytes, Status> {
        self.0.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let path = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";
        let path = http::uri::PathAndQuery::from_static(path);
        self.0.unary(Request::new(request), path, Raw).await.map(tonic::Response::into_inner)
    }
}

/// Messages as the bytes they are.
#[derive(Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, out: &mut EncodeBuf<'_>) -> std::result::Result<(), Status> {
        out.reserve(item.len());
        out.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> std::result::Result<Option<Bytes>, Status> {
        Ok(Some(source.copy_to_bytes(source.remaining())))
    }
}
