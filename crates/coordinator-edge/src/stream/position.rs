//! Where a stream stands: the next offset of every partition it reads. As text it is the SSE id of the
//! message before: `12,0,7` of all partitions in their order, `3:12` of one alone.
//!
//! It is not authenticated as cursors of lists are: every position that the log has may be read.

use std::collections::BTreeMap;
use std::fmt;

use coordinator::surface::Peers;
use event_log::{EventLog, LogError, OffsetRange};
use futures::future::try_join_all;
use rest_contract::{Code, Problem, StreamFrom};
use service_kit::Clock;
use snapshot_store::SnapshotStore;
use task_events::{Offset, PartitionId};

use super::query::Asked;
use crate::Edge;
use crate::problems::{Failure, bad_parameter, defect};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Partitions of the topic.
    of: u16,
    pub next: BTreeMap<PartitionId, Offset>,
}

/// Where a stream begins, and where each of its partitions ended when it was opened, if it goes no further.
pub(super) struct Begin {
    pub position: Position,
    pub ends: Option<BTreeMap<PartitionId, Offset>>,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (true, Some((partition, next))) = (self.next.len() < usize::from(self.of), self.next.first_key_value()) {
            return write!(f, "{partition}:{next}");
        }
        for (n, next) in self.next.values().enumerate() {
            write!(f, "{}{next}", if n == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl Position {
    fn parse(text: &str, of: u16, only: Option<PartitionId>) -> Result<Self, Problem> {
        let must = "the id of a message of this stream: one offset for each partition, or PARTITION:OFFSET";
        let bad = || bad_parameter("cursor", text, must);
        let number = |text: &str| text.parse().map(Offset).map_err(|_| bad());
        let next = if let Some((partition, offset)) = text.split_once(':') {
            let partition = partition.parse().ok().filter(|partition| *partition < of).ok_or_else(bad)?;
            BTreeMap::from([(PartitionId(partition), number(offset)?)])
        } else {
            let offsets = text.split(',').map(number).collect::<Result<Vec<_>, _>>()?;
            if offsets.len() != usize::from(of) {
                return Err(bad());
            }
            (0..of).map(PartitionId).zip(offsets).collect()
        };
        let mut position = Self { of, next };
        if let Some(only) = only {
            position.next.retain(|partition, _| *partition == only);
        }
        if position.next.is_empty() { Err(bad()) } else { Ok(position) }
    }
}

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    /// Where a stream begins.
    pub(super) async fn begin(&self, asked: &Asked) -> Result<Begin, Failure> {
        let of = self.surface.partitions();
        let given = match &asked.from {
            StreamFrom::Cursor(text) => Some(Position::parse(text, of, asked.only)?.next),
            StreamFrom::Offset { partition, offset } => {
                Some(BTreeMap::from([(PartitionId(*partition), Offset(*offset))]))
            }
            StreamFrom::Now | StreamFrom::Start | StreamFrom::Time(_) => None,
        };
        let all = (0..of).map(PartitionId).filter(|partition| asked.only.is_none_or(|only| only == *partition));
        let partitions: Vec<PartitionId> = match &given {
            Some(given) => given.keys().copied().collect(),
            None => all.collect(),
        };
        let begins = partitions.into_iter().map(|partition| {
            let at = given.as_ref().and_then(|given| given.get(&partition)).copied();
            self.begin_of(partition, at, &asked.from)
        });
        let begins = try_join_all(begins).await?;
        let next = begins.iter().map(|(partition, next, _)| (*partition, *next)).collect();
        let ends = begins.iter().map(|(partition, _, end)| (*partition, *end));
        Ok(Begin { position: Position { of, next }, ends: asked.until_now.then(|| ends.collect()) })
    }

    // The offset, and the partition's end.
    async fn begin_of(
        &self,
        partition: PartitionId,
        at: Option<Offset>,
        from: &StreamFrom,
    ) -> Result<(PartitionId, Offset, Offset), Failure> {
        let range = self.log.range(partition).await.map_err(|why| unreadable(&why))?;
        let next = match (from, at) {
            (_, Some(at)) if at < range.start || at > range.end => return Err(gone(partition, at, range).into()),
            (_, Some(at)) => at,
            (StreamFrom::Start, None) => range.start,
            (StreamFrom::Time(ms), None) => {
                let found = self.log.offset_at(partition, *ms).await.map_err(|why| unreadable(&why))?;
                found.unwrap_or(range.end)
            }
            (StreamFrom::Now | StreamFrom::Offset { .. } | StreamFrom::Cursor(_), None) => range.end,
        };
        Ok((partition, next, range.end))
    }
}

/// The log has nothing there.
pub(super) fn gone(partition: PartitionId, at: Offset, range: OffsetRange) -> Problem {
    let limit = format!("{} to {}", range.start, range.end);
    Problem::new(Code::PositionGone, format!("partition {partition} holds offsets {limit}, {at} is not among them"))
        .field("offset")
        .value(at.0)
        .limit(limit)
        .fact("partition", partition.0)
}

/// What the log could not do.
pub(super) fn unreadable(why: &LogError) -> Failure {
    match why {
        LogError::Unavailable(_) | LogError::NotMember(_) => {
            Problem::new(Code::LogUnavailable, "the log cannot be read now").into()
        }
        LogError::OutOfRange { partition, offset, start, end } => {
            gone(*partition, *offset, OffsetRange { start: *start, end: *end }).into()
        }
        LogError::Damaged { .. } | LogError::Refused(_) => defect(format!("the log cannot be read: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_reads_as_it_was_written() {
        for (text, of, only) in [("12,0,7", 3, None), ("2:9", 3, Some(2)), ("5", 1, None), ("1:0", 2, Some(1))] {
            let read = Position::parse(text, of, only.map(PartitionId)).expect(text);
            assert_eq!(read.to_string(), text);
        }
        let one = Position::parse("12,0,7", 3, Some(PartitionId(2))).expect("read");
        assert_eq!(one.to_string(), "2:7");
        for bad in ["", "1,2", "1,2,3,4", "a,b,c", "-1,0,0", "3:1", "1:", "1,2,", "99999999999999999999,0,0"] {
            assert_eq!(Position::parse(bad, 3, None).expect_err(bad).field.as_deref(), Some("cursor"));
        }
        assert!(Position::parse("0:1", 3, Some(PartitionId(1))).is_err(), "another partition's");
    }
}
