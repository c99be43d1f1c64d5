//! One thing wrong with a record: a number beside the right one or at the end of its range, another
//! subject, another body, a carried state that never was.
#![expect(clippy::wildcard_enum_match_arm, reason = "a twist speaks of the kinds it can twist")]

use bytes::Bytes;
use rand::RngExt as _;
use rand::seq::{IndexedRandom as _, IteratorRandom as _};
use rand_chacha::ChaCha8Rng;
use task_events::{
    Body, ClosedTask, Event, EventSequence, ExecEpoch, ExecutionId, Kind, Offset, OwnerSeq, PartitionEpoch,
    PartitionId, RuleVersion, RunNo, Service, StepDone, TaskId, TaskState, Text, samples,
};

use super::writer::Writer;

/// Twists a record whose numbers are right.
pub fn event(w: &mut Writer<'_>, event: &mut Event, key: &mut Option<Vec<u8>>) {
    match w.rng.random_range(0..16) {
        0 => event.owner_seq = Some(OwnerSeq(near_u64(event.owner_seq.map_or(0, |s| s.0), w.rng))),
        1 => event.partition_epoch = Some(PartitionEpoch(near(event.partition_epoch.map_or(0, |p| p.0), w.rng))),
        2 => event.event_sequence = EventSequence(near(event.event_sequence.0, w.rng)),
        3 => event.run_no = RunNo(near(event.run_no.0, w.rng)),
        4 => event.exec_epoch = ExecEpoch(near(event.exec_epoch.0, w.rng)),
        5 => {
            event.task_id = subject(w);
            *key = Some(task_events::RecordKey::of(event, samples::PARTITION).to_bytes().to_vec());
        }
        6 => {
            *key = match w.rng.random_range(0..5) {
                0 => None,
                1 => Some(b"#7".to_vec()),
                2 => Some(b"#8".to_vec()),
                3 => Some((0..w.rng.random_range(0..24)).map(|_| w.rng.random()).collect()),
                _ => subject(w).map(|id| id.to_string().into_bytes()),
            }
        }
        7 => {
            let kind = *Kind::ALL.choose(w.rng).expect("there are kinds");
            (event.kind, event.body) = (kind, w.arbitrary.body(kind, w.rng));
        }
        8 => {
            let wrong = [ExecutionId::NONE, samples::attempt(), ExecutionId(w.rng.random())];
            set_execution(&mut event.body, *wrong.choose(w.rng).expect("three"), w.rng.random());
        }
        9 => event.event_time = edge_i64(w.rng),
        10 => event.producer.service = *Service::ALL.choose(w.rng).expect("there are services"),
        11 => event.rule_version = RuleVersion(near(event.rule_version.0, w.rng)),
        12 => {
            (event.partition_epoch, event.owner_seq) =
                (event.partition_epoch.filter(|_| w.rng.random()), event.owner_seq.filter(|_| w.rng.random()));
        }
        13 => match &mut event.body {
            Body::TaskCreated(b) => {
                b.max_retries = near(b.max_retries, w.rng);
                b.deadline = Some(edge_i64(w.rng));
                b.not_before = Some(edge_i64(w.rng));
                b.timeouts.schedule_to_start_ms = Some(near_u64(0, w.rng));
            }
            body => steps(body, w.rng),
        },
        _ => twist_carried(w, event),
    }
}

// A replay or review whose carried state is not what the fold once had: the fold cannot know.
fn twist_carried(w: &mut Writer<'_>, event: &mut Event) {
    if carried(&mut event.body).is_none() {
        let kind = if w.rng.random() { Kind::TaskReplayRequested } else { Kind::TaskReviewed };
        let id = w.closed.keys().choose(w.rng).copied();
        *event = w.right(kind, id).0;
    }
    let opens = event.kind == Kind::TaskReplayRequested;
    let Some(c) = carried(&mut event.body) else { return };
    match w.rng.random_range(0..8) {
        0 => c.state = *TaskState::ALL.choose(w.rng).expect("there are states"),
        1 => c.event_sequence = EventSequence(near(c.event_sequence.0, w.rng)),
        2 => c.run_no = RunNo(near(c.run_no.0, w.rng)),
        3 => c.exec_epoch = ExecEpoch(near(c.exec_epoch.0, w.rng)),
        4 => c.created.max_retries = near(c.created.max_retries, w.rng),
        5 => {
            (c.retry_count, c.lost_count) = (near(c.retry_count, w.rng), near(c.lost_count, w.rng));
            (c.created.deadline, c.end_time) = (Some(edge_i64(w.rng)), Some(edge_i64(w.rng)));
            c.lease_left_ms = near_u64(c.lease_left_ms, w.rng);
        }
        6 => c.history = history(w.rng, w.state.next_offset),
        _ => c.steps = wild_steps(w.rng),
    }
    // Nine of ten continue what they carry, and so are accepted.
    if w.rng.random_bool(0.9) {
        event.event_sequence = c.event_sequence.next().unwrap_or_default();
        event.run_no = if opens { c.run_no.next().unwrap_or_default() } else { c.run_no };
    }
}

