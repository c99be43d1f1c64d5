//! Groups: sharing, handing over, deadlines, who is there.

use std::collections::BTreeSet;
use std::time::Duration;

use task_events::{Offset, PartitionId};

use super::{Harness, PATIENCE, in_time, within};
use crate::{EventLog, GroupMember, MemberSpec, MembershipEvent};

/// A member and what it holds, as a well-behaved service would.
pub struct Holder<M> {
    /// The membership itself.
    pub member: M,
    /// What it holds now.
    pub held: BTreeSet<PartitionId>,
    /// What it was told in passing, for messages.
    pub seen: Vec<MembershipEvent>,
}

impl<M: GroupMember> Holder<M> {
    /// Joins a group.
    pub async fn join<L: EventLog<Member = M>>(log: &L, group: &str, client_id: &str) -> Self {
        let spec = MemberSpec { group: group.into(), client_id: client_id.into() };
        let member = within("a membership", log.join(spec)).await.expect("membership");
        Self { member, held: BTreeSet::new(), seen: Vec::new() }
    }

    /// Takes the next event and does what a service does: releases what is revoked.
    pub async fn step(&mut self) {
        let event = self.member.next().await.expect("event");
        self.seen.push(event.clone());
        match event {
            MembershipEvent::Assigned(partitions) => {
                for partition in partitions {
                    assert!(self.held.insert(partition), "{partition} assigned twice: {:?}", self.seen);
                }
            }
            MembershipEvent::Revoked { partitions, .. } => {
                for partition in partitions {
                    assert!(self.held.remove(&partition), "{partition} revoked but not held: {:?}", self.seen);
                    self.member.release(partition, Offset(0));
                }
            }
            MembershipEvent::Lost(partitions) => {
                partitions
                    .iter()
                    .for_each(|partition| assert!(self.held.remove(partition), "{partition} lost but not held"));
            }
        }
    }

    /// Steps until it holds this many.
    pub async fn until(&mut self, count: usize) {
        let reached = in_time(async {
            while self.held.len() != count {
                self.step().await;
            }
        });
        assert!(reached.await.is_some(), "holds {:?} instead of {count}: {:?}", self.held, self.seen);
    }
}

/// Steps two members until they hold this many each, and nothing in common.
async fn both<M: GroupMember>(a: &mut Holder<M>, b: &mut Holder<M>, counts: (usize, usize)) {
    let reached = in_time(async {
        while (a.held.len(), b.held.len()) != counts {
            tokio::select! {
                () = a.step() => {}
                () = b.step() => {}
            }
            assert!(a.held.is_disjoint(&b.held), "held by both: {:?} and {:?}", a.held, b.held);
        }
    });
    assert!(reached.await.is_some(), "{:?} and {:?} instead of {counts:?}", a.seen, b.seen);
}

/// Alone it gets everything.
pub async fn a_single_member_gets_all<H: Harness>() {
    let harness = H::start(4).await;
    let mut only = Holder::join(&harness.log(), "single", "svc|1|rules=1-1|-").await;
    only.until(4).await;
    only.member.leave(PATIENCE).await;
}

/// Two share evenly; what stays with the first is never taken from it in between.
pub async fn members_share_evenly<H: Harness>() {
    let harness = H::start(4).await;
    let mut a = Holder::join(&harness.log(), "share", "svc|a|rules=1-1|-").await;
    a.until(4).await;
    let mut b = Holder::join(&harness.other().await, "share", "svc|b|rules=1-1|-").await;
    both(&mut a, &mut b, (2, 2)).await;
    let taken: usize = a
        .seen
        .iter()
        .map(|e| if let MembershipEvent::Revoked { partitions, .. } = e { partitions.len() } else { 0 })
        .sum();
    assert_eq!(taken, 2, "moved more than needed: {:?}", a.seen);
    a.member.leave(PATIENCE).await;
    b.member.leave(PATIENCE).await;
}

