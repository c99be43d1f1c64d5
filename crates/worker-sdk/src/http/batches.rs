//! Payloads, reports and heartbeats of all handlers, gathered into `POST /coordinator/v1/reports`.
//!
//! The first item leaves at once. While a batch is under way the next one gathers, for a moment or
//! until it is worth a request of its own. Several may be under way; items of one lane (the reports
//! and payloads of a task, or its heartbeats) are never in two at once, so they arrive in order.

mod item;
mod queue;

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _, select};
use parking_lot::Mutex;
use reqwest::Method;
use rest_contract::{Answered, Code, Problem, ReportsResponse};
use tokio::sync::{Notify, oneshot};

use super::hosts::{Answer, Hosts};
use super::wire;
use crate::{NoAnswer, WorkerClock};
pub(super) use item::{Item, Reply};
use item::{Sort, refused};
use queue::{Batch, Queue};

/// How long a batch gathers while another one is under way, ms.
const GATHER_MS: u64 = 2;
/// So many items are worth a request of their own.
const WORTH_SENDING: usize = 64;
/// Batches under way at most.
const UNDER_WAY: usize = 6;
/// A batch without an answer for so long has none, ms. The coordinator answers item by item after
/// 2 s at the latest, with what it knows by then.
const BATCH_MS: u64 = 5_000;

type Answers = Result<Reply, NoAnswer>;

pub(super) struct Batches<C>(Arc<Inner<C>>);

struct Inner<C> {
    hosts: Hosts,
    clock: C,
    state: Mutex<State>,
    /// Somebody gathers and may send now.
    enough: Notify,
}

#[derive(Default)]
struct State {
    queue: Queue,
    senders: usize,
    gathering: bool,
}

impl<C: WorkerClock> Batches<C> {
    pub(super) fn new(hosts: Hosts, clock: C) -> Self {
        Self(Arc::new(Inner { hosts, clock, state: Mutex::default(), enough: Notify::new() }))
    }

    /// Adds an item; ready when it was answered. It is sent even if nobody waits any more.
    pub(super) fn add(&self, item: Item) -> impl Future<Output = Answers> + Send + use<C> {
        let (reply, answer) = oneshot::channel();
        let mut state = self.0.state.lock();
        state.queue.push(item, reply);
        if state.queue.len() >= WORTH_SENDING {
            self.0.enough.notify_one();
        }
        if !state.gathering && state.senders < UNDER_WAY {
            state.gathering = true;
            let is_first = state.senders == 0;
            state.senders += 1;
            tokio::spawn(gather_and_send(self.0.clone(), is_first));
        }
        async move { answer.await.unwrap_or_else(|_| Err(NoAnswer("the sender is gone".into()))) }
    }
}

async fn gather_and_send<C: WorkerClock>(inner: Arc<Inner<C>>, is_first: bool) {
    if is_first {
        // What is added in the same turn goes along.
        tokio::task::yield_now().await;
    } else {
        let moment = std::pin::pin!(inner.clock.sleep_until(inner.clock.now().boot_ms + GATHER_MS));
        let enough = std::pin::pin!(inner.enough.notified());
        select(moment, enough).await;
    }
    inner.state.lock().gathering = false;
    loop {
        let batch = {
            let mut state = inner.state.lock();
            let Some(batch) = state.queue.take() else {
                state.senders -= 1;
                return;
            };
            batch
        };
        let lanes = batch.lanes();
        send(&inner.hosts, batch).await;
        inner.state.lock().queue.release(&lanes);
    }
}

// Sends a batch and answers its items. One that is refused as a whole is cut in halves, so that
// only the item that was meant is refused.
fn send(hosts: &Hosts, batch: Batch) -> BoxFuture<'_, ()> {
    async move {
        let path = ["reports"];
        match hosts.send(Method::POST, &path, &[], Some(batch.to_json()), BATCH_MS).await {
            Ok(Answer::Done(bytes)) => answer(batch, &bytes),
            Ok(Answer::Refused(problem)) if is_about_an_item(&problem) => match batch.halves() {
                Ok((first, second)) => {
                    send(hosts, first).await;
                    send(hosts, second).await;
                }
                Err(only) => {
                    tracing::error!(%problem, field = problem.field, "an item was refused for good");
                    only.answer_all(|sort| Ok(refused(sort)));
                }
            },
            Ok(Answer::Refused(problem)) => {
                tracing::warn!(%problem, "a batch was refused");
                batch.answer_all(|_| Err(NoAnswer(problem.to_string())));
            }
            Err(why) => batch.answer_all(|_| Err(why.clone())),
        }
    }
    .boxed()
}

const fn is_about_an_item(problem: &Problem) -> bool {
    matches!(problem.code, Code::InvalidField | Code::PayloadTooLarge)
}

fn answer(batch: Batch, bytes: &Bytes) {
    match wire::from_json::<ReportsResponse>(bytes) {
        Ok(answers) if batch.fits(&answers) => {
            let (mut stored, mut reports, mut beats) =
                (answers.payloads_stored.into_iter(), answers.reports.into_iter(), answers.heartbeats.into_iter());
            let answered = |one: Option<Answered>| {
                one.map(Reply::Answered).ok_or_else(|| NoAnswer("the answer is too short".into()))
            };
            batch.answer_all(|sort| match sort {
                Sort::Payload => Ok(Reply::Stored(stored.next().unwrap_or(false))),
                Sort::Report => answered(reports.next()),
                Sort::Heartbeat => answered(beats.next()),
            });
        }
        Ok(_) => batch.answer_all(|_| Err(NoAnswer("the answer is of another batch".into()))),
        Err(why) => batch.answer_all(|_| Err(why.clone())),
    }
}
