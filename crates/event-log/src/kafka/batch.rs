//! One append on its way: counts the delivery reports of its records and answers once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::AppendOutcome;

/// Records and bytes on their way, over all producers of a log.
pub(super) struct InFlight {
    records: AtomicUsize,
    bytes: AtomicUsize,
    max_records: usize,
    max_bytes: usize,
}

impl InFlight {
    pub fn new(max_records: usize, max_bytes: usize) -> Arc<Self> {
        Arc::new(Self { records: AtomicUsize::new(0), bytes: AtomicUsize::new(0), max_records, max_bytes })
    }

    /// Takes room for a batch, or says why there is none. Callers are serialised by the
    /// producer's lock; only [`InFlight::give_back`] runs at the same time.
    pub fn take(&self, records: usize, bytes: usize) -> Result<(), String> {
        let (now, now_bytes) = (self.records.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
        if now + records > self.max_records {
            return Err(format!("{now} records are on their way, the limit is {}", self.max_records));
        }
        if now_bytes + bytes > self.max_bytes {
            return Err(format!("{now_bytes} bytes are on their way, the limit is {}", self.max_bytes));
        }
        self.records.fetch_add(records, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn give_back(&self, records: usize, bytes: usize) {
        self.records.fetch_sub(records, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub fn records(&self) -> usize {
        self.records.load(Ordering::Relaxed)
    }
}

/// State of one append.
pub(super) struct Batch {
    /// Records without a report, plus one while the batch is still being handed over.
    open: AtomicUsize,
    records: usize,
    bytes: usize,
    room: Arc<InFlight>,
    answer: Mutex<Answer>,
}

struct Answer {
    tx: Option<oneshot::Sender<AppendOutcome>>,
    unknown: Option<String>,
}

impl Batch {
    /// A batch whose room was taken.
    pub fn new(records: usize, bytes: usize, room: Arc<InFlight>, tx: oneshot::Sender<AppendOutcome>) -> Arc<Self> {
        let answer = Mutex::new(Answer { tx: Some(tx), unknown: None });
        Arc::new(Self { open: AtomicUsize::new(records + 1), records, bytes, room, answer })
    }

    /// `count` records are settled; the first reason that makes the batch unknown is kept.
    pub fn settle(&self, count: usize, unknown: Option<String>) {
        if unknown.is_some() {
            let mut answer = self.answer.lock();
            answer.unknown = answer.unknown.take().or(unknown);
        }
        if self.open.fetch_sub(count, Ordering::AcqRel) == count {
            let mut answer = self.answer.lock();
            let outcome = answer.unknown.take().map_or(AppendOutcome::Acknowledged, AppendOutcome::Unknown);
            self.finish(&mut answer, outcome);
        }
    }

    /// Nothing of the batch was handed over.
    pub fn not_sent(&self, reason: String) {
        self.finish(&mut self.answer.lock(), AppendOutcome::NotSent(reason));
    }

    fn finish(&self, answer: &mut Answer, outcome: AppendOutcome) {
        if let Some(tx) = answer.tx.take() {
            self.room.give_back(self.records, self.bytes);
            // Nobody may be waiting any more; that is the caller's choice.
            let _ = tx.send(outcome);
        }
    }
}
