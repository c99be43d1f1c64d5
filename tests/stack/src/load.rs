//! Load with a history: keyed and unkeyed creates, singly and in batches, cancels and replays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rest_client::{Client, ClientError, Timeouts};
use rest_contract::{BatchItem, CancelRequest, CreateBatch, CreateRequest, ItemOutcome, ReplayRequest};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use service_kit::{Clock as _, SystemClock};
use task_events::{ReplayFrom, TaskId};
use tokio::task::JoinHandle;

use crate::history::{History, Outcome};
use crate::worker::TYPE;

/// Label of every task: the number of its operation.
pub const OP: &str = "op";

/// Pause of a creator between two tasks, and of who sends batches, ms.
const PAUSE_MS: u64 = 80;
const BATCH_MS: u64 = 400;
/// Items of a batch.
const BATCH: u64 = 6;
/// Creators; every other one uses keys.
const CREATORS: usize = 4;
/// Pause before a key is asked for again, ms.
const AGAIN_MS: u64 = 50;
/// Longer than the request limit of an owner and a take-over.
const TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(1), answer: Duration::from_secs(20) };

/// What the handler is told: one of eight fails at first; what is to be cancelled takes long enough.
pub fn request(op: u64) -> CreateRequest {
    let ms = if is_to_be_cancelled(op) { 1_500 } else { op % 4 * 15 };
    told(op, &json!({ "ms": ms, "fails": op.is_multiple_of(8) }))
}

/// A task that tells its handler this.
pub fn told(op: u64, payload: &Value) -> CreateRequest {
    CreateRequest { payload: Some(to_raw_value(payload).expect("JSON")), ..bare(op) }
}

/// A task whose payload lies elsewhere: its creation needs no store.
pub fn elsewhere(op: u64) -> CreateRequest {
    let (payload_ref, payload_hash) = (Some("file:///elsewhere".into()), Some("0".repeat(64).into()));
    CreateRequest { payload_ref, payload_hash, ..bare(op) }
}

fn bare(op: u64) -> CreateRequest {
    let labels = [(OP.into(), op.to_string().into())].into();
    CreateRequest { task_type: TYPE.into(), labels, ..Default::default() }
}

const fn is_to_be_cancelled(op: u64) -> bool {
    op % 17 == 5
}

const fn is_to_be_replayed(op: u64) -> bool {
    op % 17 == 9
}

/// Clients at work.
pub struct Load {
    history: Arc<History>,
    over: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    /// Clients of all these instances in turn; what they are told is added to the history.
    pub fn start(urls: &[String], history: &Arc<History>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let all: Vec<_> = urls.iter().map(|url| Client::with_timeouts(url, TIMEOUTS).expect("a URL")).collect();
        let caller = |first: usize| Caller {
            edges: all.iter().cycle().skip(first % all.len()).take(all.len()).cloned().collect(),
            turn: 0,
            history: history.clone(),
            over: over.clone(),
        };
        let creators = (0..CREATORS).map(|n| tokio::spawn(caller(n).create_singly(n.is_multiple_of(2))));
        let batches = [false, true].map(|keyed| tokio::spawn(caller(usize::from(keyed)).create_in_batches(keyed)));
        Self { history: history.clone(), over: over.clone(), clients: creators.chain(batches).collect() }
    }

    /// No more creates; waits until each key is settled, so there must be somebody who answers.
    pub async fn stop(self) -> Arc<History> {
        self.over.store(true, Ordering::SeqCst);
        for client in self.clients {
            client.await.expect("no panic");
        }
        self.history
    }
}

struct Caller {
    edges: Vec<Client>,
    turn: usize,
    history: Arc<History>,
    over: Arc<AtomicBool>,
}

impl Caller {
    fn edge(&mut self) -> Client {
        self.turn += 1;
        self.edges[self.turn % self.edges.len()].clone()
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    async fn create_singly(mut self, keyed: bool) {
        while !self.is_over() {
            let op = self.history.invoke(1, keyed).start;
            let key = keyed.then(|| format!("key-{op}"));
            loop {
                let answer = self.edge().create(&request(op), key.as_deref()).await;
                let settled = answer.is_ok() || key.is_none();
                let created = answer.as_ref().ok().map(|created| created.task_id);
                self.history.created(op, Outcome::of(answer.map(|created| created.task_id)));
                if let Some(task) = created {
                    self.disturb(op, task).await;
                }
                if settled {
                    break;
                }
                pause(AGAIN_MS).await;
            }
            pause(PAUSE_MS).await;
        }
    }

    async fn create_in_batches(mut self, keyed: bool) {
        while !self.is_over() {
            let ops = self.history.invoke(BATCH, keyed);
            let key = keyed.then(|| format!("batch-{}", ops.start));
            let batch = CreateBatch { tasks: ops.clone().map(request).collect() };
            loop {
                let answer = self.edge().create_batch(&batch, key.as_deref()).await;
                let settled = self.note_batch(ops.start, BATCH, answer);
                if settled || key.is_none() {
                    break;
                }
                pause(AGAIN_MS).await;
            }
            pause(BATCH_MS).await;
        }
    }

    // Whether each item has its task.
    fn note_batch(&self, first: u64, count: u64, answer: Result<rest_contract::BatchCreated, ClientError>) -> bool {
        match answer {
            Ok(answer) => {
                let told = answer.items.into_iter().map(|item| (first + item.index as u64, item_outcome(item)));
                told.fold(true, |settled, (op, outcome)| {
                    let done = matches!(outcome, Outcome::Ok(_));
                    self.history.created(op, outcome);
                    settled && done
                })
            }
            Err(why) => {
                (first..first + count).for_each(|op| self.history.created(op, Outcome::of(Err(why.clone()))));
                false
            }
        }
    }

    // Some are cancelled at once, some replayed after their end.
    async fn disturb(&mut self, op: u64, task: TaskId) {
        if is_to_be_cancelled(op) {
            self.history.cancel(task, None);
            let asked = CancelRequest { actor: Some("drill".into()), reason: "as planned".into() };
            let answer = self.edge().cancel(task, &asked).await;
            self.history.cancel(task, Some(Outcome::of(answer.map(drop))));
        }
        if is_to_be_replayed(op) {
            let ended = self.edge().get(task, Some(Duration::from_secs(5))).await;
            if ended.is_ok_and(|view| view.status.is_terminal() && view.run_no == 1) {
                self.history.replay(task, None);
                let again = ReplayRequest {
                    run_no: 1,
                    from: ReplayFrom::Failure,
                    from_step: None,
                    actor: Some("drill".into()),
                    reason: "as planned".into(),
                };
                let answer = self.edge().replay(task, &again).await;
                self.history.replay(task, Some(Outcome::of(answer.map(|replayed| replayed.run_no))));
            }
        }
    }
}

fn item_outcome(item: BatchItem) -> Outcome<TaskId> {
    let why = || item.problem.as_ref().map_or_else(String::new, ToString::to_string);
    match item.outcome {
        ItemOutcome::Created | ItemOutcome::Duplicate => {
            Outcome::Ok(item.task_id.as_ref().expect("its id").parse().expect("an id"))
        }
        ItemOutcome::Rejected => Outcome::Fail(why()),
        ItemOutcome::Unknown => Outcome::Info(why()),
    }
}

async fn pause(ms: u64) {
    SystemClock.sleep_until(SystemClock.boot_ms() + ms).await;
}
