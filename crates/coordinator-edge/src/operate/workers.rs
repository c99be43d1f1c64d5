//! `GET /api/v1/workers`, `…/{id}`, `POST …/{id}/drain|release`: what instances heard in polls, and what
//! owners have on record.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use coordinator::owner::{Answer, AttemptSeen, Command, Look, Looked};
use coordinator::surface::{Peers, WorkerSeen, WorkersAsk};
use event_log::EventLog;
use rest_contract::{AttemptView, Code, DrainView, Problem, WorkerDetail, WorkerView, WorkersView};
use service_kit::Clock;
use snapshot_store::SnapshotStore;
use task_events::Text;

use crate::problems::{Answered, Failure};
use crate::upstream::parameters::{Part, query, text_of};
use crate::upstream::validate::name_of;
use crate::{Edge, reply};

/// Most attempts of a worker that are shown.
const MAX_ATTEMPTS: usize = 1_000;

/// What instances heard of workers.
#[derive(Default)]
struct Heard {
    /// The newest process of each, and the instance that it polled last.
    workers: BTreeMap<Text, (Text, WorkerSeen)>,
    answered: Vec<Text>,
    unanswered: Vec<Text>,
}

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    pub(super) async fn workers(State(edge): State<Self>, request: Request) -> Answered {
        query(request.uri(), &[])?;
        let heard = edge.heard(&WorkersAsk::Seen).await;
        let (mut running, mut unanswered) = (BTreeMap::<Text, u64>::new(), Vec::new());
        for (partition, answer) in edge.surface.ask_all(&Command::Look(Look::Workers)).await {
            match looked(answer) {
                Some(Looked::Workers(counts)) => {
                    counts.into_iter().for_each(|(worker, n)| *running.entry(worker).or_default() += n);
                }
                Some(_) | None => unanswered.push(partition.0),
            }
        }
        let mut views: BTreeMap<Text, WorkerView> =
            heard.workers.iter().map(|(worker, seen)| (worker.clone(), view(worker, Some(seen)))).collect();
        for (worker, n) in running {
            views.entry(worker.clone()).or_insert_with(|| view(&worker, None)).running = n;
        }
        let status = status_of(heard.unanswered.is_empty() && unanswered.is_empty());
        let workers = views.into_values().collect();
        reply::json(status, &WorkersView { workers, unanswered_instances: heard.unanswered, unanswered })
    }

    pub(super) async fn worker(State(edge): State<Self>, id: Part, request: Request) -> Answered {
        let worker = worker_of(id)?;
        query(request.uri(), &[])?;
        let heard = edge.heard(&WorkersAsk::Seen).await;
        let (mut attempts, mut running, mut unanswered) = (Vec::new(), 0, Vec::new());
        for (partition, answer) in edge.surface.ask_all(&Command::Look(Look::Worker(worker.clone()))).await {
            match looked(answer) {
                Some(Looked::Attempts { all, attempts: some }) => {
                    running += all;
                    attempts.extend(some.into_iter().map(attempt));
                }
                Some(_) | None => unanswered.push(partition.0),
            }
        }
        let seen = heard.workers.get(&worker);
        let all_answered = heard.unanswered.is_empty() && unanswered.is_empty();
        if seen.is_none() && attempts.is_empty() && all_answered {
            return Err(unknown(&worker));
        }
        attempts.sort_unstable_by_key(|attempt| attempt.task_id);
        attempts.truncate(MAX_ATTEMPTS);
        let worker = WorkerView { running, ..view(&worker, seen) };
        let unanswered_instances = heard.unanswered;
        reply::json(status_of(all_answered), &WorkerDetail { worker, attempts, unanswered_instances, unanswered })
    }

    pub(super) async fn drain(State(edge): State<Self>, id: Part, request: Request) -> Answered {
        let worker = worker_of(id)?;
        edge.control(request).await?;
        let before = edge.heard(&WorkersAsk::Seen).await;
        let Some((_, seen)) = before.workers.get(&worker) else { return Err(unknown(&worker)) };
        let incarnation = seen.incarnation;
        let told = edge.heard(&WorkersAsk::Drain { worker: worker.clone(), incarnation }).await;
        let status = status_of(told.unanswered.is_empty());
        let drain = DrainView { worker_id: worker, instances: told.answered, unanswered_instances: told.unanswered };
        reply::json(status, &drain)
    }

    pub(super) async fn release(State(edge): State<Self>, id: Part, request: Request) -> Answered {
        let worker = worker_of(id)?;
        let (actor, reason) = edge.control(request).await?;
        // An instance that does not answer keeps the drain at most until the worker's next process.
        edge.heard(&WorkersAsk::Release { worker: worker.clone() }).await;
        edge.everywhere(&Command::Release { worker, actor, reason }, &Answer::WorkerReleased).await
    }

    // Of all instances, this one first.
    async fn heard(&self, ask: &WorkersAsk) -> Heard {
        let mut heard = Heard::default();
        heard.add(self.instance.clone(), Some(self.surface.workers_here(ask)));
        for (instance, told) in self.surface.workers_elsewhere(ask).await {
            heard.add(instance, told);
        }
        heard
    }
}

impl Heard {
    fn add(&mut self, instance: Text, told: Option<Vec<WorkerSeen>>) {
        let Some(told) = told else { return self.unanswered.push(instance) };
        for seen in told {
            let known = self.workers.get(&seen.worker_id).map(|(_, known)| (known.incarnation, known.polled_at));
            if known.is_none_or(|known| known < (seen.incarnation, seen.polled_at)) {
                self.workers.insert(seen.worker_id.clone(), (instance.clone(), seen));
            }
        }
        self.answered.push(instance);
    }
}

fn worker_of(part: Part) -> Result<Text, Failure> {
    let worker = Text::from(text_of("id", part)?);
    name_of("id", &worker)?;
    Ok(worker)
}

fn looked(answer: Answer) -> Option<Looked> {
    if let Answer::Looked(looked) = answer { Some(*looked) } else { None }
}

const fn status_of(all_answered: bool) -> StatusCode {
    if all_answered { StatusCode::OK } else { StatusCode::MULTI_STATUS }
}

fn unknown(worker: &Text) -> Failure {
    let text = format!("no worker {worker:?} has polled lately or holds an attempt");
    Problem::new(Code::WorkerUnknown, text).field("id").value(worker.as_str()).into()
}

fn view(worker: &Text, heard: Option<&(Text, WorkerSeen)>) -> WorkerView {
    let seen = heard.map(|(_, seen)| seen);
    WorkerView {
        worker_id: worker.clone(),
        incarnation: seen.map(|seen| seen.incarnation),
        handler_version: seen.map(|seen| seen.handler_version.clone()),
        queues: seen.map(|seen| seen.queues.clone()).unwrap_or_default(),
        free_slots: seen.map_or(0, |seen| seen.free_slots),
        held: seen.map_or(0, |seen| seen.held),
        last_poll_at: seen.map(|seen| seen.polled_at),
        instance: heard.map(|(instance, _)| instance.clone()),
        draining: seen.is_some_and(|seen| seen.draining),
        running: 0,
    }
}

fn attempt(seen: AttemptSeen) -> AttemptView {
    AttemptView {
        task_id: seen.task_id,
        task_type: seen.task_type,
        queue: seen.queue,
        status: seen.state,
        run_no: seen.run_no.0,
        exec_epoch: seen.execution_id.parts().map_or(0, |(_, epoch)| epoch.0),
        execution_id: seen.execution_id,
        assigned_at: seen.assigned_at,
    }
}
