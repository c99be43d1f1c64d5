//! The coordinator over REST: what a worker says goes out in batches, what it is given comes in by
//! polls.
//!
//! [`crate::Worker::connect`] is the front door. [`HttpCoordinator`] is the transport alone, for those who
//! set the rest up by themselves. It decides nothing: whoever sends again, and when, is the machine.

mod batches;
mod connect;
mod hosts;
mod inline;
mod wire;
mod working;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::Method;
use rest_contract::{Code, PollResponse, Pong, Problem, Registered};
use task_events::{TaskId, Text};
use worker_protocol::{Heartbeat, HeartbeatAnswer, Poll, PollAnswer, Report, ReportAnswer};

use crate::{CoordinatorPort, NoAnswer, PayloadKey, PayloadPort, PayloadUnavailable, SystemClock, WorkerClock};
use batches::{Batches, Item};
pub use connect::{Connect, ConnectError};
use hosts::{Answer, Hosts};
use inline::Inline;
pub use working::{HttpWorker, RunError};

/// A poll without an answer this long after its wait is over, ms: below the machine's own slack, so
/// that the connection is closed and the coordinator gives nothing more to it.
const POLL_SLACK_MS: u64 = 2_500;
/// Longest wait for any other answer, ms.
const ANSWER_MS: u64 = 5_000;

/// A coordinator at one or several base URLs. Clones share connections, batches and payloads.
///
/// One URL is used until it does not answer, then the next one. What surely was not sent goes to the
/// next one at once; what may have arrived is [`NoAnswer`], and the machine sends it again.
pub struct HttpCoordinator<C = SystemClock>(Arc<Inner<C>>);

impl<C> Clone for HttpCoordinator<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

struct Inner<C> {
    hosts: Hosts,
    batches: Batches<C>,
    inline: Mutex<Inline>,
    clock: C,
    /// Smoothed time of `/ping`, µs; 0 before the first.
    rtt_us: AtomicU64,
}

/// An error and what caused it, in one line, for what a handler says of calls that failed: the text of
/// an HTTP client's error often names only the URL.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Base URLs that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("url {url:?} is not usable: {why}")]
pub struct InvalidUrl {
    /// As given.
    pub url: String,
    /// What is wrong with it.
    pub why: String,
}

impl<C: WorkerClock> HttpCoordinator<C> {
    /// A coordinator at these base URLs (`http://host:port`), tried in turn. Needs a tokio runtime
    /// once it is used. Proxies of the environment are not heeded.
    ///
    /// # Errors
    /// None is given, or one is no `http` URL.
    pub fn new(urls: &[String], clock: C) -> Result<Self, InvalidUrl> {
        let hosts = Hosts::new(urls)?;
        let batches = Batches::new(hosts.clone(), clock.clone());
        let (inline, rtt_us) = (Mutex::default(), AtomicU64::new(0));
        Ok(Self(Arc::new(Inner { hosts, batches, inline, clock, rtt_us })))
    }

    /// Makes a worker known, and brings what the coordinator expects of it.
    ///
    /// # Errors
    /// `Ok(Err(problem))` is a refusal; [`NoAnswer`] if nobody can answer now.
    pub async fn register(&self, register: &rest_contract::Register) -> Result<Result<Registered, Problem>, NoAnswer> {
        let body = wire::to_json(register)?;
        let answer = self.0.hosts.send(Method::POST, &["workers", "register"], &[], Some(body), ANSWER_MS).await?;
        match answer {
            Answer::Done(bytes) => wire::from_json(&bytes).map(Ok),
            Answer::Refused(problem) => match problem.code.retry() {
                rest_contract::Retry::Never => Ok(Err(problem)),
                rest_contract::Retry::Later | rest_contract::Retry::AskFirst => Err(NoAnswer(problem.to_string())),
            },
        }
    }

