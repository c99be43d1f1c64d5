//! The notation of histories, as the exhaustive search prints it (crates/model-search):
//! `claim | submit t1 max=1 | assign t1 w1 e=1 | complete t1 e=1 => SUCCESS`.
//!
//! Numbers left out are those a writer who knows the state would give: `s` event_sequence, `r`
//! run_no, `e` exec_epoch, `x` attempt of the execution id, `p` partition epoch and owner_seq, `c`
//! carried state/run/sequence/epoch/attempt, `key`. The simulator prints long ids, a first claim of a
//! later epoch and `@offset`: a history of it plays by paste. Beyond the search's, for the rows: a worker
//! (`w1`), a step (`step t1 pay#0`), `at` event and broker time, `nb` not_before, `ll` lease left,
//! `from` and `why` of a body. After `=>` stands a state, `ok`, `rejected(reason)` or `malformed`.

mod say;

use bytes::Bytes;
use task_core::{CoreState, Reason};
use task_events::*;

use crate::kit::{PARTITION, World, task};

const VERBS: [(&str, Kind); 30] = [
    ("submit", Kind::TaskCreated),
    ("assign", Kind::TaskAssigned),
    ("start", Kind::TaskStarted),
    ("step", Kind::TaskStepCompleted),
    ("release", Kind::TaskReleased),
    ("complete", Kind::TaskCompleted),
    ("fail", Kind::TaskFailed),
    ("lose", Kind::TaskLost),
    ("timeout", Kind::TaskTimedOut),
    ("approve", Kind::TaskRetryApproved),
    ("giveup", Kind::TaskFailedPermanently),
    ("plan", Kind::TaskReplayPlanned),
    ("retry", Kind::TaskRetried),
    ("cancel", Kind::TaskCancelRequested),
    ("cancelled", Kind::TaskCancelled),
    ("replay", Kind::TaskReplayRequested),
    ("review", Kind::TaskReviewed),
    ("reject", Kind::RejectedReport),
    ("overdue", Kind::TaskOverdue),
    ("analyse", Kind::TaskFailureAnalysis),
    ("skip", Kind::TaskSkippedByPolicy),
    ("quarantine", Kind::WorkerQuarantined),
    ("free", Kind::WorkerReleased),
    ("pause", Kind::QueuePaused),
    ("resume", Kind::QueueResumed),
    ("backlog", Kind::BacklogAlarm),
    ("claim", Kind::OwnershipClaimed),
    ("renew", Kind::OwnershipRenewed),
    ("rules", Kind::RulesActivated),
    ("seal", Kind::LogSealed),
];

/// What must become of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// It counts.
    Accepted,
    /// It counts and leaves the task so.
    State(TaskState),
    /// It does not.
    Rejected(Reason),
    /// Every reader quarantines it.
    Malformed,
}

/// One record of a history.
pub struct Said {
    /// What it says.
    pub event: Event,
    /// Its key.
    pub key: Bytes,
    /// What must become of it.
    pub expect: Expect,
    /// Its last byte is missing.
    pub torn: bool,
    /// No honest writer writes it, but the fold cannot know.
    pub wild: bool,
}

/// Reads one record at this state of the world.
pub fn parse(text: &str, world: &World) -> Result<Said, String> {
    // Where the record lay, as the simulator adds it.
    let text = text.split_once("  @").map_or(text, |(text, _)| text);
    let (said, expected) = text.split_once("=>").map_or((text, "ok"), |(a, b)| (a, b.trim()));
    let mut words = said.split_whitespace().peekable();
    let name = words.next().ok_or("empty record")?;
    let kind = kind_of(name).ok_or_else(|| format!("unknown verb {name:?}"))?;
    let subject = words.next_if(|w| w.starts_with('t') && !w.contains('='));
    let id = match subject {
        Some("tX") => TaskId::from_parts(1_000, PartitionId(PARTITION.0 + 1), 1).expect("in range"),
        Some(t) => match world.names.get(&t[1..]) {
            Some(n) => task(*n),
            None => task(t[1..].parse().map_err(|_| format!("{t:?} is no task"))?),
        },
        None => task(1),
    };
    let mut event = right(world, kind, id);
    let mut said = Said {
        key: RecordKey::of(&event, PARTITION).to_bytes(),
        expect: expect(expected).ok_or_else(|| format!("cannot expect {expected:?}"))?,
        torn: expect(expected) == Some(Expect::Malformed),
        wild: false,
        event: event.clone(),
    };
    for word in words {
        let (name, value) = word.split_once('=').unwrap_or(("", word));
        say::set(world, &mut event, &mut said, name, value)
            .ok_or_else(|| format!("cannot read {word:?} of {text:?}"))?;
    }
    said.event = event;
    Ok(said)
}

