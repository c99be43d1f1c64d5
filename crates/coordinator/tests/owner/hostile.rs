//! Any sequence of inputs: no panic, no token answered twice, every wake ahead (the kit checks the
//! last two at every step), every token answered in the end, and every task ended.

use std::collections::BTreeSet;
use std::time::Duration;

use coordinator::owner::{Input, OwnerConfig, Phase, Token};
use proptest::prelude::*;
use task_core::decide::Draft;
use task_events::{
    Body, EventSequence, ExecEpoch, ExecutionId, Incarnation, OwnershipRenewed, QueuePaused, ReleaseReason, RunNo,
    TaskAssigned, TaskId, TaskReleased, TaskRetryApproved, TaskStarted, TaskState, TaskTimedOut, TimeoutConfig,
    TimeoutKind,
};

use crate::kit::{P, World};

type Op = (u8, u8, u16);

struct Run {
    w: World,
    forgotten: BTreeSet<Token>,
    lost: Vec<crate::kit::Sent>,
    names: usize,
}

fn run(ops: &[Op], hostile: bool) -> Run {
    let cfg = OwnerConfig {
        lease_ms: 6_000,
        lease_max_ms: 12_000,
        heartbeat_ms: 2_000,
        checkpoint_every: 16,
        max_in_flight: 32,
        max_open_tasks: 12,
        owed_bytes: 64 * 1024,
        ..OwnerConfig::default()
    };
    let mut w = World::with(cfg);
    w.hostile = hostile;
    let mut run = Run { w, forgotten: BTreeSet::new(), lost: Vec::new(), names: 0 };
    for op in ops {
        run.step(*op);
    }
    run
}

impl Run {
    fn some_task(&self, n: u8) -> Option<String> {
        let names: Vec<_> = self.w.names.keys().cloned().collect();
        names.get(usize::from(n) % names.len().max(1)).cloned()
    }

    fn step(&mut self, (op, a, b): Op) {
        let w = &mut self.w;
        let e = u32::from(a >> 4) % 3 + 1;
        match op % 32 {
            0..=3 => {
                self.names += 1;
                let extra = [
                    "",
                    " key=k1",
                    " key=k2",
                    " payload=x",
                    " not_before=3s",
                    " deadline=9s",
                    " to_start=4s",
                    " to_close=3s",
                    " one=k",
                    " one=k to_close=3s",
                ];
                w.step(&format!("submit t{}{}", self.names, extra[usize::from(a) % extra.len()]));
            }
            4..=6 => {
                let (worker, inc, slots, wait) = (a % 3, b % 2 + 1, b % 3, b % 4_000);
                w.step(&format!("poll w{worker} inc={inc} slots={slots} wait={wait}ms"));
            }
            7..=11 => {
                let Some(t) = self.some_task(a) else { return };
                let verb = ["start", "complete", "fail", "decline", "beat", "step"][usize::from(b) % 6];
                let step = if verb == "step" { " a" } else { "" };
                self.w.step(&format!("{verb} {t}{step} e={e}"));
            }
            12..=14 => {
                let Some(t) = self.some_task(a) else { return };
                let verb = ["cancel", "get", "replay", "review", "await"][usize::from(b) % 5];
                let run = u32::from(b >> 8) % 3 + 1;
                self.w.step(&format!("{verb} {t} run={run}"));
            }
            15 => drop(w.step(if b % 2 == 0 { "pause q" } else { "resume q" })),
            16 => w.hold_log = b % 2 == 0,
            17 => w.hold_read = b % 2 == 0,
            18 => w.hold_store = b % 2 == 0,
            19 => w.hold_lock = b % 2 == 0,
            20 => (w.store_away, w.lock_away) = (a % 2 == 0, b % 2 == 0),
            21 => drop(w.land_one(w.on)),
            22 if !w.me().sent.is_empty() => {
                let sent = if b % 2 == 0 { w.unknown() } else { w.not_sent() };
                if b % 2 == 0 {
                    self.lost.push(sent);
                }
            }
            23 if !self.lost.is_empty() => {
                let at = usize::from(a) % self.lost.len();
                let sent = self.lost[at].clone();
                w.land_copy(&sent);
                w.settle();
            }
            24 | 25 => w.wait(u64::from(b % 3_000)),
            26 => w.freeze(u64::from(b)),
            27 => {
                let token = Token(u64::from(b) % (w.asked + 1));
                if w.answer(token).is_none() {
                    self.forgotten.insert(token);
                    w.feed(w.on, Input::Forget(token));
                }
            }
            28 if b % 4 == 0 => w.foreign_claim(),
            28 if b % 4 == 1 && w.members.len() == 1 => {
                // Its clients hear nothing more; what it sent may still land.
                let waiting = (1..=w.asked).map(Token).filter(|t| !w.replies.contains_key(t));
                self.forgotten.extend(waiting);
                let sent = w.crash(if w.on == "a" { "b" } else { "a" });
                self.lost.extend(sent);
            }
            28 if b % 4 == 2 => {
                // Two that both think it is theirs; clients reach one or the other.
                let other = if w.on == "a" { "b" } else { "a" };
                if w.members.contains_key(other) {
                    w.on = other;
                } else {
                    w.join(other);
                }
            }
            28 => w.me().frozen = b.is_multiple_of(8),
            29 => self.verdicts(),
            30 if w.hostile => self.forge(a, b),
            31 if w.hostile => match b % 5 {
                0 => w.land_raw(None, Vec::new(), Some(bytes::Bytes::copy_from_slice(&[a; 7]))),
                1 => w.now.wall_ms += i64::from(b) * 100,
                2 => w.now.wall_ms -= i64::from(b) * 100,
                3 if a == 0 => w.feed(w.on, Input::Drain(Duration::from_millis(u64::from(b)))),
                _ => w.skew_ms = i64::from(b) - 30_000,
            },
            _ => {}
        }
        self.w.settle();
    }

