//! Reader of one partition of the Kafka log.

use std::sync::{Arc, Weak};

use task_events::{Offset, PartitionId};

use super::lane::{Lane, Lanes};
use super::route::{Route, Taken};
use crate::{LogError, RawRecord, Tail};

/// Reads one partition in offset order and waits at its end, also while no broker answers: the
/// client reconnects by itself, and an idle log can't be told from one that is cut off.
pub struct KafkaTail {
    lane: Weak<Lane>,
    route: Arc<Route>,
}

impl KafkaTail {
    /// Blocking.
    pub(super) fn open(lanes: &Lanes, partition: PartitionId, from: Offset) -> Result<Self, LogError> {
        let (lane, route) = lanes.open(partition, from)?;
        // Weak: closing the client may take a while, so it must end on its own thread.
        Ok(Self { lane: Arc::downgrade(&lane), route })
    }
}

impl Tail for KafkaTail {
    async fn next(&mut self) -> Result<Vec<RawRecord>, LogError> {
        loop {
            match self.route.take() {
                Taken::Records { records, resume } => {
                    if resume && let Some(lane) = self.lane.upgrade() {
                        lane.resume(self.route.partition);
                    }
                    return Ok(records);
                }
                Taken::Failed(error) => return Err(error),
                Taken::Nothing => self.route.arrived().await,
            }
        }
    }
}

impl Drop for KafkaTail {
    fn drop(&mut self) {
        self.route.close();
    }
}
