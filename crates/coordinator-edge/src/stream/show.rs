//! A record as a stream shows it.

use coordinator::owner::{ACCEPTED, reason_of};
use event_log::RawRecord;
use rest_contract::StreamRecord;
use task_events::{PartitionId, to_json};

use super::filter::Filter;

/// Its JSON, if the stream shows it.
pub(super) fn shown(filter: &Filter, partition: PartitionId, raw: &RawRecord, verdict: u8) -> Option<String> {
    let (reason, event) = match raw.event() {
        Err(malformed) if filter.takes_malformed() => (Some(malformed.as_str()), None),
        Err(_) => return None,
        Ok(event) => {
            let rejected = reason_of(verdict);
            if rejected.is_some() && !filter.all_verdicts || !filter.takes(&event) {
                return None;
            }
            let json = to_json(&event);
            if !filter.takes_worker(&json) {
                return None;
            }
            (rejected.map(task_core::Reason::as_str), Some(json))
        }
    };
    let verdict = match (&event, verdict) {
        (None, _) => "quarantined",
        (Some(_), ACCEPTED) => "accepted",
        (Some(_), _) => "rejected",
    };
    let record = StreamRecord {
        partition: partition.0,
        offset: raw.offset.0,
        broker_time: raw.broker_ms,
        verdict: verdict.into(),
        reason: reason.map(Into::into),
        event,
    };
    serde_json::to_string(&record).ok()
}
