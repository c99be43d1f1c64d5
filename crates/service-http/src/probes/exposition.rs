//! What is read off folds and log when somebody asks for metrics.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use service_kit::metrics::{
    PARTITION_APPLIED_OFFSET, PARTITION_LAG_RECORDS, PARTITION_LOG_END_OFFSET, PARTITION_OWNING, PARTITIONS, Scrape,
};
use service_kit::{Described, Standing};
use task_events::{Offset, PartitionId};

/// All that [`standings`] sets.
pub const STANDINGS: [&Described; 4] =
    [&PARTITION_OWNING, &PARTITION_APPLIED_OFFSET, &PARTITION_LOG_END_OFFSET, &PARTITION_LAG_RECORDS];

/// How far the folds of a service are; `ends`: of those partitions whose log answered.
pub fn standings(
    scrape: &mut Scrape<'_>,
    (service, partitions): (&str, u16),
    standings: &BTreeMap<PartitionId, Standing>,
    ends: &BTreeMap<PartitionId, Offset>,
) {
    scrape.set(&PARTITIONS, &[], u64::from(partitions));
    for (partition, at) in standings {
        let name = partition.to_string();
        let served = [service, name.as_str()];
        scrape.set(&PARTITION_OWNING, &served, u64::from(at.owning));
        scrape.set(&PARTITION_APPLIED_OFFSET, &served, at.applied.0);
        if let Some(end) = ends.get(partition) {
            scrape.set(&PARTITION_LOG_END_OFFSET, &[&name], end.0);
            scrape.set(&PARTITION_LAG_RECORDS, &served, end.0.saturating_sub(at.applied.0));
        }
    }
}

/// The text of a scrape as an answer.
pub fn exposed(text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use service_kit::Metrics;

    use super::*;

    #[test]
    fn what_folds_say_is_told_and_a_log_that_does_not_answer_is_not() {
        let metrics = Metrics::default();
        let at = |applied| Standing { owning: true, applied: Offset(applied) };
        let all = [(PartitionId(1), at(8)), (PartitionId(2), at(9))].into();
        let ends = [(PartitionId(2), Offset(11))].into();
        let text = metrics.scrape(|scrape| standings(scrape, ("task-engine", 4), &all, &ends));
        for wanted in [
            "dualtrack_partitions 4\n",
            "dualtrack_partition_owning{service=\"task-engine\",partition=\"1\"} 1\n",
            "dualtrack_partition_applied_offset{service=\"task-engine\",partition=\"1\"} 8\n",
            "dualtrack_partition_lag_records{service=\"task-engine\",partition=\"2\"} 2\n",
        ] {
            assert!(text.contains(wanted), "{wanted} is not in\n{text}");
        }
        assert!(!text.contains("lag_records{service=\"task-engine\",partition=\"1\"}"), "{text}");
    }
}
