//! Histories of one machine: each line is an input, what follows is what it must do.

mod delivery;
mod handlers;
mod leases;
mod polls;

use std::sync::Arc;

use task_events::{
    ErrorCategory, ExecEpoch, ExecutionId, Incarnation, PartitionId, RunNo, Sha256Hash, StepDone, TASK_ID_EPOCH_MS,
    TaskId, Text,
};
use worker_protocol::{
    Assignment, Attempt, Heartbeat, HeartbeatAnswer, Poll, PollAnswer, Report, ReportAnswer, ReportBody,
};

use super::*;

/// A machine and the clock it goes by; outputs are collected as they come.
pub(super) struct Rig {
    pub machine: Machine,
    pub now: u64,
    pub out: Vec<Output>,
}

pub(super) fn config() -> Config {
    Config { slots: 2, ..Config::new("w1".into(), Incarnation(1), vec!["q".into()]) }
}

pub(super) fn task(n: u16) -> TaskId {
    TaskId::from_parts(1, PartitionId(0), n).unwrap()
}

pub(super) fn id(n: u16, epoch: u32) -> ExecutionId {
    ExecutionId::new(task(n), ExecEpoch(epoch))
}

/// Lease 6 s, heartbeat 2 s, start to close 60 s.
pub(super) fn assignment(n: u16, epoch: u32) -> Assignment {
    Assignment {
        task_id: task(n),
        attempt: Attempt { run_no: RunNo(1), exec_epoch: ExecEpoch(epoch), execution_id: id(n, epoch) },
        attempt_token: "token".into(),
        task_type: "t".into(),
        payload_hash: Sha256Hash::default(),
        payload_ref: None,
        trace_id: Text::default(),
        traceparent: None,
        lease_ms: 6_000,
        heartbeat_ms: 2_000,
        start_to_close_ms: 60_000,
        optimistic_start: false,
        steps_done: Vec::new(),
        skip: Vec::new(),
    }
}

pub(super) fn step(index: u32) -> StepDone {
    StepDone {
        step: format!("s{index}").into(),
        index,
        output_hash: Sha256Hash([index as u8; 32]),
        is_idempotent: false,
    }
}

pub(super) fn success() -> HandlerEnd {
    HandlerEnd::Success { result_data_hash: Sha256Hash([9; 32]) }
}

impl Rig {
    pub fn new() -> Self {
        Self::with(config(), Vec::new())
    }

    pub fn with(config: Config, outbox: Vec<OutboxEntry>) -> Self {
        let now = 1_000;
        let machine = Machine::new(config, wall(now), outbox).unwrap();
        let mut rig = Self { machine, now, out: Vec::new() };
        rig.collect();
        rig
    }

    pub fn give(&mut self, input: Input) -> &mut Self {
        self.machine.handle(wall(self.now), input);
        self.collect();
        self
    }

    /// Lets time pass, with a tick whenever one is due.
    pub fn pass(&mut self, ms: u64) -> &mut Self {
        let end = self.now + ms;
        while let Some(due) = self.machine.next_due().filter(|d| *d <= end) {
            assert!(due > self.now || self.now == 1_000, "due at {due} although it is {}", self.now);
            self.now = due.max(self.now);
            self.give(Input::Tick);
        }
        self.now = end;
        self.give(Input::Tick)
    }

    /// A poll's answer with this work, right away.
    pub fn work(&mut self, assignments: Vec<Assignment>) -> &mut Self {
        let (request, _) = self.polls().pop().expect("a poll is out");
        self.give(Input::PollAnswered { request, answer: PollAnswer::Work { assignments, stop: Vec::new() } })
    }

    /// The newest report is answered.
    pub fn answer(&mut self, answer: ReportAnswer) -> &mut Self {
        let (request, _) = self.reports().pop().expect("a report is out");
        self.give(Input::ReportAnswered { request, answer })
    }

    /// The newest heartbeat is answered.
    pub fn beat(&mut self, answer: HeartbeatAnswer) -> &mut Self {
        let (request, _) = self.beats().pop().expect("a heartbeat is out");
        self.give(Input::HeartbeatAnswered { request, answer })
    }

