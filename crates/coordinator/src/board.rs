//! What this instance tells the others of itself, put up on the board as long as it runs.

use assignment_lock::{Board, Entry};
use futures::FutureExt as _;
use futures::future::select;
use service_kit::{Clock, Metrics, Shutdown};

use crate::metrics::{BOARD_FAILED, BOARD_PUT_UP};
use crate::owner::Identity;
use crate::surface::{Peers, Surface};

/// How long an entry stands, ms: of an instance that is gone, for seconds.
const STANDS_MS: u64 = 3_000;

/// It is put up anew after this, ms …
const AGAIN_MS: u64 = 1_000;

/// … and at once when something changed that others wait for; this is how often that is looked at, ms.
const LOOK_MS: u64 = 50;

/// Keeps what `surface` shows on the board until a shutdown is requested, and takes it down then. A
/// board that does not answer is tried again: it is a cache, and whoever misses it asks the group.
pub async fn keep_board<B, C, P>(
    board: B,
    surface: Surface<C, P>,
    clock: C,
    identity: Identity,
    metrics: Metrics,
    shutdown: Shutdown,
) where
    B: Board,
    C: Clock,
    P: Peers,
{
    let (put_up, failed) = (metrics.counter(&BOARD_PUT_UP), metrics.counter(&BOARD_FAILED));
    let mut told: Option<(Entry, u64)> = None;
    while !shutdown.is_requested() {
        let (entry, now) = (surface.entry(&identity), clock.boot_ms());
        let fresh = |(before, at): &(Entry, u64)| now < at.saturating_add(AGAIN_MS) && !is_news(before, &entry);
        if !told.as_ref().is_some_and(fresh) {
            let answer = board.put_up(entry.clone(), STANDS_MS).await;
            if answer.is_ok() {
                put_up.add(1)
            } else {
                failed.add(1)
            }
            told = Some((entry, now));
        }
        let sleep = clock.sleep_until(clock.boot_ms().saturating_add(LOOK_MS)).boxed();
        select(sleep, shutdown.requested().boxed()).await;
    }
    // What cannot be taken down expires.
    if board.take_down(identity.instance).await.is_err() {
        failed.add(1);
    }
}

// Another owner, or a queue that had nothing has something: somebody may be waiting for that.
fn is_news(before: &Entry, now: &Entry) -> bool {
    before.owns != now.owns || now.ready.keys().any(|queue| !before.ready.contains_key(queue))
}

#[cfg(test)]
mod tests {
    use task_events::{PartitionEpoch, PartitionId};

    use super::*;

    fn entry(owns: &[u32], ready: &[(&str, u64)]) -> Entry {
        Entry {
            instance: "a".into(),
            url: "u".into(),
            owns: (0..).map(PartitionId).zip(owns.iter().copied().map(PartitionEpoch)).collect(),
            ready: ready.iter().map(|(queue, n)| ((*queue).into(), *n)).collect(),
        }
    }

    #[test]
    fn others_wait_for_owners_and_for_queues_that_fill() {
        let before = entry(&[1, 1], &[("q", 5)]);
        assert!(is_news(&before, &entry(&[1], &[("q", 5)])), "an owner less");
        assert!(is_news(&before, &entry(&[1, 2], &[("q", 5)])), "another ownership");
        assert!(is_news(&before, &entry(&[1, 1], &[("q", 5), ("r", 1)])), "work where there was none");
        assert!(!is_news(&before, &entry(&[1, 1], &[("q", 9)])), "a number says nothing new");
        assert!(!is_news(&before, &entry(&[1, 1], &[])), "less work is nothing to wait for");
    }
}
