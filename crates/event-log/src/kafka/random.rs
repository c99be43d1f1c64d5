//! Reading at known places: single records, times, ranges. One client of its own, used by one
//! caller at a time; all calls block and run off the async workers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::Consumer;
use task_events::{Offset, PartitionId};

use super::config::KafkaConfig;
use super::context::Quiet;
use super::convert::{error_of, record_of};
use super::lane::Client;
use super::positions;
use crate::{LogError, MemberInfo, OffsetRange, RawRecord};

/// Offsets at most this far apart are read through rather than sought.
const NEAR: u64 = 64;
/// How long a fetch for single records waits at the end; they are there, so it never should.
const FETCH_WAIT: Duration = Duration::from_millis(10);

/// The client for single reads.
pub(super) struct Reader {
    config: KafkaConfig,
    /// `None` only while it is dropped.
    client: Mutex<Option<Client>>,
}

impl Reader {
    pub fn new(config: KafkaConfig) -> Result<Self, LogError> {
        let client = Client::from_config_and_context(&config.reader(FETCH_WAIT), Quiet("reader"));
        let client = client.map_err(|e| error_of("cannot create a consumer", &e))?;
        Ok(Self { config, client: Mutex::new(Some(client)) })
    }

    /// Every member of every group of the topic.
    pub fn members(&self) -> Result<Vec<MemberInfo>, LogError> {
        self.with(|client| super::describe::members(client, &self.config.topic, self.config.request_timeout))
    }

    pub fn range(&self, partition: PartitionId) -> Result<OffsetRange, LogError> {
        self.with(|client| positions::range(client, &self.config.topic, partition, self.config.request_timeout))
    }

    pub fn offset_at(&self, partition: PartitionId, unix_ms: i64) -> Result<Option<Offset>, LogError> {
        let mut list = positions::list(&self.config.topic, partition, None);
        let place = list.set_partition_offset(
            &self.config.topic,
            i32::from(partition.0),
            rdkafka::Offset::Offset(unix_ms.max(0)),
        );
        place.map_err(|e| error_of("cannot look up a time", &e))?;
        let found = self.with(|client| {
            let found = client.offsets_for_times(list, self.config.request_timeout);
            found.map_err(|e| error_of("cannot look up a time", &e))
        })?;
        let Some(entry) = found.find_partition(&self.config.topic, i32::from(partition.0)) else { return Ok(None) };
        entry.error().map_err(|e| error_of("cannot look up a time", &e))?;
        Ok(match entry.offset() {
            rdkafka::Offset::Offset(offset) => u64::try_from(offset).ok().map(Offset),
            rdkafka::Offset::Beginning
            | rdkafka::Offset::End
            | rdkafka::Offset::Stored
            | rdkafka::Offset::Invalid
            | rdkafka::Offset::OffsetTail(_) => None,
        })
    }

    /// The records at these offsets, in the order given.
    pub fn read_at(&self, partition: PartitionId, offsets: &[Offset]) -> Result<Vec<RawRecord>, LogError> {
        self.with(|client| self.read_with(client, partition, offsets))
    }

    fn with<T>(&self, work: impl FnOnce(&Client) -> Result<T, LogError>) -> Result<T, LogError> {
        match self.client.lock().as_ref() {
            Some(client) => work(client),
            None => Err(LogError::Unavailable("the log is closed".into())),
        }
    }

    fn read_with(
        &self,
        client: &Client,
        partition: PartitionId,
        offsets: &[Offset],
    ) -> Result<Vec<RawRecord>, LogError> {
        let range = positions::range(client, &self.config.topic, partition, self.config.request_timeout)?;
        if let Some(&offset) = offsets.iter().find(|offset| **offset < range.start || **offset >= range.end) {
            let (start, end) = (range.start, range.end);
            return Err(LogError::OutOfRange { partition, offset, start, end });
        }
        let mut found: BTreeMap<Offset, Option<RawRecord>> = offsets.iter().map(|&offset| (offset, None)).collect();
        let result = self.collect(client, partition, range, &mut found);
        // Whatever came of it, the client is left with nothing to fetch.
        client.unassign().map_err(|e| error_of("cannot unassign", &e))?;
        result?;
        let missing = |offset| LogError::OutOfRange { partition, offset, start: range.start, end: range.end };
        offsets.iter().map(|&offset| found.get(&offset).cloned().flatten().ok_or_else(|| missing(offset))).collect()
    }

    #[expect(clippy::disallowed_methods, reason = "a deadline for a broker that doesn't answer")]
    fn collect(
        &self,
        client: &Client,
        partition: PartitionId,
        range: OffsetRange,
        found: &mut BTreeMap<Offset, Option<RawRecord>>,
    ) -> Result<(), LogError> {
        let deadline = Instant::now() + self.config.request_timeout;
        let wanted: Vec<Offset> = found.keys().copied().collect();
        let mut position: Option<Offset> = None;
        for offset in wanted {
            if position.is_none_or(|position| offset > Offset(position.0.saturating_add(NEAR))) {
                client
                    .assign(&positions::list(&self.config.topic, partition, Some(offset)))
                    .map_err(|e| error_of("cannot assign", &e))?;
            }
            loop {
                if Instant::now() >= deadline {
                    return Err(LogError::Unavailable(format!(
                        "offset {offset} was not read within {} ms",
                        self.config.request_timeout.as_millis()
                    )));
                }
                match client.poll(FETCH_WAIT) {
                    Some(Ok(message)) => {
                        let Some(record) = record_of(&message).filter(|record| record.partition == partition) else {
                            continue;
                        };
                        let at = record.offset;
                        if let Some(slot) = found.get_mut(&at) {
                            *slot = Some(record);
                        }
                        if at >= offset {
                            position = Some(at);
                            break;
                        }
                    }
                    Some(Err(error))
                        if error.rdkafka_error_code() == Some(rdkafka::types::RDKafkaErrorCode::AutoOffsetReset) =>
                    {
                        return Err(LogError::OutOfRange { partition, offset, start: range.start, end: range.end });
                    }
                    // Connection troubles: the client tries again by itself until the deadline.
                    Some(Err(_)) | None => {}
                }
            }
        }
        Ok(())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Closing may wait for a broker that is away, and this may be an async worker.
        if let Some(client) = self.client.get_mut().take() {
            let spawned = std::thread::Builder::new().name("kafka-close".into()).spawn(move || drop(client));
            if let Err(error) = spawned {
                tracing::warn!(%error, "no thread to close the reader on");
            }
        }
    }
}
