//! A create that is repeated until its outcome is known.

use std::future::Future;
use std::time::Duration;

use rest_contract::{CreateRequest, Created};

use crate::{Client, ClientError};

/// First pause between two tries, ms; it doubles …
const FIRST_PAUSE_MS: u64 = 50;

/// … up to this.
const LONGEST_PAUSE_MS: u64 = 5_000;

/// Waits between two tries, on whatever clock the caller has, and says when it is enough.
pub trait Pause {
    /// Waits about so long; `false`: no further try.
    fn pause(&mut self, about: Duration, after: &ClientError) -> impl Future<Output = bool>;
}

impl<F: FnMut(Duration, &ClientError) -> Fut, Fut: Future<Output = bool>> Pause for F {
    fn pause(&mut self, about: Duration, after: &ClientError) -> impl Future<Output = bool> {
        self(about, after)
    }
}

impl Client {
    /// Creates a task and, while the server is away, busy, or the outcome is not known, sends the same
    /// request with the same key again: at most one task comes of it. Pauses are those the server asks
    /// for, else 50 ms doubling to 5 s.
    ///
    /// # Errors
    /// The first refusal that no repetition changes, or the last failure when `pause` has had enough.
    pub async fn create_persistently(
        &self,
        request: &CreateRequest,
        key: &str,
        mut pause: impl Pause,
    ) -> Result<Created, ClientError> {
        let mut next_ms = FIRST_PAUSE_MS;
        loop {
            let error = match self.create(request, Some(key)).await {
                Ok(created) => return Ok(created),
                Err(error) => error,
            };
            let asked = error.problem().and_then(|p| p.facts.get("retry_after_ms")?.as_u64());
            let about = Duration::from_millis(asked.unwrap_or(next_ms).clamp(1, LONGEST_PAUSE_MS));
            if !error.retry_with_key() || !pause.pause(about, &error).await {
                return Err(error);
            }
            next_ms = next_ms.saturating_mul(2).min(LONGEST_PAUSE_MS);
        }
    }
}
