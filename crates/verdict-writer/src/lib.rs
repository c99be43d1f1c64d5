//! What the services share that write verdicts when their pen is due: the production fold of one
//! partition with the tasks whose move it is ([`PenFold`]), and drafts turned into records
//! ([`VerdictWriter`]). Which verdict it is, only the service knows.

mod pen_fold;
#[cfg(feature = "testing")]
pub mod testing;
mod writer;

use std::sync::Arc;

use futures::future::BoxFuture;
use task_core::PartitionState;
use task_events::{PartitionId, Producer, SUPPORTED_RULES};

pub use pen_fold::{Held, PenFold};
pub use writer::VerdictWriter;

/// Gives the state to start a partition from, with rows: of a checkpoint, or the one before offset
/// 0. Its error is text for an alarm; it is asked again later.
pub type Loader = Arc<dyn Fn(PartitionId) -> BoxFuture<'static, Result<PartitionState, String>> + Send + Sync>;

/// Starts every partition at offset 0.
pub fn from_the_start() -> Loader {
    Arc::new(|partition| Box::pin(std::future::ready(Ok(PartitionState::new(partition, true)))))
}

/// Name of a member as other members see it: `service|instance|rules=1-N|url` (design.md §3).
pub fn client_id(service: &str, producer: &Producer, url: &str) -> String {
    format!("{service}|{}|rules=1-{SUPPORTED_RULES}|{url}", producer.instance)
}
