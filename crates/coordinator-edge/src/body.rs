//! Bodies of requests: their type, their length, their time; then strict JSON.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use rest_contract::{Code, Problem};
use serde::de::DeserializeOwned;
use service_kit::{Clock, within};

use crate::problems::Failure;
use crate::{Edge, json};

/// A body that is too long is read on and thrown away up to this, so that its sender gets to hear
/// why (an answer to somebody who still writes is lost with the connection), bytes.
const MAX_THROWN_AWAY: u64 = 64 * 1024 * 1024;

impl<L, S, C: Clock, P> Edge<L, S, C, P> {
    /// The JSON body of a request, of at most `limit` bytes, read strictly.
    pub(crate) async fn json<T: DeserializeOwned>(&self, request: Request, limit: usize) -> Result<T, Failure> {
        let bytes = self.json_bytes(request, limit).await?;
        json::check(&bytes)?;
        Ok(json::decode(&bytes, "")?)
    }

    /// The same, where no body at all stands for the default. It may still have a type: generated clients
    /// name one whether or not there is a body.
    pub(crate) async fn json_or_default<T: DeserializeOwned + Default>(
        &self,
        request: Request,
        limit: usize,
    ) -> Result<T, Failure> {
        let is_typed = request.headers().contains_key(header::CONTENT_TYPE);
        let bytes = if is_typed { self.json_bytes(request, limit).await? } else { self.bytes(request, limit).await? };
        if bytes.is_empty() {
            return Ok(T::default());
        }
        if !is_typed {
            return Err(no_json("none").into());
        }
        json::check(&bytes)?;
        Ok(json::decode(&bytes, "")?)
    }

    /// The bytes of a body that says it is JSON.
    pub(crate) async fn json_bytes(&self, request: Request, limit: usize) -> Result<Bytes, Failure> {
        let kind = request.headers().get(header::CONTENT_TYPE);
        let kind = kind.map_or("none", |value| value.to_str().unwrap_or("an unreadable one"));
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            return Err(no_json(kind).into());
        }
        self.bytes(request, limit).await
    }

    /// The bytes of a body.
    pub(crate) async fn bytes(&self, request: Request, limit: usize) -> Result<Bytes, Failure> {
        let (head, body) = request.into_parts();
        let length = declared(&head.headers);
        let asks_first = head.headers.contains_key(header::EXPECT);
        if let Some(length) = length.filter(|n| *n > limit as u64 && (asks_first || *n > MAX_THROWN_AWAY)) {
            return Err(too_long(length, limit, "").into());
        }
        match within(&self.clock, self.config.body_ms, collect(body, limit, length)).await {
            Some(read) => Ok(read?),
            None => {
                let text = format!("the body did not arrive within {} ms", self.config.body_ms);
                Err(Problem::new(Code::RequestTimeout, text).limit(self.config.body_ms).into())
            }
        }
    }
}

fn declared(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn collect(mut body: Body, limit: usize, length: Option<u64>) -> Result<Bytes, Problem> {
    let expected = length.and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let mut bytes = BytesMut::with_capacity(if expected <= limit { expected.min(64 * 1024) } else { 0 });
    let mut size = 0u64;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Err(Problem::new(Code::MalformedJson, "the body ended before it was complete"));
        };
        let Ok(data) = frame.into_data() else { continue };
        size = size.saturating_add(data.len() as u64);
        if size <= limit as u64 {
            bytes.extend_from_slice(&data);
            continue;
        }
        bytes = BytesMut::new();
        if size > MAX_THROWN_AWAY {
            return Err(too_long(length.unwrap_or(size), limit, if length.is_none() { "more than " } else { "" }));
        }
    }
    if size > limit as u64 { Err(too_long(size, limit, "")) } else { Ok(bytes.freeze()) }
}

fn too_long(size: u64, limit: usize, about: &str) -> Problem {
    let text = format!("the body has {about}{size} bytes, the limit is {limit}");
    Problem::new(Code::PayloadTooLarge, text).value(size).limit(limit)
}

fn no_json(kind: &str) -> Problem {
    let text = format!("the content type is {kind}, it must be application/json");
    Problem::new(Code::UnsupportedMediaType, text).field("Content-Type").value(kind).limit("application/json")
}
