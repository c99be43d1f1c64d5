//! The demo's upstream system: one task for each file, by the batch endpoint, and waiting for them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use futures::StreamExt as _;
use rest_client::Client;
use rest_contract::{BatchItem, CreateBatch, CreateRequest, ItemOutcome, MAX_NAME_BYTES, Retry};
use serde_json::value::to_raw_value;
use service_kit::{Clock as _, SystemClock};
use task_events::{Sha256Hash, TaskId};

use super::QUEUE;
use super::handler::Parameters;

/// Tasks in one request.
const PER_BATCH: usize = 100;
/// Reads at a time while waiting.
const READS: usize = 32;
/// Pause before what was not answered is asked again, ms.
const AGAIN_MS: u64 = 100;

/// Creates a task for each input, and says which is which. Each has a key, so that whatever was not
/// answered is sent again and nothing is created twice.
pub async fn create_all(client: &Client, dir: &Path, inputs: &[PathBuf]) -> anyhow::Result<BTreeMap<TaskId, String>> {
    let mut tasks = BTreeMap::new();
    for inputs in inputs.chunks(PER_BATCH) {
        let mut open = inputs.iter().map(|input| request(dir, input)).collect::<anyhow::Result<Vec<_>>>()?;
        while !open.is_empty() {
            let sent: Vec<_> = open.iter().map(|(request, _)| request.clone()).collect();
            match client.create_batch(&CreateBatch { tasks: sent }, None).await {
                Ok(answer) => open = settle(&mut tasks, open, &answer.items)?,
                Err(why) if why.retry_with_key() => {}
                Err(why) => return Err(why).context("the server refused a batch of creates"),
            }
            if !open.is_empty() {
                SystemClock.sleep_until(SystemClock.boot_ms() + AGAIN_MS).await;
            }
        }
    }
    Ok(tasks)
}

fn request(dir: &Path, input: &Path) -> anyhow::Result<(CreateRequest, String)> {
    let Some(file) = input.to_str() else { bail!("the name of {} is no UTF-8", input.display()) };
    let content = std::fs::read(dir.join(input)).with_context(|| format!("cannot read {}", input.display()))?;
    let sha256 = Sha256Hash::of(&content).to_string();
    let key = Sha256Hash::of(format!("{file}\0{sha256}").as_bytes()).to_string();
    let payload = to_raw_value(&Parameters { file: file.to_owned(), sha256 })?;
    let request = CreateRequest {
        task_type: QUEUE.into(),
        payload: Some(payload),
        creator: Some("demo".into()),
        business_key: (file.len() <= MAX_NAME_BYTES).then(|| file.into()),
        idempotency_key: Some(key.into()),
        ..CreateRequest::default()
    };
    Ok((request, file.to_owned()))
}

// Notes what is created, and returns what must be asked again.
fn settle(
    tasks: &mut BTreeMap<TaskId, String>,
    sent: Vec<(CreateRequest, String)>,
    answers: &[BatchItem],
) -> anyhow::Result<Vec<(CreateRequest, String)>> {
    let mut again = Vec::new();
    for (item, answer) in sent.into_iter().zip(answers) {
        match answer.outcome {
            ItemOutcome::Created | ItemOutcome::Duplicate => {
                let id = answer.task_id.as_deref().context("a created task without its id")?;
                tasks.insert(id.parse()?, item.1);
            }
            ItemOutcome::Unknown => again.push(item),
            ItemOutcome::Rejected => {
                let problem = answer.problem.as_deref();
                if problem.is_some_and(|problem| problem.code.retry() == Retry::Later) {
                    again.push(item);
                    continue;
                }
                bail!("the task for {} was refused: {}", item.1, problem.map(ToString::to_string).unwrap_or_default());
            }
        }
    }
    Ok(again)
}

/// Which of these tasks are not closed. One whose read was not answered is taken for open.
pub async fn still_open(client: &Client, tasks: Vec<TaskId>) -> Vec<TaskId> {
    let reads = futures::stream::iter(tasks.into_iter().map(|task| async move {
        let closed = client.get(task, None).await.is_ok_and(|view| view.status.is_terminal());
        (!closed).then_some(task)
    }));
    reads.buffer_unordered(READS).filter_map(std::future::ready).collect().await
}
