//! Workers as they poll this instance, and those that are asked to drain. All of it is hearsay of this
//! process: it decides nothing about tasks, and a restart forgets it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use service_kit::Clock;
use task_events::{Incarnation, Text};
use worker_protocol::Poll;

use super::{Peers, Surface};

/// A worker that has not polled for this long is forgotten, ms.
const FORGOTTEN_MS: u64 = 10 * 60_000;

/// Most workers that are remembered; of more, those not heard of for longest are forgotten.
const WORKERS: usize = 10_000;

/// A worker at its last poll here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSeen {
    /// Worker.
    pub worker_id: Text,
    /// Its newest process.
    pub incarnation: Incarnation,
    /// Version of its handlers.
    pub handler_version: Text,
    /// Queues it serves.
    pub queues: Vec<Text>,
    /// Slots it had free.
    pub free_slots: u32,
    /// Attempts it said it holds.
    pub held: u32,
    /// When that was, Unix ms.
    pub polled_at: i64,
    /// It is asked to drain.
    pub draining: bool,
}

/// What an instance is asked about workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkersAsk {
    /// Which ones it has seen.
    Seen,
    /// To tell the processes of a worker up to this one to drain.
    Drain {
        /// Worker.
        worker: Text,
        /// Newest process that is meant.
        incarnation: Incarnation,
    },
    /// To let a worker have work again.
    Release {
        /// Worker.
        worker: Text,
    },
}

/// What instances answered, by name; `None` of one that did not.
pub type WorkersTold = Vec<(Text, Option<Vec<WorkerSeen>>)>;

#[derive(Default)]
pub(super) struct Board {
    /// With boot ms of the last poll.
    seen: BTreeMap<Text, (u64, WorkerSeen)>,
    /// Also of workers that never polled here; with boot ms of the request.
    draining: BTreeMap<Text, (Incarnation, u64)>,
}

impl Board {
    fn note(&mut self, now_ms: u64, wall_ms: i64, poll: &Poll) {
        let known = self.seen.get(&poll.worker_id);
        if known.is_some_and(|(_, seen)| seen.incarnation > poll.incarnation) {
            return;
        }
        if known.is_none() && self.seen.len() >= WORKERS {
            self.forget(now_ms);
            let oldest = self.seen.iter().min_by_key(|(_, (at, _))| *at).map(|(worker, _)| worker.clone());
            oldest.filter(|_| self.seen.len() >= WORKERS).map(|worker| self.seen.remove(&worker));
        }
        let seen = WorkerSeen {
            worker_id: poll.worker_id.clone(),
            incarnation: poll.incarnation,
            handler_version: poll.handler_version.clone(),
            queues: poll.queues.clone(),
            free_slots: poll.free_slots,
            held: u32::try_from(poll.held.len()).unwrap_or(u32::MAX),
            polled_at: wall_ms,
            draining: self.is_draining(&poll.worker_id, poll.incarnation),
        };
        self.seen.insert(poll.worker_id.clone(), (now_ms, seen));
    }

    fn is_draining(&self, worker: &Text, incarnation: Incarnation) -> bool {
        self.draining.get(worker).is_some_and(|(meant, _)| incarnation <= *meant)
    }

    fn forget(&mut self, now_ms: u64) {
        self.seen.retain(|_, (at, _)| now_ms.saturating_sub(*at) < FORGOTTEN_MS);
        let seen = &self.seen;
        // A process that has not polled for so long has drained, or will never hear of it.
        self.draining.retain(|worker, (_, at)| seen.contains_key(worker) || now_ms.saturating_sub(*at) < FORGOTTEN_MS);
    }
}

impl<C: Clock, P: Peers> Surface<C, P> {
    /// A worker polls this instance; whether it is to drain instead.
    pub(super) fn noted(&self, poll: &Poll) -> bool {
        let mut board = self.board.lock();
        board.note(self.clock.boot_ms(), self.clock.wall_ms(), poll);
        board.is_draining(&poll.worker_id, poll.incarnation)
    }

    pub(super) fn is_to_drain(&self, poll: &Poll) -> bool {
        self.board.lock().is_draining(&poll.worker_id, poll.incarnation)
    }

    /// What this instance answers.
    pub fn workers_here(&self, ask: &WorkersAsk) -> Vec<WorkerSeen> {
        let mut board = self.board.lock();
        match ask {
            WorkersAsk::Seen => board.forget(self.clock.boot_ms()),
            WorkersAsk::Drain { worker, incarnation } => {
                let now_ms = self.clock.boot_ms();
                let (meant, at) = board.draining.entry(worker.clone()).or_insert((*incarnation, now_ms));
                (*meant, *at) = ((*meant).max(*incarnation), now_ms);
                // Polls that wait here hear of it at once.
                self.closing.told.notify_waiters();
            }
            WorkersAsk::Release { worker } => drop(board.draining.remove(worker)),
        }
        let board = &*board;
        let seen = board.seen.values().map(|(_, seen)| WorkerSeen {
            draining: board.is_draining(&seen.worker_id, seen.incarnation),
            ..seen.clone()
        });
        seen.collect()
    }

    /// What the other instances answer; `None` of one that did not.
    pub async fn workers_elsewhere(&self, ask: &WorkersAsk) -> WorkersTold {
        self.peers.workers(ask).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(worker: &str, incarnation: i64, free_slots: u32) -> Poll {
        Poll {
            worker_id: worker.into(),
            incarnation: Incarnation(incarnation),
            handler_version: "1".into(),
            queues: vec!["q".into()],
            free_slots,
            held: Vec::new(),
            wait_ms: 0,
        }
    }

    #[test]
    fn the_newest_process_is_the_worker_and_old_ones_are_forgotten() {
        let mut board = Board::default();
        board.note(0, 5, &poll("w", 2, 3));
        board.note(1, 6, &poll("w", 1, 9));
        assert_eq!((board.seen["w"].1.free_slots, board.seen["w"].1.polled_at), (3, 5));
        board.draining.insert("w".into(), (Incarnation(2), 0));
        board.draining.insert("elsewhere".into(), (Incarnation(2), 1));
        assert!(board.is_draining(&"w".into(), Incarnation(1)) && board.is_draining(&"w".into(), Incarnation(2)));
        assert!(!board.is_draining(&"w".into(), Incarnation(3)), "a process that was started later");
        board.forget(FORGOTTEN_MS);
        assert!(board.seen.is_empty() && board.draining.keys().eq(["elsewhere"]));
        (0..=WORKERS).for_each(|n| board.note(n as u64, 0, &poll(&format!("w{n}"), 1, 1)));
        assert_eq!((board.seen.len(), board.seen.contains_key("w0")), (WORKERS, false));
    }
}
