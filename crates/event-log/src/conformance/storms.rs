//! Groups whose members come and go faster than they settle.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::task::Poll;

use super::groups::Holder;
use super::{Harness, PATIENCE, in_time, within};
use crate::GroupMember;

const PARTITIONS: u16 = 14;

/// Whoever has news takes it.
async fn any<M: GroupMember>(members: &mut [Holder<M>]) {
    let mut steps: Vec<_> = members.iter_mut().map(|member| Box::pin(member.step())).collect();
    poll_fn(|cx| match steps.iter_mut().any(|step| step.as_mut().poll(cx).is_ready()) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

fn held<M>(members: &[Holder<M>]) -> Vec<usize> {
    members.iter().map(|member| member.held.len()).collect()
}

async fn settle<M: GroupMember>(members: &mut [Holder<M>]) {
    let even = usize::from(PARTITIONS) / members.len();
    let settled = |counts: &[usize]| {
        counts.iter().sum::<usize>() == usize::from(PARTITIONS) && counts.iter().all(|count| *count >= even)
    };
    let reached = in_time(async {
        while !settled(&held(members)) {
            any(members).await;
        }
    });
    assert!(reached.await.is_some(), "held {:?} instead of {PARTITIONS} evenly", held(members));
    let all: BTreeSet<_> = members.iter().flat_map(|member| member.held.iter().copied()).collect();
    assert_eq!(all.len(), usize::from(PARTITIONS), "held by two: {:?}", held(members));
}

/// Members join, leave and vanish while the group still shares out what the one before left. Each is told
/// of nothing twice and loses nothing it did not have ([`Holder::step`] sees to that); when it is calm, each
/// partition has one holder and all hold alike.
pub async fn members_that_come_and_go_settle<H: Harness>() {
    let harness = H::start(PARTITIONS).await;
    let mut members = Vec::new();
    for round in 0..11 {
        let log = if round % 2 == 0 { harness.log() } else { harness.other().await };
        members.push(Holder::join::<H::Log>(&log, "storm", &format!("svc|{round}|rules=1-1|-")).await);
        match round % 5 {
            2 => members.remove(0).member.leave(PATIENCE).await,
            // Without a word: the group finds out by itself.
            4 => drop(members.remove(0)),
            3 => settle(&mut members).await,
            _ => within("news", any(&mut members)).await,
        }
    }
    assert_eq!(members.len(), 7);
    settle(&mut members).await;
    for member in members {
        member.member.leave(PATIENCE).await;
    }
}