    fn verdicts(&mut self) {
        let open: Vec<_> = self.w.fold.tasks.iter().map(|s| s.core).collect();
        for core in open {
            match core.state {
                _ if core.cancel_requested => {}
                TaskState::Failed | TaskState::Lost => self.w.approve(core.id, 100),
                TaskState::RetryApproved => self.w.plan(core.id),
                TaskState::Created
                | TaskState::Assigned
                | TaskState::Executing
                | TaskState::ReplayPlanned
                | TaskState::Retrying
                | TaskState::Success
                | TaskState::FailedPermanently
                | TaskState::Cancelled => {}
            }
        }
    }

    // A record in the current epoch that the fold accepts, with the worst numbers.
    fn forge(&mut self, a: u8, b: u16) {
        let far = if b.is_multiple_of(2) { i64::MAX } else { i64::MIN };
        let ms = i64::MAX as u64;
        let core = self.w.fold.tasks.iter().nth(usize::from(a) % self.w.fold.tasks.len().max(1)).map(|s| s.core);
        let id = core.map_or(TaskId::from_parts(1, P, 1).unwrap(), |c| c.id);
        let epoch = core.map_or(0, |c| c.exec_epoch.0);
        let execution_id = core.map_or(ExecutionId::NONE, |c| c.execution_id);
        let timeout_config = TimeoutConfig { start_to_close_ms: ms, heartbeat_ms: ms, lease_ms: ms };
        let (body, epoch) = match b % 8 {
            0 => {
                let exec_epoch = ExecEpoch(epoch + 1);
                let assigned = TaskAssigned {
                    worker_id: "w1".into(),
                    incarnation: Incarnation(1),
                    execution_id: ExecutionId::new(id, exec_epoch),
                    assignment_time: far,
                    timeout_config,
                    lease_max_ms: ms,
                    optimistic_start: a.is_multiple_of(2),
                    handler_version: "v".into(),
                };
                (Body::TaskAssigned(Box::new(assigned)), epoch + 1)
            }
            1 => {
                let reason = ReleaseReason::Declined;
                (Body::TaskReleased(TaskReleased { execution_id, reason, lease_left_ms: ms }), epoch)
            }
            2 => {
                let approved = TaskRetryApproved {
                    not_before: Some(far),
                    backoff_ms: ms,
                    retry_count: u32::MAX,
                    lost_count: u32::MAX,
                    skip: Vec::new(),
                    prefer_workers: Vec::new(),
                    avoid_workers: vec!["w1".into()],
                    policy_version: 1,
                };
                (Body::TaskRetryApproved(Box::new(approved)), epoch)
            }
            3 => {
                let started = TaskStarted {
                    execution_id,
                    worker_id: "w1".into(),
                    start_time: far,
                    memory_usage_percent: u32::MAX,
                };
                (Body::TaskStarted(started), epoch)
            }
            4 => {
                let timeout = TimeoutKind::StartToClose;
                let execution_id = core.filter(|c| c.state.is_live()).map(|c| c.execution_id);
                (
                    Body::TaskTimedOut(TaskTimedOut {
                        timeout,
                        execution_id,
                        step_in_progress: None,
                        step_is_idempotent: None,
                        lease_left_ms: ms,
                    }),
                    epoch,
                )
            }
            5 => (Body::OwnershipRenewed(OwnershipRenewed {}), 0),
            6 => (Body::QueuePaused(QueuePaused { queue: "q".into(), actor: "x".into(), reason: "x".into() }), 0),
            _ => return self.w.foreign_claim(),
        };
        let control = body.kind().class() == task_events::KindClass::Control;
        let draft = if control {
            Draft::control(body)
        } else {
            Draft {
                task_id: Some(id),
                event_sequence: EventSequence(core.map_or(1, |c| c.version.0 + 1)),
                run_no: core.map_or(RunNo(1), |c| c.run_no),
                exec_epoch: ExecEpoch(epoch),
                trace_id: "".into(),
                sampling: Default::default(),
                body,
            }
        };
        let seq =
            if a.is_multiple_of(3) { u64::MAX >> 1 } else { self.w.fold.owner_seq.0.saturating_add(1 + u64::from(a)) };
        let seq = seq.min(u64::MAX >> 1);
        let (epoch, state) = (self.w.fold.epoch.0, self.w.me().stopped.clone());
        if state.is_none() {
            self.w.forge(draft, epoch, seq);
        }
    }

