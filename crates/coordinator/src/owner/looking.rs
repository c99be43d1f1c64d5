//! What operators ask an owner about many tasks at once: lists, queues, workers. Read from memory with
//! the proof that any read needs; each answer is bounded in what it looks at, since the owner decides
//! nothing meanwhile.

mod facts;
mod filter;
mod open;
mod verdicts;

use serde::{Deserialize, Serialize};
use snapshot_store::{SnapshotRow, TaskSummary};
use task_core::Review;
use task_events::{ExecutionId, Offset, PartitionEpoch, RuleVersion, RunNo, TaskId, TaskState, Text};

use super::work::Job;
use super::{Answer, Command, Now, Owner};

pub(super) use facts::Changing;
pub use filter::TaskFilter;
pub(super) use open::OpenTasks;
pub(super) use verdicts::Verdicts;
pub use verdicts::{ACCEPTED, QUARANTINED, reason_of, verdict_byte};

/// Most attempts of a worker that are told.
const ATTEMPTS: usize = 1_000;

/// What is looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Look {
    /// A page of a list.
    List(Box<ListAsk>),
    /// Those of these tasks that are in memory, as they stand: open ones, and closed ones whose row the
    /// store may not show yet.
    Stands(Vec<TaskId>),
    /// Queues.
    Queues,
    /// How many attempts each worker has.
    Workers,
    /// The acceptance rules that are active.
    Rules,
    /// The attempts of a worker.
    Worker(Text),
    /// What metrics tell of the owner.
    Facts,
    /// What became of records from this offset on.
    Verdicts {
        /// Offset of the first.
        from: Offset,
        /// At most so many.
        limit: usize,
    },
}

/// A page of a list as one partition shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListAsk {
    /// Tasks that wait for review, else all.
    pub review: bool,
    /// Which of them.
    pub filter: TaskFilter,
    /// Lowest id.
    pub low: TaskId,
    /// Highest id.
    pub high: TaskId,
    /// Begins with the lowest id, else with the highest.
    pub oldest_first: bool,
    /// Most tasks that are told.
    pub limit: usize,
    /// Most tasks that are looked at.
    pub look: usize,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Looked {
    /// Tasks in the order asked for.
    Tasks {
        /// Those that match.
        tasks: Vec<TaskSummary>,
        /// How many were looked at.
        looked_at: u64,
        /// The last one that was looked at, if there are more behind it.
        looked_to: Option<TaskId>,
        /// Of a list that begins with the oldest: up to this id no task can turn up any more that the owner
        /// does not have yet, unless its clock is set back.
        settled_to: Option<TaskId>,
    },
    /// Queues.
    Queues(Vec<QueueFacts>),
    /// Workers and how many live attempts they have.
    Workers(Vec<(Text, u64)>),
    /// Rules.
    Rules(RuleVersion),
    /// Live attempts of one, the oldest task first.
    Attempts {
        /// How many there are.
        all: u64,
        /// The first of them.
        attempts: Vec<AttemptSeen>,
    },
    /// What metrics tell of the owner.
    Facts(Box<OwnerFacts>),
    /// Verdicts, one byte each: [`ACCEPTED`], [`QUARANTINED`], or [`reason_of`] it.
    Verdicts {
        /// Offset of the first that is remembered; those before are forgotten.
        remembered: Offset,
        /// From the offset asked for on, or from `remembered` if that is later.
        verdicts: Vec<u8>,
    },
}

/// What metrics tell of an owner, as it stands; counts are of its fold, and so since offset 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerFacts {
    /// Epoch of the partition.
    pub epoch: PartitionEpoch,
    /// Rows owed to the store.
    pub owed_rows: u64,
    /// Records whose rows are not all acknowledged.
    pub behind: u64,
    /// How long the row that is owed longest is overdue, ms.
    pub overdue_ms: u64,
    /// Accepted records.
    pub accepted: u64,
    /// Malformed ones.
    pub quarantined: u64,
    /// Rejected ones, in the order of [`task_core::Reason`].
    pub rejected: Vec<u64>,
    /// Queues.
    pub queues: Vec<QueueFacts>,
}