fn expect(text: &str) -> Option<Expect> {
    if let Some(reason) = text.strip_prefix("rejected(").and_then(|r| r.strip_suffix(')')) {
        return Reason::ALL.iter().find(|r| r.as_str() == reason).map(|r| Expect::Rejected(*r));
    }
    match text {
        "ok" => Some(Expect::Accepted),
        text if text == "malformed" || text.starts_with("quarantined(") => Some(Expect::Malformed),
        state => TaskState::ALL.iter().find(|s| s.as_str() == state).map(|s| Expect::State(*s)),
    }
}

/// A record of this kind about this task, with every number right.
pub fn right(world: &World, kind: Kind, id: TaskId) -> Event {
    let mut event = samples::minimal(kind);
    event.event_time = 1_000 * world.state.next_offset.0 as i64;
    if writer_of(kind) == Service::Coordinator {
        event.partition_epoch = Some(world.state.epoch);
        event.owner_seq = world.state.owner_seq.next();
    }
    if kind == Kind::OwnershipClaimed {
        (event.partition_epoch, event.owner_seq) = (world.state.epoch.next(), Some(OwnerSeq(0)));
    }
    if matches!(kind.class(), KindClass::Control | KindClass::Seal) {
        return event;
    }
    let closed = world.closed.get(&id);
    let unborn = CoreState { version: EventSequence(0), ..CoreState::created(id, 1) };
    let core = world.state.tasks.get(id).map(|s| s.core).or(closed.map(|c| c.core)).unwrap_or(unborn);
    event.task_id = Some(id);
    (event.run_no, event.exec_epoch) = (core.run_no, core.exec_epoch);
    event.event_sequence = core.version.next().unwrap_or(core.version);
    match kind {
        Kind::TaskCreated => (event.event_sequence, event.run_no) = (EventSequence(1), RunNo(1)),
        Kind::TaskOverdue => event.event_sequence = core.version,
        Kind::RejectedReport => event.event_sequence = EventSequence(0),
        Kind::TaskAssigned => event.exec_epoch = core.exec_epoch.next().unwrap_or_default(),
        _ => {}
    }
    match &mut event.body {
        Body::TaskCreated(b) => b.max_retries = 1,
        Body::TaskTimedOut(b) => b.execution_id = core.state.is_live().then_some(core.execution_id),
        Body::TaskRetryApproved(b) => (b.retry_count, b.lost_count) = (core.retry_count, core.lost_count),
        Body::TaskOverdue(b) => b.state = core.state,
        body => drop(carried(body).map(|c| {
            **c = closed.map_or_else(|| carry(&core), |closed| *closed.carried(closed.row.lease_left_ms));
            event.run_no.0 = c.run_no.0 + u32::from(kind == Kind::TaskReplayRequested);
        })),
    }
    name_attempt(&mut event.body, ExecutionId::new(id, event.exec_epoch));
    event
}

// Of an open task it claims what it would have to: that the task is closed.
fn carry(core: &CoreState) -> ClosedTask {
    let mut body = samples::minimal(Kind::TaskReviewed).body;
    let mut c = carried(&mut body).expect("a review carries").clone();
    (c.run_no, c.event_sequence, c.exec_epoch) = (core.run_no, core.version, core.exec_epoch);
    c.execution_id = core.execution_id;
    *c
}

fn carried(body: &mut Body) -> Option<&mut Box<ClosedTask>> {
    match body {
        Body::TaskReplayRequested(b) => Some(&mut b.carried),
        Body::TaskReviewed(b) => Some(&mut b.carried),
        _ => None,
    }
}

/// Names an attempt where the body names one.
pub fn name_attempt(body: &mut Body, execution: ExecutionId) {
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
        Body::TaskTimedOut(b) => b.execution_id = b.execution_id.map(|_| execution),
        _ => {}
    }
}

fn attempt(event: &Event, e: u32) -> ExecutionId {
    let id = event.task_id.filter(|_| e > 0);
    id.map_or(ExecutionId::NONE, |id| ExecutionId::new(id, ExecEpoch(e)))
}

/// The verb of a kind.
pub fn verb(kind: Kind) -> &'static str {
    VERBS.iter().find(|(_, k)| *k == kind).map_or("?", |(verb, _)| verb)
}

/// The kind of a verb.
pub fn kind_of(verb: &str) -> Option<Kind> {
    VERBS.iter().find(|(v, _)| *v == verb).map(|(_, kind)| *kind)
}
