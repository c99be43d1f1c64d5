//! What waits for the writer thread: bounded in bytes, in the order in which appends were called.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};
use task_events::PartitionId;
use tokio::sync::oneshot;

use super::body::EncodedBatch;
use crate::AppendOutcome;

/// One append.
pub(super) struct Job {
    pub partition: PartitionId,
    pub batch: EncodedBatch,
    pub answer: Answer,
}

/// Who waits for an append, and what it is told once the records are durable.
pub(super) enum Answer {
    /// The truth.
    Ack(oneshot::Sender<AppendOutcome>),
    /// Injected: `Unknown`, although written.
    Unknown(oneshot::Sender<AppendOutcome>),
    /// Nobody any more.
    None,
}

impl Answer {
    pub fn acknowledge(self) {
        match self {
            Self::Ack(tx) => drop(tx.send(AppendOutcome::Acknowledged)),
            Self::Unknown(tx) => drop(tx.send(AppendOutcome::Unknown("injected: the acknowledgement was lost".into()))),
            Self::None => {}
        }
    }

    pub fn send(self, outcome: AppendOutcome) {
        match self {
            Self::Ack(tx) | Self::Unknown(tx) => drop(tx.send(outcome)),
            Self::None => {}
        }
    }
}

/// The queue of one log.
pub(super) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    max_bytes: usize,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    bytes: usize,
    closed: bool,
    failed: Option<String>,
}

impl Queue {
    pub fn new(max_bytes: usize) -> Self {
        Self { state: Mutex::default(), wake: Condvar::new(), max_bytes }
    }

    /// Queues a job, or answers at once that it was certainly not sent.
    pub fn push(&self, job: Job) {
        let mut state = self.state.lock();
        let bytes = job.batch.bodies.len();
        let refused = if let Some(reason) = &state.failed {
            Some(reason.clone())
        } else if state.closed {
            Some("the log is closed".into())
        } else if state.bytes + bytes > self.max_bytes {
            Some(format!("{} bytes wait for the writer already, the limit is {}", state.bytes, self.max_bytes))
        } else {
            None
        };
        if let Some(reason) = refused {
            drop(state);
            job.answer.send(AppendOutcome::NotSent(reason));
            return;
        }
        state.bytes += bytes;
        state.jobs.push_back(job);
        if state.jobs.len() == 1 {
            self.wake.notify_one();
        }
    }

    /// Waits for work and takes at most `max_bytes` of it (at least one job). `None`: closed, and
    /// nothing is left.
    pub fn take(&self, max_bytes: usize) -> Option<Vec<Job>> {
        let mut state = self.state.lock();
        while state.jobs.is_empty() {
            if state.closed || state.failed.is_some() {
                return None;
            }
            self.wake.wait(&mut state);
        }
        let mut taken = Vec::new();
        let mut bytes = 0;
        while let Some(job) = state.jobs.front() {
            bytes += job.batch.bodies.len();
            if !taken.is_empty() && bytes > max_bytes {
                break;
            }
            state.bytes -= job.batch.bodies.len();
            taken.extend(state.jobs.pop_front());
        }
        Some(taken)
    }

    /// Takes no more jobs; what is queued is still written.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_all();
    }

    /// Refuses everything queued and everything to come: none of it was sent.
    pub fn fail(&self, reason: &str) {
        let jobs = {
            let mut state = self.state.lock();
            state.failed.get_or_insert_with(|| reason.to_owned());
            state.bytes = 0;
            std::mem::take(&mut state.jobs)
        };
        self.wake.notify_all();
        for job in jobs {
            job.answer.send(AppendOutcome::NotSent(reason.to_owned()));
        }
    }

    /// Why the log takes no more appends.
    pub fn failure(&self) -> Option<String> {
        self.state.lock().failed.clone()
    }
}
