//! Writes of rows, as spans of the tasks whose rows they are.

use snapshot_store::{RowKind, RowWrite};
use spans::{Span, SpanKind, Spans};
use task_events::{EventSequence, PartitionId, SpanId, Text, TraceId};

use super::Ticket;

/// What one write holds, if anybody wants to know.
pub(super) struct Written {
    partition: PartitionId,
    ticket: Ticket,
    rows: u64,
    /// Trace, task's first span, and last number of each task whose trace is recorded.
    tasks: Vec<(TraceId, SpanId, EventSequence)>,
}

impl Written {
    pub(super) fn of(spans: &Spans, partition: PartitionId, ticket: Ticket, rows: &[RowWrite]) -> Self {
        let traced = |write: &RowWrite| match &write.row {
            RowKind::Snapshot(seen) if seen.row.sampling.is_recorded() => {
                let trace_id = TraceId::parse(seen.row.trace_id.as_bytes())?;
                Some((trace_id, SpanId::of_record(seen.core.id, EventSequence(1)), seen.core.version))
            }
            RowKind::Snapshot(_) | RowKind::Key(_) | RowKind::HistoryOverflow { .. } => None,
        };
        let tasks = if spans.is_on() { rows.iter().filter_map(traced).collect() } else { Vec::new() };
        Self { partition, ticket, rows: rows.len() as u64, tasks }
    }

    /// The write began at these times (Unix and boot, µs) and has ended.
    pub(super) fn tell(self, spans: &Spans, (wall_us, boot_us): (i64, u64), now_us: u64, failed: bool) {
        let took = i64::try_from(now_us.saturating_sub(boot_us)).unwrap_or(0);
        for (trace_id, first, version) in self.tasks {
            spans.take(|| {
                Some(Span {
                    trace_id,
                    // One row may be written more than once.
                    span_id: first.child(&format!("row {version} {}", self.ticket.0)),
                    parent: Some(first),
                    name: Text::const_new("store rows"),
                    kind: SpanKind::Client,
                    start_us: wall_us,
                    end_us: wall_us.saturating_add(took),
                    attributes: vec![
                        ("dualtrack.partition", u64::from(self.partition.0).into()),
                        ("dualtrack.event_sequence", version.0.into()),
                        ("dualtrack.rows", self.rows.into()),
                    ],
                    links: Vec::new(),
                    error: failed.then(|| Text::const_new("store_unavailable")),
                })
            });
        }
    }
}
