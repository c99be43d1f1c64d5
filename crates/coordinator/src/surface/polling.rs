//! Work for a worker: its slots are offered to own owners by backlog, and what stays free to other
//! instances.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use futures::FutureExt as _;
use futures::future::{BoxFuture, select, select_all};
use service_kit::{Clock, within};
use task_events::{ExecutionId, Text};
use worker_protocol::{Assignment, Poll, PollAnswer};

use super::{Peers, Surface};
use crate::owner::{Answer, Command};

/// Longest a poll waits before it looks at every backlog again, and pause before an instance that
/// had nothing is asked again, ms (design.md §8: once a second).
const POLL_ROUND_MS: u64 = 1_000;

/// Longest another instance is waited for, ms: the lease of what was found already runs.
const PEER_MS: u64 = 2_000;

/// Boot ms until which an instance is not asked again for work of these queues.
pub(super) type HadNothing = BTreeMap<(Text, Vec<Text>), u64>;

#[derive(Default)]
struct Gathered {
    assignments: Vec<Assignment>,
    stop: Vec<ExecutionId>,
}

impl Gathered {
    fn is_empty(&self) -> bool {
        self.assignments.is_empty() && self.stop.is_empty()
    }

    // What is left of the poll's slots, as a poll that waits for nothing.
    fn rest(&self, poll: &Poll) -> Option<Poll> {
        let taken = u32::try_from(self.assignments.len()).unwrap_or(u32::MAX);
        let free_slots = poll.free_slots.saturating_sub(taken);
        (free_slots > 0).then(|| Poll { free_slots, wait_ms: 0, ..poll.clone() })
    }

    fn add(&mut self, assignments: Vec<Assignment>, stop: Vec<ExecutionId>) {
        self.assignments.extend(assignments);
        self.stop.extend(stop);
    }
}

struct Superseded;

impl<C: Clock, P: Peers> Surface<C, P> {
    /// Work for a worker.
    pub async fn poll(&self, poll: Poll) -> PollAnswer {
        let until = self.clock.boot_ms().saturating_add(poll.wait_ms);
        loop {
            // Registered before the backlogs are read, or an offer in between would be missed.
            let handles: Vec<_> = self.owners.read().values().cloned().collect();
            let mut woken: Vec<BoxFuture<'_, ()>> = handles.iter().map(|h| h.offered().boxed()).collect();
            woken.push(self.closing.told.notified().boxed());
            if self.is_closing() {
                return PollAnswer::Unavailable;
            }
            let mut found = Gathered::default();
            if let Err(Superseded) = self.offer_here(&poll, &mut found).await {
                return PollAnswer::Superseded;
            }
            if let Err(Superseded) = self.offer_elsewhere(&poll, &mut found).await {
                return PollAnswer::Superseded;
            }
            let now = self.clock.boot_ms();
            if !found.is_empty() || now >= until {
                return PollAnswer::Work { assignments: found.assignments, stop: found.stop };
            }
            let sleep = Box::pin(self.clock.sleep_until(until.min(now + POLL_ROUND_MS)));
            // Either way the backlogs are looked at again.
            select(select_all(woken), sleep).await;
        }
    }

    /// What a poll gets that another instance passed on: what own owners have now.
    pub async fn poll_here(&self, poll: Poll) -> PollAnswer {
        let mut found = Gathered::default();
        match self.offer_here(&poll, &mut found).await {
            Ok(()) => PollAnswer::Work { assignments: found.assignments, stop: found.stop },
            Err(Superseded) => PollAnswer::Superseded,
        }
    }

    async fn offer_here(&self, poll: &Poll, found: &mut Gathered) -> Result<(), Superseded> {
        let mut owners: Vec<_> = self.owners.read().values().filter(|h| h.minds_polls()).cloned().collect();
        self.in_turn(&mut owners);
        for owner in owners {
            let Some(rest) = found.rest(poll) else { break };
            let Answer::Poll(answer) = owner.ask(Command::Poll(rest)).await else { continue };
            match answer {
                PollAnswer::Work { assignments, stop } => found.add(assignments, stop),
                PollAnswer::Superseded => return Err(Superseded),
                PollAnswer::Unavailable => {}
            }
        }
        Ok(())
    }

    async fn offer_elsewhere(&self, poll: &Poll, found: &mut Gathered) -> Result<(), Superseded> {
        let mut instances = self.peers.instances();
        self.in_turn(&mut instances);
        for instance in instances {
            let Some(rest) = found.rest(poll) else { break };
            if !self.may_have_work(&instance, poll) {
                continue;
            }
            match within(&self.clock, PEER_MS, self.peers.poll(&instance, &rest)).await.flatten() {
                Some(PollAnswer::Superseded) => return Err(Superseded),
                Some(PollAnswer::Work { assignments, stop }) if !assignments.is_empty() => {
                    self.had_nothing.lock().remove(&(instance, poll.queues.clone()));
                    found.add(assignments, stop);
                }
                Some(PollAnswer::Work { stop, .. }) => found.add(Vec::new(), stop),
                Some(PollAnswer::Unavailable) | None => {}
            }
        }
        Ok(())
    }

    // Each is asked once a second while it has nothing, however many workers poll here; noted when it
    // is asked, so that those that poll at the same time do not all ask.
    fn may_have_work(&self, instance: &Text, poll: &Poll) -> bool {
        let now = self.clock.boot_ms();
        let mut had_nothing = self.had_nothing.lock();
        had_nothing.retain(|_, until| *until > now);
        let asked = (instance.clone(), poll.queues.clone());
        if had_nothing.contains_key(&asked) {
            return false;
        }
        had_nothing.insert(asked, now.saturating_add(POLL_ROUND_MS));
        true
    }

    fn in_turn<T>(&self, of: &mut [T]) {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        if let Some(by) = turn.checked_rem(of.len()) {
            of.rotate_left(by);
        }
    }
}
