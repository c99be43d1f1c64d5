//! What honest writers write: the production deciders on the state they have, stamped as the
//! services stamp it.
#![expect(clippy::wildcard_enum_match_arm, reason = "a command has one file that decides it; the rest is the state's")]

use std::sync::Arc;

use smallvec::SmallVec;
use task_core::decide::{self, Draft, Fate, Report, ReportBody, Stamp, View};
use task_core::{Attempt, CoreState, Record, Row};
use task_events::*;

use crate::lab::Lab;
use crate::subject::{self, NOW_MS, PARTITION, RULE_VERSION, task_id};

/// What a worker reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// STARTING.
    Start,
    /// A completed step.
    Step,
    /// SUCCESS.
    Success,
    /// FAILED, to be retried.
    Failure,
    /// FAILED, not to be retried.
    Fatal,
}

/// Something a writer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cmd {
    /// Claims the next epoch; the instance tells rivals apart.
    Claim(u8),
    /// OwnershipRenewed.
    Renew,
    /// TaskCreated, alone or with TaskAssigned in its batch.
    Create { highest: i64, keyed: bool, assign: bool, max: u8 },
    /// TaskAssigned.
    Assign(usize),
    /// TaskRetried, alone or with TaskAssigned in its batch.
    Retry { task: usize, assign: bool },
    /// TaskCancelled.
    End(usize),
    /// TaskLost.
    Lost(usize),
    /// TaskReleased.
    Release(usize),
    /// TaskTimedOut.
    TimeOut(usize),
    /// A report of an attempt.
    Report { task: usize, e: u32, run: u32, what: What },
    /// TaskCancelRequested.
    Cancel(usize),
    /// TaskOverdue.
    Overdue(usize),
    /// The engine's verdict, with annotations before it or not.
    Verdict { task: usize, annotated: bool },
    /// The replayer's plan.
    Plan(usize),
    /// TaskReplayRequested from what was read.
    Replay { closed: u32 },
    /// TaskReviewed from what was read.
    Review { closed: u32 },
    /// RejectedReport.
    Reject { task: usize, e: u32, run: u32, what: What },
}

/// The step of every step report.
pub fn step_done() -> StepDone {
    StepDone { step: Text::const_new("s0"), index: 0, output_hash: Sha256Hash([7; 32]), is_idempotent: true }
}

/// The report of an attempt.
pub fn report_of(task: usize, e: u32, run: u32, what: What) -> Report {
    let body = match what {
        What::Start => ReportBody::Starting { start_time: NOW_MS, memory_usage_percent: 0 },
        What::Step => ReportBody::Step(step_done()),
        What::Success => ReportBody::Success {
            result_data_hash: Sha256Hash([9; 32]),
            execution_time_ms: 1,
            steps_done: Vec::new(),
            memory_usage_percent: 0,
        },
        What::Failure | What::Fatal => ReportBody::Failure {
            error_code: Text::const_new("E"),
            error_message: Text::default(),
            category: if what == What::Fatal { ErrorCategory::NonRetryable } else { ErrorCategory::Transient },
            failed_step: None,
            is_idempotent: None,
            execution_time_ms: 1,
            steps_done: Vec::new(),
            memory_usage_percent: 0,
        },
    };
    let id = task_id(task);
    let attempt =
        Attempt { run_no: RunNo(run), exec_epoch: ExecEpoch(e), execution_id: ExecutionId::new(id, ExecEpoch(e)) };
    Report { attempt, worker_id: Text::const_new("w1"), body }
}

/// What a report meets at an open task of a state.
pub fn fate(lab: &Lab, fold: u32, task: usize, report: &Report) -> Option<Fate> {
    let (core, row) = open(lab, fold, task)?;
    Some(decide::classify(View { core: &core, row: &row }, report))
}

fn open(lab: &Lab, fold: u32, task: usize) -> Option<(CoreState, Arc<Row>)> {
    let (core, row) = lab.fold(fold).tasks.get(task).copied().flatten()?;
    Some((core, Arc::clone(lab.rows.get(row))))
}

