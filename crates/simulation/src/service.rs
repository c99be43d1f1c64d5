//! Processes with a shell around production code: coordinators.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use coordinator::owner::{Exit, Freeze, Identity, OwnerHandle, Ports, Setup, inbox, run_partition};
use event_log::{EventLog as _, GroupMember as _, LogError, MemberSpec, MembershipEvent};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, Stream as _};
use parking_lot::Mutex;
use service_kit::{Clock as _, Metrics};
use task_events::{Offset, PartitionId};

use crate::clock::SimClock;
use crate::hub::Hub;
use crate::plan::Plan;
use crate::ports::groups::SimMember;
use crate::ports::lock::SimLock;
use crate::ports::log::SimLog;
use crate::ports::store::SimStore;

/// Owners a process runs, as its edge finds them.
pub type Handles = Arc<Mutex<BTreeMap<PartitionId, OwnerHandle>>>;

/// What a coordinator process is made of.
pub struct Coordinator {
    /// Ports.
    pub ports: Ports<SimLog, SimStore, SimLock, SimClock>,
    /// Who it is.
    pub identity: Identity,
    /// Shared part, for the auditor.
    pub hub: Hub,
    /// Where its edge finds owners.
    pub handles: Handles,
    /// Settings and rules.
    pub plan: Arc<Plan>,
    /// Seed of jitter.
    pub random: u64,
    /// Counters and alarms.
    pub metrics: Metrics,
}

enum Next {
    Member(Result<MembershipEvent, LogError>),
    Exit(PartitionId, Exit),
}

impl Coordinator {
    /// Runs until the process is killed.
    pub async fn run(self) {
        let spec = MemberSpec { group: "coordinator".to_owned(), client_id: self.identity.instance.to_string() };
        let mut number = 0;
        loop {
            match self.ports.log.join(spec.clone()).await {
                Ok(member) => self.serve(member, &mut number).await,
                Err(_) => {
                    let again = self.ports.clock.boot_ms() + 200;
                    self.ports.clock.sleep_until(again).await;
                }
            }
        }
    }

    async fn serve(&self, mut member: SimMember, number: &mut u64) {
        let mut running: FuturesUnordered<BoxFuture<'static, (PartitionId, Exit)>> = FuturesUnordered::new();
        loop {
            let next = {
                let event = member.next();
                let mut event = std::pin::pin!(event);
                poll_fn(|cx| {
                    if let Poll::Ready(event) = event.as_mut().poll(cx) {
                        return Poll::Ready(Next::Member(event));
                    }
                    match Pin::new(&mut running).poll_next(cx) {
                        Poll::Ready(Some((p, exit))) => Poll::Ready(Next::Exit(p, exit)),
                        Poll::Ready(None) | Poll::Pending => Poll::Pending,
                    }
                })
                .await
            };
            match next {
                Next::Member(Err(_)) => return,
                Next::Member(Ok(MembershipEvent::Assigned(partitions))) => {
                    for p in partitions {
                        *number += 1;
                        running.push(self.own(p, *number));
                    }
                }
                Next::Member(Ok(MembershipEvent::Revoked { partitions, deadline })) => {
                    for p in partitions {
                        let within = deadline.saturating_sub(Duration::from_millis(100));
                        match self.handles.lock().get(&p) {
                            Some(handle) => handle.drain(within),
                            None => member.release(p, Offset(0)),
                        }
                    }
                }
                Next::Member(Ok(MembershipEvent::Lost(partitions))) => {
                    for p in partitions {
                        if let Some(handle) = self.handles.lock().get(&p) {
                            handle.lost();
                        }
                    }
                }
                Next::Exit(p, exit) => self.ended(&mut member, p, exit),
            }
        }
    }

    fn ended(&self, member: &mut SimMember, p: PartitionId, exit: Exit) {
        match exit {
            Exit::Drained | Exit::Lost => {
                self.handles.lock().remove(&p);
                member.release(p, Offset(0));
            }
            Exit::Stopped(_) | Exit::Unreadable(_) => {
                let what = format!("owner of partition {p} in {} gave up: {exit:?}", self.identity.instance);
                self.hub.lock().audit.find(20, what, None, None);
            }
        }
    }

    fn own(&self, partition: PartitionId, number: u64) -> BoxFuture<'static, (PartitionId, Exit)> {
        let (handle, inbox) = inbox();
        self.handles.lock().insert(partition, handle);
        let (hub, who) = (self.hub.clone(), self.identity.instance.clone());
        let setup = Setup {
            partition,
            cfg: self.plan.owner.clone(),
            rules: self.plan.owner_rules,
            fold_rules: self.plan.fold_rules,
            identity: self.identity.clone(),
            number,
            random: self.random ^ number,
            metrics: self.metrics.clone(),
            freeze: Freeze::watched(move |fold| hub.lock().audit.shown(&who, fold)),
        };
        run_partition(self.ports.clone(), setup, inbox).map(move |exit| (partition, exit)).boxed()
    }
}
