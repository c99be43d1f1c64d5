//! Upstream clients: they create, cancel, replay, review and read, concurrently and with stale
//! knowledge, and remember what they were told (a history in the manner of Jepsen).

use std::collections::BTreeMap;

use bytes::Bytes;
use coordinator::owner::{Answer, Command, CreateTask, Key};
use task_core::decide::{NewTask, Replay};
use task_events::{
    HashForm, PartitionId, ReplayFrom, ReviewOutcome, RunNo, Sampling, Sha256Hash, TaskCreated, TaskId, Text, Timeouts,
};

use crate::act::{Act, From, Request};
use crate::audit::{Asked, OpId};
use crate::clock::EPOCH_MS;
use crate::hub::{Ev, Shared};

/// A client waits so long for an answer, µs.
const PATIENCE_US: u64 = 6_000_000;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nobody knows yet.
    Invoked,
    /// Done.
    Ok,
    /// Not done, and never will be.
    Fail,
    /// It may or may not have been done.
    Unknown,
}

/// One line of the history.
#[derive(Clone, Debug)]
pub struct Op {
    /// What was asked, in words.
    pub what: &'static str,
    /// Task it is about or led to.
    pub task: Option<TaskId>,
    /// True µs.
    pub invoked: u64,
    /// True µs of the answer.
    pub returned: u64,
    /// What became of it.
    pub outcome: Outcome,
    key: Option<(PartitionId, Box<CreateTask>)>,
    resolved: bool,
}

/// All clients.
#[derive(Default)]
pub struct Clients {
    /// The history.
    pub ops: BTreeMap<OpId, Op>,
    next: u64,
    keyed: Vec<(PartitionId, Box<CreateTask>)>,
    paused: bool,
    /// Some tasks get a concurrency key.
    one_per_key: bool,
}

impl Clients {
    /// Clients of the world of this seed. In every fourth world some tasks have a concurrency key; no
    /// random number is drawn for that, so that the other worlds stay what they were.
    pub fn of(seed: u64) -> Self {
        Self { one_per_key: seed % 4 == 3, ..Self::default() }
    }

    // One of two keys of a partition, for two tasks of three: they meet often.
    fn concurrency_key(&self, p: PartitionId, partitions: u64) -> Option<Text> {
        let n = self.next % 3;
        (self.one_per_key && n < 2).then(|| {
            let here = |key: &Text| {
                let head = Sha256Hash::of(key.as_bytes()).0;
                head[..8].iter().fold(0, |rest, byte| (rest * 256 + u64::from(*byte)) % partitions) == u64::from(p.0)
            };
            (0u64..).map(|m| Text::from(format!("k{n}-{m}"))).find(here).unwrap_or_default()
        })
    }

    /// Does one random thing.
    pub fn act(&mut self, s: &mut Shared) {
        match s.rng.below(100) {
            0..58 => self.create(s),
            58..70 => self.cancel(s),
            70..82 => self.replay(s),
            82..86 => self.review(s),
            86..98 => {
                if let Some(task) = any_task(s) {
                    self.ask(s, "get", task.partition(), Some(task), Command::Get { task }, |_| Asked::Get(task));
                }
            }
            _ => self.queue(s),
        }
    }

