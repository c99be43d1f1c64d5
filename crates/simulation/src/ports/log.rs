//! The topic: appends that are lost, late, doubled, overtaken or unknown; readers that see what
//! landed each at its own time.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::task::{Poll, Waker};

use bytes::Bytes;
use event_log::{AppendOutcome, EventLog, LogError, MemberInfo, MemberSpec, OffsetRange, OutRecord, RawRecord, Tail};
use futures::channel::oneshot;
use task_core::Reason;
use task_events::{Offset, PartitionId};

use crate::clock::EPOCH_MS;
use crate::exec::ProcId;
use crate::faults::Fault;
use crate::hub::{Ev, Hub, Shared};
use crate::ports::groups::SimMember;

/// Records of one read at most.
const READ_MAX: u64 = 256;

/// The partitions and their readers.
#[derive(Default)]
pub struct Topic {
    /// Records by partition and offset.
    pub partitions: Vec<Vec<RawRecord>>,
    tails: BTreeMap<usize, TailState>,
    next_tail: usize,
    // Landing time of the last batch of a process in a partition: batches keep the order of calls.
    lanes: BTreeMap<(ProcId, u16), u64>,
}

struct TailState {
    partition: usize,
    visible: u64,
    scheduled: bool,
    waker: Option<Waker>,
}

impl Topic {
    /// An empty topic.
    pub fn new(partitions: u16) -> Self {
        Self { partitions: vec![Vec::new(); usize::from(partitions)], ..Self::default() }
    }

    /// Records in all partitions.
    pub fn records(&self) -> u64 {
        self.partitions.iter().map(|p| p.len() as u64).sum()
    }
}

impl Shared {
    /// A record lands in the log, and the auditor judges it.
    pub fn land(
        &mut self,
        partition: PartitionId,
        key: Option<Bytes>,
        headers: Vec<(String, Bytes)>,
        value: Option<Bytes>,
    ) {
        let p = usize::from(partition.0);
        let raw = RawRecord {
            partition,
            offset: Offset(self.topic.partitions[p].len() as u64),
            broker_ms: EPOCH_MS + (self.now() / 1_000) as i64,
            key,
            headers,
            value,
        };
        let now = self.now();
        self.audit.landed(now, &raw);
        self.topic.partitions[p].push(raw);
        let spent = self.audit.spent.take();
        if spent.is_some() && self.faults.on(Fault::Rogue) && self.rng.chance(100_000) {
            self.rogue_of(partition, Reason::RetriesExhausted);
        }
        let slow = self.strikes(Fault::SlowRead);
        let mut due = Vec::new();
        for (id, tail) in &mut self.topic.tails {
            if tail.partition == p && !tail.scheduled {
                tail.scheduled = true;
                due.push(*id);
            }
        }
        for id in due {
            let typical = if slow { 400_000 } else { 500 };
            let at = self.now() + self.rng.delay(typical);
            self.at(at, Ev::Deliver(id));
        }
    }

    fn land_batch(&mut self, partition: PartitionId, records: &[OutRecord]) {
        for record in records {
            let headers = record.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            self.land(partition, Some(record.key.clone()), headers, Some(record.value.clone()));
        }
    }

