//! A writer that keeps no rule: malformed bytes, misplaced keys, forbidden events. Each of its
//! records is built from what the log says right now, so that the one right answer to it is known.

use std::sync::Arc;

use bytes::Bytes;
use task_core::decide::{self, Draft, NewTask, Stamp};
use task_core::{Closed, CoreState, Reason, Row};
use task_events::{
    Body, EventId, EventSequence, ExecEpoch, ExecutionId, Incarnation, Offset, OwnerSeq, OwnershipRenewed, PartitionId,
    Producer, RecordKey, ReplayFrom, RuleVersion, RulesActivated, RunNo, Service, TaskCancelRequested, TaskCancelled,
    TaskId, TaskReplayRequested, TaskRetried, TaskRetryApproved, TaskStarted, TaskState, encode, writer_of,
};

use crate::hub::Shared;

type Headers = Vec<(String, Bytes)>;

impl Shared {
    /// Lands one record of the rogue, if the moment offers one.
    pub fn rogue(&mut self) {
        let p = PartitionId(self.rng.below(self.topic.partitions.len() as u64) as u16);
        if self.rng.chance(200_000) {
            return self.malformed(p);
        }
        let reason = Reason::ALL[self.rng.below(Reason::ALL.len() as u64) as usize];
        self.rogue_of(p, reason);
    }

