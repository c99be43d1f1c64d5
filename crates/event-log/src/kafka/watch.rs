//! Watches the lanes: a tail whose log grows while it gets nothing is assigned anew, and a
//! client's "offset out of range" (which names no partition) is pinned on the tail it belongs to.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use task_events::{Offset, PartitionId};

use super::lane::{Lane, WeakLanes};
use crate::LogError;

/// How often suspicious lanes are looked for.
const LOOK: Duration = Duration::from_millis(100);
/// Every how many looks all waiting tails are checked for a stall: 5 s.
const STALL_LOOKS: u32 = 50;
/// How long the question for a range may take.
const ASK: Duration = Duration::from_secs(2);

/// Where each tail stood at the last check, by lane and partition, and whether its log was longer.
type Positions = BTreeMap<(usize, PartitionId), (Offset, bool)>;

/// Starts the watchdog; it ends when the lanes are closed, or gone and `stop` with them.
pub(super) fn start(lanes: WeakLanes, stop: Receiver<()>) {
    let run = move || {
        let mut before = Positions::new();
        for look in 1.. {
            if stop.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let Some(lanes) = lanes.upgrade().filter(|lanes| !lanes.stopped()) else { return };
            let all = lanes.all();
            drop(lanes);
            for lane in &all {
                if lane.suspicious.swap(false, Ordering::AcqRel) {
                    check_range(lane);
                }
            }
            if look % STALL_LOOKS == 0 {
                before = check_progress(&all, &before);
            }
        }
    };
    if let Err(error) = thread::Builder::new().name("kafka-watch".into()).spawn(run) {
        tracing::error!(%error, "cannot start the watchdog of the tails");
    }
}

fn check_range(lane: &Lane) {
    for route in lane.routes() {
        let Some(next) = route.waits_for() else { continue };
        match lane.range(route.partition, ASK) {
            Ok(range) if next < range.start || next > range.end => {
                let (start, end) = (range.start, range.end);
                route.fail(LogError::OutOfRange { partition: route.partition, offset: next, start, end });
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(partition = route.partition.0, %error, "range not known, asked again");
                lane.suspicious.store(true, Ordering::Release);
            }
        }
    }
}

fn check_progress(lanes: &[std::sync::Arc<Lane>], before: &Positions) -> Positions {
    let mut now = Positions::new();
    for (at, lane) in lanes.iter().enumerate() {
        for route in lane.routes() {
            let Some(next) = route.waits_for() else { continue };
            let key = (at, route.partition);
            let known = before.get(&key).filter(|(position, _)| *position == next);
            let Some(&(_, behind)) = known else {
                now.insert(key, (next, false));
                continue;
            };
            let Ok(range) = lane.range(route.partition, ASK) else { continue };
            // Behind at two checks in a row, and not a record in between.
            if range.end > next && behind && route.waits_for() == Some(next) {
                tracing::error!(
                    partition = route.partition.0,
                    offset = next.0,
                    end = range.end.0,
                    "tail stalled, assigned anew"
                );
                if let Err(error) = lane.reassign(route.partition, next) {
                    route.fail(error);
                }
            } else {
                now.insert(key, (next, range.end > next));
            }
        }
    }
    now
}