/// A queue in one partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueFacts {
    /// Queue.
    pub queue: Text,
    /// Nothing of it is handed out.
    pub paused: bool,
    /// Tasks that could be handed out now.
    pub ready: u64,
    /// Live attempts.
    pub running: u64,
    /// Open tasks.
    pub open: u64,
    /// Since a worker last asked this owner for work of it, ms.
    pub polled_ms_ago: Option<u64>,
}

/// A live attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptSeen {
    /// Task.
    pub task_id: TaskId,
    /// Handler.
    pub task_type: Text,
    /// Queue.
    pub queue: Text,
    /// ASSIGNED or EXECUTING.
    pub state: TaskState,
    /// Run.
    pub run_no: RunNo,
    /// Attempt; holds its fencing token.
    pub execution_id: ExecutionId,
    /// Its assignment, Unix ms.
    pub assigned_at: i64,
}

impl Owner {
    /// Answers a look.
    pub(super) fn look(&mut self, now: Now, job: Job) {
        let Command::Look(look) = &job.command else { return };
        // What was folded is judged for good, whoever owns the partition by now.
        // Nobody decides anything by facts.
        let proven = matches!(look, Look::Verdicts { .. } | Look::Facts) || self.is_current(now);
        if !proven {
            // Looked at anew with the proof; what is gathered now would be gathered for nothing.
            self.wants_proof = true;
            return self.unproven.push_back(job);
        }
        let looked = match look {
            Look::List(ask) => self.page(now, ask),
            Look::Stands(tasks) => {
                let tasks: Vec<_> =
                    tasks.iter().filter_map(|id| Some(TaskSummary::of(&self.in_memory(*id)?))).collect();
                Looked::Tasks { looked_at: tasks.len() as u64, tasks, looked_to: None, settled_to: None }
            }
            Look::Queues => Looked::Queues(self.queue_facts(now)),
            Look::Workers => {
                let counts = self.by_worker.iter().map(|(worker, tasks)| (worker.clone(), tasks.len() as u64));
                let mut counts: Vec<_> = counts.collect();
                counts.sort_unstable();
                Looked::Workers(counts)
            }
            Look::Rules => Looked::Rules(self.fold.active_rules),
            Look::Worker(worker) => self.attempts_of(worker),
            Look::Facts => Looked::Facts(Box::new(self.facts(now))),
            Look::Verdicts { from, limit } => self.verdicts.from(*from, *limit),
        };
        self.reply(job.token, Answer::Looked(Box::new(looked)));
    }

    /// A task that is open, or closed and owed.
    pub(super) fn in_memory(&self, id: TaskId) -> Option<SnapshotRow> {
        match (self.fold.tasks.get(id), self.owed.closed(id)) {
            (Some(slot), _) => Some(SnapshotRow { core: slot.core, row: slot.row.clone()?, closed_at: None }),
            (None, Some(closed)) => Some(SnapshotRow {
                core: closed.core,
                row: closed.row.clone(),
                closed_at: Some(closed.closed_at_offset),
            }),
            (None, None) => None,
        }
    }

    fn page(&self, now: Now, ask: &ListAsk) -> Looked {
        // Few beside the open ones: they leave as soon as the store has their rows.
        let mut owed: Vec<TaskId> = self.owed.closed_ids().filter(|id| (ask.low..=ask.high).contains(id)).collect();
        owed.sort_unstable_by(|one, other| if ask.oldest_first { one.cmp(other) } else { other.cmp(one) });
        let matching = || self.open.matching(&ask.filter, ask.low, ask.high, ask.oldest_first);
        let open = (!ask.review).then(matching).into_iter().flatten();
        let mut ids = open::in_order(open, owed.into_iter(), ask.oldest_first);
        let (mut tasks, mut looked_at, mut last) = (Vec::new(), 0, None);
        while tasks.len() < ask.limit
            && looked_at < ask.look.max(1)
            && let Some(id) = ids.next()
        {
            looked_at += 1;
            last = Some(id);
            let (core, row) = match (self.fold.tasks.get(id), self.owed.closed(id)) {
                (Some(slot), _) => (&slot.core, slot.row.as_deref()),
                (None, Some(closed)) => (&closed.core, Some(&*closed.row)),
                (None, None) => continue,
            };
            let Some(row) = row else { continue };
            let wanted = (!ask.review || row.review == Some(Review::Waiting)) && ask.filter.takes_row(core.state, row);
            if wanted {
                tasks.extend(self.in_memory(id).map(|seen| TaskSummary::of(&seen)));
            }
        }
        let looked_to = last.filter(|_| ids.next().is_some());
        let settled_to = ask.oldest_first.then(|| self.settled_to(now));
        Looked::Tasks { tasks, looked_at: looked_at as u64, looked_to, settled_to }
    }

