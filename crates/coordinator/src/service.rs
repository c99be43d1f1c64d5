//! The coordinator as a service: a member of its group that runs an owner for each partition it
//! is assigned, and a [`Surface`] by which everything reaches them.

use std::collections::BTreeMap;
use std::task::Poll;

use assignment_lock::AssignmentLock;
use event_log::{ClientId, EventLog, GroupMember as _, LogError, MemberSpec, MembershipEvent};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, Stream as _};
use service_kit::{Clock, Entropy, Metrics, Shutdown};
use snapshot_store::SnapshotStore;
use spans::Spans;
use task_events::{Offset, PartitionId, SUPPORTED_RULES};

use crate::metrics::GROUP_REJOINED;
use crate::owner::{
    Exit, Freeze, HAND_OVER, Identity, OwnerConfig, OwnerRules, Ports, Setup, Stop, inbox, run_partition,
};
use crate::surface::{NoPeers, Peers, Surface};

/// What a coordinator runs with.
pub struct Service<L, S, K, C, E, P = NoPeers> {
    /// Ports.
    pub ports: Ports<L, S, K, C>,
    /// Settings, validated.
    pub cfg: OwnerConfig,
    /// [`OwnerRules::STANDARD`] outside simulations.
    pub rules: OwnerRules,
    /// Rules of the fold: standard outside simulations.
    pub fold_rules: &'static task_core::Rules,
    /// Who this process is.
    pub identity: Identity,
    /// Random numbers.
    pub entropy: E,
    /// Counters and alarms.
    pub metrics: Metrics,
    /// Where spans go.
    pub spans: Spans,
    /// Where a test may stop this instance's threads.
    pub freeze: Freeze,
    /// Where requests come in.
    pub surface: Surface<C, P>,
}