    /// Lands a record that must be rejected for this reason, if the moment offers one.
    pub fn rogue_of(&mut self, p: PartitionId, reason: Reason) {
        let Some((draft, key)) = self.forbidden(p, reason) else { return };
        let part = &self.audit.parts[usize::from(p.0)];
        let service = writer_of(draft.body.kind());
        let owners = service == Service::Coordinator;
        let stale = u32::from(reason == Reason::StaleEpoch);
        let seq =
            if reason == Reason::StaleOwnerSeq { part.fold.owner_seq } else { OwnerSeq(part.fold.owner_seq.0 + 1_000) };
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.rng.next_u64().to_be_bytes());
        let event = draft.stamped(Stamp {
            event_id: EventId(id),
            partition_epoch: owners.then(|| task_events::PartitionEpoch(part.fold.epoch.0.saturating_sub(stale))),
            owner_seq: owners.then_some(seq),
            event_time: 0,
            causation_id: None,
            producer: Producer { service, instance: "rogue".into(), incarnation: Incarnation(1) },
            rule_version: RuleVersion(1),
        });
        let Ok(encoded) = encode(&event, p) else { return };
        let headers = encoded.headers.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect();
        self.audit.expect(Some(reason));
        self.land(p, Some(key.map_or(encoded.key, RecordKey::to_bytes)), headers, Some(encoded.value));
    }

    // Bytes of the newest record, spoilt.
    fn malformed(&mut self, p: PartitionId) {
        let Some(last) = self.topic.partitions[usize::from(p.0)].last().cloned() else { return };
        let mut value = last.value.map(|v| v.to_vec()).unwrap_or_default();
        let mut headers: Headers = last.headers;
        let mut sealed = true;
        match self.rng.below(5) {
            0 => value.clear(),
            1 => value.truncate(value.len() / 2),
            2 => value.push(0),
            3 => headers.clear(),
            _ => {
                if let Some(byte) = value.last_mut() {
                    *byte ^= 0x40;
                }
                sealed = false;
            }
        }
        // A right checksum over wrong bytes: only the strict reader sees it.
        if sealed {
            let crc = format!("{:08x}", crc32c::crc32c(&value));
            for (name, content) in &mut headers {
                if name == "crc32c" {
                    *content = Bytes::from(crc.clone());
                }
            }
        }
        self.land(p, last.key, headers, Some(value.into()));
    }

    // A draft that the fold must reject for this reason, and its key if it is a wrong one.
    fn forbidden(&mut self, p: PartitionId, reason: Reason) -> Option<(Draft, Option<RecordKey>)> {
        let renewed = || Draft::control(Body::OwnershipRenewed(OwnershipRenewed {}));
        let cancel = || Body::TaskCancelRequested(TaskCancelRequested { actor: "rogue".into(), reason: "r".into() });
        if self.audit.parts[usize::from(p.0)].fold.epoch.0 == 0 {
            return None;
        }
        let open = self.open_task(p, |_| true);
        Some(match reason {
            Reason::WrongKey => (renewed(), Some(RecordKey::Other)),
            Reason::WrongPartition => (renewed(), Some(RecordKey::Control(PartitionId(p.0 + 7)))),
            // Claims are the owners' own business; a wrong one is written by every race of two.
            Reason::ClaimConflict => return None,
            Reason::StaleEpoch | Reason::StaleOwnerSeq => (renewed(), None),
            Reason::RulesNotForward => {
                (Draft::control(Body::RulesActivated(RulesActivated { activated: RuleVersion(1) })), None)
            }
            Reason::IdOrder => {
                let (core, row) = open?;
                let task = NewTask {
                    created: (*row.created).clone(),
                    trace_id: Default::default(),
                    sampling: Default::default(),
                };
                (decide::create(core.id, task), None)
            }
            Reason::UnknownTask => {
                let above = self.audit.parts[usize::from(p.0)].fold.highest.raw() + (1 << 40);
                let id = TaskId::from_raw(above).filter(|id| id.partition() == p)?;
                (draft(id, 1, 1, 0, cancel()), None)
            }
            Reason::TaskOpen => {
                let (core, row) = open?;
                (replay(core, row, 0), None)
            }
            Reason::CarriedState => {
                let (core, row) = self.closed(p)?;
                (replay(core, row, 1), None)
            }
            Reason::StaleSequence => {
                let (core, _) = open?;
                (draft(core.id, core.version.0, core.run_no.0, 0, cancel()), None)
            }
            Reason::WrongRun => {
                let (core, _) = open?;
                (draft(core.id, core.version.0 + 1, core.run_no.0 + 1, 0, cancel()), None)
            }
            Reason::WrongAttempt => {
                let (core, _) = open?;
                // Either the token is wrong or the identity.
                let token = core.exec_epoch.0 == 0 || self.rng.chance(500_000);
                let (off, execution_id) =
                    if token { (5, core.execution_id) } else { (0, ExecutionId::new(core.id, ExecEpoch(99))) };
                let body = Body::TaskStarted(TaskStarted {
                    execution_id,
                    worker_id: "rogue".into(),
                    start_time: 0,
                    memory_usage_percent: 0,
                });
                (draft(core.id, core.version.0 + 1, core.run_no.0, core.exec_epoch.0 + off, body), None)
            }
            Reason::NotAllowed => {
                let (core, _) = self.open_task(p, |c| c.state != TaskState::ReplayPlanned)?;
                let body = Body::TaskRetried(TaskRetried { not_before: None });
                (draft(core.id, core.version.0 + 1, core.run_no.0, 0, body), None)
            }
            Reason::CancelRequested => {
                let (core, _) = self.open_task(p, |c| !c.cancel_requested)?;
                let body = Body::TaskCancelled(TaskCancelled { worker_stopped: true, lease_left_ms: 0 });
                (draft(core.id, core.version.0 + 1, core.run_no.0, 0, body), None)
            }
            Reason::RetriesExhausted => {
                let spent = |c: &CoreState| {
                    c.state == TaskState::Failed && c.retry_count >= c.max_retries && !c.cancel_requested
                };
                let (core, _) = self.open_task(p, spent)?;
                let body = Body::TaskRetryApproved(Box::new(TaskRetryApproved {
                    not_before: None,
                    backoff_ms: 0,
                    retry_count: core.retry_count + 1,
                    lost_count: core.lost_count,
                    skip: Vec::new(),
                    prefer_workers: Vec::new(),
                    avoid_workers: Vec::new(),
                    policy_version: 1,
                }));
                (draft(core.id, core.version.0 + 1, core.run_no.0, 0, body), None)
            }
        })
    }

    fn open_task(&mut self, p: PartitionId, fits: impl Fn(&CoreState) -> bool) -> Option<(CoreState, Arc<Row>)> {
        let fold = &self.audit.parts[usize::from(p.0)].fold;
        let fitting: Vec<_> = fold.tasks.iter().filter(|s| fits(&s.core)).collect();
        let slot = self.rng.pick(&fitting)?;
        Some((slot.core, slot.row.clone()?))
    }

    fn closed(&mut self, p: PartitionId) -> Option<(CoreState, Arc<Row>)> {
        let part = &self.audit.parts[usize::from(p.0)];
        let id = *self.rng.pick(&part.born)?;
        part.last_row(id).filter(|(core, _)| core.state.is_terminal())
    }
}

fn draft(id: TaskId, seq: u32, run: u32, epoch: u32, body: Body) -> Draft {
    Draft {
        task_id: Some(id),
        event_sequence: EventSequence(seq),
        run_no: RunNo(run),
        exec_epoch: ExecEpoch(epoch),
        trace_id: Default::default(),
        sampling: Default::default(),
        body,
    }
}

fn replay(core: CoreState, row: Arc<Row>, off: u32) -> Draft {
    let carried = Closed { core, row, closed_at_offset: Offset(0) }.carried(0);
    let body = Body::TaskReplayRequested(Box::new(TaskReplayRequested {
        carried,
        replay_from: ReplayFrom::Failure,
        from_step: None,
        actor: "rogue".into(),
        reason: "r".into(),
        closed_at_offset: Offset(0),
    }));
    draft(core.id, core.version.0 + 1 + off, core.run_no.0 + 1, 0, body)
}
