//! Settings of the machine.

use task_events::{Incarnation, Text};

/// Settings of one worker process. Times are ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Worker.
    pub worker_id: Text,
    /// This process of it; the newest one is the worker.
    pub incarnation: Incarnation,
    /// Version of its handlers.
    pub handler_version: Text,
    /// Queues it serves.
    pub queues: Vec<Text>,
    /// Attempts at a time.
    pub slots: u32,
    /// Longest wait of a poll at the coordinator. The lease of what it brings runs from the sending
    /// of the poll, so this must stay well below the lease.
    pub poll_wait_ms: u64,
    /// A poll without an answer this long after its wait is given up.
    pub poll_slack_ms: u64,
    /// Pause after a poll that brought nothing.
    pub poll_pause_ms: u64,
    /// A report without an answer for so long is sent again; an owner gives up after 10 s.
    pub answer_wait_ms: u64,
    /// Time from the cancellation token to the stop.
    pub cancel_grace_ms: u64,
    /// First wait before something unanswered is sent again, doubled each time.
    pub resend_min_ms: u64,
    /// Longest one.
    pub resend_max_ms: u64,
    /// An attempt that cannot be started or declined this long after its lease is given up.
    pub start_patience_ms: u64,
    /// With this many attempts whose reports wait no new work is asked for.
    pub max_undelivered: u32,
    /// After taking this many attempts it drains; `None`: it never has enough.
    pub max_attempts: Option<u64>,
    /// Drains once it had nothing to do for so long, ms, while its polls were answered; `None`: it
    /// waits for work for ever.
    pub end_when_idle_ms: Option<u64>,
}

impl Config {
    /// Standard settings.
    pub fn new(worker_id: Text, incarnation: Incarnation, queues: Vec<Text>) -> Self {
        Self {
            worker_id,
            incarnation,
            handler_version: Text::const_new("1"),
            queues,
            slots: 16,
            poll_wait_ms: 5_000,
            poll_slack_ms: 3_000,
            poll_pause_ms: 10,
            answer_wait_ms: 12_000,
            cancel_grace_ms: 10_000,
            resend_min_ms: 100,
            resend_max_ms: 5_000,
            start_patience_ms: 30_000,
            max_undelivered: 10_000,
            max_attempts: None,
            end_when_idle_ms: None,
        }
    }

    /// Settings that contradict each other.
    ///
    /// # Errors
    /// Names the settings and their values.
    pub fn check(&self) -> Result<(), InvalidConfig> {
        if self.slots == 0 {
            return Err(InvalidConfig("slots must be at least 1, is 0".into()));
        }
        if self.resend_min_ms == 0 || self.resend_min_ms > self.resend_max_ms {
            return Err(InvalidConfig(format!(
                "resend_min_ms {} must be in 1..=resend_max_ms {}",
                self.resend_min_ms, self.resend_max_ms
            )));
        }
        if self.answer_wait_ms == 0 || self.poll_pause_ms == 0 {
            return Err(InvalidConfig(format!(
                "answer_wait_ms {} and poll_pause_ms {} must be at least 1",
                self.answer_wait_ms, self.poll_pause_ms
            )));
        }
        if self.max_attempts == Some(0) {
            return Err(InvalidConfig("max_attempts must be at least 1, is 0".into()));
        }
        if self.max_undelivered < self.slots {
            return Err(InvalidConfig(format!(
                "max_undelivered {} must be at least slots {}",
                self.max_undelivered, self.slots
            )));
        }
        Ok(())
    }
}

/// Settings that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid worker settings: {0}")]
pub struct InvalidConfig(pub String);
