//! A coordinator and a payload store in memory, for one attempt.

use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use task_events::{TaskId, Text};
use tokio::sync::watch;
use worker_protocol::{Assignment, Heartbeat, HeartbeatAnswer, Poll, PollAnswer, Report, ReportAnswer, ReportBody};

use super::LEASE_MS;
use crate::{CoordinatorPort, NoAnswer, PayloadKey, PayloadPort, PayloadUnavailable};

#[derive(Clone)]
pub(super) struct Desk(Arc<Inner>);

struct Inner {
    work: Mutex<Option<Assignment>>,
    reports: Mutex<Vec<ReportBody>>,
    beat: Mutex<HeartbeatAnswer>,
    payloads: Mutex<BTreeMap<(TaskId, PayloadKey), Bytes>>,
    started: watch::Sender<bool>,
}

impl Desk {
    pub(super) fn new(assignment: Assignment) -> Self {
        Self(Arc::new(Inner {
            work: Mutex::new(Some(assignment)),
            reports: Mutex::default(),
            beat: Mutex::new(HeartbeatAnswer::Accepted { lease_ms: LEASE_MS, cancel_requested: false }),
            payloads: Mutex::default(),
            started: watch::Sender::new(false),
        }))
    }

    /// Ready once the attempt has started: from then on there is nothing more to ask for.
    pub(super) fn started(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut started = self.0.started.subscribe();
        async move {
            if started.wait_for(|started| *started).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    pub(super) fn answer(&self, heartbeats: HeartbeatAnswer) {
        *self.0.beat.lock() = heartbeats;
    }

    pub(super) fn reports(&self) -> Vec<ReportBody> {
        self.0.reports.lock().clone()
    }

    pub(super) fn store(&self, task: TaskId, key: PayloadKey, bytes: Bytes) {
        let mut payloads = self.0.payloads.lock();
        if let PayloadKey::StepOutput { step, .. } = &key {
            // What a step returned before it ran again is of no interest any more.
            payloads
                .retain(|(_, other), _| !matches!(other, PayloadKey::StepOutput { step: same, .. } if same == step));
        }
        payloads.insert((task, key), bytes);
    }

    pub(super) fn stored(&self, task: TaskId, key: &PayloadKey) -> Option<Bytes> {
        self.0.payloads.lock().get(&(task, key.clone())).cloned()
    }

    pub(super) fn outputs(&self) -> BTreeMap<Text, Bytes> {
        let payloads = self.0.payloads.lock();
        let output = |((_, key), bytes): (&(TaskId, PayloadKey), &Bytes)| match key {
            PayloadKey::StepOutput { step, .. } => Some((step.clone(), bytes.clone())),
            PayloadKey::Parameters { .. } | PayloadKey::Result | PayloadKey::ErrorText => None,
        };
        payloads.iter().filter_map(output).collect()
    }
}

impl CoordinatorPort for Desk {
    fn poll(&self, _: Poll) -> impl Future<Output = Result<PollAnswer, NoAnswer>> + Send + 'static {
        let work = self.0.work.lock().take();
        async move {
            match work {
                Some(assignment) => Ok(PollAnswer::Work { assignments: vec![assignment], stop: Vec::new() }),
                None => std::future::pending().await,
            }
        }
    }

    fn heartbeat(
        &self,
        _: TaskId,
        _: Text,
        _: Heartbeat,
    ) -> impl Future<Output = Result<HeartbeatAnswer, NoAnswer>> + Send + 'static {
        ready(Ok(*self.0.beat.lock()))
    }

    fn report(
        &self,
        _: TaskId,
        _: Text,
        report: Report,
    ) -> impl Future<Output = Result<ReportAnswer, NoAnswer>> + Send + 'static {
        if matches!(report.body, ReportBody::Starting { .. }) {
            self.0.started.send_replace(true);
        }
        self.0.reports.lock().push(report.body);
        ready(Ok(ReportAnswer::Accepted))
    }
}

impl PayloadPort for Desk {
    fn put(
        &self,
        task: TaskId,
        key: PayloadKey,
        bytes: Bytes,
    ) -> impl Future<Output = Result<(), PayloadUnavailable>> + Send + 'static {
        self.store(task, key, bytes);
        ready(Ok(()))
    }

    fn get(
        &self,
        task: TaskId,
        key: PayloadKey,
    ) -> impl Future<Output = Result<Option<Bytes>, PayloadUnavailable>> + Send + 'static {
        ready(Ok(self.stored(task, &key)))
    }
}
