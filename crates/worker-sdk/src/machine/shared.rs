//! What all attempts of a machine share.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use task_events::{ExecutionId, TaskId};

use super::{Config, Now, Output, RequestId};

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) now: Now,
    pub(super) out: VecDeque<Output>,
    pub(super) memory: u32,
    pub(super) draining: bool,
    /// Attempts that occupy a slot.
    pub(super) active: u32,
    /// Attempts taken so far.
    pub(super) taken: u64,
    /// Unanswered requests of attempts.
    pub(super) requests: BTreeMap<RequestId, ExecutionId>,
    /// Tasks with a handler inside, stopping ones included.
    pub(super) inside: BTreeMap<TaskId, ExecutionId>,
    /// Attempts that may be entered once another attempt of their task is gone.
    pub(super) blocked: BTreeSet<ExecutionId>,
    last_request: u64,
}

impl Shared {
    pub(super) fn new(config: Config, now: Now) -> Self {
        Self {
            config,
            now,
            out: VecDeque::new(),
            memory: 0,
            draining: false,
            active: 0,
            taken: 0,
            requests: BTreeMap::new(),
            inside: BTreeMap::new(),
            blocked: BTreeSet::new(),
            last_request: 0,
        }
    }

    // The boot clock never goes back; a shell that mixes up two readings must not either.
    pub(super) fn set_now(&mut self, now: Now) {
        self.now = Now { boot_ms: now.boot_ms.max(self.now.boot_ms), ..now };
    }

    pub(super) fn next_request(&mut self) -> RequestId {
        self.last_request += 1;
        RequestId(self.last_request)
    }

    pub(super) fn request_of(&mut self, id: ExecutionId) -> RequestId {
        let request = self.next_request();
        self.requests.insert(request, id);
        request
    }

    pub(super) fn free_slots(&self) -> u32 {
        let left = self.config.max_attempts.map_or(u64::MAX, |max| max.saturating_sub(self.taken));
        self.config.slots.saturating_sub(self.active).min(u32::try_from(left).unwrap_or(u32::MAX))
    }

    /// One more attempt was taken; with the last one that may be, no other is asked for.
    pub(super) fn take_one(&mut self) {
        self.taken += 1;
        self.draining |= self.config.max_attempts.is_some_and(|max| self.taken >= max);
    }
}
