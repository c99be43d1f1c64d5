//! Running the machine's outputs: first what must be durable, then what goes out.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use bytes::Bytes;
use futures::future::FutureExt as _;
use task_events::ExecutionId;
use tokio::sync::watch;
use worker_protocol::Assignment;

use super::execute::{execute, how_it_ended};
use super::{Running, Worker};
use crate::context::Holding;
use crate::machine::{Input, Output, RequestId};
use crate::{Context, CoordinatorPort, NoAnswer, WorkerClock};

impl<P: CoordinatorPort, C: WorkerClock> Worker<P, C> {
    /// Runs everything the machine wants done now.
    pub(super) async fn turn(&mut self) {
        let mut others = Vec::new();
        while let Some(output) = self.machine.take_output() {
            match output {
                Output::Persist { entry } => self.keep.push(entry),
                Output::Forget { key } => self.forget.push(key),
                Output::Poll { .. }
                | Output::Heartbeat { .. }
                | Output::Report { .. }
                | Output::Start { .. }
                | Output::Cancel { .. }
                | Output::Stop { .. } => others.push(output),
            }
        }
        self.move_guards();
        if !self.keep.is_empty() || !self.forget.is_empty() {
            self.apply_to_outbox().await;
        }
        for kept in self.to_be_kept.drain(..) {
            // A handler that is gone does not wait any more.
            let _ = kept.send(());
        }
        others.into_iter().for_each(|output| self.run_output(output));
        self.let_steps_go();
    }

    // Handlers read the end of their lease from here, so it is moved before anything else.
    fn move_guards(&mut self) {
        for (id, running) in &self.running {
            let until = self.machine.write_until(*id).unwrap_or(0);
            running.until.send_if_modified(|known| std::mem::replace(known, until) != until);
            running.holding.move_lease(self.machine.lease_until(*id).unwrap_or(0));
        }
    }

    async fn apply_to_outbox(&mut self) {
        let (keep, forget) = (std::mem::take(&mut self.keep), std::mem::take(&mut self.forget));
        let Some(mut outbox) = self.outbox.take() else { return };
        let applying = tokio::task::spawn_blocking(move || {
            let applied = outbox.apply(keep, &forget);
            (outbox, applied)
        });
        match applying.await {
            Ok((outbox, applied)) => {
                self.outbox = Some(outbox);
                if let Err(error) = applied {
                    // The reports are sent all the same; only a crash before they are answered
                    // would lose them, and then the lease runs out.
                    tracing::error!(%error, "outbox cannot be written, reports would not survive a crash");
                }
            }
            Err(error) => tracing::error!(%error, "outbox is gone, reports would not survive a crash"),
        }
    }

    fn run_output(&mut self, output: Output) {
        match output {
            Output::Poll { request, poll } => {
                let answer = self.port.poll(poll);
                self.requests.push(
                    answer
                        .map(move |a| answered(request, a, |r, answer| Input::PollAnswered { request: r, answer }))
                        .boxed(),
                );
            }
            Output::Heartbeat { request, task_id, attempt_token, heartbeat } => {
                let answer = self.port.heartbeat(task_id, attempt_token, heartbeat);
                self.requests.push(
                    answer
                        .map(move |a| answered(request, a, |r, answer| Input::HeartbeatAnswered { request: r, answer }))
                        .boxed(),
                );
            }
            Output::Report { request, task_id, attempt_token, report } => {
                let answer = self.port.report(task_id, attempt_token, report);
                self.requests.push(
                    answer
                        .map(move |a| answered(request, a, |r, answer| Input::ReportAnswered { request: r, answer }))
                        .boxed(),
                );
            }
            Output::Start { assignment } => self.start(assignment),
            Output::Cancel { execution_id } => {
                if let Some(running) = self.running.get(&execution_id) {
                    running.cancel.send_replace(true);
                }
            }
            Output::Stop { execution_id, why } => {
                tracing::warn!(%execution_id, ?why, "handler is stopped");
                if let Some(running) = self.running.get(&execution_id) {
                    running.holding.stop(why);
                    running.stop();
                }
            }
            Output::Persist { .. } | Output::Forget { .. } => {}
        }
    }

    fn start(&mut self, assignment: Arc<Assignment>) {
        let id = assignment.attempt.execution_id;
        let (until, acts_until) = watch::channel(self.machine.write_until(id).unwrap_or(0));
        let (holding, held, none_held) = Holding::new(self.machine.lease_until(id).unwrap_or(0));
        let (cancel, cancelled) = watch::channel(false);
        let context = Context {
            assignment: assignment.clone(),
            params: Bytes::new(),
            payloads: self.payloads.clone(),
            guard: self.guard(acts_until),
            cancel: cancelled,
            told: self.told.0.clone(),
            next_index: Arc::new(AtomicU32::new(0)),
            claimed: Arc::default(),
            checkpoints: Arc::default(),
            held,
            traced: self.traced(&assignment),
        };
        let handler = self.handlers.get(&assignment.task_type);
        let task = tokio::spawn(execute(handler, context));
        self.running.insert(id, Running { abort: task.abort_handle(), cancel, until, holding });
        let gone = async move {
            let joined = task.await;
            // What it started outside of itself may still act.
            none_held.await;
            (id, how_it_ended(joined))
        };
        self.ends.push(gone.boxed());
    }

    // A step that must not run twice waits until the owner knows that the handler is inside it.
    fn let_steps_go(&mut self) {
        let may_go = |id: &ExecutionId| self.machine.is_step_announced(*id);
        let going: Vec<_> = self.waiting.keys().filter(|id| may_go(id)).copied().collect();
        for id in going {
            if let Some(go) = self.waiting.remove(&id) {
                let _ = go.send(());
            }
        }
    }
}

fn answered<A>(request: RequestId, answer: Result<A, NoAnswer>, input: impl FnOnce(RequestId, A) -> Input) -> Input {
    match answer {
        Ok(answer) => input(request, answer),
        Err(error) => {
            tracing::debug!(%error, "request without an answer");
            Input::SendFailed { request }
        }
    }
}