    /// Asks whether the coordinator is there, and measures how long the answer takes.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn ping(&self) -> Result<Pong, NoAnswer> {
        let begun = self.0.clock.boot_us();
        let answer = self.0.hosts.send(Method::GET, &["ping"], &[], None, ANSWER_MS).await?;
        let took = self.0.clock.boot_us().saturating_sub(begun);
        match answer {
            Answer::Done(bytes) => {
                self.note_rtt(took);
                wire::from_json(&bytes)
            }
            Answer::Refused(problem) => Err(NoAnswer(problem.to_string())),
        }
    }

    /// Smoothed round-trip time of [`HttpCoordinator::ping`], µs; `None` before the first answer.
    pub fn rtt_us(&self) -> Option<u64> {
        let rtt = self.0.rtt_us.load(Ordering::Relaxed);
        (rtt > 0).then_some(rtt)
    }

    // One part in eight of each new value, as TCP does it (RFC 6298).
    fn note_rtt(&self, us: u64) {
        let before = self.0.rtt_us.load(Ordering::Relaxed);
        let smoothed = if before == 0 { us } else { before - before / 8 + us / 8 };
        self.0.rtt_us.store(smoothed.max(1), Ordering::Relaxed);
    }

    async fn poll_once(self, poll: Poll) -> Result<PollAnswer, NoAnswer> {
        let timeout = poll.wait_ms.saturating_add(POLL_SLACK_MS);
        let body = wire::to_json(&wire::poll_request(&poll))?;
        let path = ["workers", poll.worker_id.as_str(), "poll"];
        // The lease runs from here, so this is when what came inline with it grows old.
        let sent_at = self.0.clock.now().boot_ms;
        match self.0.hosts.send(Method::POST, &path, &[], Some(body), timeout).await? {
            Answer::Done(bytes) => {
                let PollResponse { assignments, stop, drain } = wire::from_json(&bytes)?;
                if drain {
                    tracing::info!("people ask this worker to drain");
                    return Ok(PollAnswer::Drain);
                }
                let mut inline = self.0.inline.lock();
                inline.purge(self.0.clock.now().boot_ms);
                let assignments = assignments.into_iter().map(|body| {
                    let (assignment, payload) = wire::assignment(body);
                    if let Some(bytes) = payload {
                        inline.keep(assignment.task_id, bytes, sent_at.saturating_add(assignment.lease_ms));
                    }
                    assignment
                });
                Ok(PollAnswer::Work { assignments: assignments.collect(), stop })
            }
            Answer::Refused(problem) if problem.code == Code::Superseded => Ok(PollAnswer::Superseded),
            Answer::Refused(problem) => {
                tracing::warn!(%problem, "poll was refused");
                Ok(PollAnswer::Unavailable)
            }
        }
    }

    async fn read(self, task: TaskId, key: PayloadKey) -> Result<Option<Bytes>, PayloadUnavailable> {
        if matches!(key, PayloadKey::Parameters { .. })
            && let Some(bytes) = self.0.inline.lock().take(task)
        {
            return Ok(Some(bytes));
        }
        let id = task.to_string();
        let (item, step) = wire::payload_name(&key);
        let mut query = vec![("item", item.as_str())];
        if let Some(step) = &step {
            query.push(("step", step));
        }
        let hash = match &key {
            PayloadKey::Parameters { payload_hash: hash } | PayloadKey::StepOutput { output_hash: hash, .. } => {
                Some(hash.to_string())
            }
            PayloadKey::Result | PayloadKey::ErrorText => None,
        };
        if let Some(hash) = &hash {
            query.push(("hash", hash));
        }
        let sent = self.0.hosts.send(Method::GET, &["task", &id, "payload"], &query, None, ANSWER_MS).await;
        match sent.map_err(|why| PayloadUnavailable(why.0))? {
            Answer::Done(bytes) => Ok(Some(bytes)),
            Answer::Refused(problem) if problem.code == Code::PayloadMissing => Ok(None),
            Answer::Refused(problem) => Err(PayloadUnavailable(problem.to_string())),
        }
    }
}

impl<C: WorkerClock> CoordinatorPort for HttpCoordinator<C> {
    fn poll(&self, poll: Poll) -> impl Future<Output = Result<PollAnswer, NoAnswer>> + Send + 'static {
        self.clone().poll_once(poll)
    }

    fn heartbeat(
        &self,
        _: TaskId,
        attempt_token: Text,
        heartbeat: Heartbeat,
    ) -> impl Future<Output = Result<HeartbeatAnswer, NoAnswer>> + Send + 'static {
        let answer = self.0.batches.add(Item::heartbeat(heartbeat, attempt_token));
        async move { answer.await.map(wire::heartbeat_answer) }
    }

    fn report(
        &self,
        task_id: TaskId,
        attempt_token: Text,
        report: Report,
    ) -> impl Future<Output = Result<ReportAnswer, NoAnswer>> + Send + 'static {
        let answer = self.0.batches.add(Item::report(task_id, report, attempt_token));
        async move { answer.await.map(wire::report_answer) }
    }
}

impl<C: WorkerClock> PayloadPort for HttpCoordinator<C> {
    fn put(
        &self,
        task_id: TaskId,
        key: PayloadKey,
        bytes: Bytes,
    ) -> impl Future<Output = Result<(), PayloadUnavailable>> + Send + 'static {
        let stored = self.0.batches.add(Item::payload(task_id, &key, bytes));
        async move {
            match stored.await.map(wire::is_stored) {
                Ok(true) => Ok(()),
                Ok(false) => Err(PayloadUnavailable("the coordinator could not store it".into())),
                Err(NoAnswer(why)) => Err(PayloadUnavailable(why)),
            }
        }
    }

    fn get(
        &self,
        task_id: TaskId,
        key: PayloadKey,
    ) -> impl Future<Output = Result<Option<Bytes>, PayloadUnavailable>> + Send + 'static {
        self.clone().read(task_id, key)
    }
}
