//! A handler that runs for long: it heeds a cancel, and it writes a line a second to a file that
//! refuses every attempt but the newest. Stop the process (`kill -STOP`), wait until another worker
//! has taken the task over, let it go on (`kill -CONT`): no line of the older attempt comes after the
//! first of the newer one.
//!
//! ```text
//! cargo run -p worker-sdk --example cancel_and_guard -- http://127.0.0.1:8080 worker-1
//! curl -s http://127.0.0.1:8080/api/v1/task/create -H 'content-type: application/json' \
//!   -d '{"task_type":"write_lines","payload":{"file":"/tmp/lines","lines":60}}'
//! curl -s -X POST http://127.0.0.1:8080/api/v1/task/ID/cancel
//! ```

#![expect(clippy::print_stdout, reason = "an example says on the terminal what it does")]

use std::path::PathBuf;

use bytes::Bytes;
use serde::Deserialize;
use worker_sdk::{Context, HandlerError, SystemClock, Worker, WorkerClock};

#[derive(Deserialize)]
struct Params {
    file: PathBuf,
    lines: u32,
}

async fn write_lines(ctx: Context, clock: impl WorkerClock) -> Result<Bytes, HandlerError> {
    let params: Params = serde_json::from_slice(ctx.params())
        .map_err(|why| HandlerError::permanent("BAD_PARAMS", format!("{{\"file\", \"lines\"}}: {why}")))?;
    // From here on an older attempt is refused by the file itself.
    let file = ctx.guarded_file(params.file).await?;
    for n in 1..=params.lines {
        file.append(format!("epoch {} line {n}\n", ctx.exec_epoch())).await?;
        let next = clock.sleep_until(clock.now().boot_ms + 1_000);
        tokio::select! {
            () = next => {}
            () = ctx.cancelled() => {
                // There is a grace for cleaning up.
                file.append(format!("epoch {} cancelled\n", ctx.exec_epoch())).await?;
                return Err(ctx.give_up());
            }
        }
    }
    Ok(format!("{}", params.lines).into())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let url = args.next().ok_or("usage: cancel_and_guard URL [WORKER_ID]")?;
    let id = args.next().unwrap_or_else(|| "write-lines-1".into());
    let worker = Worker::connect(url)
        .worker_id(&id)
        .handler("write_lines", |ctx| write_lines(ctx, SystemClock))
        .outbox(std::env::temp_dir().join(&id))
        .build()?;
    println!("{id} works; ctrl-c finishes what runs and ends");
    worker.run(async { tokio::signal::ctrl_c().await.unwrap_or(()) }).await?;
    Ok(())
}
