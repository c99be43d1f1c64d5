//! Writes a log that mostly gets past the fence: each record has the numbers its writer would give
//! it who knows the state, and then, now and then, one that it would not.
#![expect(clippy::wildcard_enum_match_arm, reason = "a twist speaks of the kinds it can twist")]

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::strategy::{BoxedStrategy, Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rand::RngExt as _;
use rand::seq::{IndexedRandom as _, IteratorRandom as _};
use rand_chacha::ChaCha8Rng;
use task_core::{Change, Closed, Column, CoreState, PartitionState, Record as Folded, STANDARD, Verdict};
use task_events::{
    Body, Encoder, Event, EventSequence, ExecEpoch, ExecutionId, Kind, KindClass, Offset, OwnerSeq, PartitionEpoch,
    RecordKey, RecordParts, RunNo, Sampling, Service, TaskId, arbitrary, decode, samples, writer_of,
};

use super::twist;
use crate::{Record, mutate};

/// Bodies of every kind, as far as the schema allows.
pub struct Arbitrary(Vec<BoxedStrategy<Body>>);

impl Default for Arbitrary {
    fn default() -> Self {
        Self(Kind::ALL.iter().map(|&kind| arbitrary::body_of(kind)).collect())
    }
}

impl Arbitrary {
    /// One body; it follows from `rng`.
    pub fn body(&self, kind: Kind, rng: &mut ChaCha8Rng) -> Body {
        let seed = TestRng::from_seed(RngAlgorithm::ChaCha, &rng.random::<[u8; 32]>());
        let mut runner = TestRunner::new_with_rng(Config::default(), seed);
        self.0[kind as usize].new_tree(&mut runner).map_or_else(|_| samples::minimal(kind).body, |tree| tree.current())
    }
}

/// A log under construction, folded as it grows.
pub struct Writer<'a> {
    pub(super) arbitrary: &'a Arbitrary,
    corpus: &'a [Record],
    pub(super) rng: &'a mut ChaCha8Rng,
    pub(super) state: PartitionState,
    pub(super) closed: BTreeMap<TaskId, Closed>,
    encoder: Encoder,
    broker_ms: i64,
}

impl<'a> Writer<'a> {
    /// An empty log.
    pub fn new(arbitrary: &'a Arbitrary, corpus: &'a [Record], rng: &'a mut ChaCha8Rng) -> Self {
        let state = PartitionState::new(samples::PARTITION, true);
        let (encoder, broker_ms) = (Encoder::new(), samples::NOW_MS);
        Self { arbitrary, corpus, rng, state, closed: BTreeMap::new(), encoder, broker_ms }
    }

    /// A valid beginning, then a stretch in which every third record is wrong somewhere; seldom a
    /// long one, in which histories run full.
    pub fn write(&mut self, records: &mut Vec<Record>) {
        let valid = self.rng.random_range(1..24);
        let most = if self.rng.random_ratio(1, 64) { 1200 } else { 48 };
        let all = valid + self.rng.random_range(1..most);
        for n in 0..all {
            let (mut event, mut key) = self.usual();
            if n >= valid && self.rng.random_ratio(1, 3) {
                for _ in 0..self.rng.random_range(1..=2) {
                    twist::event(self, &mut event, &mut key);
                }
            }
            // A number outside its range is refused by the encoder, not met by the fold.
            let Ok(encoded) = self.encoder.encode(&event, samples::PARTITION, Sampling::Recorded) else { continue };
            let mut record = Record { key, ..Record::of(&encoded) };
            if n >= valid && self.rng.random_ratio(1, 24) {
                mutate::record(&mut record, self.corpus, self.rng);
            }
            record.broker_ms = self.stamp(n >= valid);
            record.offset = match self.rng.random_range(0..48) {
                0 if n >= valid => self.state.next_offset.0.wrapping_sub(self.rng.random_range(0..3)),
                1 if n >= valid => self.state.next_offset.0 + self.rng.random_range(0..3),
                _ => self.state.next_offset.0,
            };
            self.follow(&record);
            records.push(record);
        }
    }

    fn stamp(&mut self, wild: bool) -> i64 {
        self.broker_ms += self.rng.random_range(0..5);
        if wild && self.rng.random_ratio(1, 64) { twist::edge_i64(self.rng) } else { self.broker_ms }
    }

    fn follow(&mut self, record: &Record) {
        if record.offset != self.state.next_offset.0 {
            return;
        }
        let value = record.value.as_deref();
        let Ok(event) = decode(RecordParts { headers: record.headers(), value }) else {
            self.state.quarantine(record.broker_ms);
            return;
        };
        let key = RecordKey::parse(record.key.as_deref());
        let folded = Folded { offset: Offset(record.offset), broker_ms: record.broker_ms, key, event };
        match self.state.apply(&folded) {
            Verdict::Accepted(Change::Closed(closed) | Change::Reviewed(closed)) => {
                self.closed.insert(closed.core.id, *closed);
            }
            Verdict::Accepted(Change::Opened(id)) => drop(self.closed.remove(&id)),
            Verdict::Accepted(_) | Verdict::Rejected(_) => {}
        }
    }

