//! Joining a group of the Kafka log, and who else is in one.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::Consumer;
use task_events::{Offset, PartitionId};
use tokio::sync::{mpsc, oneshot};

use super::config::{self, KafkaConfig};
use super::convert::error_of;
use super::membership::{Client, Context, Shared, run};
use crate::{GroupMember, LogError, MemberSpec, MembershipEvent};

/// A member of a consumer group, with a thread of its own that keeps it alive as long as the
/// process runs.
pub struct KafkaMember {
    group: String,
    shared: Arc<Shared>,
    events: mpsc::UnboundedReceiver<MembershipEvent>,
    ended: Option<oneshot::Receiver<()>>,
}

impl KafkaMember {
    /// Blocking.
    pub(super) fn join(config: &KafkaConfig, spec: MemberSpec) -> Result<Self, LogError> {
        let options = config.member(&spec.group, &spec.client_id);
        config::print("member", &options);
        let (tx, events) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::default());
        let context = Context {
            topic: config.topic.clone(),
            shared: shared.clone(),
            events: tx,
            revoke_deadline: config.revoke_deadline,
        };
        let client =
            Client::from_config_and_context(&options, context).map_err(|e| error_of("cannot create a member", &e))?;
        client.subscribe(&[&config.topic]).map_err(|e| error_of("cannot subscribe", &e))?;
        let (end, ended) = oneshot::channel();
        let (topic, thread_shared) = (config.topic.clone(), shared.clone());
        let spawned = thread::Builder::new().name("kafka-member".into()).spawn(move || {
            run(client, &topic, &thread_shared);
            let _ = end.send(());
        });
        spawned.map_err(|e| LogError::Unavailable(format!("cannot start a member's thread: {e}")))?;
        Ok(Self { group: spec.group, shared, events, ended: Some(ended) })
    }
}

impl GroupMember for KafkaMember {
    async fn next(&mut self) -> Result<MembershipEvent, LogError> {
        self.events.recv().await.ok_or_else(|| LogError::NotMember(self.group.clone()))
    }

    fn release(&mut self, partition: PartitionId, applied: Offset) {
        self.shared.release(partition, applied);
    }

    fn progress(&mut self, partition: PartitionId, applied: Offset) {
        self.shared.progress(partition, applied);
    }

    #[expect(clippy::disallowed_methods, reason = "the deadline is one towards a real broker")]
    async fn leave(mut self, deadline: Duration) {
        self.shared.leave();
        if let Some(ended) = self.ended.take()
            && tokio::time::timeout(deadline, ended).await.is_err()
        {
            tracing::warn!(group = %self.group, "leaving took longer than its deadline, the group will notice by itself");
        }
    }
}

impl Drop for KafkaMember {
    fn drop(&mut self) {
        self.shared.leave();
    }
}
