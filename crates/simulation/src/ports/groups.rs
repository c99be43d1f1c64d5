//! Group membership: who holds which partition, revocation with a deadline, members declared lost
//! that do not hear of it for a while.

use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn};
use std::task::{Poll, Waker};
use std::time::Duration;

use event_log::{GroupMember, LogError, MemberInfo, MemberSpec, MembershipEvent};
use task_events::{Offset, PartitionId};

use crate::exec::ProcId;
use crate::faults::Fault;
use crate::hub::{Hub, Shared};

/// Silence after which a member is declared lost, µs.
pub const SESSION_US: u64 = 2_000_000;
/// Time a member has to give a revoked partition back, µs.
const REVOKE_US: u64 = 700_000;

type MemberId = u64;

struct Member {
    proc: ProcId,
    spec: MemberSpec,
    events: VecDeque<MembershipEvent>,
    waker: Option<Waker>,
    /// The group counts on it.
    live: bool,
    /// It hears nothing until then, true µs.
    deaf_until: u64,
}

impl Member {
    fn tell(&mut self, event: MembershipEvent) {
        self.events.push_back(event);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

#[derive(Default)]
struct Group {
    members: BTreeMap<MemberId, Member>,
    holder: Vec<Option<MemberId>>,
    /// Revocations under way: for whom, and their number.
    moving: Vec<Option<u64>>,
    turn: u64,
}

/// All groups.
#[derive(Default)]
pub struct Groups {
    groups: BTreeMap<String, Group>,
    partitions: usize,
    next: u64,
}

impl Groups {
    /// Groups of a topic.
    pub fn new(partitions: u16) -> Self {
        Self { partitions: usize::from(partitions), ..Self::default() }
    }

    /// Live members.
    pub fn infos(&self) -> Vec<MemberInfo> {
        let mut out = Vec::new();
        for (name, group) in &self.groups {
            for (id, member) in group.members.iter().filter(|(_, m)| m.live) {
                let held = group.holder.iter().enumerate().filter(|(_, h)| **h == Some(*id));
                out.push(MemberInfo {
                    group: name.clone(),
                    client_id: member.spec.client_id.clone(),
                    partitions: held.map(|(p, _)| PartitionId(p as u16)).collect(),
                });
            }
        }
        out
    }

    /// Names of the groups that have members.
    pub fn names(&self) -> Vec<String> {
        self.groups.keys().cloned().collect()
    }

    /// A live member of a group, the `n`-th.
    pub fn nth(&self, group: &str, n: u64) -> Option<(u64, ProcId)> {
        let live: Vec<_> = self.groups.get(group)?.members.iter().filter(|(_, m)| m.live).collect();
        let (id, member) = live.get(n.checked_rem(live.len() as u64)? as usize)?;
        Some((**id, member.proc))
    }

    fn of_proc(&self, proc: ProcId) -> Vec<(String, MemberId)> {
        let each = self.groups.iter().flat_map(|(name, g)| g.members.iter().map(move |(id, m)| (name, *id, m)));
        each.filter(|(_, _, m)| m.proc == proc).map(|(name, id, _)| (name.clone(), id)).collect()
    }
}

impl Shared {
    /// Shares the partitions anew, with another start if `turn`.
    pub fn rebalance(&mut self, name: &str, turn: bool) {
        let partitions = self.groups.partitions;
        let Some(group) = self.groups.groups.get_mut(name) else { return };
        group.holder.resize(partitions, None);
        group.moving.resize(partitions, None);
        group.turn += u64::from(turn);
        let live: Vec<MemberId> = group.members.iter().filter(|(_, m)| m.live).map(|(id, _)| *id).collect();
        if live.is_empty() {
            return;
        }
        let mut revoked = Vec::new();
        for p in 0..partitions {
            let target = live[((p as u64 + group.turn) % live.len() as u64) as usize];
            let holder = group.holder[p].filter(|h| live.contains(h));
            match holder {
                Some(h) if h == target || group.moving[p].is_some() => {}
                Some(h) => {
                    self.groups.next += 1;
                    group.moving[p] = Some(self.groups.next);
                    if let Some(member) = group.members.get_mut(&h) {
                        let deadline = Duration::from_micros(REVOKE_US);
                        member.tell(MembershipEvent::Revoked { partitions: vec![PartitionId(p as u16)], deadline });
                    }
                    revoked.push((p, h, self.groups.next));
                }
                None => {
                    group.moving[p] = None;
                    group.holder[p] = Some(target);
                    if let Some(member) = group.members.get_mut(&target) {
                        member.tell(MembershipEvent::Assigned(vec![PartitionId(p as u16)]));
                    }
                }
            }
        }
        for (p, holder, number) in revoked {
            let (at, name) = (self.now() + REVOKE_US, name.to_owned());
            self.later(at, move |s| s.revocation_over(&name, p, holder, number, false));
        }
    }

    // Given back, or the deadline passed.
    fn revocation_over(&mut self, name: &str, p: usize, holder: MemberId, number: u64, released: bool) {
        let Some(group) = self.groups.groups.get_mut(name) else { return };
        if group.moving.get(p) != Some(&Some(number)) || group.holder[p] != Some(holder) {
            return;
        }
        group.moving[p] = None;
        group.holder[p] = None;
        if !released {
            self.tally.add(Fault::RevokeLate);
            let delay = if self.faults.on(Fault::RevokeLate) { self.rng.below(3_000_000) } else { 0 };
            // First in its queue, however late it reads it: what it is given next comes after.
            self.tell(name, holder, MembershipEvent::Lost(vec![PartitionId(p as u16)]));
            self.deafen(name, holder, delay);
        }
        self.rebalance(name, false);
    }

    fn deafen(&mut self, name: &str, id: MemberId, for_us: u64) {
        let until = self.now() + for_us;
        if let Some(member) = self.groups.groups.get_mut(name).and_then(|g| g.members.get_mut(&id)) {
            member.deaf_until = until;
        }
        let name = name.to_owned();
        self.later(until, move |s| {
            let member = s.groups.groups.get_mut(&name).and_then(|g| g.members.get_mut(&id));
            if let Some(waker) = member.and_then(|m| m.waker.take()) {
                waker.wake();
            }
        });
    }

    fn tell(&mut self, name: &str, member: MemberId, event: MembershipEvent) {
        if let Some(member) = self.groups.groups.get_mut(name).and_then(|g| g.members.get_mut(&member)) {
            member.tell(event);
        }
    }

    /// A member is declared lost; it hears of it, and is back, after `quiet_us`.
    pub fn declare_lost(&mut self, name: &str, id: MemberId, quiet_us: u64) {
        let Some(group) = self.groups.groups.get_mut(name) else { return };
        let Some(member) = group.members.get_mut(&id).filter(|m| m.live) else { return };
        member.live = false;
        let mut lost = Vec::new();
        for (p, holder) in group.holder.iter_mut().enumerate() {
            if *holder == Some(id) {
                *holder = None;
                group.moving[p] = None;
                lost.push(PartitionId(p as u16));
            }
        }
        self.rebalance(name, false);
        let (at, name) = (self.now() + quiet_us, name.to_owned());
        self.later(at, move |s| {
            if !lost.is_empty() {
                s.tell(&name, id, MembershipEvent::Lost(lost));
            }
            if let Some(member) = s.groups.groups.get_mut(&name).and_then(|g| g.members.get_mut(&id)) {
                member.live = true;
            }
            s.rebalance(&name, false);
        });
    }

    /// A process is gone: its members are noticed by their silence.
    pub fn silence(&mut self, proc: ProcId) {
        for (name, id) in self.groups.of_proc(proc) {
            let at = self.now() + SESSION_US;
            self.later(at, move |s| s.remove_member(&name, id));
        }
    }

    /// A process stands still until then: if that is long its members are declared lost.
    pub fn stands_still(&mut self, proc: ProcId, until: u64) {
        let at = self.now() + SESSION_US;
        if until <= at {
            return;
        }
        for (name, id) in self.groups.of_proc(proc) {
            self.later(at, move |s| s.declare_lost(&name, id, until.saturating_sub(at)));
        }
    }

    fn remove_member(&mut self, name: &str, id: MemberId) {
        let Some(group) = self.groups.groups.get_mut(name) else { return };
        group.members.remove(&id);
        for (p, holder) in group.holder.iter_mut().enumerate() {
            if *holder == Some(id) {
                *holder = None;
                group.moving[p] = None;
            }
        }
        self.rebalance(name, false);
    }
}

/// Membership of one process in one group.
pub struct SimMember {
    hub: Hub,
    group: String,
    id: MemberId,
}

impl SimMember {
    /// Joins.
    pub fn join(hub: &Hub, proc: ProcId, spec: MemberSpec) -> Self {
        let mut s = hub.lock();
        s.groups.next += 1;
        let id = s.groups.next;
        let group = spec.group.clone();
        let member = Member { proc, spec, events: VecDeque::new(), waker: None, live: true, deaf_until: 0 };
        s.groups.groups.entry(group.clone()).or_default().members.insert(id, member);
        s.rebalance(&group, false);
        drop(s);
        Self { hub: hub.clone(), group, id }
    }
}

impl GroupMember for SimMember {
    fn next(&mut self) -> impl Future<Output = Result<MembershipEvent, LogError>> + Send {
        poll_fn(|cx| {
            let mut s = self.hub.lock();
            let now = s.now();
            let member = s.groups.groups.get_mut(&self.group).and_then(|g| g.members.get_mut(&self.id));
            let Some(member) = member else { return Poll::Ready(Err(LogError::NotMember(self.group.clone()))) };
            let event = if now < member.deaf_until { None } else { member.events.pop_front() };
            match event {
                Some(event) => Poll::Ready(Ok(event)),
                None => {
                    member.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
    }

    fn release(&mut self, partition: PartitionId, _: Offset) {
        let mut s = self.hub.lock();
        let p = usize::from(partition.0);
        let number = s.groups.groups.get(&self.group).and_then(|g| g.moving.get(p).copied().flatten());
        if let Some(number) = number {
            let group = self.group.clone();
            s.revocation_over(&group, p, self.id, number, true);
        }
    }

    fn progress(&mut self, _: PartitionId, _: Offset) {}

    async fn leave(self, _: Duration) {
        self.hub.lock().remove_member(&self.group, self.id);
    }
}