    /// A reader sees everything that landed so far.
    pub fn deliver(&mut self, tail: usize) {
        let Some(state) = self.topic.tails.get_mut(&tail) else { return };
        state.scheduled = false;
        state.visible = self.topic.partitions[state.partition].len() as u64;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    // A batch leaves the process and lands after a while, if the process is still there to send it.
    fn send_batch(&mut self, proc: ProcId, partition: PartitionId, at: u64, records: Vec<OutRecord>) {
        let life = self.proc(proc).life;
        self.later(at, move |s| {
            let p = s.proc(proc);
            let gone = p.life != life || !p.up;
            if gone && s.rng.chance(500_000) {
                return;
            }
            if !gone && p.frozen_until > s.now() && s.strikes(Fault::LandsAfterThaw) {
                let at = p.frozen_until + s.rng.delay(2_000);
                return s.later(at, move |s| s.land_batch(partition, &records));
            }
            s.land_batch(partition, &records);
        });
    }

    fn append(
        &mut self,
        proc: ProcId,
        partition: PartitionId,
        batch: Vec<OutRecord>,
    ) -> oneshot::Receiver<AppendOutcome> {
        let (answer, receiver) = oneshot::channel();
        let now = self.now();
        if self.strikes(Fault::NotSent) {
            let at = now + self.rng.delay(300);
            self.settle(at, answer, AppendOutcome::NotSent("queue full".to_owned()));
            return receiver;
        }
        self.audit.appended(now, proc, partition, &batch);
        let typical = if self.strikes(Fault::SlowBroker) { 150_000 } else { 600 };
        let mut at = now + self.rng.delay(typical);
        let lane = self.topic.lanes.entry((proc, partition.0)).or_default();
        at = at.max(*lane + 1);
        *lane = at;
        if self.strikes(Fault::Overtaken) {
            at += self.rng.between(1_000, 60_000);
        }
        let unknown = at + self.rng.between(20_000, 1_500_000);
        if self.strikes(Fault::UnknownLost) {
            self.settle(unknown, answer, unknown_outcome());
            return receiver;
        }
        if self.strikes(Fault::UnknownLate) {
            let late = unknown + self.rng.below(15_000_000);
            self.send_batch(proc, partition, late, batch);
            self.settle(unknown, answer, unknown_outcome());
            return receiver;
        }
        if batch.len() > 1 && self.strikes(Fault::UnknownPartial) {
            let first = self.rng.between(1, batch.len() as u64 - 1) as usize;
            self.send_batch(proc, partition, at, batch[..first].to_vec());
            self.settle(unknown, answer, unknown_outcome());
            return receiver;
        }
        if self.strikes(Fault::TwiceBatch) {
            let again = at + self.rng.delay(20_000);
            self.send_batch(proc, partition, again, batch.clone());
        }
        if self.strikes(Fault::TwiceRecord) {
            let again = at + self.rng.below(3_000_000);
            let one = self.rng.below(batch.len() as u64) as usize;
            self.send_batch(proc, partition, again, batch[one..=one].to_vec());
        }
        self.send_batch(proc, partition, at, batch);
        if self.strikes(Fault::UnknownWritten) {
            self.settle(unknown, answer, unknown_outcome());
        } else {
            let acked = at + self.rng.delay(500);
            self.settle(acked, answer, AppendOutcome::Acknowledged);
        }
        receiver
    }

    fn settle(&mut self, at: u64, answer: oneshot::Sender<AppendOutcome>, outcome: AppendOutcome) {
        self.later(at, move |_| {
            // An error means that the process that asked is gone.
            let _ = answer.send(outcome);
        });
    }
}

fn unknown_outcome() -> AppendOutcome {
    AppendOutcome::Unknown("no answer".to_owned())
}

/// The topic as one process sees it.
#[derive(Clone)]
pub struct SimLog {
    hub: Hub,
    proc: ProcId,
}

impl SimLog {
    /// Of this process.
    pub fn new(hub: Hub, proc: ProcId) -> Self {
        Self { hub, proc }
    }

    async fn pause(&self) {
        let (wake, woken) = oneshot::channel::<()>();
        {
            let mut s = self.hub.lock();
            let at = s.now() + s.rng.delay(500);
            s.later(at, move |_| {
                let _ = wake.send(());
            });
        }
        let _ = woken.await;
    }

    fn out_of_range(partition: PartitionId, offset: Offset, end: u64) -> LogError {
        LogError::OutOfRange { partition, offset, start: Offset(0), end: Offset(end) }
    }
}

impl EventLog for SimLog {
    type Tail = SimTail;
    type Member = SimMember;

    fn partition_count(&self) -> u16 {
        self.hub.lock().topic.partitions.len() as u16
    }

