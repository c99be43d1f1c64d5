//! The way to other instances of the coordinator, as a port: the surface decides whom to ask and
//! when, an implementation knows who they are and carries bytes ([`crate::forwarding`]).

use std::future::Future;
use std::future::ready;

use task_events::{PartitionId, Text};
use worker_protocol::{Poll, PollAnswer};

use super::{WorkersAsk, WorkersTold};
use crate::owner::{Answer, Command};

/// Other instances. What they are asked they answer by [`super::Surface::ask_here`] and
/// [`super::Surface::poll_here`]: one hop, never two.
pub trait Peers: Clone + Send + Sync + 'static {
    /// Asks the instance that owns the partition, as far as is known.
    ///
    /// `None`: no other instance is known to own it, or the command certainly did not leave. A
    /// command that may have arrived and was not answered within its [`Command::patience_ms`] and
    /// [`crate::owner::OwnerConfig::request_ms`] is answered by [`crate::forwarding::unanswered`];
    /// it is never sent a second time.
    fn ask(&self, partition: PartitionId, command: &Command) -> impl Future<Output = Option<Answer>> + Send;

    /// Partitions known to be owned by other instances. No I/O: what was heard last.
    fn owned(&self) -> Vec<PartitionId>;

    /// Other instances known to be alive, in a stable order. No I/O: what was heard last.
    fn instances(&self) -> Vec<Text>;

    /// Tasks of these queues that an instance said it could hand out; `None`: it said nothing lately. No
    /// I/O: what was heard last.
    fn ready(&self, instance: &Text, queues: &[Text]) -> Option<u64> {
        let _ = (instance, queues);
        None
    }

    /// Offers free slots to the owners of an instance. The poll waits for nothing: an implementation
    /// bounds it by its connection's timeout, since the lease of what comes back runs already.
    /// `None`: not answered, for whatever reason.
    fn poll(&self, instance: &Text, poll: &Poll) -> impl Future<Output = Option<PollAnswer>> + Send;

    /// Asks every other instance about workers, which answers by [`super::Surface::workers_here`]; `None`
    /// of one that does not answer, for whatever reason. Unlike the lists above it looks who is there.
    fn workers(&self, ask: &WorkersAsk) -> impl Future<Output = WorkersTold> + Send;
}

/// There is no other instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoPeers;

impl Peers for NoPeers {
    fn ask(&self, _: PartitionId, _: &Command) -> impl Future<Output = Option<Answer>> + Send {
        ready(None)
    }

    fn owned(&self) -> Vec<PartitionId> {
        Vec::new()
    }

    fn instances(&self) -> Vec<Text> {
        Vec::new()
    }

    fn poll(&self, _: &Text, _: &Poll) -> impl Future<Output = Option<PollAnswer>> + Send {
        ready(None)
    }

    fn workers(&self, _: &WorkersAsk) -> impl Future<Output = WorkersTold> + Send {
        ready(Vec::new())
    }
}
