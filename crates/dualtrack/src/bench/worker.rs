//! One worker process of the benchmarks: the SDK over HTTP, with its synced outbox.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::signal::unix::{SignalKind, signal};
use worker_sdk::{Context, HandlerError, Worker};

use super::clock::boot_us;
use super::standard::{Parameters, QUEUE};

/// (due, entered) of each attempt, boot clock, µs.
type Samples = Arc<Mutex<Vec<(u64, u64)>>>;

/// Works until SIGTERM, then drains and writes down when each handler was entered.
///
/// # Errors
/// The settings cannot work, or the server refuses this worker.
pub async fn work(name: &str, url: &str, slots: u32, outbox: &Path, samples: &Path) -> anyhow::Result<()> {
    let seen = Samples::default();
    let handler = {
        let seen = seen.clone();
        move |context: Context| {
            let seen = seen.clone();
            async move {
                let entered_us = boot_us();
                standard(&context, entered_us, &seen).await
            }
        }
    };
    let worker = Worker::connect(url)
        .worker_id(name)
        .slots(slots)
        .handler(QUEUE, handler)
        .outbox(outbox)
        .drain_within(Duration::from_secs(5))
        .build()?;
    let mut term = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let stop = async move {
        term.recv().await;
    };
    worker.run(stop).await.with_context(|| format!("worker {name}"))?;
    let lines: Vec<String> = seen.lock().iter().map(|(due, entered)| format!("{due} {entered}\n")).collect();
    std::fs::write(samples, lines.concat()).with_context(|| format!("cannot write {}", samples.display()))
}

async fn standard(context: &Context, entered_us: u64, seen: &Samples) -> Result<Bytes, HandlerError> {
    let parameters: Parameters = serde_json::from_slice(context.params())
        .map_err(|why| HandlerError::permanent("BAD_PARAMETERS", why.to_string()))?;
    let is_first = context.exec_epoch().get() == 1;
    if is_first {
        seen.lock().push((parameters.due_us, entered_us));
    }
    let output = context.step("work").idempotent(true).run(|| async { Ok(Bytes::from_static(br#"{"done":true}"#)) });
    let output = output.await?;
    if parameters.fails_once && is_first {
        return Err(HandlerError::transient("FAILS_ONCE", "the first attempt fails"));
    }
    Ok(output)
}
