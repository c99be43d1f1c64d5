//! How many requests are on their way at a time. Who comes when all places are taken waits, for as
//! long as others are answered: a store that is slow is not away.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::StoreError;

pub(super) struct Gate {
    places: Semaphore,
    limit: usize,
    patience: Duration,
    answers: AtomicU64,
}

/// A place; given back when dropped.
pub(super) struct Place<'a> {
    answers: &'a AtomicU64,
    _permit: SemaphorePermit<'a>,
}

impl Place<'_> {
    /// The store answered.
    pub fn answered(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }
}

impl Gate {
    pub fn new(limit: usize, patience: Duration) -> Self {
        Self { places: Semaphore::new(limit), limit, patience, answers: AtomicU64::new(0) }
    }

    /// Waits for a place. `Unavailable` once nobody has been answered for as long as a request may take.
    #[expect(
        clippy::disallowed_methods,
        reason = "a request to a real server takes real time; simulations bring a store of their own"
    )]
    pub async fn enter(&self) -> Result<Place<'_>, StoreError> {
        loop {
            let before = self.answers.load(Ordering::Relaxed);
            match tokio::time::timeout(self.patience, self.places.acquire()).await {
                Ok(Ok(permit)) => return Ok(Place { answers: &self.answers, _permit: permit }),
                Ok(Err(_)) => return Err(StoreError::Unavailable("the session has ended".to_owned())),
                Err(_) if self.answers.load(Ordering::Relaxed) != before => {}
                Err(_) => {
                    let (limit, ms) = (self.limit, self.patience.as_millis());
                    let text = format!("{limit} requests are on their way and none was answered for {ms} ms");
                    return Err(StoreError::Unavailable(text));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    #[expect(clippy::disallowed_methods, reason = "the clock of this test stands still")]
    async fn who_waits_gives_up_only_when_nobody_is_answered() {
        let gate = Gate::new(1, Duration::from_millis(100));
        let place = gate.enter().await.expect("there is one");
        let refused = gate.enter().await.err().expect("it is taken");
        assert!(refused.is_retryable() && refused.to_string().contains("1 requests"), "{refused}");
        let waiting = gate.enter();
        tokio::pin!(waiting);
        // One that holds the place is answered now and then: the other goes on waiting.
        for _ in 0..5 {
            let patience = tokio::time::sleep(Duration::from_millis(90));
            tokio::select! {
                biased;
                _ = &mut waiting => panic!("there is no place"),
                () = patience => place.answered(),
            }
        }
        drop(place);
        assert!(waiting.await.is_ok());
    }
}