    // A record that its writer might well write now.
    fn usual(&mut self) -> (Event, Option<Vec<u8>>) {
        // An owner whose numbers are used up says nothing more: the next one claims.
        let mute = self.state.owner_seq.0 >= i64::MAX as u64 && self.rng.random_ratio(1, 4);
        if self.state.epoch == PartitionEpoch(0) || mute {
            return self.right(Kind::OwnershipClaimed, None);
        }
        let open = self.state.tasks.iter().map(|slot| slot.core).choose(self.rng);
        match (self.rng.random_range(0..100), open) {
            (0..70, Some(core)) => {
                let fits = |k: &&Kind| k.class() == KindClass::TaskEvent || self.state.next_offset.0.is_multiple_of(3);
                let in_state = |k: &&Kind| STANDARD.matrix.cell(**k, Column::of(core.state)) != task_core::Cell::No;
                // Endings are rarer than what leads on, else nothing grows old.
                let ends = |k: Kind| matches!(k, Kind::TaskCompleted | Kind::TaskCancelRequested | Kind::TaskCancelled);
                let end = self.rng.random_ratio(1, 4);
                let kinds = Kind::ALL.iter().filter(in_state).filter(fits).copied();
                let kind = kinds.filter(|k| end || !ends(*k)).choose(self.rng);
                self.right(kind.unwrap_or(Kind::TaskOverdue), Some(core.id))
            }
            (0..85, _) => self.right(Kind::TaskCreated, None),
            (85..93, _) => {
                let id = self.closed.keys().choose(self.rng).copied();
                let kind = if self.rng.random_ratio(1, 4) { Kind::TaskReviewed } else { Kind::TaskReplayRequested };
                self.right(kind, id)
            }
            _ => {
                let kind = *Kind::ALL.choose(self.rng).expect("there are kinds");
                self.right(kind, open.map(|core| core.id))
            }
        }
    }

    /// A record of this kind with every number right.
    pub(super) fn right(&mut self, kind: Kind, id: Option<TaskId>) -> (Event, Option<Vec<u8>>) {
        let mut event = if self.rng.random_bool(0.5) { samples::full(kind) } else { samples::minimal(kind) };
        if self.rng.random_ratio(1, 4) {
            event.body = self.arbitrary.body(kind, self.rng);
        }
        if writer_of(kind) == Service::Coordinator {
            event.partition_epoch = Some(self.state.epoch);
            event.owner_seq = self.state.owner_seq.next().filter(|s| s.0 <= i64::MAX as u64);
        }
        if kind == Kind::OwnershipClaimed {
            event.partition_epoch = self.state.epoch.next();
            event.owner_seq = Some(OwnerSeq(0));
        }
        if matches!(kind.class(), KindClass::Control | KindClass::Seal) {
            event.task_id = None;
        } else {
            let minted = TaskId::mint(self.state.highest, samples::PARTITION, self.broker_ms);
            let id = id.filter(|_| kind != Kind::TaskCreated).or(minted).unwrap_or(samples::task());
            self.numbers(&mut event, id);
        }
        let key = RecordKey::of(&event, samples::PARTITION).to_bytes().to_vec();
        (event, Some(key))
    }

    fn numbers(&mut self, event: &mut Event, id: TaskId) {
        let open = self.state.tasks.get(id).map(|slot| slot.core);
        let unborn = CoreState { version: EventSequence(0), ..CoreState::created(id, 3) };
        let core = open.or(self.closed.get(&id).map(|c| c.core)).unwrap_or(unborn);
        event.task_id = Some(id);
        (event.run_no, event.exec_epoch) = (core.run_no, core.exec_epoch);
        event.event_sequence = core.version.next().unwrap_or(core.version);
        match event.kind {
            Kind::TaskOverdue => event.event_sequence = core.version,
            Kind::RejectedReport => event.event_sequence = EventSequence(0),
            Kind::TaskReplayRequested => event.run_no = core.run_no.next().unwrap_or(RunNo(0)),
            Kind::TaskAssigned => event.exec_epoch = core.exec_epoch.next().unwrap_or(ExecEpoch(0)),
            _ => {}
        }
        let execution =
            if event.kind == Kind::TaskAssigned { ExecutionId::new(id, event.exec_epoch) } else { core.execution_id };
        twist::set_execution(&mut event.body, execution, core.state.is_live());
        if let (Some(carried), Some(closed)) = (twist::carried(&mut event.body), self.closed.get(&id)) {
            *carried = *closed.carried(7);
            if self.rng.random_ratio(1, 4) {
                carried.history = Bytes::new();
            }
        }
    }
}
