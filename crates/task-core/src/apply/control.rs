//! Whose records count: claims, the fence, control records; and reports, which have no effect.

use task_events::{
    Body, Event, EventSequence, OwnerSeq, PartitionEpoch, RuleVersion, SUPPORTED_RULES, Service, writer_of,
};

use crate::{Change, ControlChange, Owner, PartitionState, Reason, Record};

// Version 2 leaves no version out (docs/acceptance.md); only binaries that know it ever have it active.
const fn may_follow(active: RuleVersion, next: RuleVersion) -> bool {
    let one_by_one = SUPPORTED_RULES.0 >= 2 && active.0 >= 2;
    next.0 > active.0 && (!one_by_one || next.0 - active.0 == 1)
}

impl PartitionState {
    pub(super) fn claim(&mut self, event: &Event) -> Result<Change, Reason> {
        let Body::OwnershipClaimed(body) = &event.body else { return Err(Reason::WrongKey) };
        let next = self.epoch.next();
        if self.rules.claim_order && (event.partition_epoch != next || next.is_none()) {
            return Err(Reason::ClaimConflict);
        }
        self.epoch = event.partition_epoch.ok_or(Reason::ClaimConflict)?;
        self.owner_seq = OwnerSeq(0);
        self.owner = Some(Owner {
            instance: event.producer.instance.clone(),
            incarnation: event.producer.incarnation,
            url: body.url.clone(),
            claim: event.event_id,
        });
        Ok(Change::Control(ControlChange::Claimed))
    }

    // The owner_seq to remember, for owner kinds.
    pub(super) fn check_fence(&self, event: &Event) -> Result<Option<OwnerSeq>, Reason> {
        if writer_of(event.kind) != Service::Coordinator {
            return Ok(None);
        }
        // Epoch 0 is nobody's: before the first claim there is no owner to hear.
        if self.rules.fence && (self.epoch == PartitionEpoch(0) || event.partition_epoch != Some(self.epoch)) {
            return Err(Reason::StaleEpoch);
        }
        let seq = event.owner_seq.unwrap_or_default();
        if self.rules.owner_seq && seq <= self.owner_seq {
            return Err(Reason::StaleOwnerSeq);
        }
        Ok(Some(seq.max(self.owner_seq)))
    }

    pub(super) fn control(&mut self, event: &Event) -> Result<ControlChange, Reason> {
        match &event.body {
            Body::OwnershipRenewed(_) => Ok(ControlChange::Renewed),
            Body::RulesActivated(b) => {
                if !may_follow(self.active_rules, b.activated) {
                    return Err(Reason::RulesNotForward);
                }
                self.active_rules = b.activated;
                Ok(ControlChange::RulesActivated { version: b.activated, known: b.activated <= SUPPORTED_RULES })
            }
            Body::QueuePaused(b) => {
                self.paused_queues.insert(b.queue.clone());
                Ok(ControlChange::Queue)
            }
            Body::QueueResumed(b) => {
                self.paused_queues.remove(&b.queue);
                Ok(ControlChange::Queue)
            }
            Body::WorkerReleased(_)
            | Body::BacklogAlarm(_)
            | Body::OwnershipClaimed(_)
            | Body::TaskCreated(_)
            | Body::TaskAssigned(_)
            | Body::TaskStarted(_)
            | Body::TaskStepCompleted(_)
            | Body::TaskReleased(_)
            | Body::TaskCompleted(_)
            | Body::TaskFailed(_)
            | Body::TaskLost(_)
            | Body::TaskTimedOut(_)
            | Body::TaskRetryApproved(_)
            | Body::TaskFailedPermanently(_)
            | Body::TaskReplayPlanned(_)
            | Body::TaskRetried(_)
            | Body::TaskCancelRequested(_)
            | Body::TaskCancelled(_)
            | Body::TaskReplayRequested(_)
            | Body::TaskReviewed(_)
            | Body::RejectedReport(_)
            | Body::TaskOverdue(_)
            | Body::TaskFailureAnalysis(_)
            | Body::TaskSkippedByPolicy(_)
            | Body::WorkerQuarantined(_)
            | Body::LogSealed(_) => Ok(ControlChange::Advice),
        }
    }

    pub(super) fn report(&mut self, record: &Record) -> Result<Change, Reason> {
        let id = record.event.task_id.ok_or(Reason::WrongKey)?;
        if self.rules.sequence && record.event.event_sequence != EventSequence(0) {
            return Err(Reason::StaleSequence);
        }
        if let (true, Body::RejectedReport(report)) = (self.keep_rows, &record.event.body) {
            self.noted.insert(report.execution_id);
        }
        self.touch_row(record, id);
        Ok(Change::Reported(id))
    }
}
