//! Work for a worker: its slots are offered to own owners by backlog, and what stays free to other
//! instances.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all, select, select_all};
use service_kit::{Clock, within};
use task_events::{ExecutionId, PartitionId, Text};
use worker_protocol::{Assignment, Poll, PollAnswer};

use super::{Peers, Surface};
use crate::owner::{Answer, Command};

/// Longest a poll waits before it looks at every backlog again, and pause before an instance that
/// had nothing is asked again, ms (design.md §8: once a second).
const POLL_ROUND_MS: u64 = 1_000;

/// The same of an instance that says by itself what it has …
const SAYS_MS: u64 = 100;

/// … and how often that is looked at while a poll waits, ms.
const HEAR_MS: u64 = 250;

/// Longest another instance is waited for, ms: the lease of what was found already runs.
const PEER_MS: u64 = 2_000;

/// Boot ms at which an instance was last asked for work of these queues and had none.
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

    fn free_slots(&self, poll: &Poll) -> u32 {
        poll.free_slots.saturating_sub(u32::try_from(self.assignments.len()).unwrap_or(u32::MAX))
    }

    // What is left of the poll's slots, as a poll that waits for nothing.
    fn rest(&self, poll: &Poll) -> Option<Poll> {
        let free_slots = self.free_slots(poll);
        (free_slots > 0).then(|| Poll { free_slots, wait_ms: 0, ..poll.clone() })
    }

    fn add(&mut self, assignments: Vec<Assignment>, stop: Vec<ExecutionId>) {
        self.assignments.extend(assignments);
        // An owner that is asked twice says it twice.
        self.stop.extend(stop.into_iter().filter(|execution| !self.stop.contains(execution)).collect::<Vec<_>>());
    }

    fn take_in(&mut self, answer: Answer) -> Result<(), Superseded> {
        let Answer::Poll(answer) = answer else { return Ok(()) };
        match answer {
            PollAnswer::Work { assignments, stop } => self.add(assignments, stop),
            PollAnswer::Superseded => return Err(Superseded),
            // Owners know of no drains; another instance's is told to whoever polls there.
            PollAnswer::Drain | PollAnswer::Unavailable => {}
        }
        Ok(())
    }
}

struct Superseded;

