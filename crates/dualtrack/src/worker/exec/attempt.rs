//! One program, from its start until nothing of it is left.

use bytes::Bytes;
use service_kit::{Clock as _, SystemClock};
use task_events::ErrorCategory;
use worker_sdk::machine::{Stop, TIMEOUT_START_TO_CLOSE};
use worker_sdk::{Context, HandlerError, Hold};

use super::channel::Channel;
use super::supervised::Supervised;
use super::{Exec, outcome};
use crate::worker::supervisor::{Cut, Ended, FromSupervisor, Start, ToSupervisor};

/// A supervisor that was told to end everything and is still there so much later is ended itself, ms.
const PATIENCE_MS: u64 = 3_000;

/// Why the worker ended the program.
#[derive(Debug)]
enum Why {
    /// The task's cancel was requested.
    Cancelled,
    /// It ran longer than the task allows.
    StartToClose,
    /// It ran longer than the worker allows.
    TimeLimit,
    /// The worker ends.
    WorkerEnds,
    /// The attempt is over: nothing it says counts.
    Over,
    /// What it said on its channel could not be taken.
    Failed(HandlerError),
}

pub(super) struct Attempt<'a> {
    exec: &'a Exec,
    context: &'a Context,
    hold: Hold,
    channel: Channel,
    began_at: u64,
    why: Option<Why>,
    /// From here on the supervisor itself is ended, ms on the boot clock.
    patience_until: u64,
    heard_stop: bool,
    heard_cancel: bool,
    heard_ending: bool,
}

/// What happens to an attempt.
enum Event {
    Stop(Stop),
    Lease(u64),
    Cancel,
    Ending,
    TimeLimit,
    Impatient,
    Reply(Result<Bytes, HandlerError>),
    Heard(Option<FromSupervisor>),
}

impl<'a> Attempt<'a> {
    pub fn new(exec: &'a Exec, context: &'a Context, hold: Hold, channel: Channel) -> Self {
        Self {
            exec,
            context,
            hold,
            channel,
            began_at: SystemClock.boot_ms(),
            why: None,
            patience_until: u64::MAX,
            heard_stop: false,
            heard_cancel: false,
            heard_ending: false,
        }
    }

    /// Runs it; the outcome, and the hold on the attempt.
    pub async fn run(mut self) -> (Result<Bytes, HandlerError>, Hold) {
        let outcome = match self.exec.supervisors.start(self.start()).await {
            Ok(supervised) => self.supervise(supervised).await,
            Err(why) => Err(HandlerError::transient("EXEC_NOT_STARTED", format!("cannot start a supervisor: {why}"))),
        };
        (outcome, self.hold)
    }

    fn start(&self) -> Start {
        let (settings, grace_ms) = (&self.exec.settings, self.exec.settings.grace_ms);
        let limit = settings.time_limit_ms.unwrap_or(u64::MAX).min(self.context.start_to_close_ms());
        Start {
            command: self.exec.command(),
            environment: settings.passed.for_attempt(self.context),
            stdin: self.context.params().clone(),
            steps: self.channel.steps_file(),
            until: self.hold.lease_until(),
            // By itself, should the worker stand still: a moment after the worker would have done it.
            at_most_until: self.began_at.saturating_add(limit).saturating_add(grace_ms).saturating_add(PATIENCE_MS),
            memory: settings.memory,
        }
    }

    async fn supervise(&mut self, mut supervised: Supervised) -> Result<Bytes, HandlerError> {
        let ended = loop {
            match self.next(&mut supervised).await {
                Event::Heard(Some(FromSupervisor::Line { begin, bytes })) => {
                    // What waits behind a line of an attempt that is being ended comes too late.
                    if self.channel.is_ready() {
                        let taken = self.channel.take(&begin, bytes);
                        self.answer(taken, &mut supervised).await;
                    }
                }
                Event::Heard(Some(FromSupervisor::Ended(ended))) => break Some(*ended),
                Event::Heard(None) => break None,
                Event::Reply(done) => self.answer(done.map(Some), &mut supervised).await,
                Event::Lease(until) => tell(&mut supervised, &ToSupervisor::Until(until)).await,
                Event::Stop(why) => {
                    self.heard_stop = true;
                    match why {
                        Stop::StartToClose => self.terminate(Why::StartToClose, &mut supervised).await,
                        // The grace began at the cancel, and is over.
                        Stop::CancelGrace => self.kill(Why::Cancelled, &mut supervised).await,
                        Stop::LeaseEnd | Stop::Fenced => self.kill(Why::Over, &mut supervised).await,
                    }
                }
                Event::Cancel => {
                    self.heard_cancel = true;
                    self.terminate(Why::Cancelled, &mut supervised).await;
                }
                Event::Ending => {
                    self.heard_ending = true;
                    self.terminate(Why::WorkerEnds, &mut supervised).await;
                }
                Event::TimeLimit => self.terminate(Why::TimeLimit, &mut supervised).await,
                Event::Impatient => {
                    self.patience_until = u64::MAX;
                    supervised.kill();
                }
            }
        };
        supervised.end(ended.is_some()).await;
        self.outcome(ended)
    }