    fn create(&mut self, s: &mut Shared) {
        if !self.keyed.is_empty() && s.rng.chance(120_000) {
            // A key again: often right away, so that it meets the first one in flight.
            let n = self.keyed.len() as u64;
            let at = if s.rng.chance(500_000) { n - 1 } else { s.rng.below(n) };
            let (p, mut create) = self.keyed[at as usize].clone();
            if s.rng.chance(150_000) {
                let other = Sha256Hash::of(b"another request");
                create.key = create.key.map(|k| Key { request_hash: other, ..k });
                create.task.created.request_hash = Some(other);
            }
            return self.send_create(s, "create again", p, create);
        }
        let p = PartitionId(s.rng.below(s.topic.partitions.len() as u64) as u16);
        let now = EPOCH_MS + (s.now() / 1_000) as i64;
        let keyed = s.rng.chance(350_000);
        let n = self.next;
        let key = keyed
            .then(|| Key { key_hash: Sha256Hash::of(&n.to_be_bytes()), request_hash: Sha256Hash::of(&[1, n as u8]) });
        let mut created = TaskCreated {
            task_type: "t".into(),
            queue: if s.rng.chance(700_000) { "qa".into() } else { "qb".into() },
            creator: if s.rng.chance(500_000) { "alice".into() } else { "bob".into() },
            priority: s.rng.below(10) as u8,
            deadline: s.rng.chance(40_000).then(|| now + s.rng.below(4_000) as i64),
            not_before: s.rng.chance(150_000).then(|| now + s.rng.below(3_000) as i64),
            payload_hash: Sha256Hash::default(),
            hash_form: HashForm::PlainSha256,
            payload_ref: None,
            business_key: None,
            labels: BTreeMap::new(),
            concurrency_key: self.concurrency_key(p, s.topic.partitions.len() as u64),
            timeouts: Timeouts {
                start_to_close_ms: if s.rng.chance(200_000) { s.rng.between(50, 1_500) } else { 6_000 },
                schedule_to_start_ms: s.rng.chance(50_000).then(|| s.rng.between(100, 3_000)),
            },
            max_retries: s.rng.below(4) as u32,
            trace_given: false,
            key_hash: key.map(|k| k.key_hash),
            request_hash: key.map(|k| k.request_hash),
        };
        let payload = s.rng.chance(300_000).then(|| Bytes::from(format!("payload {n}")));
        if let Some(bytes) = &payload {
            created.payload_hash = Sha256Hash::of(bytes);
        }
        let create = Box::new(CreateTask {
            task: NewTask { created, trace_id: Text::default(), sampling: Sampling::default() },
            key,
            payload,
            parent: None,
        });
        if keyed {
            self.keyed.push((p, create.clone()));
        }
        self.send_create(s, "create", p, create);
    }

    fn send_create(&mut self, s: &mut Shared, what: &'static str, p: PartitionId, mut create: Box<CreateTask>) {
        let key = create.key;
        create.task.trace_id = OpId(self.next + 1).trace();
        let again = key.map(|_| (p, create.clone()));
        let op = self.ask(s, what, p, None, Command::Create(create), |op| Asked::Create(op, key));
        if let Some(op) = self.ops.get_mut(&op) {
            op.key = again;
        }
    }

    fn cancel(&mut self, s: &mut Shared) {
        let Some(task) = any_task(s) else { return };
        let actor = OpId(self.next + 1).actor();
        let command = Command::Cancel { task, actor, reason: "r".into() };
        self.ask(s, "cancel", task.partition(), Some(task), command, |op| Asked::Cancel(op, task));
    }

    fn replay(&mut self, s: &mut Shared) {
        let Some((task, run)) = closed_task(s) else { return };
        // Often twice at once, and sometimes of a run that is not the last one.
        for _ in 0..1 + u64::from(s.rng.chance(300_000)) {
            let stale = s.rng.chance(80_000);
            let run_no = if stale { RunNo(run.0.saturating_sub(1).max(1)) } else { run };
            let (replay_from, from_step) = match s.rng.below(10) {
                0..6 => (ReplayFrom::Failure, None),
                6..8 => (ReplayFrom::Start, None),
                _ => (ReplayFrom::Step, Some("s0".into())),
            };
            let actor = OpId(self.next + 1).actor();
            let ask = Replay { run_no, replay_from, from_step, actor, reason: "r".into() };
            let command = Command::Replay { task, ask };
            self.ask(s, "replay", task.partition(), Some(task), command, |op| Asked::Replay(op, task));
        }
    }

    fn review(&mut self, s: &mut Shared) {
        let Some((task, run_no)) = closed_task(s) else { return };
        let outcome = if s.rng.chance(500_000) { ReviewOutcome::Accepted } else { ReviewOutcome::Abandoned };
        let actor = OpId(self.next + 1).actor();
        // Without naming the one that stands, which nobody may take back so.
        let command = Command::Review { task, run_no, outcome, instead_of: None, actor, note: "n".into() };
        self.ask(s, "review", task.partition(), Some(task), command, |op| Asked::Review(op, task));
    }

    fn queue(&mut self, s: &mut Shared) {
        self.paused = !self.paused;
        self.set_queue(s, self.paused);
    }

    /// Pauses or resumes a queue on every partition.
    pub fn set_queue(&mut self, s: &mut Shared, pause: bool) {
        for p in 0..s.topic.partitions.len() as u16 {
            let command = Command::Queue { queue: "qb".into(), pause, actor: "x".into(), reason: "r".into() };
            self.ask(s, "queue", PartitionId(p), None, command, |_| Asked::Other);
        }
    }