    fn append(
        &self,
        partition: PartitionId,
        batch: Vec<OutRecord>,
    ) -> impl Future<Output = AppendOutcome> + Send + 'static {
        let receiver = self.hub.lock().append(self.proc, partition, batch);
        async move { receiver.await.unwrap_or_else(|_| unknown_outcome()) }
    }

    async fn tail(&self, partition: PartitionId, from: Offset) -> Result<SimTail, LogError> {
        self.pause().await;
        let mut s = self.hub.lock();
        let end = s.topic.partitions[usize::from(partition.0)].len() as u64;
        if from.0 > end {
            return Err(Self::out_of_range(partition, from, end));
        }
        let id = s.topic.next_tail;
        s.topic.next_tail += 1;
        let state = TailState { partition: usize::from(partition.0), visible: end, scheduled: false, waker: None };
        s.topic.tails.insert(id, state);
        drop(s);
        Ok(SimTail { hub: self.hub.clone(), id, next: from.0, from: from.0 })
    }

    async fn range(&self, partition: PartitionId) -> Result<OffsetRange, LogError> {
        self.pause().await;
        let mut s = self.hub.lock();
        if s.strikes(Fault::ReadError) {
            return Err(LogError::Unavailable("no leader".to_owned()));
        }
        let end = s.topic.partitions[usize::from(partition.0)].len() as u64;
        Ok(OffsetRange { start: Offset(0), end: Offset(end) })
    }

    async fn read_at(&self, partition: PartitionId, offsets: Vec<Offset>) -> Result<Vec<RawRecord>, LogError> {
        self.pause().await;
        let mut s = self.hub.lock();
        if s.strikes(Fault::ReadError) {
            return Err(LogError::Unavailable("no leader".to_owned()));
        }
        let log = &s.topic.partitions[usize::from(partition.0)];
        let at = |o: &Offset| log.get(o.0 as usize).cloned();
        let found = offsets.iter().map(|o| at(o).ok_or_else(|| Self::out_of_range(partition, *o, log.len() as u64)));
        found.collect()
    }

    async fn offset_at(&self, partition: PartitionId, unix_ms: i64) -> Result<Option<Offset>, LogError> {
        self.pause().await;
        let s = self.hub.lock();
        let log = &s.topic.partitions[usize::from(partition.0)];
        Ok(log.iter().find(|r| r.broker_ms >= unix_ms).map(|r| r.offset))
    }

    async fn join(&self, spec: MemberSpec) -> Result<SimMember, LogError> {
        self.pause().await;
        Ok(SimMember::join(&self.hub, self.proc, spec))
    }

    async fn members(&self) -> Result<Vec<MemberInfo>, LogError> {
        self.pause().await;
        Ok(self.hub.lock().groups.infos())
    }
}

/// A reader of one partition.
pub struct SimTail {
    hub: Hub,
    id: usize,
    next: u64,
    from: u64,
}

impl Drop for SimTail {
    fn drop(&mut self) {
        self.hub.lock().topic.tails.remove(&self.id);
    }
}

impl Tail for SimTail {
    fn next(&mut self) -> impl Future<Output = Result<Vec<RawRecord>, LogError>> + Send {
        poll_fn(|cx| {
            let mut guard = self.hub.lock();
            let s = &mut *guard;
            let Some(state) = s.topic.tails.get_mut(&self.id) else {
                return Poll::Ready(Err(LogError::Unavailable("closed".to_owned())));
            };
            if state.visible <= self.next {
                state.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            let (p, visible) = (state.partition, state.visible);
            if s.strikes(Fault::ReadError) {
                return Poll::Ready(Err(LogError::Unavailable("fetch failed".to_owned())));
            }
            let back = if s.strikes(Fault::ReadTwice) { s.rng.between(1, 20) } else { 0 };
            let first = self.next.saturating_sub(back).max(self.from);
            let end = visible.min(first + READ_MAX).max(self.next);
            self.next = end;
            Poll::Ready(Ok(s.topic.partitions[p][first as usize..end as usize].to_vec()))
        })
    }
}