    async fn next(&mut self, supervised: &mut Supervised) -> Event {
        let clock = SystemClock;
        let limit = self.exec.settings.time_limit_ms.filter(|_| self.why.is_none());
        let limit_at = limit.map_or(u64::MAX, |limit| self.began_at.saturating_add(limit));
        // The end of a program that is being ended does not wait for what it said before.
        let is_ready = self.channel.is_ready() || self.why.is_some();
        tokio::select! {
            biased;
            why = self.hold.stopped(), if !self.heard_stop => Event::Stop(why),
            until = self.hold.lease_moved() => Event::Lease(until),
            () = self.context.cancelled(), if !self.heard_cancel => Event::Cancel,
            () = self.exec.ending.ended(), if !self.heard_ending => Event::Ending,
            () = clock.sleep_until(limit_at), if limit.is_some() => Event::TimeLimit,
            () = clock.sleep_until(self.patience_until) => Event::Impatient,
            done = self.channel.done() => Event::Reply(done),
            heard = supervised.hear(), if is_ready => Event::Heard(heard),
        }
    }

    async fn answer(&mut self, reply: Result<Option<Bytes>, HandlerError>, supervised: &mut Supervised) {
        match reply {
            Ok(None) => {}
            Ok(Some(line)) => tell(supervised, &ToSupervisor::Reply(line)).await,
            Err(error) => self.terminate(Why::Failed(error), supervised).await,
        }
    }

    async fn terminate(&mut self, why: Why, supervised: &mut Supervised) {
        let grace_ms = self.exec.settings.grace_ms;
        self.end(why, supervised, ToSupervisor::Terminate(grace_ms), grace_ms).await;
    }

    async fn kill(&mut self, why: Why, supervised: &mut Supervised) {
        self.end(why, supervised, ToSupervisor::Kill, 0).await;
    }

    // The first reason stays, but for the end of the attempt itself.
    async fn end(&mut self, why: Why, supervised: &mut Supervised, how: ToSupervisor, within_ms: u64) {
        if self.why.is_none() || matches!(why, Why::Over) {
            self.why = Some(why);
        }
        let patience = SystemClock.boot_ms().saturating_add(within_ms).saturating_add(PATIENCE_MS);
        self.patience_until = self.patience_until.min(patience);
        tell(supervised, &how).await;
    }

    fn outcome(&mut self, ended: Option<Ended>) -> Result<Bytes, HandlerError> {
        let (settings, unsafe_step) = (&self.exec.settings, self.channel.in_unsafe_step());
        let unless_unsafe = |category| if unsafe_step { ErrorCategory::OutcomeUnknown } else { category };
        if matches!(self.why, Some(Why::Over)) {
            return Err(self.context.give_up());
        }
        if let Some(Why::Failed(error)) = self.why.take_if(|why| matches!(why, Why::Failed(_))) {
            return Err(error);
        }
        let Some(ended) = ended else {
            let category = unless_unsafe(ErrorCategory::Transient);
            return Err(HandlerError::new("EXEC_SUPERVISOR_LOST", "the program's supervisor died", category));
        };
        if let Some(progress) = self.channel.progress().filter(|_| ended.cut.is_some()) {
            tracing::info!(task_id = %self.context.task_id(), progress, "its last progress");
        }
        match (&ended.cut, &self.why) {
            (None, _) => outcome::of_end(&ended, &settings.no_retry, settings.require_json, unsafe_step),
            (Some(Cut::Memory(used)), _) => {
                let limit = settings.memory.unwrap_or_default();
                let text = format!("the program used {used} bytes of memory, the limit is {limit}");
                Err(outcome::failure("MEMORY_LIMIT", &text, unless_unsafe(ErrorCategory::Resource), &ended))
            }
            (Some(Cut::Told | Cut::TimeUp), Some(Why::StartToClose)) => {
                let (ms, category) = (self.context.start_to_close_ms(), unless_unsafe(ErrorCategory::Timeout));
                let text = format!("the program ran longer than the {ms} ms of the task's start-to-close");
                Err(outcome::failure(&TIMEOUT_START_TO_CLOSE, &text, category, &ended))
            }
            (Some(Cut::Told | Cut::TimeUp), Some(Why::TimeLimit)) => {
                let ms = settings.time_limit_ms.unwrap_or_default();
                let text = format!("the program ran longer than the worker's limit of {ms} ms");
                Err(outcome::failure("TIME_LIMIT", &text, unless_unsafe(ErrorCategory::Timeout), &ended))
            }
            // It may have finished all the same: then it says so by exit code 0.
            (Some(Cut::Told | Cut::TimeUp), Some(Why::Cancelled)) => {
                outcome::of_end(&ended, &settings.no_retry, settings.require_json, unsafe_step)
            }
            (Some(Cut::Told | Cut::TimeUp), Some(Why::WorkerEnds)) => {
                outcome::of_end(&ended, &settings.no_retry, settings.require_json, unsafe_step).map_err(|_| {
                    let category = unless_unsafe(ErrorCategory::Transient);
                    outcome::failure("WORKER_STOPPED", "the worker was stopped before the end", category, &ended)
                })
            }
            // The supervisor's own count of the lease: if it is over here too, nothing is reported.
            (Some(Cut::Told | Cut::TimeUp), Some(Why::Over | Why::Failed(_)) | None) => {
                let category = unless_unsafe(ErrorCategory::Transient);
                Err(outcome::failure("EXEC_LEASE_END", "the lease was not renewed in time", category, &ended))
            }
        }
    }
}

// Of one that is gone the end is heard next.
async fn tell(supervised: &mut Supervised, what: &ToSupervisor) {
    let _ = supervised.tell(what).await;
}
