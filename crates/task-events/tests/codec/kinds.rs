//! The table of kinds against design.md §5, written out once more by hand.

use task_events::Kind::{self, *};
use task_events::KindClass::{self, Annotation, Control, Report, Seal, TaskEvent};
use task_events::Service::{self, AuditReport, AutoReplay, Coordinator, TaskEngine};
use task_events::{TaskState, samples, writer_of};

const TABLE: [(Kind, Service, KindClass); 30] = [
    (TaskCreated, Coordinator, TaskEvent),
    (TaskAssigned, Coordinator, TaskEvent),
    (TaskStarted, Coordinator, TaskEvent),
    (TaskStepCompleted, Coordinator, TaskEvent),
    (TaskReleased, Coordinator, TaskEvent),
    (TaskCompleted, Coordinator, TaskEvent),
    (TaskFailed, Coordinator, TaskEvent),
    (TaskLost, Coordinator, TaskEvent),
    (TaskTimedOut, Coordinator, TaskEvent),
    (TaskRetryApproved, TaskEngine, TaskEvent),
    (TaskFailedPermanently, TaskEngine, TaskEvent),
    (TaskReplayPlanned, AutoReplay, TaskEvent),
    (TaskRetried, Coordinator, TaskEvent),
    (TaskCancelRequested, Coordinator, TaskEvent),
    (TaskCancelled, Coordinator, TaskEvent),
    (TaskReplayRequested, Coordinator, TaskEvent),
    (TaskReviewed, Coordinator, TaskEvent),
    (RejectedReport, Coordinator, Report),
    (TaskOverdue, Coordinator, Annotation),
    (TaskFailureAnalysis, Coordinator, Annotation),
    (TaskSkippedByPolicy, TaskEngine, Annotation),
    (WorkerQuarantined, TaskEngine, Annotation),
    (WorkerReleased, Coordinator, Control),
    (QueuePaused, Coordinator, Control),
    (QueueResumed, Coordinator, Control),
    (BacklogAlarm, Coordinator, Control),
    (OwnershipClaimed, Coordinator, Control),
    (OwnershipRenewed, Coordinator, Control),
    (RulesActivated, Coordinator, Control),
    (LogSealed, AuditReport, Seal),
];

#[test]
fn writers_and_classes_are_those_of_the_design() {
    assert_eq!(Kind::ALL, TABLE.map(|(kind, ..)| kind));
    for (kind, writer, class) in TABLE {
        assert_eq!((writer_of(kind), kind.class()), (writer, class), "{kind}");
    }
}

#[test]
fn a_name_gives_its_kind_and_a_body_its_kind() {
    for &kind in Kind::ALL {
        assert_eq!(kind.as_str().parse(), Ok(kind));
        assert_eq!(samples::full(kind).body.kind(), kind);
        assert_eq!(samples::minimal(kind).body.kind(), kind);
    }
    for bad in ["", "taskcreated", "TaskCreated ", "io.dualtrack.events.TaskCreated"] {
        assert!(bad.parse::<Kind>().is_err(), "{bad:?}");
    }
}

#[test]
fn three_states_are_terminal_and_two_are_live() {
    use TaskState::{Assigned, Cancelled, Executing, FailedPermanently, Success};
    let which = |test: fn(TaskState) -> bool| TaskState::ALL.iter().copied().filter(|s| test(*s)).collect::<Vec<_>>();
    assert_eq!(which(TaskState::is_terminal), [Success, FailedPermanently, Cancelled]);
    assert_eq!(which(TaskState::is_live), [Assigned, Executing]);
}
