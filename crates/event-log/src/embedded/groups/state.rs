//! Who holds which partition of a group. Pure: time comes in as an argument, events go out as
//! messages; so every transition can be tested step by step.
//!
//! Cooperative: a member keeps what it has while others come and go, and gives up only what it
//! holds above its share. A partition never goes to the next member before the last one released
//! it, was told that it is lost, or is gone.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use task_events::{Offset, PartitionId};
use tokio::sync::mpsc::UnboundedSender;

use crate::{MemberInfo, MembershipEvent};

/// Number of a member, rising in the order of joining.
pub(super) type MemberId = u64;

/// One group.
pub(super) struct Group {
    members: BTreeMap<MemberId, Member>,
    slots: Vec<Slot>,
    applied: BTreeMap<PartitionId, Offset>,
}

struct Member {
    client_id: String,
    last_seen: Instant,
    events: UnboundedSender<MembershipEvent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Free,
    Held(MemberId),
    Revoking { from: MemberId, until: Instant },
}

impl Slot {
    fn of(self) -> Option<MemberId> {
        match self {
            Self::Free => None,
            Self::Held(member) | Self::Revoking { from: member, .. } => Some(member),
        }
    }
}

impl Group {
    pub fn new(partitions: u16) -> Self {
        Self { members: BTreeMap::new(), slots: vec![Slot::Free; usize::from(partitions)], applied: BTreeMap::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub fn join(
        &mut self,
        id: MemberId,
        client_id: String,
        events: UnboundedSender<MembershipEvent>,
        now: Instant,
        deadline: Duration,
    ) {
        self.members.insert(id, Member { client_id, last_seen: now, events });
        self.rebalance(now, deadline);
    }

    /// `false`: no longer a member.
    pub fn heartbeat(&mut self, id: MemberId, now: Instant) -> bool {
        self.members.get_mut(&id).map(|member| member.last_seen = now).is_some()
    }

    pub fn release(&mut self, id: MemberId, partition: PartitionId, now: Instant, deadline: Duration) {
        let Some(slot) = self.slots.get_mut(usize::from(partition.0)) else { return };
        if matches!(slot, Slot::Revoking { from, .. } if *from == id) {
            *slot = Slot::Free;
            self.rebalance(now, deadline);
        }
    }

    pub fn record(&mut self, partition: PartitionId, applied: Offset) {
        self.applied.insert(partition, applied);
    }

    pub fn applied(&self, partition: PartitionId) -> Option<Offset> {
        self.applied.get(&partition).copied()
    }

    /// The member gives up everything of its own accord.
    pub fn leave(&mut self, id: MemberId, now: Instant, deadline: Duration) {
        if self.members.remove(&id).is_some() {
            self.free_all(id);
            self.rebalance(now, deadline);
        }
    }

    /// The member is dropped: what it held is lost to it.
    pub fn expel(&mut self, id: MemberId, now: Instant, deadline: Duration) {
        if let Some(member) = self.members.remove(&id) {
            let lost = self.free_all(id);
            if !lost.is_empty() {
                let _ = member.events.send(MembershipEvent::Lost(lost));
            }
            self.rebalance(now, deadline);
        }
    }

    pub fn ids_of(&self, client_id: &str) -> Vec<MemberId> {
        self.members.iter().filter(|(_, member)| member.client_id == client_id).map(|(id, _)| *id).collect()
    }

    /// Starts the revocation of those of these partitions that the member holds.
    pub fn revoke(&mut self, id: MemberId, partitions: &[PartitionId], now: Instant, deadline: Duration) -> usize {
        let held: Vec<PartitionId> =
            partitions.iter().copied().filter(|p| self.slots.get(usize::from(p.0)) == Some(&Slot::Held(id))).collect();
        self.start_revoking(id, &held, now, deadline);
        held.len()
    }

    /// What time alone brings about: silent members are dropped, overdue revocations end.
    pub fn tick(&mut self, now: Instant, session_timeout: Duration, deadline: Duration) {
        let silent: Vec<MemberId> = self
            .members
            .iter()
            .filter(|(_, m)| now.saturating_duration_since(m.last_seen) >= session_timeout)
            .map(|(id, _)| *id)
            .collect();
        for id in silent {
            self.expel(id, now, deadline);
        }
        let mut lost: BTreeMap<MemberId, Vec<PartitionId>> = BTreeMap::new();
        for (p, slot) in self.slots.iter_mut().enumerate() {
            if let Slot::Revoking { from, until } = *slot
                && until <= now
            {
                *slot = Slot::Free;
                lost.entry(from).or_default().push(PartitionId(p as u16));
            }
        }
        let any = !lost.is_empty();
        for (id, partitions) in lost {
            self.send(id, MembershipEvent::Lost(partitions));
        }
        if any {
            self.rebalance(now, deadline);
        }
    }

    /// The clock of the group itself stood still: nobody's silence counts for that long.
    pub fn excuse(&mut self, gap: Duration) {
        for member in self.members.values_mut() {
            member.last_seen += gap;
        }
        for slot in &mut self.slots {
            if let Slot::Revoking { until, .. } = slot {
                *until += gap;
            }
        }
    }

    pub fn describe(&self, group: &str) -> Vec<MemberInfo> {
        let holds = |id| self.partitions_where(|slot| slot.of() == Some(id));
        let info = |(&id, m): (&MemberId, &Member)| MemberInfo {
            group: group.to_owned(),
            client_id: m.client_id.clone(),
            partitions: holds(id),
        };
        self.members.iter().map(info).collect()
    }

    fn partitions_where(&self, wanted: impl Fn(Slot) -> bool) -> Vec<PartitionId> {
        self.slots.iter().enumerate().filter(|(_, slot)| wanted(**slot)).map(|(p, _)| PartitionId(p as u16)).collect()
    }

    fn free_all(&mut self, id: MemberId) -> Vec<PartitionId> {
        let held = self.partitions_where(|slot| slot.of() == Some(id));
        for partition in &held {
            self.slots[usize::from(partition.0)] = Slot::Free;
        }
        held
    }

    fn send(&self, id: MemberId, event: MembershipEvent) {
        if let Some(member) = self.members.get(&id) {
            // A member that was just dropped no longer listens; it is expelled by its silence.
            let _ = member.events.send(event);
        }
    }

    fn start_revoking(&mut self, id: MemberId, partitions: &[PartitionId], now: Instant, deadline: Duration) {
        if partitions.is_empty() {
            return;
        }
        for partition in partitions {
            self.slots[usize::from(partition.0)] = Slot::Revoking { from: id, until: now + deadline };
        }
        self.send(id, MembershipEvent::Revoked { partitions: partitions.to_vec(), deadline });
    }

    /// Shares free partitions out and starts to take back what is above a member's share. Those
    /// who hold most keep the larger share, so that nothing moves without need.
    fn rebalance(&mut self, now: Instant, deadline: Duration) {
        if self.members.is_empty() {
            return;
        }
        let mut held: Vec<(MemberId, Vec<PartitionId>)> =
            self.members.keys().map(|&id| (id, self.partitions_where(|slot| slot == Slot::Held(id)))).collect();
        held.sort_by_key(|(id, partitions)| (std::cmp::Reverse(partitions.len()), *id));
        let (share, larger) = (self.slots.len() / held.len(), self.slots.len() % held.len());
        let mut free = self.partitions_where(|slot| slot == Slot::Free).into_iter();
        for (rank, (id, partitions)) in held.into_iter().enumerate() {
            let target = share + usize::from(rank < larger);
            if partitions.len() > target {
                self.start_revoking(id, &partitions[target..], now, deadline);
                continue;
            }
            let given: Vec<PartitionId> = free.by_ref().take(target - partitions.len()).collect();
            if !given.is_empty() {
                for partition in &given {
                    self.slots[usize::from(partition.0)] = Slot::Held(id);
                }
                self.send(id, MembershipEvent::Assigned(given));
            }
        }
    }
}

#[cfg(test)]
mod tests;
