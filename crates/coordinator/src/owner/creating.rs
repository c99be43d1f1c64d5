//! Creates: key, payload, id, append, in this order.
//!
//! Ids are minted in append order above the highest accepted one, and a payload is stored before
//! the event that names its hash; so creates leave in the order their ids were minted, each as
//! soon as its payload is there.

use std::collections::VecDeque;

use snapshot_store::{KeyRow, PayloadItem, StoreError};
use task_core::decide;
use task_events::TaskId;

use super::asking::Call;
use super::work::{Batch, Job, Origin};
use super::{Alarm, Answer, Command, Effect, Key, Now, Owner, Phase, Ticket, Why};

/// Window of an idempotency key, ms (design.md §7: 24 h).
const KEY_WINDOW_MS: i64 = 24 * 60 * 60 * 1000;

/// Creates between mint and append.
#[derive(Debug, Default)]
pub(super) struct Creates {
    queue: VecDeque<Minted>,
    last: Option<TaskId>,
}

#[derive(Debug)]
struct Minted {
    job: Job,
    id: TaskId,
    /// Payload stored.
    ready: bool,
}

impl Creates {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.last = None;
    }
}

fn key_of(job: &Job) -> Option<Key> {
    match &job.command {
        Command::Create(create) => create.key,
        _ => None,
    }
}

impl Owner {
    /// A create, at first or after its record died.
    pub(super) fn create(&mut self, now: Now, job: Job) {
        let Command::Create(create) = &job.command else { return };
        let full = self.creators.get(&create.task.created.creator).copied().unwrap_or(0) >= self.cfg.max_open_tasks;
        if full {
            return self.reply(job.token, Answer::BacklogFull { limit: self.cfg.max_open_tasks });
        }
        if self.clock.unsettled().is_some() {
            return self.reply(job.token, Answer::Unavailable(Why::ClockUnsettled));
        }
        if self.owed.bytes() * 2 >= self.cfg.owed_bytes {
            return self.reply(job.token, Answer::Unavailable(Why::StoreBehind));
        }
        if self.flight.len() + self.creates.queue.len() >= self.cfg.max_in_flight {
            return self.reply(job.token, Answer::Unavailable(Why::InFlightFull));
        }
        let Some(key) = create.key else { return self.mint(now, job) };
        if let Some(others) = self.keys_pending.get_mut(&key.key_hash) {
            // Equal keys in flight join: they are answered when the first one is decided.
            return others.push(job);
        }
        if self.rules.owed_first
            && let Some(row) = self.owed.key(&key.key_hash)
        {
            let answer = key_answer(row, key);
            return self.answer_from_memory(now, job, answer);
        }
        self.keys_pending.insert(key.key_hash, Vec::new());
        if self.rules.key_read {
            let ticket = self.ticket(Call::Key(job));
            self.out.push(Effect::ReadKey(ticket, key.key_hash));
        } else {
            self.mint(now, job);
        }
    }

    /// A key's row was read.
    pub(super) fn key_read(&mut self, now: Now, ticket: Ticket, answer: Result<Option<KeyRow>, StoreError>) {
        let Some(Call::Key(job)) = self.calls.remove(&ticket) else { return };
        let Some(key) = key_of(&job) else { return };
        if self.phase != Phase::Owning {
            return self.reply(job.token, Answer::Unavailable(Why::NotOwner));
        }
        match answer {
            Err(_) => {
                self.alarm(Alarm::StoreUnavailable);
                self.reply(job.token, Answer::Unavailable(Why::StoreUnavailable));
                self.release_key(now, &job);
            }
            Ok(Some(row)) if row.created_at.saturating_add(KEY_WINDOW_MS) > self.clock.broker_ms(now) => {
                // The row does not change any more, so this is no answer from memory.
                self.reply(job.token, key_answer(&row, key));
                self.release_key(now, &job);
            }
            Ok(_) => self.mint(now, job),
        }
    }