    fn ask(
        &mut self,
        s: &mut Shared,
        what: &'static str,
        partition: PartitionId,
        task: Option<TaskId>,
        command: Command,
        asked: impl FnOnce(OpId) -> Asked,
    ) -> OpId {
        self.next += 1;
        let op = OpId(self.next);
        let now = s.now();
        let line = Op { what, task, invoked: now, returned: 0, outcome: Outcome::Invoked, key: None, resolved: false };
        self.ops.insert(op, line);
        let proc = s.route(partition);
        s.request(Request { proc, partition, command, asked: asked(op), from: From::Client(op) });
        s.at(now + PATIENCE_US, Ev::Act(Act::GiveUp(op)));
        op
    }

    /// Requests answered with yes, with no, and of unknown outcome.
    pub fn totals(&self) -> [u64; 3] {
        let count = |outcome| self.ops.values().filter(|op| op.outcome == outcome).count() as u64;
        [count(Outcome::Ok), count(Outcome::Fail), count(Outcome::Unknown)]
    }

    /// An answer arrived.
    pub fn answered(&mut self, op: OpId, answer: &Answer, now: u64) {
        let Some(line) = self.ops.get_mut(&op) else { return };
        if line.outcome == Outcome::Unknown {
            return;
        }
        line.returned = now;
        line.outcome = match answer {
            Answer::Created { task_id, .. } | Answer::Duplicate { task_id } => {
                line.task = Some(*task_id);
                Outcome::Ok
            }
            Answer::OutcomeUnknown { task_id } => {
                line.task = line.task.or(*task_id);
                Outcome::Unknown
            }
            Answer::CancelAccepted
            | Answer::Replayed { .. }
            | Answer::Reviewed
            | Answer::QueueChanged
            | Answer::Task(_)
            | Answer::Why(_)
            | Answer::Found(_)
            | Answer::Looked(_)
            | Answer::RulesActive
            | Answer::WorkerReleased => Outcome::Ok,
            Answer::KeyConflict { .. }
            | Answer::BacklogFull { .. }
            | Answer::PlacementConflict { .. }
            | Answer::Poll(_)
            | Answer::Heartbeat(_)
            | Answer::Report(_)
            | Answer::TaskClosed { .. }
            | Answer::TaskOpen { .. }
            | Answer::NotFound
            | Answer::Gone
            | Answer::Refused(_)
            | Answer::RulesRefused { .. }
            | Answer::Unavailable(_) => Outcome::Fail,
        };
    }

    /// It waited long enough.
    pub fn give_up(&mut self, op: OpId, now: u64) {
        if let Some(line) = self.ops.get_mut(&op).filter(|l| l.outcome == Outcome::Invoked) {
            (line.outcome, line.returned) = (Outcome::Unknown, now);
        }
    }

    /// Asks again about everything whose outcome is unknown: a create with its key, or the task.
    pub fn resolve(&mut self, s: &mut Shared) {
        let open: Vec<OpId> =
            self.ops.iter().filter(|(_, l)| l.outcome == Outcome::Unknown && !l.resolved).map(|(op, _)| *op).collect();
        for op in open {
            let Some(line) = self.ops.get_mut(&op) else { continue };
            line.resolved = true;
            match (line.key.clone(), line.task) {
                (Some((p, create)), _) => self.send_create(s, "create again", p, create),
                (None, Some(task)) => {
                    self.ask(s, "get", task.partition(), Some(task), Command::Get { task }, |_| Asked::Get(task));
                }
                (None, None) => {}
            }
        }
    }
}

fn any_task(s: &mut Shared) -> Option<TaskId> {
    let p = s.rng.below(s.topic.partitions.len() as u64) as usize;
    // Mostly young ones: those are in flight.
    let born = &s.audit.parts[p].born;
    let n = born.len() as u64;
    let back = if s.rng.chance(700_000) { s.rng.below(n.min(10)) } else { s.rng.below(n) };
    let at = n.checked_sub(1 + back)?;
    born.get(at as usize).copied()
}

fn closed_task(s: &mut Shared) -> Option<(TaskId, RunNo)> {
    for _ in 0..6 {
        let task = any_task(s)?;
        if let Some((core, false)) = s.audit.task(task) {
            return Some((task, core.run_no));
        }
    }
    None
}
