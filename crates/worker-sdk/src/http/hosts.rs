//! One request to one of several base URLs, over connections that are kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use reqwest::{Client, Method, Url, header};
use rest_contract::{Code, Problem};

use super::{InvalidUrl, with_causes};
use crate::NoAnswer;

/// An idle connection is let go before the coordinator closes it (5 s), so that no request meets a
/// connection that is just being closed.
const IDLE_MS: u64 = 4_000;
/// Longest wait for a connection, ms.
const CONNECT_MS: u64 = 2_000;

#[derive(Clone)]
pub(super) struct Hosts(Arc<Inner>);

struct Inner {
    client: Client,
    urls: Vec<Url>,
    /// The one in use, modulo their number.
    current: AtomicUsize,
}

/// What came back.
pub(super) enum Answer {
    /// A success, with its body.
    Done(Bytes),
    /// A problem.
    Refused(Problem),
}

impl Hosts {
    pub(super) fn new(urls: &[String]) -> Result<Self, InvalidUrl> {
        let invalid = |url: &str, why: &dyn ToString| InvalidUrl { url: url.to_owned(), why: why.to_string() };
        if urls.is_empty() {
            return Err(invalid("", &"none is given"));
        }
        let read = |text: &String| {
            let url = Url::parse(text).map_err(|why| invalid(text, &why))?;
            if url.scheme() != "http" || url.cannot_be_a_base() {
                return Err(invalid(text, &"only http:// is supported"));
            }
            if url.query().is_some() || url.fragment().is_some() {
                return Err(invalid(text, &"it has a query or a fragment"));
            }
            Ok(url)
        };
        let urls = urls.iter().map(read).collect::<Result<_, _>>()?;
        let client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_millis(CONNECT_MS))
            .pool_idle_timeout(Duration::from_millis(IDLE_MS))
            .build()
            .map_err(|why| invalid("", &why))?;
        Ok(Self(Arc::new(Inner { client, urls, current: AtomicUsize::new(0) })))
    }

    /// Sends a request to `/coordinator/v1/` and `path`, at every base URL in turn as long as it is
    /// certain that it did not arrive.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<Bytes>,
        timeout_ms: u64,
    ) -> Result<Answer, NoAnswer> {
        let Inner { client, urls, current } = &*self.0;
        let mut failure = NoAnswer("there is no url".into());
        for _ in 0..urls.len() {
            let at = current.load(Ordering::Relaxed);
            let Some(url) = urls.get(at % urls.len()) else { break };
            let mut request = client
                .request(method.clone(), below(url, path, query))
                .timeout(Duration::from_millis(timeout_ms.max(1)));
            if let Some(body) = &body {
                request = request.header(header::CONTENT_TYPE, "application/json").body(body.clone());
            }
            match once(request).await {
                Ok(Answer::Refused(problem)) if is_away(problem.code) => {
                    failure = NoAnswer(format!("{url}: {problem}"));
                }
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    let unsent = error.is_connect();
                    failure = NoAnswer(format!("{url}: {}", with_causes(&error)));
                    if !unsent {
                        self.turn(at);
                        return Err(failure);
                    }
                }
            }
            self.turn(at);
        }
        Err(failure)
    }

    // Away from the URL that failed, unless somebody turned before.
    fn turn(&self, from: usize) {
        let _ = self.0.current.compare_exchange(from, from.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed);
    }
}

// The instance took nothing on and cannot: another one may.
const fn is_away(code: Code) -> bool {
    matches!(code, Code::Overloaded | Code::Draining)
}

// Boxed: else each crate with a worker would compile the HTTP client anew.
fn once(request: reqwest::RequestBuilder) -> BoxFuture<'static, Result<Answer, reqwest::Error>> {
    async move {
        let response = request.send().await?;
        let status = response.status();
        let bytes = response.bytes().await?;
        if status.is_success() {
            return Ok(Answer::Done(bytes));
        }
        Ok(Answer::Refused(serde_json::from_slice(&bytes).unwrap_or_else(|_| {
            let begin: String = String::from_utf8_lossy(&bytes).chars().take(200).collect();
            let detail = format!("status {status} without a problem: {begin:?}");
            Problem::new(if status.is_client_error() { Code::NoSuchPath } else { Code::Overloaded }, detail)
        })))
    }
    .boxed()
}

fn below(base: &Url, path: &[&str], query: &[(&str, &str)]) -> Url {
    let mut url = base.clone();
    // `Hosts::new` lets only URLs in that can be a base.
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(["coordinator", "v1"]).extend(path);
    }
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_and_a_prefix_is_kept() {
        let base = Url::parse("http://h:1/prefix/").unwrap();
        let url = below(&base, &["workers", "a/b ?", "poll"], &[("step", "x&y=z")]);
        assert_eq!(url.as_str(), "http://h:1/prefix/coordinator/v1/workers/a%2Fb%20%3F/poll?step=x%26y%3Dz");
        let bare = below(&Url::parse("http://h").unwrap(), &["ping"], &[]);
        assert_eq!(bare.as_str(), "http://h/coordinator/v1/ping");
    }

    #[test]
    fn urls_that_cannot_work_are_named() {
        let why = |url: &str| Hosts::new(&[url.to_owned()]).err().expect("refused").to_string();
        assert_eq!(why("https://h"), r#"url "https://h" is not usable: only http:// is supported"#);
        assert!(why("h:1").contains("only http://"), "{}", why("h:1"));
        assert!(why("http://h/?a=1").contains("query"));
        assert!(Hosts::new(&[]).is_err());
    }
}
