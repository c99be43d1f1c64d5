//! A coordinator, a payload store and a clock in memory.

use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn, ready};
use std::sync::Arc;
use std::task::{Poll as Ready, Waker};

use bytes::Bytes;
use parking_lot::Mutex;
use task_events::{
    EventSequence, ExecEpoch, ExecutionId, PartitionId, RunNo, Sha256Hash, SkippedStep, StepDone, TaskId, Text,
};
use worker_protocol::{
    Assignment, Attempt, Heartbeat, HeartbeatAnswer, Poll, PollAnswer, Report, ReportAnswer, ReportBody,
};

use crate::{CoordinatorPort, NoAnswer, PayloadKey, PayloadPort, PayloadUnavailable};

struct State {
    work: VecDeque<Assignment>,
    bodies: Vec<ReportBody>,
    steps_seen: Vec<Option<(Text, bool)>>,
    beat: HeartbeatAnswer,
    terminal: ReportAnswer,
    wakers: Vec<Waker>,
}

#[derive(Clone)]
pub(super) struct Desk(Arc<Mutex<State>>);

impl Default for Desk {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State {
            work: VecDeque::new(),
            bodies: Vec::new(),
            steps_seen: Vec::new(),
            beat: HeartbeatAnswer::Accepted { lease_ms: 6_000, cancel_requested: false },
            terminal: ReportAnswer::Accepted,
            wakers: Vec::new(),
        })))
    }
}

impl Desk {
    pub(super) fn hand_out(&self, assignment: Assignment) {
        self.change(|s| s.work.push_back(assignment));
    }

    pub(super) fn heartbeats(&self, answer: HeartbeatAnswer) {
        self.change(|s| s.beat = answer);
    }

    pub(super) fn answer_terminal(&self, answer: ReportAnswer) {
        self.change(|s| s.terminal = answer);
    }

    pub(super) fn bodies(&self) -> Vec<ReportBody> {
        self.0.lock().bodies.clone()
    }

    pub(super) fn steps_seen(&self) -> Vec<Option<(Text, bool)>> {
        self.0.lock().steps_seen.clone()
    }

    /// The first result that is reported.
    pub(super) fn result(&self) -> impl Future<Output = ReportBody> {
        self.when(|s| s.bodies.iter().find(|b| b.is_terminal()).cloned())
    }

    fn when<T, F: Fn(&mut State) -> Option<T>>(&self, ready: F) -> impl Future<Output = T> + use<T, F> {
        let state = self.0.clone();
        poll_fn(move |cx| {
            let mut state = state.lock();
            if let Some(value) = ready(&mut state) {
                return Ready::Ready(value);
            }
            state.wakers.push(cx.waker().clone());
            Ready::Pending
        })
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.0.lock();
        let result = change(&mut state);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        result
    }
}

impl CoordinatorPort for Desk {
    fn poll(&self, _: Poll) -> impl Future<Output = Result<PollAnswer, NoAnswer>> + Send + 'static {
        self.when(|s| {
            let assignment = s.work.pop_front()?;
            Some(Ok(PollAnswer::Work { assignments: vec![assignment], stop: Vec::new() }))
        })
    }

    fn heartbeat(
        &self,
        _: TaskId,
        _: Text,
        heartbeat: Heartbeat,
    ) -> impl Future<Output = Result<HeartbeatAnswer, NoAnswer>> + Send + 'static {
        ready(Ok(self.change(|s| {
            s.steps_seen.push(heartbeat.step_in_progress);
            s.beat
        })))
    }

    fn report(
        &self,
        _: TaskId,
        token: Text,
        report: Report,
    ) -> impl Future<Output = Result<ReportAnswer, NoAnswer>> + Send + 'static {
        assert_eq!(token, "token");
        ready(Ok(self.change(|s| {
            let answer = if report.body.is_terminal() { s.terminal } else { ReportAnswer::Accepted };
            s.bodies.push(report.body);
            answer
        })))
    }
}

#[derive(Clone, Default)]
pub(super) struct Shelf(Arc<Mutex<BTreeMap<(TaskId, PayloadKey), Bytes>>>);

impl Shelf {
    pub(super) fn store(&self, task: TaskId, key: PayloadKey, bytes: &'static str) {
        self.0.lock().insert((task, key), bytes.into());
    }

    pub(super) fn stored(&self, task: TaskId, key: PayloadKey) -> Option<Bytes> {
        self.0.lock().get(&(task, key)).cloned()
    }
}

impl PayloadPort for Shelf {
    fn put(
        &self,
        task: TaskId,
        key: PayloadKey,
        bytes: Bytes,
    ) -> impl Future<Output = Result<(), PayloadUnavailable>> + Send + 'static {
        self.0.lock().insert((task, key), bytes);
        ready(Ok(()))
    }

    fn get(
        &self,
        task: TaskId,
        key: PayloadKey,
    ) -> impl Future<Output = Result<Option<Bytes>, PayloadUnavailable>> + Send + 'static {
        let content = match self.stored(task, key.clone()) {
            None if matches!(key, PayloadKey::Parameters { .. }) => Some("params".into()),
            stored => stored,
        };
        ready(Ok(content))
    }
}

/// Lease 6 s, heartbeat 2 s.
pub(super) fn assignment(n: u16) -> Assignment {
    let task_id = TaskId::from_parts(1, PartitionId(0), n).unwrap();
    Assignment {
        task_id,
        attempt: Attempt {
            run_no: RunNo(1),
            exec_epoch: ExecEpoch(1),
            execution_id: ExecutionId::new(task_id, ExecEpoch(1)),
        },
        attempt_token: "token".into(),
        task_type: "t".into(),
        payload_hash: Sha256Hash::of(b"params"),
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

pub(super) fn step_done(step: &str, index: u32, output: &[u8], is_idempotent: bool) -> StepDone {
    StepDone { step: step.into(), index, output_hash: Sha256Hash::of(output), is_idempotent }
}

/// A later attempt that skips these steps.
pub(super) fn resumed(steps: Vec<StepDone>) -> Assignment {
    let skipped = |s: &StepDone| SkippedStep {
        step: s.step.clone(),
        rule: "recorded_output".into(),
        evidence: vec![EventSequence(3)],
    };
    Assignment { skip: steps.iter().map(skipped).collect(), steps_done: steps, ..assignment(1) }
}