// Well coded entries at any distance, overlong numbers, unknown reasons, noise.
fn history(rng: &mut ChaCha8Rng, next: Offset) -> Bytes {
    let mut out = Vec::new();
    let entries = if rng.random_ratio(1, 16) { 3000 } else { rng.random_range(0..40) };
    let wild = rng.random_bool(0.5);
    for _ in 0..entries {
        let mut rest = if wild { near_u64(next.0, rng) } else { rng.random_range(0..3) };
        while rest >= 0x80 {
            out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8 | if wild && rng.random_ratio(1, 16) { 0x80 } else { 0 });
        out.push(if wild { rng.random_range(0..20) } else { rng.random_range(0..16) });
    }
    if rng.random_ratio(1, 8) {
        out.extend((0..rng.random_range(0..64)).map(|_| rng.random::<u8>()));
    }
    out.into()
}

fn steps(body: &mut Body, rng: &mut ChaCha8Rng) {
    match body {
        Body::TaskCompleted(b) => b.steps_done = wild_steps(rng),
        Body::TaskFailed(b) => b.steps_done = wild_steps(rng),
        Body::TaskStepCompleted(b) => b.done.index = near(b.done.index, rng),
        _ => {}
    }
}

fn wild_steps(rng: &mut ChaCha8Rng) -> Vec<StepDone> {
    let most = if rng.random_ratio(1, 64) { 4000 } else { 8 };
    (0..rng.random_range(0..most))
        .map(|n| StepDone {
            step: ["a", "b", "c", ""].choose(rng).map_or_else(Text::default, |s| Text::from(*s)),
            index: if rng.random() { rng.random_range(0..6) } else { most - n },
            output_hash: Default::default(),
            is_idempotent: rng.random(),
        })
        .collect()
}

fn subject(w: &mut Writer<'_>) -> Option<TaskId> {
    match w.rng.random_range(0..6) {
        0 => None,
        1 => w.state.tasks.iter().map(|slot| slot.core.id).choose(w.rng),
        2 => w.closed.keys().choose(w.rng).copied(),
        3 => TaskId::from_parts(9, PartitionId(w.rng.random_range(0..9)), 1),
        4 => TaskId::from_raw(*[1, i64::MAX, w.state.highest.raw()].choose(w.rng).expect("three")),
        _ => TaskId::mint(w.state.highest, samples::PARTITION, i64::MAX),
    }
}

/// A number near `right` or at the end of its range.
pub fn near(right: u32, rng: &mut ChaCha8Rng) -> u32 {
    let some = [0, 1, right.wrapping_sub(1), right.wrapping_add(1), right.wrapping_add(2), u32::MAX - 1, u32::MAX];
    *some.choose(rng).expect("not empty")
}

fn near_u64(right: u64, rng: &mut ChaCha8Rng) -> u64 {
    let max = i64::MAX as u64;
    let some = [0, 1, right.wrapping_sub(1).min(max), right.saturating_add(2).min(max), max - 1, max];
    *some.choose(rng).expect("not empty")
}

/// A time at the end of its range.
pub fn edge_i64(rng: &mut ChaCha8Rng) -> i64 {
    let some = [i64::MIN, i64::MIN / 1000 - 1, -1, 0, 1, samples::NOW_MS, i64::MAX / 1000 + 1, i64::MAX];
    *some.choose(rng).expect("not empty")
}

/// The carried state of a replay or review.
pub fn carried(body: &mut Body) -> Option<&mut ClosedTask> {
    match body {
        Body::TaskReplayRequested(b) => Some(&mut b.carried),
        Body::TaskReviewed(b) => Some(&mut b.carried),
        _ => None,
    }
}

/// Names an attempt where the body names one.
pub fn set_execution(body: &mut Body, execution: ExecutionId, live: bool) {
    match body {
        Body::TaskAssigned(b) => b.execution_id = execution,
        Body::TaskStarted(b) => b.execution_id = execution,
        Body::TaskStepCompleted(b) => b.execution_id = execution,
        Body::TaskReleased(b) => b.execution_id = execution,
        Body::TaskCompleted(b) => b.execution_id = execution,
        Body::TaskFailed(b) => b.execution_id = execution,
        Body::TaskLost(b) => b.execution_id = execution,
        Body::TaskFailureAnalysis(b) => b.execution_id = execution,
        Body::RejectedReport(b) => b.execution_id = execution,
        Body::TaskTimedOut(b) => b.execution_id = live.then_some(execution),
        _ => {}
    }
}
