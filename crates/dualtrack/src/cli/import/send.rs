//! Batches to the server, each until every one of its lines is settled: what was not taken is sent
//! again when the server asks for it, what is not known is asked for by sending it again with the same
//! key, and a batch that is refused as a whole is halved until the line that is to blame stands alone.

use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::{Either, select};
use rest_client::contract::{BatchItem, CreateBatch, CreateRequest, Retry};
use rest_client::{Client, ClientError};
use service_kit::{Clock as _, Shutdown, SystemClock};

use super::outcome::{Outcome, Settled};
use super::record::Line;

/// First pause after a failure, ms; it doubles …
const FIRST_PAUSE_MS: u64 = 50;

/// … up to this.
const LONGEST_PAUSE_MS: u64 = 5_000;

/// Longest pause that a server gets when it asks for one, ms.
const LONGEST_ASKED_MS: u64 = 60_000;

/// Sends.
pub struct Sending {
    client: Client,
    stop: Shutdown,
    patience_ms: u64,
    // When a line was last settled, on the boot clock.
    moved: AtomicU64,
    // Beyond this wall time the keys of an earlier sending no longer protect.
    until: Option<i64>,
}

/// A line that is not settled yet.
struct Open {
    line: u64,
    text: Vec<u8>,
    task: Box<CreateRequest>,
    outcome: Option<Outcome>,
    // What is to be said if nothing more is tried.
    last: Outcome,
}

/// What a try came to.
struct Tried {
    /// What the server asks to wait, ms.
    asked: Option<u64>,
    /// Sent as they are, these would be refused again: they go in halves.
    halves: Option<Vec<usize>>,
}

impl Sending {
    /// To this server, until told to stop, or nothing has moved for so long.
    pub fn new(client: Client, stop: Shutdown, patience_ms: u64, until: Option<i64>) -> Self {
        Self { client, stop, patience_ms, moved: AtomicU64::new(SystemClock.boot_ms()), until }
    }

    /// Settles every line of a batch, in their order.
    pub async fn settle(&self, lines: Vec<Line>) -> Vec<Settled> {
        let mut open: Vec<Open> = Vec::new();
        let mut done: Vec<Settled> = Vec::new();
        for Line { line, text, task } in lines {
            match task {
                Ok(task) => {
                    let last = Outcome::NotSent("it was not tried".to_owned());
                    open.push(Open { line, text, task, outcome: None, last });
                }
                Err(problem) => done.push(Settled { line, text, outcome: Outcome::Rejected(problem) }),
            }
        }
        let mut groups = vec![(0..open.len()).collect::<Vec<_>>()];
        while let Some(group) = groups.pop() {
            if let Some(halves) = self.group(&mut open, group).await {
                let (first, second) = halves.split_at(halves.len() / 2);
                groups.extend([second.to_vec(), first.to_vec()]);
            }
        }
        done.extend(open.into_iter().map(|open| Settled {
            line: open.line,
            text: open.text,
            outcome: open.outcome.unwrap_or(open.last),
        }));
        done.sort_by_key(|settled| settled.line);
        done
    }

    // Tries until all are settled or it is enough; what must be halved comes back.
    async fn group(&self, open: &mut [Open], mut group: Vec<usize>) -> Option<Vec<usize>> {
        let mut pause_ms = FIRST_PAUSE_MS;
        let mut begun = None;
        loop {
            group.retain(|&i| open[i].outcome.is_none());
            if group.is_empty() || self.is_enough(open, &group, begun) {
                return None;
            }
            begun.get_or_insert_with(|| SystemClock.boot_ms());
            let before = group.len();
            let tried = self.try_once(open, &group).await;
            if tried.halves.is_some() {
                return tried.halves;
            }
            group.retain(|&i| open[i].outcome.is_none());
            if group.len() < before {
                self.moved.store(SystemClock.boot_ms(), Ordering::Relaxed);
                pause_ms = FIRST_PAUSE_MS;
            }
            if !group.is_empty() {
                self.pause(tried.asked.unwrap_or(pause_ms)).await;
                pause_ms = pause_ms.saturating_mul(2).min(LONGEST_PAUSE_MS);
            }
        }
    }

