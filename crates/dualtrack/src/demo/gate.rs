//! Holds handlers inside their second step, so that a kill meets handlers at work however short the
//! step is.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use service_kit::{Clock as _, SystemClock};

use super::ledger::Ledger;

/// Pause between two looks for the file that opens the gate, ms.
const LOOK_MS: u64 = 20;

/// The gate of one worker process.
#[derive(Clone)]
pub struct Gate {
    worker: Arc<str>,
    /// Handlers that pass; later ones are held. `None`: nobody is.
    passing: Option<usize>,
    /// Opens the gate once it is there.
    go: Arc<PathBuf>,
    entered: Arc<AtomicUsize>,
    ledger: Ledger,
}

impl Gate {
    /// A gate that lets `passing` handlers through and holds the others until `go` is there.
    pub fn new(worker: &str, passing: Option<usize>, go: PathBuf, ledger: Ledger) -> Self {
        Self { worker: worker.into(), passing, go: Arc::new(go), entered: Arc::default(), ledger }
    }

    /// A handler is inside its second step. The ledger says of each that is held.
    pub async fn pass(&self, task: &str) -> std::io::Result<()> {
        let number = self.entered.fetch_add(1, Ordering::SeqCst);
        if self.passing.is_none_or(|passing| number < passing) {
            return Ok(());
        }
        self.ledger.note(task, &held_by(&self.worker))?;
        while !self.go.exists() {
            SystemClock.sleep_until(SystemClock.boot_ms() + LOOK_MS).await;
        }
        Ok(())
    }
}

/// What the ledger says of a handler that a worker holds.
pub fn held_by(worker: &str) -> String {
    format!("held-by-{worker}")
}
