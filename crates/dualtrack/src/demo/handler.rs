//! What a worker of the demo does with a file: hash it, count it, compress it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use task_events::Sha256Hash;
use worker_sdk::{Context, HandlerError};

use super::files::output_of;
use super::gate::Gate;
use super::ledger::Ledger;

/// Parameters of a task, as its creator sends them.
#[derive(Debug, Deserialize, Serialize)]
pub struct Parameters {
    /// Input file, relative to the tree.
    pub file: String,
    /// SHA-256 of its content when the task was created, 64 hexadecimal digits.
    pub sha256: String,
}

/// What every handler works with.
#[derive(Clone)]
pub struct Job {
    /// Input tree.
    pub dir: PathBuf,
    /// Output folder.
    pub out: PathBuf,
    /// What really ran.
    pub ledger: Ledger,
    /// Holds handlers for the kill.
    pub gate: Gate,
}

impl Job {
    /// Three steps, each recorded, so that a later attempt goes on after the last one that is done.
    pub async fn run(self, context: Context) -> Result<Bytes, HandlerError> {
        let Parameters { file, sha256 } = serde_json::from_slice(context.params())
            .map_err(|why| HandlerError::permanent("BAD_PARAMETERS", why.to_string()))?;
        let input = self.dir.join(&file);
        let output = output_of(&self.out, file.as_ref());
        let task = context.task_id().to_string();
        let note = |step: &str| self.ledger.note(&task, step);

        let hash = context.step("hash").idempotent(true).run(|| async {
            note("hash")?;
            let hash = Sha256Hash::of(&tokio::fs::read(&input).await?).to_string();
            if hash != sha256 {
                let why = format!("{} changed since its task was created", input.display());
                return Err(HandlerError::permanent("FILE_CHANGED", why));
            }
            Ok(hash.into())
        });
        let hash = hash.await?;

        let count = context.step("count").idempotent(true).run(|| async {
            note("count")?;
            self.gate.pass(&task).await?;
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

fn write_whole(place: &Path, content: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(place.parent().unwrap_or(Path::new(".")))?;
    held_directory::replace(place, content)
}
