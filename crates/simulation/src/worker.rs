//! Workers: the production machine of the SDK around handlers that are only pretended.

use std::collections::BTreeMap;

use coordinator::owner::{Answer, Command};
use service_kit::Clock as _;
use task_events::{
    ErrorCategory, ExecEpoch, ExecutionId, Incarnation, PartitionId, Sha256Hash, StepDone, TaskId, Text,
};
use worker_protocol::Assignment;
use worker_sdk::machine::{Config, HandlerEnd, Input, Machine, Now, OutboxEntry, Output, RequestId, Stop};

use crate::act::{Act, From, Request};
use crate::audit::Asked;
use crate::clock::SimClock;
use crate::hub::{Ev, Shared};
use crate::rng::Rng;

/// A handler inside a worker.
pub struct Running {
    /// Its task.
    pub task: TaskId,
    /// Its attempt.
    pub epoch: ExecEpoch,
    next: u32,
    steps: u32,
    skip: Vec<Text>,
    in_step: bool,
    end: End,
    told: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Success,
    Transient,
    NonRetryable,
    Panic,
    Hang,
}

/// One worker.
pub struct Worker {
    /// Name.
    pub name: Text,
    /// Clocks of its machine.
    pub clock: SimClock,
    /// Its process, while it runs.
    pub machine: Option<Machine>,
    /// Number of its start.
    pub life: u64,
    /// Nothing of it runs until then, true µs.
    pub frozen_until: u64,
    /// Handlers inside.
    pub handlers: BTreeMap<ExecutionId, Running>,
    /// What it must not forget, and its newest incarnation.
    outbox: Vec<OutboxEntry>,
    incarnation: i64,
    tick_at: u64,
    slots: u32,
    long_steps_ppm: u32,
}

impl Worker {
    /// A worker that was not started yet.
    pub fn new(name: Text, clock: SimClock, slots: u32, long_steps_ppm: u32) -> Self {
        Self {
            name,
            clock,
            machine: None,
            life: 0,
            frozen_until: 0,
            handlers: BTreeMap::new(),
            outbox: Vec::new(),
            incarnation: 0,
            tick_at: u64::MAX,
            slots,
            long_steps_ppm,
        }
    }

    fn clocks(&self) -> Now {
        Now { boot_ms: self.clock.boot_ms(), wall_ms: self.clock.wall_ms() }
    }

    /// Starts its process.
    pub fn start(&mut self, rng: &mut Rng) {
        self.life += 1;
        let drawn = Incarnation::new(self.clock.wall_ms(), rng.next_u64() as u32).0;
        // A wall clock that stepped back must not make the new process look older.
        self.incarnation = drawn.max(self.incarnation + 1);
        let config = Config {
            slots: self.slots,
            poll_wait_ms: 300,
            poll_slack_ms: 300,
            poll_pause_ms: 10,
            answer_wait_ms: 2_500,
            cancel_grace_ms: 800,
            resend_min_ms: 40,
            resend_max_ms: 500,
            start_patience_ms: 3_000,
            max_undelivered: 200,
            ..Config::new(self.name.clone(), Incarnation(self.incarnation), vec!["qa".into(), "qb".into()])
        };
        self.machine = Machine::new(config, self.clocks(), self.outbox.clone()).ok();
        self.tick_at = u64::MAX;
        self.handlers.clear();
    }

    /// Its process is gone, with every handler in it.
    pub fn kill(&mut self) {
        self.machine = None;
        self.handlers.clear();
        self.life += 1;
    }

    /// Whether the handler of this attempt passes its guard now.
    pub fn may_write(&self, id: ExecutionId) -> bool {
        self.machine.as_ref().is_some_and(|m| m.may_write(id, self.clock.boot_ms()))
    }

    /// Feeds its machine.
    pub fn feed(&mut self, input: Input) {
        let now = self.clocks();
        if let Some(machine) = &mut self.machine {
            machine.handle(now, input);
        }
    }