/// Why a coordinator ended before it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// A partition must not be read any further.
    #[error(transparent)]
    Stopped(#[from] Stop),
    /// A partition cannot be read.
    #[error("partition {0} cannot be read: {1}")]
    Unreadable(PartitionId, String),
    /// The group cannot be joined.
    #[error(transparent)]
    Log(#[from] LogError),
}

type Owners = FuturesUnordered<BoxFuture<'static, (PartitionId, u64, Exit)>>;

/// Group of the coordinators.
pub const GROUP: &str = "coordinator";

impl<L, S, K, C, E, P> Service<L, S, K, C, E, P>
where
    L: EventLog,
    S: SnapshotStore,
    K: AssignmentLock,
    C: Clock,
    E: Entropy,
    P: Peers,
{
    /// Runs until shutdown is requested, then hands everything over. Rejoins when the group drops it.
    pub async fn run(mut self, shutdown: Shutdown) -> Result<(), ServiceError> {
        let mut number = 0;
        loop {
            let member = self.join(&shutdown).await?;
            let Some(member) = member else { return Ok(()) };
            match self.serve(member, &shutdown, &mut number).await {
                Err(ServiceError::Log(LogError::NotMember(_) | LogError::Unavailable(_))) => {
                    self.metrics.counter(&GROUP_REJOINED).add(1);
                }
                other => return other,
            }
        }
    }

    async fn join(&self, shutdown: &Shutdown) -> Result<Option<L::Member>, ServiceError> {
        let id = &self.identity;
        let client_id = ClientId::new(GROUP, &id.instance, SUPPORTED_RULES.0, &id.url).to_string();
        loop {
            if shutdown.is_requested() {
                return Ok(None);
            }
            match self.ports.log.join(MemberSpec { group: GROUP.to_owned(), client_id: client_id.clone() }).await {
                Ok(member) => return Ok(Some(member)),
                Err(LogError::Unavailable(why)) => {
                    self.metrics.alarm("group_unavailable", why);
                    self.ports.clock.sleep_until(self.ports.clock.boot_ms() + 250).await;
                }
                Err(why) => return Err(why.into()),
            }
        }
    }

    async fn serve(
        &mut self,
        mut member: L::Member,
        shutdown: &Shutdown,
        number: &mut u64,
    ) -> Result<(), ServiceError> {
        let mut owners = Owners::new();
        let mut running: BTreeMap<PartitionId, u64> = BTreeMap::new();
        let mut stopping = false;
        let outcome = loop {
            if stopping && running.is_empty() {
                break Ok(());
            }
            match next(&mut member, &mut owners, shutdown, stopping).await {
                Happened::Shutdown => {
                    stopping = true;
                    self.surface.close();
                    running.keys().for_each(|p| self.surface.drain(*p, HAND_OVER));
                }
                Happened::Member(Ok(MembershipEvent::Assigned(partitions))) => {
                    // One that stops takes nothing over: its leaving gives it to another member.
                    for partition in partitions.into_iter().filter(|_| !stopping) {
                        *number += 1;
                        running.insert(partition, *number);
                        owners.push(self.own(partition, *number));
                    }
                }
                Happened::Member(Ok(MembershipEvent::Revoked { partitions, deadline })) => {
                    for partition in partitions {
                        if running.contains_key(&partition) {
                            self.surface.drain(partition, deadline.min(HAND_OVER));
                        } else {
                            member.release(partition, Offset(0));
                        }
                    }
                }
                Happened::Member(Ok(MembershipEvent::Lost(partitions))) => {
                    for partition in partitions {
                        running.remove(&partition);
                        self.surface.lost(partition);
                    }
                }
                Happened::Member(Err(why)) => break Err(why.into()),
                // One that was lost and assigned again meanwhile is not this one any more.
                Happened::Ended(partition, number, _) if running.get(&partition) != Some(&number) => {}
                Happened::Ended(partition, _, exit) => {
                    running.remove(&partition);
                    let applied = self.surface.applied(partition);
                    self.surface.remove(partition);
                    match exit {
                        Exit::Drained | Exit::Lost => member.release(partition, applied),
                        Exit::Stopped(stop) => break Err(stop.into()),
                        Exit::Unreadable(why) => break Err(ServiceError::Unreadable(partition, why)),
                    }
                }
            }
            for partition in running.keys() {
                member.progress(*partition, self.surface.applied(*partition));
            }
        };
        running.keys().for_each(|p| self.surface.lost(*p));
        drop(owners);
        member.leave(HAND_OVER).await;
        outcome
    }

    fn own(&mut self, partition: PartitionId, number: u64) -> BoxFuture<'static, (PartitionId, u64, Exit)> {
        let (handle, inbox) = inbox();
        self.surface.insert(partition, handle);
        let setup = Setup {
            partition,
            cfg: self.cfg.clone(),
            rules: self.rules,
            fold_rules: self.fold_rules,
            identity: self.identity.clone(),
            number,
            random: self.entropy.next_u64(),
            metrics: self.metrics.clone(),
            spans: self.spans.clone(),
            freeze: self.freeze.clone(),
        };
        run_partition(self.ports.clone(), setup, inbox).map(move |exit| (partition, number, exit)).boxed()
    }
}

enum Happened {
    Shutdown,
    Member(Result<MembershipEvent, LogError>),
    Ended(PartitionId, u64, Exit),
}

async fn next<M: event_log::GroupMember>(
    member: &mut M,
    owners: &mut Owners,
    shutdown: &Shutdown,
    stopping: bool,
) -> Happened {
    let mut event = std::pin::pin!(member.next());
    let mut requested = std::pin::pin!(shutdown.requested());
    let mut owners = std::pin::Pin::new(owners);
    futures::future::poll_fn(|cx| {
        if !stopping && requested.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Happened::Shutdown);
        }
        if let Poll::Ready(event) = event.as_mut().poll(cx) {
            return Poll::Ready(Happened::Member(event));
        }
        if let Poll::Ready(Some((partition, number, exit))) = owners.as_mut().poll_next(cx) {
            return Poll::Ready(Happened::Ended(partition, number, exit));
        }
        Poll::Pending
    })
    .await
}
