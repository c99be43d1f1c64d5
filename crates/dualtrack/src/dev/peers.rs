//! The way to the other coordinator of this process. It knows the other's surface itself, where
//! instances of their own processes are asked over HTTP; the rules are those of [`Peers`] all the same.

use std::sync::Arc;

use coordinator::forwarding::unanswered;
use coordinator::owner::{Answer, Command};
use coordinator::surface::{Peers, Surface};
use futures::future::{Either, select};
use parking_lot::RwLock;
use service_kit::{Clock as _, SystemClock};
use task_events::{PartitionId, Text};
use worker_protocol::{Poll, PollAnswer};

type Known = Arc<RwLock<Vec<(Text, Surface<SystemClock, LocalPeers>)>>>;

/// The instances of this process, as one of them sees them.
#[derive(Clone, Default)]
pub struct LocalPeers {
    all: Known,
    me: Text,
    request_ms: u64,
}

impl LocalPeers {
    /// The same instances as this one sees them; `request_ms` bounds what an owner needs to answer.
    pub(super) fn of(&self, me: Text, request_ms: u64) -> Self {
        Self { all: self.all.clone(), me, request_ms }
    }

    /// Makes an instance known to the others.
    pub(super) fn add(&self, surface: Surface<SystemClock, LocalPeers>) {
        self.all.write().push((self.me.clone(), surface));
    }

    fn others(&self) -> Vec<(Text, Surface<SystemClock, LocalPeers>)> {
        self.all.read().iter().filter(|(name, _)| *name != self.me).cloned().collect()
    }
}

impl Peers for LocalPeers {
    async fn ask(&self, partition: PartitionId, command: &Command) -> Option<Answer> {
        let (_, owner) = self.others().into_iter().find(|(_, other)| other.owned().contains(&partition))?;
        let patience_ms = self.request_ms.saturating_add(command.patience_ms());
        let until = SystemClock.sleep_until(SystemClock.boot_ms().saturating_add(patience_ms));
        let asked = owner.ask_here(partition, command.clone());
        // One that is frozen never answers.
        match select(Box::pin(asked), Box::pin(until)).await {
            Either::Left((answer, _)) => Some(answer),
            Either::Right(_) => Some(unanswered(command)),
        }
    }

    fn owned(&self) -> Vec<PartitionId> {
        self.others().iter().flat_map(|(_, other)| other.owned()).collect()
    }

    fn instances(&self) -> Vec<Text> {
        self.others().into_iter().map(|(name, _)| name).collect()
    }

    async fn poll(&self, instance: &Text, poll: &Poll) -> Option<PollAnswer> {
        let (_, other) = self.others().into_iter().find(|(name, _)| name == instance)?;
        Some(other.poll_here(poll.clone()).await)
    }
}
