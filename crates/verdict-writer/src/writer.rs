//! Drafts turned into records.

use event_log::OutRecord;
use service_kit::Metrics;
use service_kit::projection::{Decision, Moment};
use task_core::decide::{Draft, Stamp};
use task_events::{Encoder, EventId, PartitionId, Producer, RuleVersion, TaskId, verdict_event_id};

/// Writes the verdicts of one process on one partition.
pub struct VerdictWriter {
    encoder: Encoder,
    partition: PartitionId,
    producer: Producer,
    metrics: Metrics,
}

impl VerdictWriter {
    /// A writer for one partition.
    pub fn new(partition: PartitionId, producer: Producer, metrics: Metrics) -> Self {
        Self { encoder: Encoder::new(), partition, producer, metrics }
    }

    /// The records of a verdict: annotations directly before it, in one batch.
    ///
    /// `attempt` counts the attempts of this process; the identity of a record holds the process
    /// too, so that one that starts anew does not repeat the identities of the one before.
    pub fn write(
        &mut self,
        task: TaskId,
        drafts: Vec<Draft>,
        attempt: u32,
        (cause, rules): (Option<EventId>, RuleVersion),
        now: Moment,
    ) -> Decision {
        let mut records = Vec::with_capacity(drafts.len());
        let mut verdict = None;
        for draft in drafts {
            let kind = draft.body.kind();
            // A restarted process counts from the start again. What it then takes for its own is
            // its predecessor's verdict on the same event_sequence: as good as its own.
            let instance = &self.producer.instance;
            let event_id = verdict_event_id(task, draft.event_sequence, kind, instance, u64::from(attempt));
            let event = draft.stamped(Stamp {
                event_id,
                partition_epoch: None,
                owner_seq: None,
                event_time: now.wall_ms,
                causation_id: cause,
                producer: self.producer.clone(),
                rule_version: rules,
            });
            match self.encoder.encode(&event, self.partition) {
                Ok(encoded) => {
                    records.push(OutRecord { key: encoded.key, headers: encoded.headers, value: encoded.value });
                }
                // A defect of the decider. Nothing is written; people must look.
                Err(error) => {
                    self.metrics.alarm("verdict_not_encodable", format!("task {task}: {error}"));
                    return Decision::Nothing;
                }
            }
            verdict = Some(event_id);
        }
        match verdict {
            Some(verdict) => Decision::Write { records, verdict },
            None => Decision::Nothing,
        }
    }
}