    // Nobody runs out of patience with lines that were not tried: a slow pipe may have kept them back.
    fn is_enough(&self, open: &mut [Open], group: &[usize], begun: Option<u64>) -> bool {
        let over = self.until.is_some_and(|until| SystemClock.wall_ms() > until);
        if over {
            for &i in group {
                let what = "the keys of the earlier sending are about to expire: see --again";
                open[i].last = Outcome::NotSent(what.to_owned());
            }
        }
        let since = |begun: u64| begun.max(self.moved.load(Ordering::Relaxed));
        let waited = begun.map_or(0, |begun| SystemClock.boot_ms().saturating_sub(since(begun)));
        over || self.stop.is_requested() || waited > self.patience_ms
    }

    async fn try_once(&self, open: &mut [Open], group: &[usize]) -> Tried {
        let tasks = group.iter().map(|&i| (*open[i].task).clone()).collect();
        match self.client.create_batch(&CreateBatch { tasks }, None).await {
            Ok(answer) => {
                let asked = answer.items.iter().filter_map(|item| item_of(open, group, item)).max();
                Tried { asked, halves: None }
            }
            Err(error) => whole(open, group, &error),
        }
    }

    async fn pause(&self, ms: u64) {
        let until = SystemClock.boot_ms().saturating_add(ms.min(LONGEST_ASKED_MS));
        match select(Box::pin(SystemClock.sleep_until(until)), Box::pin(self.stop.requested())).await {
            Either::Left(_) | Either::Right(_) => {}
        }
    }
}

// Takes an item's answer down; what the server asks to wait before that line is sent again.
fn item_of(open: &mut [Open], group: &[usize], item: &BatchItem) -> Option<u64> {
    let line = open.get_mut(*group.get(item.index)?)?;
    let mut problem = item.problem.as_deref().cloned();
    // What the server calls an item's field is, to whoever wrote the file, the line's.
    if let Some(problem) = &mut problem {
        let below = format!("/tasks/{}", item.index);
        problem.detail = problem.detail.replace(&format!("{below}/"), "/");
        let inner = problem.field.as_deref().and_then(|field| field.strip_prefix(&below)).map(str::to_owned);
        problem.field = inner.or_else(|| problem.field.take());
    }
    let why = || problem.as_ref().map_or_else(|| "the server did not say why".to_owned(), ToString::to_string);
    match problem.as_ref().map_or(Retry::Never, |problem| problem.code.retry()) {
        Retry::Later => line.last = Outcome::NotSent(why()),
        Retry::AskFirst => line.last = Outcome::Unknown(why()),
        Retry::Never => {
            line.outcome = Outcome::of(item.outcome, item.task_id.as_deref(), problem.as_ref());
            line.last = Outcome::Unknown(why());
        }
    }
    problem.and_then(|problem| problem.facts.get("retry_after_ms")?.as_u64())
}

// A call that failed as a whole.
fn whole(open: &mut [Open], group: &[usize], error: &ClientError) -> Tried {
    let last = match error.retry() {
        Retry::Later => Outcome::NotSent(error.to_string()),
        Retry::AskFirst => Outcome::Unknown(error.to_string()),
        Retry::Never if group.len() > 1 => return Tried { asked: None, halves: Some(group.to_vec()) },
        Retry::Never => {
            let outcome = match error.problem() {
                Some(problem) => Outcome::Rejected(Box::new(problem.clone())),
                None => Outcome::NotSent(error.to_string()),
            };
            group.iter().for_each(|&i| open[i].outcome = Some(outcome.clone()));
            return Tried { asked: None, halves: None };
        }
    };
    for &i in group {
        // Once it may have been taken it stays so, whatever the next try says.
        if !matches!((&open[i].last, &last), (Outcome::Unknown(_), Outcome::NotSent(_))) {
            open[i].last = last.clone();
        }
    }
    let asked = error.problem().and_then(|problem| problem.facts.get("retry_after_ms")?.as_u64());
    Tried { asked, halves: None }
}
