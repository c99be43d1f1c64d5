//! Creates: key, limits, id, payload, append, in this order.
//!
//! Ids are minted in append order above the highest accepted one, and a payload is stored before
//! the event that names its hash; so creates leave in the order their ids were minted, each as
//! soon as its payload is there.

use std::collections::VecDeque;

use bytes::Bytes;
use snapshot_store::{KeyRow, PayloadItem, StoreError};
use task_core::decide::{self, Refusal};
use task_events::{Sha256Hash, TaskId};

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
    /// Of creates minted in this turn.
    payloads: Vec<(TaskId, PayloadItem, Bytes)>,
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

    /// The first task that was minted and not appended.
    pub(super) fn first(&self) -> Option<TaskId> {
        self.queue.front().map(|minted| minted.id)
    }

    /// Forgets what is under way; not the last id, which a client may have been told.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.payloads.clear();
    }

    // Ids rise along the queue.
    fn at(&self, id: TaskId) -> Option<usize> {
        self.queue.binary_search_by_key(&id, |minted| minted.id).ok()
    }
}

fn key_of(job: &Job) -> Option<Key> {
    let Command::Create(create) = &job.command else { return None };
    create.key
}

impl Owner {
    /// A create, at first or after its record died.
    pub(super) fn create(&mut self, now: Now, job: Job) {
        let Some(key) = key_of(&job) else { return self.mint(now, job) };
        if let Some(others) = self.keys_pending.get_mut(&key.key_hash) {
            // Equal keys in flight join: they are answered when the first one is decided.
            return others.push(job);
        }
        if self.rules.owed_first
            && let Some(row) = self.owed.key(&key.key_hash).filter(|row| self.in_window(now, row))
        {
            let answer = key_answer(row, key);
            return self.answer_from_memory(now, job, answer);
        }
        if self.keys_pending.len() >= self.cfg.max_in_flight {
            return self.reply(job.token, Answer::Unavailable(Why::InFlightFull));
        }
        self.keys_pending.insert(key.key_hash, Vec::new());
        if self.rules.key_read {
            let ticket = self.ticket(Call::Key(job));
            self.out.push(Effect::ReadKey(ticket, key.key_hash));
        } else {
            self.mint(now, job);
        }
    }

    fn in_window(&self, now: Now, row: &KeyRow) -> bool {
        row.created_at.saturating_add(KEY_WINDOW_MS) > self.clock.broker_ms(now)
    }

    /// A key's row was read.
    pub(super) fn key_read(&mut self, now: Now, ticket: Ticket, answer: Result<Option<KeyRow>, StoreError>) {
        let Some(Call::Key(job)) = self.calls.remove(&ticket) else { return };
        let Some(key) = key_of(&job) else { return };
        if self.phase != Phase::Owning {
            // Claiming again: nothing is decided until the claim is read back, then everything anew.
            self.run(now, job.clone());
            return self.release_key(now, &job);
        }
        match answer {
            Err(_) => {
                self.alarm(Alarm::StoreUnavailable);
                self.refuse(now, &job, Answer::Unavailable(Why::StoreUnavailable));
            }
            // The row does not change any more, so this is no answer from memory.
            Ok(Some(row)) if self.in_window(now, &row) => self.refuse(now, &job, key_answer(&row, key)),
            Ok(_) => self.mint(now, job),
        }
    }

    // Limits come after the key: what exists already is told whatever the load and the time.
    fn limit(&mut self, now: Now, job: &Job) -> Option<Answer> {
        let Command::Create(create) = &job.command else { return None };
        // Without a key the edge has looked at it already.
        let (deadline, now_ms) = (create.task.created.deadline, self.clock.broker_ms(now));
        if let Some(deadline) = deadline.filter(|deadline| *deadline <= now_ms && create.key.is_some()) {
            return Some(Answer::Refused(Refusal::DeadlinePassed { deadline, now: now_ms }));
        }
        let creator = &create.task.created.creator;
        let open = [&self.creators, &self.creating].map(|of| of.get(creator).copied().unwrap_or(0));
        if open[0] + open[1] >= self.cfg.max_open_tasks {
            return Some(Answer::BacklogFull { limit: self.cfg.max_open_tasks });
        }
        if self.clock.unsettled().is_some() {
            // Only an own record's stamp can settle it, and an idle owner writes none.
            self.wants_proof = true;
            return Some(Answer::Unavailable(Why::ClockUnsettled));
        }
        if self.owed.bytes().saturating_mul(2) >= self.cfg.owed_bytes {
            return Some(Answer::Unavailable(Why::StoreBehind));
        }
        if self.creates.queue.len() >= self.room() {
            return Some(Answer::Unavailable(Why::InFlightFull));
        }
        None
    }

