//! Bodies the fold never looks into, and the closed state it hardly does.

use bytes::Bytes;
use task_events::*;

use crate::rec::{Carried, Rec, execution};
use crate::subject::{self, NOW_MS, QUEUE};

/// The attempt a body names, by its execution id: 0 = sixteen zero bytes, `None` = none named.
pub fn named_attempt(body: &Body) -> Option<u32> {
    let execution = match body {
        Body::TaskAssigned(b) => b.execution_id,
        Body::TaskStarted(b) => b.execution_id,
        Body::TaskStepCompleted(b) => b.execution_id,
        Body::TaskReleased(b) => b.execution_id,
        Body::TaskCompleted(b) => b.execution_id,
        Body::TaskFailed(b) => b.execution_id,
        Body::TaskLost(b) => b.execution_id,
        Body::TaskFailureAnalysis(b) => b.execution_id,
        Body::RejectedReport(b) => b.execution_id,
        Body::TaskTimedOut(b) => b.execution_id?,
        Body::TaskCreated(_)
        | Body::TaskRetryApproved(_)
        | Body::TaskFailedPermanently(_)
        | Body::TaskReplayPlanned(_)
        | Body::TaskRetried(_)
        | Body::TaskCancelRequested(_)
        | Body::TaskCancelled(_)
        | Body::TaskReplayRequested(_)
        | Body::TaskReviewed(_)
        | Body::TaskOverdue(_)
        | Body::TaskSkippedByPolicy(_)
        | Body::WorkerQuarantined(_)
        | Body::WorkerReleased(_)
        | Body::QueuePaused(_)
        | Body::QueueResumed(_)
        | Body::BacklogAlarm(_)
        | Body::OwnershipClaimed(_)
        | Body::OwnershipRenewed(_)
        | Body::RulesActivated(_)
        | Body::LogSealed(_) => return None,
    };
    Some(execution.parts().map_or(0, |(_, e)| e.0))
}

/// A body of a kind whose fields are not judged. Kinds with judged fields give an empty seal; their
/// bodies are built in [`crate::rec`].
pub fn plain_body(kind: Kind, by: u8) -> Body {
    let empty = Text::default;
    match kind {
        Kind::TaskRetryApproved => Body::TaskRetryApproved(Box::new(TaskRetryApproved {
            not_before: None,
            backoff_ms: 0,
            retry_count: 0,
            lost_count: 0,
            skip: Vec::new(),
            prefer_workers: Vec::new(),
            avoid_workers: Vec::new(),
            policy_version: 1,
        })),
        Kind::TaskFailedPermanently => Body::TaskFailedPermanently(TaskFailedPermanently {
            error_code: empty(),
            reason: empty(),
            review: false,
            policy_version: 1,
        }),
        Kind::TaskReplayPlanned => Body::TaskReplayPlanned(Box::new(TaskReplayPlanned {
            resume_from_step: None,
            resume_index: 0,
            skip: Vec::new(),
            based_on: Vec::new(),
            witness: Witness::SnapshotAndLog,
        })),
        Kind::TaskRetried => Body::TaskRetried(TaskRetried { not_before: None }),
        Kind::TaskCancelRequested => Body::TaskCancelRequested(TaskCancelRequested { actor: empty(), reason: empty() }),
        Kind::TaskCancelled => Body::TaskCancelled(TaskCancelled { worker_stopped: true, lease_left_ms: 0 }),
        Kind::TaskOverdue => {
            Body::TaskOverdue(TaskOverdue { state: TaskState::Created, waiting_for: empty(), since: NOW_MS })
        }
        Kind::TaskSkippedByPolicy => Body::TaskSkippedByPolicy(TaskSkippedByPolicy {
            skipped: SkippedStep { step: empty(), rule: empty(), evidence: Vec::new() },
        }),
        Kind::WorkerQuarantined => Body::WorkerQuarantined(WorkerQuarantined {
            worker_id: Text::const_new("w1"),
            reason: empty(),
            until: NOW_MS,
        }),
        Kind::WorkerReleased => {
            Body::WorkerReleased(WorkerReleased { worker_id: Text::const_new("w1"), actor: empty(), reason: empty() })
        }
        Kind::QueuePaused => Body::QueuePaused(QueuePaused { queue: QUEUE, actor: empty(), reason: empty() }),
        Kind::QueueResumed => Body::QueueResumed(QueueResumed { queue: QUEUE, actor: empty(), reason: empty() }),
        Kind::BacklogAlarm => {
            Body::BacklogAlarm(BacklogAlarm { overdue_per_minute: 0, waiting_for: empty(), open_tasks: 0 })
        }
        Kind::OwnershipClaimed => {
            Body::OwnershipClaimed(OwnershipClaimed { url: empty(), claim_attempt: u64::from(by) })
        }
        Kind::OwnershipRenewed => Body::OwnershipRenewed(OwnershipRenewed {}),
        Kind::RulesActivated => Body::RulesActivated(RulesActivated { activated: RuleVersion(2) }),
        Kind::LogSealed
        | Kind::TaskCreated
        | Kind::TaskAssigned
        | Kind::TaskStarted
        | Kind::TaskStepCompleted
        | Kind::TaskReleased
        | Kind::TaskCompleted
        | Kind::TaskFailed
        | Kind::TaskLost
        | Kind::TaskTimedOut
        | Kind::TaskReplayRequested
        | Kind::TaskReviewed
        | Kind::RejectedReport
        | Kind::TaskFailureAnalysis => Body::LogSealed(LogSealed { note: empty() }),
    }
}

/// The closed state a record carries; what is not judged is empty.
pub fn closed_task(rec: &Rec) -> Box<ClosedTask> {
    let c = rec.carried.unwrap_or(Carried { state: TaskState::Success, run: 0, seq: 0, e: 0, x: 0 });
    Box::new(ClosedTask {
        state: c.state,
        run_no: RunNo(c.run),
        event_sequence: EventSequence(c.seq),
        exec_epoch: ExecEpoch(c.e),
        execution_id: execution(rec.task, c.x),
        created: Box::new(subject::created(rec.max, rec.keyed)),
        created_at: NOW_MS,
        steps: Vec::new(),
        handler_version: None,
        lease_left_ms: 0,
        history: Bytes::new(),
        worker_id: Text::default(),
        assigned_at: None,
        start_time: None,
        end_time: None,
        memory_usage_percent: 0,
        retry_count: 0,
        lost_count: 0,
        result_data_hash: None,
        error_code: None,
        error_message: None,
        category: None,
        failed_step: None,
    })
}
