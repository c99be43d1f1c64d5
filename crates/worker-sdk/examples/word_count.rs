//! Counts words in two steps. Kill it between them, start it again, and the first step is not run a
//! second time: its output is on record.
//!
//! ```text
//! cargo run -p worker-sdk --example word_count -- http://127.0.0.1:8080
//! curl -s http://127.0.0.1:8080/api/v1/task/create -H 'content-type: application/json' \
//!   -d '{"task_type":"word_count","payload":{"text":"one two two"}}'
//! ```

#![expect(clippy::print_stdout, reason = "an example says on the terminal what it does")]

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use worker_sdk::{Context, HandlerError, Worker};

#[derive(Deserialize)]
struct Params {
    text: String,
}

async fn word_count(ctx: Context) -> Result<Bytes, HandlerError> {
    // Parameters that cannot be read will not be better next time.
    let params: Params = serde_json::from_slice(ctx.params())
        .map_err(|why| HandlerError::permanent("BAD_PARAMS", format!("the payload is not {{\"text\": …}}: {why}")))?;

    let words = ctx.step("split").idempotent(true).run(|| async {
        println!("task {}: splitting", ctx.task_id());
        let words: Vec<&str> = params.text.split_whitespace().collect();
        to_bytes(&words)
    });
    // What comes back is what was recorded, by this attempt or an earlier one.
    let words: Vec<String> = from_bytes(&words.await?)?;

    let counts = ctx.step("count").idempotent(true).run(|| async {
        println!("task {}: counting {} words", ctx.task_id(), words.len());
        let mut counts = BTreeMap::<&str, u32>::new();
        for word in &words {
            *counts.entry(word).or_default() += 1;
        }
        to_bytes(&counts)
    });
    // The result is the output of the last step.
    counts.await
}

fn to_bytes(value: &impl serde::Serialize) -> Result<Bytes, HandlerError> {
    let bytes = serde_json::to_vec(value).map_err(|why| HandlerError::permanent("NO_JSON", why.to_string()))?;
    Ok(bytes.into())
}

fn from_bytes<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, HandlerError> {
    serde_json::from_slice(bytes).map_err(|why| HandlerError::permanent("NO_JSON", why.to_string()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("usage: word_count URL, as in http://127.0.0.1:8080")?;
    let worker = Worker::connect(url)
        .worker_id("word-count-1")
        .handler("word_count", word_count)
        .slots(4)
        .outbox(std::env::temp_dir().join("word-count-1"))
        .build()?;
    println!("working; ctrl-c finishes what runs and ends");
    worker.run(async { tokio::signal::ctrl_c().await.unwrap_or(()) }).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use worker_sdk::testing::{End, Harness};

    use super::*;

    #[tokio::test]
    async fn words_are_counted_and_a_recorded_split_is_used() {
        let run = Harness::new(word_count).params(r#"{"text":"one two two"}"#).run().await;
        assert_eq!(run.end, End::Success(r#"{"one":1,"two":2}"#.into()));
        let resumed = Harness::new(word_count).params(r#"{"text":"not read"}"#).recorded("split", r#"["a"]"#);
        assert_eq!(resumed.run().await.end, End::Success(r#"{"a":1}"#.into()));
        let End::Failed { code, .. } = Harness::new(word_count).params("[]").run().await.end else {
            panic!("it fails")
        };
        assert_eq!(code, "BAD_PARAMS");
    }
}
