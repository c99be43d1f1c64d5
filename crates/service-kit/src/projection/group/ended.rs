//! What to do when a future of the loop ended.

use event_log::{EventLog, LogError};
use task_events::PartitionId;

use super::super::live::Live;
use super::super::work::{Ended, Generation, read};
use super::super::{Projection as _, ProjectionError, Projector};
use super::Group;
use super::part::Phase;
use crate::Clock;

impl<L: EventLog, C: Clock, J: Projector> Group<'_, L, C, J> {
    pub(super) fn ended(
        &mut self,
        partition: PartitionId,
        generation: Generation,
        ended: Ended<J::Projection, L::Tail>,
    ) -> Result<(), ProjectionError> {
        let (now, id) = (self.now(), (partition, generation));
        let Some(part) = self.parts.get_mut(&partition).filter(|part| part.generation == generation) else {
            return Ok(());
        };
        match (ended, &mut part.phase) {
            (Ended::Opened { projection, tail, end }, Phase::Opening(_)) => {
                let (work, reading) = read(id, tail);
                self.work.push(work);
                let tried = self.tries.take(partition);
                part.phase = Phase::Live(Box::new(Live::new(*projection, tried, end, now.boot_ms, reading)));
            }
            (Ended::NoStart, Phase::Opening(_)) => self.open(partition),
            (Ended::Unreadable(error), _) => return Err(error.into()),
            (Ended::Stopped(stop), _) => return Err(ProjectionError::Stopped { partition, stop }),
            (Ended::Reopened { tail }, Phase::Live(live)) => {
                let (work, reading) = read(id, tail);
                self.work.push(work);
                live.reading = reading;
            }
            (Ended::Read { tail, result: Ok(records) }, Phase::Live(live)) => {
                let folded = live.fold(&records, now.boot_ms, &self.counters, &self.desktop.metrics);
                folded.map_err(|stop| ProjectionError::Stopped { partition, stop })?;
                let (work, reading) = read(id, tail);
                self.work.push(work);
                live.reading = reading;
            }
            (
                Ended::Read { result: Err(error @ (LogError::Unavailable(_) | LogError::OutOfRange { .. })), .. },
                Phase::Live(live),
            ) => {
                tracing::warn!(partition = partition.0, %error, "tail broke, opening it again");
                let (work, reading) = self.desktop.reopen(id, live.projection.next_offset());
                self.work.push(work);
                live.reading = reading;
            }
            (Ended::Read { result: Err(error), .. }, _) => return Err(error.into()),
            (Ended::Appended { verdicts, outcome }, Phase::Live(live)) => {
                live.appended(&verdicts, &outcome, now.boot_ms, &self.counters);
            }
            (Ended::Answered(answer), Phase::Live(live)) => {
                live.answered(answer, now).map_err(|stop| ProjectionError::Stopped { partition, stop })?;
            }
            (
                Ended::Opened { .. }
                | Ended::NoStart
                | Ended::Reopened { .. }
                | Ended::Read { .. }
                | Ended::Appended { .. }
                | Ended::Answered(_)
                | Ended::Dropped,
                _,
            ) => {}
        }
        Ok(())
    }
}
