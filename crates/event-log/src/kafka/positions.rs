//! Positions as librdkafka takes and gives them.

use std::time::Duration;

use rdkafka::TopicPartitionList;
use rdkafka::consumer::Consumer;
use task_events::{Offset, PartitionId};

use super::convert::error_of;
use super::lane::Client;
use crate::{LogError, OffsetRange};

/// A list of one partition, with a position where one is needed.
pub(super) fn list(topic: &str, partition: PartitionId, from: Option<Offset>) -> TopicPartitionList {
    let mut list = TopicPartitionList::with_capacity(1);
    let mut entry = list.add_partition(topic, i32::from(partition.0));
    if let Some(from) = from {
        let position = rdkafka::Offset::Offset(i64::try_from(from.0).unwrap_or(i64::MAX));
        // Fails for positions below zero only.
        let _ = entry.set_offset(position);
    }
    list
}

/// Start and end of a partition as of now. Blocking.
pub(super) fn range(
    client: &Client,
    topic: &str,
    partition: PartitionId,
    timeout: Duration,
) -> Result<OffsetRange, LogError> {
    let marks = client.fetch_watermarks(topic, i32::from(partition.0), timeout);
    let (start, end) = marks.map_err(|e| error_of("cannot read the range", &e))?;
    Ok(OffsetRange { start: Offset(start.max(0).unsigned_abs()), end: Offset(end.max(0).unsigned_abs()) })
}
