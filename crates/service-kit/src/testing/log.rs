//! A log in memory whose outcomes and group events the test writes down.

use std::collections::VecDeque;
use std::future::{Future, poll_fn, ready};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use event_log::{
    AppendOutcome, EventLog, GroupMember, LogError, MemberInfo, MemberSpec, MembershipEvent, OffsetRange, OutRecord,
    RawRecord, Tail,
};
use parking_lot::Mutex;
use task_events::{Offset, PartitionId};

/// What becomes of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is in the log and acknowledged.
    Done,
    /// The port refuses it.
    NotSent,
    /// It is in the log, but nobody says so.
    UnknownLanded,
    /// It is lost, but nobody says so.
    UnknownLost,
    /// Its future never ends, and nothing lands.
    Stuck,
}

#[derive(Default)]
struct State {
    partitions: Vec<Vec<RawRecord>>,
    fates: VecDeque<Fate>,
    membership: VecDeque<Result<MembershipEvent, LogError>>,
    tail_errors: VecDeque<LogError>,
    appended: Vec<Vec<OutRecord>>,
    released: Vec<PartitionId>,
    joins: u32,
    left: bool,
    tails: usize,
    broker_ms: i64,
    wakers: Vec<Waker>,
}

/// The log. Clones share it. Appends fare as [`ScriptedLog::fate`] said, else they are done.
#[derive(Clone)]
pub struct ScriptedLog {
    state: Arc<Mutex<State>>,
    partitions: u16,
}

impl ScriptedLog {
    /// An empty log.
    pub fn new(partitions: u16) -> Self {
        let state = State { partitions: vec![Vec::new(); usize::from(partitions)], ..State::default() };
        Self { state: Arc::new(Mutex::new(state)), partitions }
    }

    /// The next append without a fate fares so.
    pub fn fate(&self, fate: Fate) {
        self.state.lock().fates.push_back(fate);
    }

    /// The member hears this next.
    pub fn tell(&self, event: Result<MembershipEvent, LogError>) {
        self.change(|s| s.membership.push_back(event));
    }

    /// These partitions are the member's.
    pub fn assign(&self, partitions: &[u16]) {
        self.tell(Ok(MembershipEvent::Assigned(partitions.iter().map(|p| PartitionId(*p)).collect())));
    }

    /// The next read of any tail fails so.
    pub fn break_tail(&self, error: LogError) {
        self.change(|s| s.tail_errors.push_back(error));
    }

    /// Somebody else writes records.
    pub fn write(&self, partition: u16, records: Vec<OutRecord>) {
        self.change(|s| s.land(PartitionId(partition), records));
    }

    /// A record that is not at the next offset, or not even at a later one.
    pub fn write_raw(&self, record: RawRecord) {
        self.change(|s| s.partitions[usize::from(record.partition.0)].push(record));
    }

    /// Batches appended through the port, whatever became of them.
    pub fn appended(&self) -> Vec<Vec<OutRecord>> {
        self.state.lock().appended.clone()
    }

    /// Everything in a partition.
    pub fn records(&self, partition: u16) -> Vec<RawRecord> {
        self.state.lock().partitions[usize::from(partition)].clone()
    }

    /// Partitions given back, in order.
    pub fn released(&self) -> Vec<PartitionId> {
        self.state.lock().released.clone()
    }

    /// How often a member joined, and whether the last one left.
    pub fn joins_and_left(&self) -> (u32, bool) {
        let state = self.state.lock();
        (state.joins, state.left)
    }

    /// Open tails.
    pub fn open_tails(&self) -> usize {
        self.state.lock().tails
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let (result, wakers) = {
            let mut state = self.state.lock();
            let result = change(&mut state);
            (result, std::mem::take(&mut state.wakers))
        };
        wakers.into_iter().for_each(Waker::wake);
        result
    }
}

impl State {
    fn land(&mut self, partition: PartitionId, records: Vec<OutRecord>) {
        for record in records {
            self.broker_ms += 1;
            let log = &mut self.partitions[usize::from(partition.0)];
            log.push(RawRecord {
                partition,
                offset: Offset(log.len() as u64),
                broker_ms: self.broker_ms,
                key: Some(record.key),
                headers: record.headers.into_iter().map(|(n, v)| (n.to_owned(), v)).collect(),
                value: Some(record.value),
            });
        }
    }
}