    // Ids rise in the order of the log, so the first create that is under way has the lowest id of those
    // that are still to come.
    fn settled_to(&self, now: Now) -> TaskId {
        let next = self.flight.first_create().or_else(|| self.creates.first()).or_else(|| self.next_id(now));
        next.and_then(|next| TaskId::from_raw(next.raw() - 1)).unwrap_or(TaskId::ZERO)
    }

    fn queue_facts(&self, now: Now) -> Vec<QueueFacts> {
        let mut facts = self.open.queues(|queue, open| QueueFacts {
            paused: self.fold.paused_queues.contains(queue),
            ready: self.dispatch.ready(queue) as u64,
            running: 0,
            open,
            polled_ms_ago: self.polled_ago(now, queue),
            queue: queue.clone(),
        });
        let beside = self.fold.paused_queues.iter().chain(self.polled.keys());
        for queue in beside {
            let polled_ms_ago = self.polled_ago(now, queue);
            let paused = self.fold.paused_queues.contains(queue);
            if paused || polled_ms_ago.is_some() {
                let none = QueueFacts { queue: queue.clone(), paused, ready: 0, running: 0, open: 0, polled_ms_ago };
                facts.entry(queue.clone()).or_insert(none);
            }
        }
        for id in self.live.keys() {
            let row = self.fold.tasks.get(*id).and_then(|slot| slot.row.as_deref());
            if let Some(seen) = row.and_then(|row| facts.get_mut(&row.created.queue)) {
                seen.running += 1;
            }
        }
        facts.into_values().collect()
    }

    fn facts(&self, now: Now) -> OwnerFacts {
        let (fold, counts) = (&self.fold, &self.fold.counters);
        OwnerFacts {
            epoch: fold.epoch,
            owed_rows: self.owed.len() as u64,
            behind: fold.next_offset.0.saturating_sub(self.owed.acked_below(fold.next_offset).0),
            overdue_ms: self.owed.overdue_ms(now.boot_ms),
            accepted: counts.applied + counts.control,
            quarantined: counts.quarantined,
            rejected: counts.rejected.to_vec(),
            queues: self.queue_facts(now),
        }
    }

    /// Since a worker last asked this owner for work of the queue, ms.
    pub(super) fn polled_ago(&self, now: Now, queue: &Text) -> Option<u64> {
        let at = self.polled.get(queue).copied().filter(|at| *at >= self.claimed_ms)?;
        Some(now.boot_ms.saturating_sub(at))
    }

    fn attempts_of(&self, worker: &Text) -> Looked {
        let tasks = self.by_worker.get(worker);
        let all = tasks.map_or(0, |tasks| tasks.len() as u64);
        let attempts = tasks.into_iter().flatten().take(ATTEMPTS).filter_map(|id| {
            let slot = self.fold.tasks.get(*id)?;
            let row = slot.row.as_deref()?;
            Some(AttemptSeen {
                task_id: *id,
                task_type: row.created.task_type.clone(),
                queue: row.created.queue.clone(),
                state: slot.core.state,
                run_no: slot.core.run_no,
                execution_id: slot.core.execution_id,
                assigned_at: row.assigned_at.unwrap_or_default(),
            })
        });
        Looked::Attempts { all, attempts: attempts.collect() }
    }
}