    fn heal(&mut self) {
        let w = &mut self.w;
        if w.members.len() > 1 {
            let waiting = (1..=w.asked).map(Token).filter(|t| !w.replies.contains_key(t));
            self.forgotten.extend(waiting);
            let on = w.on;
            w.members.retain(|name, _| *name == on);
        }
        w.me().frozen = false;
        (w.hold_log, w.hold_read, w.hold_store, w.hold_lock) = (false, false, false, false);
        (w.store_away, w.lock_away) = (false, false);
        w.settle();
        w.wait(75_000);
    }

    fn all_answered(&self) {
        for n in 1..=self.w.asked {
            let token = Token(n);
            let answered = self.w.answer(token).is_some() || self.forgotten.contains(&token);
            assert!(answered, "{token:?} is never answered: {}", self.w.tail(20));
        }
    }

    // Engine, replayer and an honest worker do their work: everything ends.
    fn finish(&mut self) {
        self.w.step("resume q");
        for round in 0.. {
            if self.w.fold.tasks.is_empty() {
                return;
            }
            assert!(round < 60, "{} tasks never end: {}", self.w.fold.tasks.len(), self.w.tail(20));
            self.verdicts();
            let worker = format!("v{round}");
            self.w.step(&format!("poll {worker} slots=32 wait=100ms"));
            self.w.wait(200);
            let live: Vec<_> = self.w.fold.tasks.iter().filter(|s| s.core.state.is_live()).map(|s| s.core).collect();
            for core in live {
                let name = self.w.name(core.id);
                self.w.step(&format!("start {name} e={} run={}", core.exec_epoch, core.run_no));
                self.w.step(&format!("complete {name} e={} run={}", core.exec_epoch, core.run_no));
            }
            self.w.wait(2_000);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn faults_alone_leave_every_request_answered_and_every_task_ended(ops in prop::collection::vec(any::<Op>(), 1..120)) {
        let mut run = run(&ops, false);
        run.heal();
        run.all_answered();
        prop_assert_eq!(run.w.owner().phase(), Phase::Owning);
        run.finish();
        run.w.wait(3_000);
        for row in run.w.store.rows() {
            prop_assert!(row.core.state.is_terminal(), "row behind the log: {:?}", row.core);
        }
        prop_assert!(run.w.ticks < 40_000, "{} ticks", run.w.ticks);
    }

    #[test]
    fn nothing_that_is_written_or_said_makes_it_panic_or_fall_silent(ops in prop::collection::vec(any::<Op>(), 1..160)) {
        let mut run = run(&ops, true);
        run.heal();
        run.all_answered();
    }
}