    /// A tick that was asked for at this time.
    pub fn ticks(&mut self, at: u64) -> bool {
        let due = self.tick_at == at;
        if due {
            self.tick_at = u64::MAX;
            self.feed(Input::Tick);
        }
        due
    }

    /// An answer from an owner.
    pub fn answered(&mut self, request: RequestId, answer: Answer) {
        let input = match answer {
            Answer::Poll(answer) => Input::PollAnswered { request, answer },
            Answer::Heartbeat(answer) => Input::HeartbeatAnswered { request, answer },
            Answer::Report(answer) => Input::ReportAnswered { request, answer },
            _ => Input::SendFailed { request },
        };
        self.feed(input);
    }

    /// What its machine wants done; returns handlers to enter.
    pub fn carry_out(&mut self, me: usize, s: &mut Shared) -> Vec<ExecutionId> {
        let mut entered = Vec::new();
        while let Some(output) = self.machine.as_mut().and_then(Machine::take_output) {
            match output {
                Output::Poll { request, poll } => {
                    let from = From::Worker { worker: me, life: self.life, request };
                    let proc = s.any_edge();
                    let (command, asked) = (Command::Poll(poll), Asked::Other);
                    s.request(Request { proc, partition: PartitionId(0), command, asked, from });
                }
                Output::Heartbeat { request, task_id, heartbeat, .. } => {
                    let asked = Asked::Heartbeat(task_id, heartbeat.attempt);
                    self.ask(me, s, task_id.partition(), request, Command::Heartbeat(heartbeat), asked);
                }
                Output::Report { request, task_id, report, .. } => {
                    let asked = Asked::Report(report.clone());
                    self.ask(me, s, task_id.partition(), request, Command::Report(report), asked);
                }
                Output::Start { assignment } => entered.extend(self.enter(me, &assignment, s)),
                Output::Cancel { execution_id } => {
                    // Some handlers heed it, some do not.
                    if s.rng.chance(600_000)
                        && let Some(h) = self.handlers.get_mut(&execution_id)
                    {
                        h.told = true;
                        self.wake(me, s, execution_id, 20_000);
                    }
                }
                Output::Stop { execution_id, why } => self.stop(me, s, execution_id, why),
                Output::Persist { entry } => self.outbox.push(entry),
                Output::Forget { key } => self.outbox.retain(|e| e.key != key),
            }
        }
        if let Some(due) = self.machine.as_ref().and_then(Machine::next_due) {
            let at = self.clock.true_us_of(due).max(s.now() + 1);
            if at < self.tick_at {
                self.tick_at = at;
                s.at(at, Ev::Act(Act::WorkerTick(me, at)));
            }
        }
        entered
    }

    fn ask(&self, me: usize, s: &mut Shared, p: PartitionId, request: RequestId, command: Command, asked: Asked) {
        let from = From::Worker { worker: me, life: self.life, request };
        let proc = s.route(p);
        s.request(Request { proc, partition: p, command, asked, from });
    }

    fn enter(&mut self, me: usize, assignment: &Assignment, s: &mut Shared) -> Option<ExecutionId> {
        let id = assignment.attempt.execution_id;
        if !self.may_write(id) {
            self.feed(Input::HandlerEnded { execution_id: id, end: HandlerEnd::Stopped });
            return None;
        }
        let n = mix(assignment.task_id.raw() as u64);
        let end = match s.rng.below(100) {
            0..80 => End::Success,
            80..91 => End::Transient,
            91..94 => End::NonRetryable,
            94..97 => End::Panic,
            _ => End::Hang,
        };
        let running = Running {
            task: assignment.task_id,
            epoch: assignment.attempt.exec_epoch,
            next: 0,
            steps: (n % 4) as u32,
            skip: assignment.skip.iter().map(|s| s.step.clone()).collect(),
            in_step: false,
            end,
            told: false,
        };
        self.handlers.insert(id, running);
        self.wake(me, s, id, 1_000);
        Some(id)
    }

