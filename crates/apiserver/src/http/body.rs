//! Reading request bodies, bounded in size.

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt as _;

use crate::status::{ApiError, ApiResult};

/// Kubernetes' own limit for a request body: 3 MiB.
pub(crate) const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// Collects a body, refusing it as soon as it is known to be too large.
pub(crate) async fn read<B>(body: B) -> ApiResult<Bytes>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let too_large = || ApiError::too_large(format!("Request entity too large: limit is {MAX_BODY_BYTES}"));
    if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
        return Err(too_large());
    }
    let mut body = std::pin::pin!(body);
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| ApiError::bad_request(format!("reading the body failed: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + joined.len() + data.len() > MAX_BODY_BYTES {
            return Err(too_large());
        }
        if first.is_empty() && joined.is_empty() {
            first = data;
            continue;
        }
        if joined.is_empty() {
            joined.extend_from_slice(&std::mem::take(&mut first));
        }
        joined.extend_from_slice(&data);
    }
    Ok(if joined.is_empty() { first } else { joined.freeze() })
}
