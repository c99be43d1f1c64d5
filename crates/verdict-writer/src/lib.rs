//! What the services share that write verdicts when their pen is due: the production fold of one
//! partition with the tasks whose move it is ([`PenFold`]), and drafts turned into records
//! ([`VerdictWriter`]). Which verdict it is, only the service knows.

mod pen_fold;
mod source;
#[cfg(feature = "testing")]
pub mod testing;
mod writer;

use event_log::ClientId;
use task_events::{Producer, SUPPORTED_RULES};

pub use pen_fold::{Held, PenFold};
pub use source::FoldSource;
pub use writer::VerdictWriter;

/// Name of a member as other members see it: `service|instance|rules=1-N|url` (design.md §3).
pub fn client_id(service: &str, producer: &Producer, url: &str) -> String {
    ClientId::new(service, &producer.instance, SUPPORTED_RULES.0, url).to_string()
}