/// The records a command leads to on a state; none when the decider refuses.
pub fn propose(lab: &mut Lab, fold: u32, cmd: Cmd, owner_seq: u64) -> SmallVec<[u32; 4]> {
    if let Some(known) = lab.decisions.get(&(fold, cmd, owner_seq)) {
        return known.clone();
    }
    let fresh = decide_all(lab, fold, cmd, owner_seq);
    lab.decisions.insert((fold, cmd, owner_seq), fresh.clone());
    fresh
}

fn decide_all(lab: &mut Lab, fold: u32, cmd: Cmd, owner_seq: u64) -> SmallVec<[u32; 4]> {
    let epoch = lab.fold(fold).epoch;
    let mut out = SmallVec::new();
    let mut seq = owner_seq;
    let mut write = |lab: &mut Lab, draft: Draft, by: u8| {
        let id = lab.record_id(&stamped(draft, epoch, seq, by));
        seq += 1;
        out.push(id);
        id
    };
    match cmd {
        Cmd::Claim(by) => {
            let body = OwnershipClaimed { url: Text::default(), claim_attempt: u64::from(by) };
            write(lab, Draft::control(Body::OwnershipClaimed(body)), by);
        }
        Cmd::Create { highest, keyed, assign, max } => {
            let highest = TaskId::from_raw(highest).unwrap_or(TaskId::ZERO);
            let Some(id) = TaskId::mint(highest, PARTITION, NOW_MS) else { return out };
            let created = subject::created(u32::from(max), keyed);
            let first = write(
                lab,
                decide::create(
                    id,
                    decide::NewTask { created, trace_id: Text::default(), sampling: Sampling::default() },
                ),
                1,
            );
            if let (true, Some(task)) = (assign, subject::index_of(id)) {
                follow_up(lab, fold, first, task, &mut write);
            }
        }
        Cmd::Retry { task, assign: true } => {
            for draft in drafts(lab, fold, Cmd::Retry { task, assign: false }) {
                let first = write(lab, draft, 1);
                follow_up(lab, fold, first, task, &mut write);
            }
        }
        _ => {
            for draft in drafts(lab, fold, cmd) {
                write(lab, draft, 1);
            }
        }
    }
    out
}

// The second record of a batch is decided on the state the first one will leave.
fn follow_up(lab: &mut Lab, fold: u32, first: u32, task: usize, write: &mut impl FnMut(&mut Lab, Draft, u8) -> u32) {
    let after = lab.land(fold, first).fold;
    for draft in drafts(lab, after, Cmd::Assign(task)) {
        write(lab, draft, 1);
    }
}

