//! Why a task is not handed out.

use coordinator::owner::{Blocked, WaitFacts, WhyFacts};
use task_core::{CoreState, Row};

use super::{Fact, duration, fact};

/// A queue that no worker asked for within this has none, ms: an owner with work is asked once a second.
const NO_WORKER_MS: u64 = 5_000;

pub(super) fn fact_of(core: &CoreState, row: &Row, facts: &WhyFacts) -> Fact {
    let none = WaitFacts::default();
    let wait = facts.wait.as_ref().unwrap_or(&none);
    let queue = &row.created.queue;
    if wait.paused {
        return fact("queue_paused", "people", format!("queue {queue:?} is paused"))
            .next(format!("resume queue {queue:?}"));
    }
    if wait.due_in_ms > 0 {
        return not_due(core, row, wait);
    }
    if let Some(other) = wait.key_held_by {
        let key = row.created.concurrency_key.as_deref().unwrap_or_default();
        return fact("concurrency_key", "worker", format!("concurrency key {key:?} is held by task {other}"))
            .next(format!("GET /api/v1/task/{other}/why"));
    }
    match wait.blocked {
        Some(Blocked::RowsOwed) => {
            let text = "nothing is handed out in this partition: the store is behind by all that may be owed to it";
            return fact("store_behind", "coordinator", text).next("look after the store");
        }
        Some(Blocked::LockServer) => {
            let text = "nothing is handed out: the lock server is away, and lock.on-unavailable is pause";
            return fact("lock_server_away", "coordinator", text).next("look after the lock server");
        }
        None => {}
    }
    if facts.settling {
        let text = "a record about the task is on its way or was rejected; the owner goes on when that is settled";
        return fact("settling", "coordinator", text);
    }
    worker(row, wait)
}

fn not_due(core: &CoreState, row: &Row, wait: &WaitFacts) -> Fact {
    let left = duration(wait.due_in_ms);
    if wait.may_still_run_ms >= wait.due_in_ms {
        let text = format!("the former attempt {} may still run for {left}: its lease is not over", core.exec_epoch);
        return fact("former_attempt", "worker", text).ends_in(wait.due_in_ms);
    }
    let at = row.not_before.unwrap_or_default();
    if row.released_in_a_row >= 5 && row.not_before.is_none_or(|at| at <= row.changed_broker_ms) {
        let text = format!("{} workers in a row gave it back; the next is asked in {left}", row.released_in_a_row);
        return fact("given_back", "coordinator", text).ends_in(wait.due_in_ms);
    }
    if core.retry_count + core.lost_count > 0 {
        let text =
            format!("retry {} of {} backs off until {at}, for {left}", core.retry_count.max(1), core.max_retries);
        return fact("retry_backs_off", "coordinator", text).ends_in(wait.due_in_ms);
    }
    fact("delayed", "coordinator", format!("it is delayed until {at}, for {left}")).ends_in(wait.due_in_ms)
}

fn worker(row: &Row, wait: &WaitFacts) -> Fact {
    let queue = &row.created.queue;
    let before = match wait.before.unwrap_or(0) {
        0 => "no task is before it".to_owned(),
        1 => "1 task is before it".to_owned(),
        n => format!("{n} tasks are before it"),
    };
    let silent = wait.polled_ms_ago.is_none_or(|ago| ago >= NO_WORKER_MS);
    if silent {
        let ago = duration(wait.polled_ms_ago.unwrap_or(wait.owned_for_ms));
        let text = format!(
            "it waits for a worker that serves queue {queue:?}: no worker has polled this queue for {ago}; {before}"
        );
        return fact("no_worker", "worker", text).next(format!("start a worker for queue {queue:?}"));
    }
    let ago = duration(wait.polled_ms_ago.unwrap_or(0));
    let text = format!(
        "it waits for a free slot of a worker that serves queue {queue:?}: {before}; the last poll was {ago} ago"
    );
    fact("no_slot", "worker", text).next("more workers or slots, if it waits too long")
}