    fn wake(&self, me: usize, s: &mut Shared, id: ExecutionId, typical_us: u64) {
        let at = s.now() + s.rng.delay(typical_us);
        s.at(at, Ev::Act(Act::Handler(me, self.life, id)));
    }

    fn stop(&mut self, me: usize, s: &mut Shared, id: ExecutionId, why: Stop) {
        let Some(h) = self.handlers.get_mut(&id) else {
            return self.feed(Input::HandlerEnded { execution_id: id, end: HandlerEnd::Stopped });
        };
        h.told = true;
        // Some need a while to notice.
        let slow = s.rng.chance(100_000) && why != Stop::Fenced;
        self.wake(me, s, id, if slow { 1_500_000 } else { 5_000 });
    }

    /// A handler does its next thing; true = it acts now.
    pub fn handler(&mut self, me: usize, s: &mut Shared, id: ExecutionId) -> Option<(TaskId, ExecEpoch)> {
        let may = self.may_write(id);
        let h = self.handlers.get_mut(&id)?;
        if h.told || !may {
            self.handlers.remove(&id);
            self.feed(Input::HandlerEnded { execution_id: id, end: HandlerEnd::Stopped });
            return None;
        }
        let acted = (h.task, h.epoch);
        if h.in_step {
            h.in_step = false;
            let done = step_of(h.task, h.next);
            h.next += 1;
            self.feed(Input::StepDone { execution_id: id, done });
            self.wake(me, s, id, 2_000);
            return Some(acted);
        }
        while h.next < h.steps && h.skip.contains(&step_of(h.task, h.next).step) {
            h.next += 1;
        }
        let last = h.next >= h.steps;
        // A failure shows at some step, not only at the end.
        let fails = h.end != End::Success && (last || s.rng.chance(400_000));
        if fails && h.end == End::Hang {
            // Silence until it is told to stop.
            return Some(acted);
        }
        let end = match h.end {
            End::Success if last => Some(HandlerEnd::Success { result_data_hash: result_of(h.task, h.epoch) }),
            End::Transient if fails => Some(failed("E_TRANSIENT", ErrorCategory::Transient)),
            End::NonRetryable if fails => Some(failed("E_BAD", ErrorCategory::NonRetryable)),
            End::Panic if fails => Some(HandlerEnd::Panicked { message: "boom".into() }),
            End::Success | End::Transient | End::NonRetryable | End::Panic | End::Hang => None,
        };
        if let Some(end) = end {
            self.handlers.remove(&id);
            self.feed(Input::HandlerEnded { execution_id: id, end });
            return Some(acted);
        }
        h.in_step = true;
        let step = step_of(h.task, h.next);
        self.feed(Input::StepStarted { execution_id: id, step: step.step, is_idempotent: step.is_idempotent });
        let typical = if s.rng.chance(self.long_steps_ppm) { 2_500_000 } else { 15_000 };
        self.wake(me, s, id, typical);
        Some(acted)
    }
}

fn failed(code: &'static str, category: ErrorCategory) -> HandlerEnd {
    HandlerEnd::Failed { error_code: code.into(), error_message: "it failed".into(), category }
}

fn mix(n: u64) -> u64 {
    let z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z ^ (z >> 32)
}

fn hash_of(a: u64, b: u64) -> Sha256Hash {
    let mut out = [0; 32];
    out[..8].copy_from_slice(&mix(a).to_be_bytes());
    out[8..16].copy_from_slice(&mix(b ^ a).to_be_bytes());
    Sha256Hash(out)
}

fn step_of(task: TaskId, index: u32) -> StepDone {
    let n = mix(task.raw() as u64 ^ u64::from(index));
    StepDone {
        step: Text::from(format!("s{index}")),
        index,
        output_hash: hash_of(task.raw() as u64, u64::from(index)),
        is_idempotent: !n.is_multiple_of(3),
    }
}

fn result_of(task: TaskId, epoch: ExecEpoch) -> Sha256Hash {
    hash_of(task.raw() as u64, 1_000 + u64::from(epoch.0))
}