/// One leaves: the other gets everything without waiting for a session to time out.
pub async fn a_leaving_member_hands_over<H: Harness>() {
    let harness = H::start(4).await;
    let mut a = Holder::join(&harness.log(), "leave", "svc|a|rules=1-1|-").await;
    a.until(4).await;
    let mut b = Holder::join(&harness.other().await, "leave", "svc|b|rules=1-1|-").await;
    both(&mut a, &mut b, (2, 2)).await;
    a.member.leave(Duration::from_secs(10)).await;
    b.until(4).await;
    b.member.leave(PATIENCE).await;
}

/// One is dropped without a word: the group notices, and the other gets everything.
pub async fn a_vanished_member_is_replaced<H: Harness>() {
    let harness = H::start(4).await;
    let mut a = Holder::join(&harness.log(), "vanish", "svc|a|rules=1-1|-").await;
    a.until(4).await;
    let mut b = Holder::join(&harness.other().await, "vanish", "svc|b|rules=1-1|-").await;
    both(&mut a, &mut b, (2, 2)).await;
    drop(a);
    b.until(4).await;
    b.member.leave(PATIENCE).await;
}

/// A member that doesn't release what is revoked loses it at the deadline, and is told so.
pub async fn revocation_has_a_deadline<H: Harness>() {
    let harness = H::start(4).await;
    let mut a = Holder::join(&harness.log(), "deadline", "svc|a|rules=1-1|-").await;
    a.until(4).await;
    let mut b = Holder::join(&harness.other().await, "deadline", "svc|b|rules=1-1|-").await;
    let revoked = within("a revocation", async {
        loop {
            tokio::select! {
                event = a.member.next() => if let MembershipEvent::Revoked { partitions, deadline } = event.expect("event") {
                    assert!(deadline > Duration::ZERO);
                    return partitions;
                },
                () = b.step() => assert!(b.held.is_empty(), "assigned before it was released: {:?}", b.seen),
            }
        }
    })
    .await;
    assert_eq!(revoked.len(), 2);
    let lost = within("the loss", a.member.next()).await.expect("event");
    assert_eq!(lost, MembershipEvent::Lost(revoked.clone()));
    b.until(2).await;
    assert!(b.held.iter().copied().eq(revoked.iter().copied().collect::<BTreeSet<_>>()), "{:?}", b.held);
    // Too late, and harmless.
    a.member.release(revoked[0], Offset(0));
    a.member.leave(PATIENCE).await;
    b.until(4).await;
    b.member.leave(PATIENCE).await;
}

/// Everyone sees who is a member, under which client id, and what it holds.
pub async fn members_are_listed<H: Harness>() {
    let harness = H::start(4).await;
    let id = "coordinator|i-1|rules=1-3|http://127.0.0.1:1";
    let mut a = Holder::join(&harness.log(), "listed", id).await;
    a.until(4).await;
    let other = harness.other().await;
    let ours = within("the list", async {
        loop {
            let members = other.members().await.expect("members");
            let ours: Vec<_> = members.into_iter().filter(|m| m.group == "listed").collect();
            // The description may be a moment behind the assignment.
            if ours.iter().any(|m| m.partitions.len() == 4) {
                return ours;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(ours.len(), 1, "{ours:?}");
    assert_eq!(ours[0].client_id, id);
    a.member.leave(PATIENCE).await;
    within("its end", async {
        while other.members().await.expect("members").iter().any(|m| m.group == "listed") {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Members of different groups don't share with each other.
pub async fn groups_are_independent<H: Harness>() {
    let harness = H::start(2).await;
    let mut a = Holder::join(&harness.log(), "first", "svc|a|rules=1-1|-").await;
    let mut b = Holder::join(&harness.log(), "second", "svc|b|rules=1-1|-").await;
    a.until(2).await;
    b.until(2).await;
    a.member.leave(PATIENCE).await;
    b.member.leave(PATIENCE).await;
}