impl<C: Clock, P: Peers> Surface<C, P> {
    /// Work for a worker.
    pub async fn poll(&self, poll: Poll) -> PollAnswer {
        let until = self.clock.boot_ms().saturating_add(poll.wait_ms);
        if self.noted(&poll) {
            return PollAnswer::Drain;
        }
        loop {
            // Registered before the backlogs are read, or an offer in between would be missed.
            let handles: Vec<_> = self.owners.read().values().cloned().collect();
            let mut woken: Vec<BoxFuture<'_, ()>> = handles.iter().map(|h| h.offered().boxed()).collect();
            woken.push(self.closing.told.notified().boxed());
            if self.is_closing() {
                return PollAnswer::Unavailable;
            }
            if self.is_to_drain(&poll) {
                return PollAnswer::Drain;
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
            let hears = self.peers.instances().iter().any(|other| self.peers.ready(other, &poll.queues).is_some());
            let round = if hears { HEAR_MS } else { POLL_ROUND_MS };
            let sleep = Box::pin(self.clock.sleep_until(until.min(now + round)));
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

    // First all at once, each with a part of the slots by its backlog: asked one after the other, a
    // worker would wait for as many appends as there are partitions. A backlog says nothing of
    // queues, so what is left goes to each in turn: no slot stays free while an owner here has a task
    // for it. Who has none answers at once.
    async fn offer_here(&self, poll: &Poll, found: &mut Gathered) -> Result<(), Superseded> {
        let Some(mut rest) = found.rest(poll) else { return Ok(()) };
        // An owner is told of what is its own, so no copy carries all that the worker holds.
        let mut held = by_partition(std::mem::take(&mut rest.held));
        let mut owners: Vec<_> = {
            let owners = self.owners.read();
            let minding = owners.iter().filter(|(_, handle)| handle.minds_polls());
            minding.map(|(partition, handle)| (*partition, handle.clone(), handle.backlog())).collect()
        };
        in_turn(&self.turn, &mut owners);
        let backlogs: Vec<usize> = owners.iter().map(|(.., backlog)| *backlog).collect();
        let shares = shares(rest.free_slots, &backlogs);
        let asked = owners.iter().zip(&shares).map(|((partition, handle, _), free_slots)| {
            let held = held.get(partition).cloned().unwrap_or_default();
            handle.ask(Command::Poll(Poll { free_slots: *free_slots, held, ..rest.clone() }))
        });
        let answers = join_all(asked.collect::<Vec<_>>()).await;
        let mut may_have_more = Vec::with_capacity(owners.len());
        for ((answer, share), (.., backlog)) in answers.into_iter().zip(shares).zip(&owners) {
            let before = found.assignments.len();
            found.take_in(answer)?;
            may_have_more.push(*backlog > 0 && found.assignments.len() - before >= share as usize);
        }
        for ((partition, handle, _), _) in owners.iter().zip(may_have_more).filter(|(_, more)| *more) {
            let free_slots = found.free_slots(poll);
            if free_slots == 0 {
                break;
            }
            let mut held = held.remove(partition).unwrap_or_default();
            // What it gave a moment ago is on its way, not undelivered.
            let of = |a: &&Assignment| a.task_id.partition() == *partition;
            held.extend(found.assignments.iter().filter(of).map(|a| a.attempt.execution_id));
            found.take_in(handle.ask(Command::Poll(Poll { free_slots, held, ..rest.clone() })).await)?;
        }
        Ok(())
    }

    async fn offer_elsewhere(&self, poll: &Poll, found: &mut Gathered) -> Result<(), Superseded> {
        let mut instances = self.peers.instances();
        in_turn(&self.turn_of_peers, &mut instances);
        // Who says that it has most comes first.
        instances.sort_by_key(|instance| Reverse(self.peers.ready(instance, &poll.queues)));
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
                Some(PollAnswer::Drain | PollAnswer::Unavailable) | None => {}
            }
        }
        Ok(())
    }

    // Each is asked once a second while it has nothing, however many workers poll here, and at once when
    // it says that it has something; noted when it is asked, so that those that poll at the same time do
    // not all ask.
    fn may_have_work(&self, instance: &Text, poll: &Poll) -> bool {
        let now = self.clock.boot_ms();
        let says = self.peers.ready(instance, &poll.queues).is_some_and(|ready| ready > 0);
        let pause = if says { SAYS_MS } else { POLL_ROUND_MS };
        let mut had_nothing = self.had_nothing.lock();
        had_nothing.retain(|_, at| now < at.saturating_add(POLL_ROUND_MS));
        let asked = (instance.clone(), poll.queues.clone());
        if had_nothing.get(&asked).is_some_and(|at| now < at.saturating_add(pause)) {
            return false;
        }
        had_nothing.insert(asked, now);
        true
    }
}

fn in_turn<T>(turn: &AtomicUsize, of: &mut [T]) {
    let turn = turn.fetch_add(1, Ordering::Relaxed);
    if let Some(by) = turn.checked_rem(of.len()) {
        of.rotate_left(by);
    }
}

fn by_partition(held: Vec<ExecutionId>) -> BTreeMap<PartitionId, Vec<ExecutionId>> {
    let mut by_partition = BTreeMap::<_, Vec<_>>::new();
    for execution in held {
        if let Some((task, _)) = execution.parts() {
            by_partition.entry(task.partition()).or_default().push(execution);
        }
    }
    by_partition
}

// Slots by backlog, all of them as long as there is any; who has none is only told what is held.
fn shares(slots: u32, backlogs: &[usize]) -> Vec<u32> {
    let all: u64 = backlogs.iter().map(|backlog| *backlog as u64).sum();
    let share = |backlog: &usize| u64::from(slots) * *backlog as u64 / all.max(1);
    let mut shares: Vec<u64> = backlogs.iter().map(share).collect();
    // What rounding left, to the first ones in turn.
    let mut left = u64::from(slots).saturating_sub(shares.iter().sum());
    for (share, _) in shares.iter_mut().zip(backlogs).filter(|(_, backlog)| **backlog > 0) {
        let one = left.min(1);
        *share += one;
        left -= one;
    }
    shares.into_iter().map(|share| u32::try_from(share).unwrap_or(slots)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_shared_by_backlog_and_none_is_lost() {
        assert!(shares(8, &[]).is_empty());
        assert_eq!(shares(8, &[0, 0]), [0, 0]);
        assert_eq!(shares(8, &[0, 3, 0]), [0, 8, 0]);
        assert_eq!(shares(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(shares(1, &[500, 500]), [1, 0]);
        assert_eq!(shares(512, &[1_000_000, 1, 0]), [512, 0, 0]);
        assert_eq!(shares(3, &[1, 1, 1, 1]), [1, 1, 1, 0]);
        assert_eq!(shares(u32::MAX, &[usize::MAX >> 32]), [u32::MAX]);
    }
}
