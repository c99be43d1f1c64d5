//! A record as a stream shows it.

use coordinator::owner::reason_of;
use event_log::RawRecord;
use rest_contract::StreamRecord;
use task_events::{PartitionId, to_json};

use super::filter::Filter;
use crate::verdict;

/// Its JSON, if the stream shows it.
pub(super) fn shown(filter: &Filter, partition: PartitionId, raw: &RawRecord, verdict: u8) -> Option<String> {
    let decoded = raw.event();
    let rejected = reason_of(verdict);
    let (verdict, reason) = verdict::words(decoded.as_ref().map_err(|why| *why), rejected);
    let event = match decoded {
        Err(_) if filter.takes_malformed() => None,
        Err(_) => return None,
        Ok(event) if rejected.is_some() && !filter.all_verdicts || !filter.takes(&event) => return None,
        Ok(event) => {
            let json = to_json(&event);
            if !filter.takes_worker(&json) {
                return None;
            }
            Some(json)
        }
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