impl EventLog for ScriptedLog {
    type Tail = ScriptedTail;
    type Member = ScriptedMember;

    fn partition_count(&self) -> u16 {
        self.partitions
    }

    fn append(
        &self,
        partition: PartitionId,
        batch: Vec<OutRecord>,
    ) -> impl Future<Output = AppendOutcome> + Send + 'static {
        let fate = self.change(|s| {
            let fate = s.fates.pop_front().unwrap_or(Fate::Done);
            s.appended.push(batch.clone());
            if matches!(fate, Fate::Done | Fate::UnknownLanded) {
                s.land(partition, batch);
            }
            fate
        });
        async move {
            match fate {
                Fate::Done => AppendOutcome::Acknowledged,
                Fate::NotSent => AppendOutcome::NotSent("scripted".into()),
                Fate::UnknownLanded | Fate::UnknownLost => AppendOutcome::Unknown("scripted".into()),
                Fate::Stuck => std::future::pending().await,
            }
        }
    }

    fn tail(&self, partition: PartitionId, from: Offset) -> impl Future<Output = Result<Self::Tail, LogError>> + Send {
        self.state.lock().tails += 1;
        ready(Ok(ScriptedTail { log: self.clone(), partition, next: from.0 as usize }))
    }

    fn range(&self, partition: PartitionId) -> impl Future<Output = Result<OffsetRange, LogError>> + Send {
        let end = self.state.lock().partitions[usize::from(partition.0)].len() as u64;
        ready(Ok(OffsetRange { start: Offset(0), end: Offset(end) }))
    }

    fn read_at(
        &self,
        partition: PartitionId,
        offsets: Vec<Offset>,
    ) -> impl Future<Output = Result<Vec<RawRecord>, LogError>> + Send {
        let log = self.records(partition.0);
        ready(Ok(offsets.iter().map(|o| log[o.0 as usize].clone()).collect()))
    }

    fn offset_at(
        &self,
        partition: PartitionId,
        unix_ms: i64,
    ) -> impl Future<Output = Result<Option<Offset>, LogError>> + Send {
        ready(Ok(self.records(partition.0).iter().find(|r| r.broker_ms >= unix_ms).map(|r| r.offset)))
    }

    fn join(&self, _: MemberSpec) -> impl Future<Output = Result<Self::Member, LogError>> + Send {
        let mut state = self.state.lock();
        (state.joins, state.left) = (state.joins + 1, false);
        ready(Ok(ScriptedMember { log: self.clone() }))
    }

    fn members(&self) -> impl Future<Output = Result<Vec<MemberInfo>, LogError>> + Send {
        ready(Ok(Vec::new()))
    }
}

/// A reader.
pub struct ScriptedTail {
    log: ScriptedLog,
    partition: PartitionId,
    next: usize,
}

impl Tail for ScriptedTail {
    fn next(&mut self) -> impl Future<Output = Result<Vec<RawRecord>, LogError>> + Send {
        poll_fn(|cx| {
            let mut state = self.log.state.lock();
            if let Some(error) = state.tail_errors.pop_front() {
                return Poll::Ready(Err(error));
            }
            let there = &state.partitions[usize::from(self.partition.0)];
            if there.len() <= self.next {
                state.wakers.push(cx.waker().clone());
                return Poll::Pending;
            }
            let records = there[self.next..].to_vec();
            self.next = there.len();
            Poll::Ready(Ok(records))
        })
    }
}

impl Drop for ScriptedTail {
    fn drop(&mut self) {
        self.log.state.lock().tails -= 1;
    }
}

/// The membership.
pub struct ScriptedMember {
    log: ScriptedLog,
}

impl GroupMember for ScriptedMember {
    fn next(&mut self) -> impl Future<Output = Result<MembershipEvent, LogError>> + Send {
        poll_fn(|cx| {
            let mut state = self.log.state.lock();
            match state.membership.pop_front() {
                Some(event) => Poll::Ready(event),
                None => {
                    state.wakers.push(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
    }

    fn release(&mut self, partition: PartitionId, _: Offset) {
        self.log.state.lock().released.push(partition);
    }

    fn progress(&mut self, _: PartitionId, _: Offset) {}

    fn leave(self, _: Duration) -> impl Future<Output = ()> + Send {
        self.log.state.lock().left = true;
        ready(())
    }
}