    fn mint(&mut self, now: Now, job: Job) {
        let Command::Create(create) = &job.command else { return };
        let highest = if self.rules.mint_above_highest { self.fold.highest } else { TaskId::ZERO };
        let highest = highest.max(self.creates.last.unwrap_or(TaskId::ZERO));
        let Some(id) = TaskId::mint(highest, self.partition(), now.wall_ms) else {
            self.reply(job.token, Answer::Unavailable(Why::ClockUnsettled));
            return self.release_key(now, &job);
        };
        self.creates.last = Some(id);
        if create.key.is_none()
            && let Some(request) = self.requests.get_mut(&job.token)
        {
            request.minted = Some(id);
        }
        let payload = create.payload.clone();
        self.creates.queue.push_back(Minted { job, id, ready: payload.is_none() });
        if let Some(bytes) = payload {
            let ticket = self.ticket(Call::Payload(id));
            self.out.push(Effect::StorePayload(ticket, id, PayloadItem::Parameters, bytes));
        }
    }

    /// A payload was stored, or not.
    pub(super) fn payload_stored(&mut self, now: Now, ticket: Ticket, answer: Result<(), StoreError>) {
        let Some(Call::Payload(id)) = self.calls.remove(&ticket) else { return };
        let Some(at) = self.creates.queue.iter().position(|m| m.id == id) else { return };
        if answer.is_ok() {
            self.creates.queue[at].ready = true;
        } else if let Some(minted) = self.creates.queue.remove(at) {
            self.alarm(Alarm::StoreUnavailable);
            self.reply(minted.job.token, Answer::Unavailable(Why::StoreUnavailable));
            self.release_key(now, &minted.job);
        }
    }

    /// Appends the creates whose turn it is.
    pub(super) fn append_creates(&mut self, now: Now) {
        let mut batches = Vec::new();
        while let Some(minted) = self.creates.queue.front()
            && minted.ready
        {
            let Some(Minted { job, id, .. }) = self.creates.queue.pop_front() else { break };
            let Command::Create(create) = &job.command else { continue };
            if !self.requests.contains_key(&job.token) {
                // Nobody waits any more and nothing was written: nobody was told anything either.
                self.release_key(now, &job);
                continue;
            }
            let draft = decide::create(id, create.task.clone());
            if let Some(request) = self.requests.get_mut(&job.token) {
                request.has_record = true;
            }
            if !self.rules.effects_after_read_back {
                self.reply(job.token, Answer::Created { task_id: id, created_at: self.clock.broker_ms(now) });
            }
            batches.push(Batch { drafts: vec![draft], origin: Origin::Create(job, id) });
        }
        self.append(now, batches);
    }

    /// A create was read back as accepted.
    pub(super) fn created(&mut self, now: Now, job: Job, id: TaskId, created_at: i64) {
        self.reply(job.token, Answer::Created { task_id: id, created_at });
        self.release_key(now, &job);
    }

    /// A create's record is dead: the task was never born; a new id, and its payload again.
    pub(super) fn create_died(&mut self, now: Now, job: Job, _id: TaskId) {
        self.release_key(now, &job);
        if let Some(request) = self.requests.get_mut(&job.token) {
            request.has_record = false;
            request.minted = None;
            self.run(now, job);
        }
    }

    /// The first create of a key is decided: those that joined it are decided on what is known now.
    pub(super) fn release_key(&mut self, now: Now, job: &Job) {
        if let Some(key) = key_of(job)
            && let Some(joined) = self.keys_pending.remove(&key.key_hash)
        {
            joined.into_iter().for_each(|job| self.run(now, job));
        }
    }
}

fn key_answer(row: &KeyRow, key: Key) -> Answer {
    if row.request_hash.is_none_or(|hash| hash == key.request_hash) {
        Answer::Duplicate { task_id: row.task_id }
    } else {
        Answer::KeyConflict { task_id: row.task_id }
    }
}
