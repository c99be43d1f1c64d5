//! What a worker of the demo does with a file: hash it, count it, compress it.

use std::io::Write as _;
use std::path::PathBuf;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use task_events::Sha256Hash;
use worker_sdk::{Context, HandlerError};

use super::files::output_of;
use super::ledger::Ledger;
use super::payloads::write_whole;
use super::serve::Progress;

/// What every handler of the pool works with.
#[derive(Clone)]
pub struct Job {
    /// Input tree.
    pub dir: PathBuf,
    /// Output folder.
    pub out: PathBuf,
    /// What really ran.
    pub ledger: Ledger,
    /// How far the pool is.
    pub progress: Progress,
}

impl Job {
    /// Three steps, each recorded, so that a later attempt goes on after the last one that is done.
    pub async fn run(self, context: Context) -> Result<Bytes, HandlerError> {
        let Some(name) = context.payload_ref() else {
            return Err(HandlerError::permanent("NO_FILE", "the task names no file"));
        };
        let input = self.dir.join(name);
        let output = output_of(&self.out, name.as_ref());
        let task = context.task_id().to_string();
        let note = |step: &str| self.ledger.note(&task, step);

        let hash = context.step("hash").idempotent(true).run(|| async {
            note("hash")?;
            let hash = Sha256Hash::of(&tokio::fs::read(&input).await?);
            if hash != context.payload_hash() {
                return Err(HandlerError::permanent(
                    "FILE_CHANGED",
                    format!("{} changed since its task was created", input.display()),
                ));
            }
            Ok(hash.to_string().into())
        });
        let hash = hash.await?;

        let count = context.step("count").idempotent(true).run(|| async {
            note("count")?;
            self.progress.second_step().await;
            Ok(count(&tokio::fs::read(&input).await?))
        });
        let count = count.await?;

        let size = context.step("compress").idempotent(true).run(|| async {
            note("compress")?;
            let packed = compress(&tokio::fs::read(&input).await?)?;
            if !context.may_write() {
                return Err(context.give_up());
            }
            let size = packed.len().to_string();
            let written = tokio::task::spawn_blocking(move || write_whole(&output, &packed)).await;
            written.map_err(|why| HandlerError::transient("WRITE_FAILED", why.to_string()))??;
            Ok(size.into())
        });
        let size = size.await?;
        self.progress.returned();
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let result = serde_json::json!({ "sha256": text(&hash), "count": text(&count), "gz_bytes": text(&size) });
        Ok(result.to_string().into())
    }
}

fn count(bytes: &[u8]) -> Bytes {
    let lines = bytes.iter().filter(|b| **b == b'\n').count();
    let words = bytes.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()).count();
    format!("{} bytes, {lines} lines, {words} words", bytes.len()).into()
}

fn compress(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}
