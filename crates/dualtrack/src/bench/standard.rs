//! The standard task (design.md §7): 200 B payload, one step with output, a result, no key, a trace
//! of its own.

use anyhow::Context as _;
use rest_contract::CreateRequest;
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use task_events::Text;

/// Queue and task type.
pub const QUEUE: &str = "standard";

/// Bytes of a payload.
const PAYLOAD_BYTES: usize = 200;

/// Parameters.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Parameters {
    /// When it was due to be sent, boot clock, µs.
    pub due_us: u64,
    /// Its first attempt fails.
    pub fails_once: bool,
    /// Makes it as long as it should be.
    pub pad: String,
}

/// A create request of `creator`.
///
/// # Errors
/// The payload cannot be written as JSON.
pub fn request(due_us: u64, fails_once: bool, creator: &Text) -> anyhow::Result<CreateRequest> {
    let mut parameters = Parameters { due_us, fails_once, pad: String::new() };
    let bare = serde_json::to_vec(&parameters).context("a payload")?.len();
    parameters.pad = "x".repeat(PAYLOAD_BYTES.saturating_sub(bare));
    let payload = Some(to_raw_value(&parameters).context("a payload")?);
    Ok(CreateRequest { task_type: QUEUE.into(), payload, creator: Some(creator.clone()), ..CreateRequest::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_has_its_length_whatever_is_in_it() {
        for (due, fails) in [(1, true), (u64::MAX, false)] {
            let request = request(due, fails, &"c".into()).expect("a request");
            assert_eq!(request.payload.expect("a payload").get().len(), PAYLOAD_BYTES);
        }
    }
}
