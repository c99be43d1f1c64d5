//! The owner of one task, as far as workers can tell: who has it, until when it waits for a sign of
//! life, and when it may hand it out again (design.md §4.6, §9).

use std::collections::BTreeMap;

use task_events::{ExecEpoch, ExecutionId, Incarnation, PartitionId, RunNo, Sha256Hash, TaskId, Text};
use worker_protocol::{Assignment, Attempt, HeartbeatAnswer, Poll, PollAnswer, Report, ReportAnswer, ReportBody};
use worker_sdk::machine::{Input, RequestId};

use crate::network::{Request, heartbeat_answer, poll_answer, report_answer};

pub const LEASE_MS: u64 = 6_000;
const HEARTBEAT_MS: u64 = 2_000;
const START_TO_CLOSE_MS: u64 = 45_000;
const UNSTARTED_MS: u64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// To be handed out, not before this time.
    Due(u64),
    Assigned,
    Executing,
}

#[derive(Clone, Debug)]
pub struct Owner {
    phase: Phase,
    epoch: u32,
    run: u32,
    worker: Text,
    assigned_at: u64,
    /// End of the wait for a sign of life.
    deadline: u64,
    lost: bool,
    steps: Vec<Sha256Hash>,
    newest: BTreeMap<Text, Incarnation>,
    optimistic: bool,
    waits: bool,
    pub confirmed: Vec<ExecutionId>,
    pub successes: u64,
}

impl Owner {
    pub fn new(optimistic: bool, waits: bool) -> Self {
        Self {
            phase: Phase::Due(0),
            epoch: 0,
            run: 1,
            worker: Text::default(),
            assigned_at: 0,
            deadline: 0,
            lost: false,
            steps: Vec::new(),
            newest: BTreeMap::new(),
            optimistic,
            waits,
            confirmed: Vec::new(),
            successes: 0,
        }
    }

    /// Another owner takes over: what lived in memory is gone, the lease runs anew in full.
    pub fn taken_over(&mut self, now: u64) {
        self.newest.clear();
        if self.is_live() {
            self.deadline = self.wait_from(now);
            self.assigned_at = now;
        }
    }

    /// What the passing of time does.
    pub fn tick(&mut self, now: u64) {
        match self.phase {
            Phase::Assigned if !self.optimistic && now >= self.assigned_at + UNSTARTED_MS => {
                self.phase = Phase::Due(now);
            }
            Phase::Assigned | Phase::Executing if now >= self.deadline => {
                (self.phase, self.lost) = (Phase::Due(now), true);
            }
            Phase::Executing if now >= self.assigned_at + START_TO_CLOSE_MS + 5_000 => {
                self.phase = Phase::Due(self.deadline);
            }
            Phase::Due(_) | Phase::Assigned | Phase::Executing => {}
        }
    }

    /// Answers a request; a zombie answers from memory but gets nothing into the log any more.
    pub fn answer(&mut self, request: Request, now: u64, zombie: bool) -> Input {
        self.tick(now);
        match request {
            Request::Poll(id, _) if zombie => poll_answer(id, PollAnswer::Unavailable),
            Request::Poll(id, poll) => self.poll(id, &poll, now),
            Request::Heartbeat(id, beat) => {
                if !self.is_live() || beat.attempt != self.attempt() {
                    return heartbeat_answer(id, HeartbeatAnswer::Fenced);
                }
                self.deadline = self.deadline.max(self.wait_from(now));
                let answer = HeartbeatAnswer::Accepted { lease_ms: LEASE_MS, cancel_requested: false };
                heartbeat_answer(id, answer)
            }
            Request::Report(id, _) if zombie => report_answer(id, ReportAnswer::OutcomeUnknown),
            Request::Report(id, report) => report_answer(id, self.report(&report, now)),
        }
    }