// Decisions that need nothing but the state.
fn drafts(lab: &Lab, fold: u32, cmd: Cmd) -> Vec<Draft> {
    let one = |draft: Result<Draft, decide::Refusal>| draft.into_iter().collect::<Vec<_>>();
    let task = match cmd {
        Cmd::Renew => return vec![Draft::control(Body::OwnershipRenewed(OwnershipRenewed {}))],
        Cmd::Replay { closed } => return one(replay(lab, closed)),
        Cmd::Review { closed } => {
            let closed = lab.closed(closed);
            let outcome = ReviewOutcome::Accepted;
            let (run_no, instead_of) = (closed.core.run_no, decide::decided(closed));
            return one(decide::review(closed, run_no, outcome, instead_of, Text::default(), Text::default()));
        }
        Cmd::Reject { task, e, run, what } => {
            let report = report_of(task, e, run, what);
            return decide::rejected_report(&report, task_id(task), Default::default(), "fenced").into_iter().collect();
        }
        Cmd::Assign(t) | Cmd::End(t) | Cmd::Lost(t) | Cmd::Release(t) | Cmd::TimeOut(t) | Cmd::Cancel(t) => t,
        Cmd::Overdue(t) | Cmd::Plan(t) => t,
        Cmd::Retry { task, .. } | Cmd::Report { task, .. } | Cmd::Verdict { task, .. } => task,
        Cmd::Claim(_) | Cmd::Create { .. } => return Vec::new(),
    };
    let Some((core, row)) = open(lab, fold, task) else { return Vec::new() };
    let view = View { core: &core, row: &row };
    match cmd {
        Cmd::Assign(_) => one(decide::assign(view, offer(), NOW_MS)),
        Cmd::Retry { .. } => one(decide::retried(view)),
        Cmd::End(_) => one(decide::cancelled(view, true, 0)),
        Cmd::Lost(_) => one(decide::lost(view, decide::Lost::default())),
        Cmd::Release(_) => one(decide::release(view, ReleaseReason::Drain, 0)),
        Cmd::TimeOut(_) => {
            decide::due_timeout(view).map_or_else(Vec::new, |(_, limit)| one(decide::timed_out(view, limit, None, 0)))
        }
        Cmd::Report { task, e, run, what } => decide::report(view, report_of(task, e, run, what)).unwrap_or_default(),
        Cmd::Cancel(_) => one(decide::cancel_request(view, Text::default(), Text::default())),
        Cmd::Overdue(_) => decide::overdue(view, NOW_MS, None).into_iter().collect(),
        Cmd::Verdict { annotated, .. } => verdict(view, annotated),
        Cmd::Plan(_) => one(decide::replay_plan(view, Witness::SnapshotAndLog)),
        Cmd::Claim(_) | Cmd::Renew | Cmd::Create { .. } | Cmd::Replay { .. } | Cmd::Review { .. } => Vec::new(),
        Cmd::Reject { .. } => Vec::new(),
    }
}

fn replay(lab: &Lab, closed: u32) -> Result<Draft, decide::Refusal> {
    let closed = lab.closed(closed);
    let ask = decide::Replay {
        run_no: closed.core.run_no,
        replay_from: ReplayFrom::Failure,
        from_step: None,
        actor: Text::default(),
        reason: Text::default(),
    };
    decide::replay(closed, ask, 0)
}

fn verdict(view: View<'_>, annotated: bool) -> Vec<Draft> {
    let Ok(verdict) = decide::retry_verdict(view, decide::RetryPolicy::default(), NOW_MS, 0) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    if annotated {
        for kind in [Kind::TaskSkippedByPolicy, Kind::WorkerQuarantined] {
            out.push(Draft { body: crate::plain::plain_body(kind, 1), ..verdict.clone() });
        }
    }
    out.push(verdict);
    out
}

fn offer() -> decide::Assign {
    decide::Assign {
        worker_id: Text::const_new("w1"),
        incarnation: Incarnation(1),
        handler_version: Text::default(),
        lease_ms: 3,
        lease_max_ms: 3,
        heartbeat_ms: 1,
        optimistic_start: false,
    }
}

// What the services' shells add.
fn stamped(draft: Draft, epoch: PartitionEpoch, owner_seq: u64, by: u8) -> Record {
    let kind = draft.body.kind();
    let claim = kind == Kind::OwnershipClaimed;
    let fence = match writer_of(kind) {
        Service::Coordinator if claim => (epoch.next(), Some(OwnerSeq(0))),
        Service::Coordinator => (Some(epoch), Some(OwnerSeq(owner_seq))),
        Service::TaskEngine | Service::AutoReplay | Service::AuditReport => (None, None),
    };
    let event = draft.clone().stamped(Stamp {
        event_id: subject::event_id(kind, draft.task_id, draft.event_sequence, fence, by),
        partition_epoch: fence.0,
        owner_seq: fence.1,
        event_time: NOW_MS,
        causation_id: None,
        producer: subject::producer(kind, by),
        rule_version: RULE_VERSION,
    });
    Record { offset: Offset(0), broker_ms: 0, key: RecordKey::of(&event, PARTITION), event }
}
