//! Why a task is where it is (`GET /task/{id}/why`): facts that only the owner has, read at one
//! moment. Told with the proof that any read needs, and put into words elsewhere.

use serde::{Deserialize, Serialize};
use task_events::{TaskId, TaskState, Text};

use super::work::Job;
use super::{Answer, Command, Map, Now, Owner, TaskSeen};

/// Queues whose last poll is remembered; of more, those asked for longest ago are forgotten.
const QUEUES: usize = 10_000;
const QUEUE_FORGOTTEN_MS: u64 = 10 * 60_000;

/// What keeps a task where it is, as the owner knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhyFacts {
    /// The task.
    pub seen: TaskSeen,
    /// Broker time by the owner's clock, Unix ms.
    pub now: i64,
    /// Of a task that waits to be handed out.
    pub wait: Option<WaitFacts>,
    /// Of a live attempt.
    pub attempt: Option<AttemptFacts>,
    /// A record of the task is on its way, or its writer backs off: the next state is near.
    pub settling: bool,
}

/// Of a task that waits to be handed out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitFacts {
    /// Until it may be handed out, ms; 0 = now. Covers `not_before`, back-off and the next.
    pub due_in_ms: u64,
    /// The former attempt may still run for so long, ms.
    pub may_still_run_ms: u64,
    /// Its queue is paused.
    pub paused: bool,
    /// Tasks of its queue in this partition that are handed out before it, if it stands in line.
    pub before: Option<u64>,
    /// Since a worker last asked this owner for work of the queue, ms; `None` = not in its time.
    pub polled_ms_ago: Option<u64>,
    /// Since the owner's claim, ms.
    pub owned_for_ms: u64,
    /// Task whose concurrency key it waits for.
    pub key_held_by: Option<TaskId>,
    /// Why nothing at all is handed out in this partition.
    pub blocked: Option<Blocked>,
}

/// Why nothing is handed out in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Blocked {
    /// Rows owed to the store have reached their limit.
    RowsOwed,
    /// The lock server is away, and the policy is to pause.
    LockServer,
}

/// Of a live attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptFacts {
    /// Since the last sign of life, ms.
    pub sign_ms_ago: u64,
    /// Until its lease ends, the owner's margin included, ms.
    pub lease_ends_in_ms: u64,
    /// Until it comes back if its handler is not entered, ms.
    pub not_started_in_ms: Option<u64>,
    /// Until the grace of a cancel request is over, ms.
    pub grace_ends_in_ms: Option<u64>,
    /// Step last told to be in progress, and whether it is idempotent.
    pub step: Option<(Text, bool)>,
    /// Its hand-out is not told to the worker yet.
    pub under_way: bool,
}

/// Workers asked for work of these queues.
pub(super) fn note_polled(polled: &mut Map<Text, u64>, now: Now, queues: &[Text]) {
    for queue in queues {
        if let Some(at) = polled.get_mut(queue) {
            *at = now.boot_ms;
            continue;
        }
        if polled.len() >= QUEUES {
            polled.retain(|_, at| now.boot_ms.saturating_sub(*at) < QUEUE_FORGOTTEN_MS);
        }
        if polled.len() < QUEUES {
            polled.insert(queue.clone(), now.boot_ms);
        }
    }
}

impl Owner {
    /// What a read of a task is answered with.
    pub(super) fn told(&self, now: Now, job: &Job, seen: TaskSeen) -> Answer {
        if !matches!(job.command, Command::Why { .. }) {
            return Answer::Task(Box::new(seen));
        }
        let core = &seen.row.core;
        let open = seen.row.closed_at.is_none();
        let waits = open && matches!(core.state, TaskState::Created | TaskState::Retrying);
        let wait = waits.then(|| self.wait_facts(now, &seen));
        let attempt = if open { self.attempt_facts(now, core.id) } else { None };
        let settling = open && self.is_taken(core.id);
        Answer::Why(Box::new(WhyFacts { now: self.clock.broker_ms(now), wait, attempt, settling, seen }))
    }

    fn wait_facts(&self, now: Now, seen: &TaskSeen) -> WaitFacts {
        let (id, row) = (seen.row.core.id, &seen.row.row);
        let queue = &row.created.queue;
        let left = |at: u64| at.saturating_sub(now.boot_ms);
        let blocked = if self.owed.bytes() >= self.cfg.owed_bytes {
            Some(Blocked::RowsOwed)
        } else if self.paused_by_lock() {
            Some(Blocked::LockServer)
        } else {
            None
        };
        WaitFacts {
            due_in_ms: left(self.due_at(now, id, row)),
            may_still_run_ms: self.holds.get(&id).copied().map_or(0, left),
            paused: self.fold.paused_queues.contains(queue),
            before: self.dispatch.before(id).map(|n| n as u64),
            polled_ms_ago: self.polled_ago(now, queue),
            owned_for_ms: now.boot_ms.saturating_sub(self.claimed_ms),
            key_held_by: self.dispatch.keys.held_by(id),
            blocked,
        }
    }

    fn attempt_facts(&self, now: Now, id: TaskId) -> Option<AttemptFacts> {
        let live = self.live.get(&id)?;
        let left = |at: u64| at.saturating_sub(now.boot_ms);
        let assigned = self.fold.tasks.get(id).is_some_and(|slot| slot.core.state == TaskState::Assigned);
        let ago = self.clock.broker_ms(now).saturating_sub(live.last_sign_ms);
        Some(AttemptFacts {
            sign_ms_ago: u64::try_from(ago).unwrap_or(0),
            lease_ends_in_ms: left(live.until_ms),
            not_started_in_ms: assigned.then(|| left(live.not_started_ms)),
            grace_ends_in_ms: live.grace_ms.map(left),
            step: live.step.clone(),
            under_way: self.dispatch.is_under_way(id),
        })
    }
}