    fn poll(&mut self, id: RequestId, poll: &Poll, now: u64) -> Input {
        let newest = self.newest.entry(poll.worker_id.clone()).or_insert(poll.incarnation);
        if poll.incarnation < *newest {
            return poll_answer(id, PollAnswer::Superseded);
        }
        *newest = poll.incarnation;
        let listed = poll.held.contains(&self.execution_id());
        if self.phase == Phase::Assigned && !self.optimistic && poll.worker_id == self.worker && !listed {
            self.phase = Phase::Due(now);
        }
        let Phase::Due(not_before) = self.phase else { return nothing(id) };
        if now < not_before {
            return nothing(id);
        }
        self.epoch += 1;
        (self.phase, self.lost, self.assigned_at) = (Phase::Assigned, false, now);
        self.worker = poll.worker_id.clone();
        self.deadline = self.wait_from(now);
        poll_answer(id, PollAnswer::Work { assignments: vec![self.assignment()], stop: Vec::new() })
    }

    fn report(&mut self, report: &Report, now: u64) -> ReportAnswer {
        let ours = report.attempt == self.attempt();
        let live = ours && self.is_live();
        match &report.body {
            ReportBody::Starting { .. } if live && self.phase == Phase::Executing => ReportAnswer::Duplicate,
            ReportBody::Starting { .. } if live => {
                self.phase = Phase::Executing;
                self.confirmed.push(report.attempt.execution_id);
                ReportAnswer::Accepted
            }
            ReportBody::Declined { .. } if live && self.phase == Phase::Assigned => {
                self.phase = Phase::Due(now);
                ReportAnswer::Accepted
            }
            ReportBody::Step(_) if live && self.phase == Phase::Assigned => ReportAnswer::TooEarly,
            ReportBody::Step(step) if live && self.steps.contains(&step.output_hash) => ReportAnswer::Duplicate,
            ReportBody::Step(step) if live => {
                self.steps.push(step.output_hash);
                ReportAnswer::Accepted
            }
            ReportBody::Success { .. } if live || ours && self.lost => {
                self.successes += 1;
                self.run += 1;
                self.steps.clear();
                // The worker said that it stopped: the next run may start at once.
                (self.phase, self.lost) = (Phase::Due(now), false);
                ReportAnswer::Accepted
            }
            ReportBody::Failure { .. } if live => {
                self.phase = Phase::Due(now);
                ReportAnswer::Accepted
            }
            ReportBody::Starting { .. }
            | ReportBody::Declined { .. }
            | ReportBody::Step(_)
            | ReportBody::Success { .. }
            | ReportBody::Failure { .. } => ReportAnswer::Fenced,
        }
    }

    // 10 % and 2 s above the lease, for clocks that drift and answers of a zombie.
    fn wait_from(&self, now: u64) -> u64 {
        if self.waits { now + LEASE_MS + LEASE_MS / 10 + 2_000 } else { now + LEASE_MS / 2 }
    }

    fn is_live(&self) -> bool {
        matches!(self.phase, Phase::Assigned | Phase::Executing)
    }

    fn execution_id(&self) -> ExecutionId {
        ExecutionId::new(task(), ExecEpoch(self.epoch))
    }

    fn attempt(&self) -> Attempt {
        Attempt { run_no: RunNo(self.run), exec_epoch: ExecEpoch(self.epoch), execution_id: self.execution_id() }
    }

    fn assignment(&self) -> Assignment {
        Assignment {
            task_id: task(),
            attempt: self.attempt(),
            attempt_token: Text::default(),
            task_type: "t".into(),
            payload_hash: Sha256Hash::default(),
            payload_ref: None,
            trace_id: Text::default(),
            traceparent: None,
            lease_ms: LEASE_MS,
            heartbeat_ms: HEARTBEAT_MS,
            start_to_close_ms: START_TO_CLOSE_MS,
            optimistic_start: self.optimistic,
            steps_done: Vec::new(),
            skip: Vec::new(),
        }
    }
}

fn nothing(id: RequestId) -> Input {
    poll_answer(id, PollAnswer::Work { assignments: Vec::new(), stop: Vec::new() })
}

fn task() -> TaskId {
    TaskId::from_parts(1, PartitionId(0), 1).expect("in range")
}