    pub fn end(&mut self, execution_id: ExecutionId, end: HandlerEnd) -> &mut Self {
        self.give(Input::HandlerEnded { execution_id, end })
    }

    /// Attempt 1 of task 1 with its handler inside.
    pub fn inside() -> Self {
        let mut rig = Self::new();
        rig.work(vec![assignment(1, 1)]).answer(ReportAnswer::Accepted);
        assert_eq!(rig.starts(), [id(1, 1)]);
        rig
    }

    pub fn polls(&self) -> Vec<(RequestId, Poll)> {
        self.pick(|o| if let Output::Poll { request, poll } = o { Some((*request, poll.clone())) } else { None })
    }

    pub fn reports(&self) -> Vec<(RequestId, Report)> {
        self.pick(
            |o| if let Output::Report { request, report, .. } = o { Some((*request, report.clone())) } else { None },
        )
    }

    pub fn beats(&self) -> Vec<(RequestId, Heartbeat)> {
        self.pick(|o| {
            if let Output::Heartbeat { request, heartbeat, .. } = o {
                Some((*request, heartbeat.clone()))
            } else {
                None
            }
        })
    }

    pub fn starts(&self) -> Vec<ExecutionId> {
        self.pick(|o| if let Output::Start { assignment } = o { Some(assignment.attempt.execution_id) } else { None })
    }

    pub fn stops(&self) -> Vec<(ExecutionId, Stop)> {
        self.pick(|o| if let Output::Stop { execution_id, why } = o { Some((*execution_id, *why)) } else { None })
    }

    pub fn cancels(&self) -> usize {
        self.pick(|o| matches!(o, Output::Cancel { .. }).then_some(())).len()
    }

    pub fn persisted(&self) -> Vec<OutboxEntry> {
        self.pick(|o| if let Output::Persist { entry } = o { Some(entry.clone()) } else { None })
    }

    pub fn forgotten(&self) -> Vec<EntryKey> {
        self.pick(|o| if let Output::Forget { key } = o { Some(*key) } else { None })
    }

    pub fn last_body(&self) -> ReportBody {
        self.reports().pop().expect("a report is out").1.body
    }

    fn pick<T>(&self, f: impl FnMut(&Output) -> Option<T>) -> Vec<T> {
        self.out.iter().filter_map(f).collect()
    }

    fn collect(&mut self) {
        while let Some(output) = self.machine.take_output() {
            self.out.push(output);
        }
    }
}

fn wall(boot_ms: u64) -> Now {
    Now { boot_ms, wall_ms: TASK_ID_EPOCH_MS + boot_ms as i64 }
}

pub(super) fn accepted() -> HeartbeatAnswer {
    HeartbeatAnswer::Accepted { lease_ms: 6_000, cancel_requested: false }
}

pub(super) fn code(body: &ReportBody) -> (&str, ErrorCategory) {
    let ReportBody::Failure { error_code, category, .. } = body else { panic!("{body:?} is no failure") };
    (error_code, *category)
}

pub(super) fn optimistic(n: u16, epoch: u32) -> Assignment {
    Assignment { optimistic_start: true, ..assignment(n, epoch) }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    for broken in [
        Config { slots: 0, ..config() },
        Config { resend_min_ms: 9_000, ..config() },
        Config { answer_wait_ms: 0, ..config() },
        Config { max_undelivered: 1, ..config() },
    ] {
        assert!(Machine::new(broken, wall(0), Vec::new()).is_err());
    }
}

#[test]
fn a_start_tells_what_earlier_attempts_did() {
    let mut rig = Rig::new();
    let resumed = Assignment { steps_done: vec![step(0)], ..assignment(1, 2) };
    rig.work(vec![resumed.clone()]).answer(ReportAnswer::Accepted);
    assert!(rig.out.contains(&Output::Start { assignment: Arc::new(resumed) }));
    rig.give(Input::StepDone { execution_id: id(1, 2), done: step(1) }).answer(ReportAnswer::Accepted);
    rig.end(id(1, 2), success());
    let ReportBody::Success { steps_done, .. } = rig.last_body() else { panic!("no success") };
    assert_eq!(steps_done, [step(0), step(1)]);
}