    fn mint(&mut self, now: Now, job: Job) {
        if let Some(answer) = self.limit(now, &job) {
            return self.refuse(now, &job, answer);
        }
        let Command::Create(create) = &job.command else { return };
        let Some(id) = self.next_id(now) else {
            return self.refuse(now, &job, Answer::Unavailable(Why::ClockUnsettled));
        };
        self.creates.last = Some(id);
        if create.key.is_none()
            && let Some(request) = self.requests.get_mut(&job.token)
        {
            request.minted = Some(id);
        }
        *self.creating.entry(create.task.created.creator.clone()).or_default() += 1;
        let payload = create.payload.clone();
        let by_hash = self.rules.parameters_by_hash;
        let payload_hash = if by_hash { create.task.created.payload_hash } else { Sha256Hash::default() };
        let item = PayloadItem::Parameters { payload_hash };
        self.creates.queue.push_back(Minted { job, id, ready: payload.is_none() });
        self.creates.payloads.extend(payload.map(|bytes| (id, item, bytes)));
    }

    /// The id that a task would get now; `None`: all are used up.
    pub(super) fn next_id(&self, now: Now) -> Option<TaskId> {
        let highest = if self.rules.mint_above_highest { self.fold.highest } else { TaskId::ZERO };
        let highest = highest.max(self.creates.last.unwrap_or(TaskId::ZERO));
        TaskId::mint(highest, self.partition(), now.wall_ms)
    }

    /// Stores the payloads of what was minted in this turn with one write.
    pub(super) fn store_payloads(&mut self) {
        let items = std::mem::take(&mut self.creates.payloads);
        if !items.is_empty() {
            let ticket = self.ticket(Call::Payloads(items.iter().map(|(id, ..)| *id).collect()));
            self.out.push(Effect::StorePayloads(ticket, items));
        }
    }

    // A create that is not written; those that joined its key are decided on what is known now.
    fn refuse(&mut self, now: Now, job: &Job, answer: Answer) {
        self.reply(job.token, answer);
        self.release_key(now, job);
    }

    /// A minted create is over, one way or the other.
    pub(super) fn uncount(&mut self, job: &Job) {
        if let Command::Create(create) = &job.command
            && let Some(n) = self.creating.get_mut(&create.task.created.creator)
        {
            *n = n.saturating_sub(1);
            if *n == 0 {
                self.creating.remove(&create.task.created.creator);
            }
        }
    }

    /// Payloads were stored, or not: after an error any of them may be missing.
    pub(super) fn payloads_stored(&mut self, now: Now, ticket: Ticket, answer: Result<(), StoreError>) {
        let Some(Call::Payloads(ids)) = self.calls.remove(&ticket) else { return };
        if answer.is_err() {
            self.alarm(Alarm::StoreUnavailable);
        }
        for id in ids {
            let Some(at) = self.creates.at(id) else { continue };
            if answer.is_ok() {
                self.creates.queue[at].ready = true;
            } else if let Some(minted) = self.creates.queue.remove(at) {
                self.uncount(&minted.job);
                self.refuse(now, &minted.job, Answer::Unavailable(Why::StoreUnavailable));
            }
        }
    }

    /// Appends the creates whose turn it is. One that nobody waits for any more must not hold up
    /// those behind it: nothing was written, so nobody was told anything either.
    pub(super) fn append_creates(&mut self, now: Now) {
        if !self.may_write(now) {
            return;
        }
        let mut batches = Vec::new();
        while let Some(minted) = self.creates.queue.front() {
            let waits = self.requests.contains_key(&minted.job.token);
            if waits && (!minted.ready || batches.len() >= self.room()) {
                break;
            }
            let Some(Minted { job, id, .. }) = self.creates.queue.pop_front() else { break };
            let Command::Create(create) = &job.command else { continue };
            if !waits {
                self.uncount(&job);
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
        self.uncount(&job);
        self.reply(job.token, Answer::Created { task_id: id, created_at });
        self.release_key(now, &job);
    }

    /// A create's record is dead: the task was never born; a new id, and its payload again.
    pub(super) fn create_died(&mut self, now: Now, job: Job, _id: TaskId) {
        self.uncount(&job);
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
