//! Bytes over HTTP: timeouts, and which failure means that nothing was sent.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder, Url};
use rest_contract::Problem;
use serde::de::DeserializeOwned;

use crate::ClientError;

/// Connections are let go of this long after their last call: before the server does (5 s), so that
/// no call is sent into one that is being closed.
const IDLE: Duration = Duration::from_secs(3);

/// How long a call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a connection stands. Default 3 s.
    pub connect: Duration,
    /// From then until the whole answer is there, without what the call asks the server to wait.
    /// Default 20 s: an owner answers within 10 s, and the edge waits 5 s for a new owner first.
    pub answer: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(3), answer: Duration::from_secs(20) }
    }
}

/// One server, its connections and its timeouts.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    http: reqwest::Client,
    base: Url,
    shown: String,
    timeouts: Timeouts,
}

/// A call that is to be made.
pub(crate) struct Call {
    pub method: Method,
    /// Literal part of the path, with slashes of its own.
    pub path: &'static str,
    /// Parts of the path behind it, each escaped.
    pub parts: Vec<String>,
    pub query: Vec<(&'static str, String)>,
    pub body: Option<Vec<u8>>,
    pub headers: HeaderMap,
    /// What the server is asked to wait.
    pub wait: Duration,
}

impl Call {
    pub fn get(path: &'static str, parts: &[&str]) -> Self {
        let parts = parts.iter().map(|part| (*part).to_owned()).collect();
        let (query, headers) = Default::default();
        Self { method: Method::GET, path, parts, query, body: None, headers, wait: Duration::ZERO }
    }

    pub fn post(path: &'static str, parts: &[&str], body: Vec<u8>) -> Self {
        Self { method: Method::POST, body: Some(body), ..Self::get(path, parts) }
    }

    fn reads(&self) -> bool {
        self.method == Method::GET
    }
}

/// Status, headers and body of an answer.
pub(crate) struct Reply {
    pub what: String,
    pub status: u16,
    pub body: Bytes,
    reads: bool,
}

/// An answer whose body is still to come.
pub(crate) struct Opened {
    pub what: String,
    pub response: reqwest::Response,
}

impl Transport {
    pub fn new(url: &str, timeouts: Timeouts) -> Result<Self, ClientError> {
        let unusable = |why: String| ClientError::Unsendable { what: "the URL", value: url.to_owned(), why };
        let with_scheme = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let base = Url::parse(&with_scheme).map_err(|e| unusable(e.to_string()))?;
        if base.scheme() != "http" {
            return Err(unusable(format!("only http:// is spoken, not {}://", base.scheme())));
        }
        if base.host_str().is_none_or(str::is_empty) {
            return Err(unusable("it names no host".to_owned()));
        }
        let http = connections(timeouts).build().map_err(|e| unusable(chain(&e)))?;
        let shown = base.as_str().trim_end_matches('/').to_owned();
        Ok(Self { http, base, shown, timeouts })
    }

    pub fn url(&self) -> &str {
        &self.shown
    }

    /// Makes the call. Any status is a reply. Boxed, as [`Transport::open`]: else each crate with a client
    /// would compile the HTTP client anew.
    pub fn send(&self, call: Call) -> BoxFuture<'_, Result<Reply, ClientError>> {
        async move {
            let reads = call.reads();
            let parts = call.parts.iter().fold(String::new(), |all, part| all + "/" + part);
            let what = format!("{} {}{parts}", call.method, call.path);
            let wait = self.timeouts.connect + self.timeouts.answer + call.wait;
            let request = self.request(&self.http, call).timeout(wait);
            let broken = |why: reqwest::Error| self.broken(&what, reads, &why);
            let response = request.send().await.map_err(broken)?;
            let status = response.status().as_u16();
            let body = response.bytes().await.map_err(broken)?;
            Ok(Reply { what, status, body, reads })
        }
        .boxed()
    }

    /// Makes a call that reads and whose answer has no end, but is never silent for so long. A status
    /// that is no success is the problem it says.
    pub fn open(&self, call: Call, silence: Duration) -> BoxFuture<'_, Result<Opened, ClientError>> {
        async move {
            let what = format!("{} {}", call.method, call.path);
            let broken = |why: reqwest::Error| self.broken(&what, true, &why);
            // Of its own: how long a read may take is a matter of the connections, not of a call.
            let http = connections(self.timeouts).read_timeout(silence).build().map_err(broken)?;
            let response = self.request(&http, call).send().await.map_err(broken)?;
            if response.status().is_success() {
                return Ok(Opened { what, response });
            }
            let status = response.status().as_u16();
            let body = response.bytes().await.map_err(broken)?;
            match self.read::<serde_json::Value>(&Reply { what: what.clone(), status, body, reads: true }, &[]) {
                Err(why) => Err(why),
                Ok(_) => Err(ClientError::unreadable(&self.shown, &what, status, "no success".to_owned(), &[], true)),
            }
        }
        .boxed()
    }

    fn request(&self, http: &reqwest::Client, call: Call) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(call.path.split('/').skip(1)).extend(&call.parts);
        }
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        let mut request = http.request(call.method, url).headers(call.headers);
        if let Some(body) = call.body {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body);
        }
        request
    }

    fn broken(&self, what: &str, reads: bool, why: &reqwest::Error) -> ClientError {
        let (url, text) = (self.shown.clone(), chain(why));
        if reads || why.is_connect() || why.is_builder() {
            ClientError::Unreachable { url, why: text }
        } else {
            ClientError::UnknownOutcome { url, what: what.to_owned(), why: text }
        }
    }

    /// The reply as the shape of one of these statuses, or the problem that it is.
    pub fn read<T: DeserializeOwned>(&self, reply: &Reply, good: &[u16]) -> Result<T, ClientError> {
        let unreadable = |why: String| {
            ClientError::unreadable(&self.shown, &reply.what, reply.status, why, &reply.body, reply.reads)
        };
        if good.contains(&reply.status) {
            return serde_json::from_slice(&reply.body).map_err(|e| unreadable(e.to_string()));
        }
        match serde_json::from_slice::<Problem>(&reply.body) {
            Ok(problem) => Err(problem.into()),
            Err(why) => Err(unreadable(why.to_string())),
        }
    }
}

// What the environment says of proxies is for the open internet, not for this server; and a redirect
// would send a create to somebody else.
fn connections(timeouts: Timeouts) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(timeouts.connect)
        .tcp_nodelay(true)
        .pool_idle_timeout(IDLE)
}

// reqwest's own text says only that something failed; the innermost cause says what.
fn chain(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    innermost(error)
}

/// What an error rests on in the end.
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}
