//! What lists ask for, of tasks that are open: for each fact the ids of the tasks of which it holds, in
//! their order. A page for which few of many tasks are looked for then costs what it shows.
//!
//! One tree holds (fact, id), 12 bytes an entry and about 21 with what the tree needs; a fact is a hash
//! of 30 bits, so what is found may match and must be held against the filter. An open task has two
//! entries, or three if its type is not its queue, one for each label, and three more once it was
//! assigned and failed. That a task is CREATED is no fact: most that are open are.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, Hash};

use foldhash::fast::FixedState;
use task_core::Row;
use task_events::{TaskCreated, TaskId, TaskState};

use super::TaskFilter;

/// A hash of what a task is, below what kind of fact it is: one that changes never meets another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fact(u32);

// In the highest bits of a fact.
const SAID: u32 = 0;
const STATE: u32 = 1;
const WORKER: u32 = 2;
const CODE: u32 = 3;

/// What TaskCreated said.
#[derive(Hash)]
enum Said<'a> {
    Queue(&'a str),
    Type(&'a str),
    /// A queue and a type of this name: what a task has that names no queue.
    Both(&'a str),
    Creator(&'a str),
    Label(&'a str, &'a str),
}

impl Fact {
    fn new(kind: u32, of: impl Hash) -> Self {
        let [a, b, c, d, ..] = FixedState::default().hash_one(of).to_le_bytes();
        Self(kind << 30 | u32::from_le_bytes([a, b, c, d]) >> 2)
    }

    fn said(of: &Said<'_>) -> Self {
        Self::new(SAID, of)
    }

    fn state(state: TaskState) -> Self {
        Self::new(STATE, state as u8)
    }
}

/// What of a task changes while it is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Changing {
    state: Option<Fact>,
    worker: Option<Fact>,
    code: Option<Fact>,
}

impl Changing {
    /// As it stands.
    pub(in super::super) fn of(state: TaskState, row: &Row) -> Self {
        Self {
            state: (state != TaskState::Created).then(|| Fact::state(state)),
            worker: Some(&row.worker_id).filter(|worker| !worker.is_empty()).map(|worker| Fact::new(WORKER, worker)),
            code: row.error_code.as_ref().map(|code| Fact::new(CODE, code)),
        }
    }

    fn facts(self) -> impl Iterator<Item = Fact> {
        [self.state, self.worker, self.code].into_iter().flatten()
    }
}

fn said(created: &TaskCreated) -> impl Iterator<Item = Fact> + '_ {
    let (queue, of_type) = (created.queue.as_str(), created.task_type.as_str());
    let named = if queue == of_type {
        [Some(Said::Both(queue)), None]
    } else {
        [Some(Said::Queue(queue)), Some(Said::Type(of_type))]
    };
    let labels = created.labels.iter().map(|(label, value)| Said::Label(label, value));
    let said = named.into_iter().flatten().chain([Said::Creator(&created.creator)]).chain(labels);
    said.map(|said| Fact::said(&said))
}

// The id in two halves, so that an entry has 12 bytes and not 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    fact: Fact,
    id: [u32; 2],
}

impl Entry {
    fn new(fact: Fact, id: TaskId) -> Self {
        let [a, b, c, d, e, f, g, h] = id.raw().to_be_bytes();
        Self { fact, id: [u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])] }
    }

    fn id(self) -> TaskId {
        let raw = i64::from(self.id[0]) << 32 | i64::from(self.id[1]);
        TaskId::from_raw(raw).unwrap_or(TaskId::ZERO)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Facts {
    entries: BTreeSet<Entry>,
}

impl Facts {
    /// Of many tasks at once.
    pub fn of<'a>(tasks: impl Iterator<Item = (TaskId, &'a TaskCreated, Changing)>) -> Self {
        let entries = tasks.flat_map(|(id, created, changing)| {
            said(created).chain(changing.facts()).map(move |fact| Entry::new(fact, id)).collect::<Vec<_>>()
        });
        Self { entries: entries.collect() }
    }

    /// A task is open now.
    pub fn opened(&mut self, id: TaskId, created: &TaskCreated, now: Changing) {
        self.entries.extend(said(created).chain(now.facts()).map(|fact| Entry::new(fact, id)));
    }

    /// What changes has changed.
    pub fn changed(&mut self, id: TaskId, before: Changing, now: Changing) {
        for (before, now) in [(before.state, now.state), (before.worker, now.worker), (before.code, now.code)] {
            if before != now {
                if let Some(fact) = before {
                    self.entries.remove(&Entry::new(fact, id));
                }
                self.entries.extend(now.map(|fact| Entry::new(fact, id)));
            }
        }
    }

    /// It is not open any more.
    pub fn closed(&mut self, id: TaskId, created: &TaskCreated, before: Changing) {
        for fact in said(created).chain(before.facts()) {
            self.entries.remove(&Entry::new(fact, id));
        }
    }

    /// Ids from `low` to `high` in order that may be of tasks which the filter takes, and none of any
    /// other that it takes; `None`: the filter asks for nothing that is a fact.
    pub fn matching(&self, filter: &TaskFilter, low: TaskId, high: TaskId, oldest_first: bool) -> Option<Matching<'_>> {
        let wanted = wanted(filter);
        let span = Some((low, high));
        (!wanted.is_empty()).then_some(Matching { entries: &self.entries, wanted, span, oldest_first })
    }
}

// Of each of these one fact at least.
fn wanted(filter: &TaskFilter) -> Vec<Vec<Fact>> {
    let mut wanted = Vec::new();
    if !filter.states.is_empty() && !filter.states.contains(&TaskState::Created) {
        wanted.push(filter.states.iter().copied().map(Fact::state).collect());
    }
    let named = |one: Said<'_>, both| vec![Fact::said(&one), Fact::said(&Said::Both(both))];
    wanted.extend(filter.queue.as_ref().map(|queue| named(Said::Queue(queue), queue)));
    wanted.extend(filter.task_type.as_ref().map(|of_type| named(Said::Type(of_type), of_type)));
    wanted.extend(filter.creator.as_ref().map(|creator| vec![Fact::said(&Said::Creator(creator))]));
    wanted.extend(filter.worker.as_ref().map(|worker| vec![Fact::new(WORKER, worker)]));
    wanted.extend(filter.code.as_ref().map(|code| vec![Fact::new(CODE, code)]));
    wanted.extend(filter.labels.iter().map(|(label, value)| vec![Fact::said(&Said::Label(label, value))]));
    wanted
}

/// Walks the facts side by side: from where each goes on to the furthest of these, since nothing before
/// it has all. What it yields has one of them at least.
pub(super) struct Matching<'a> {
    entries: &'a BTreeSet<Entry>,
    wanted: Vec<Vec<Fact>>,
    /// Ids that are left.
    span: Option<(TaskId, TaskId)>,
    oldest_first: bool,
}

impl Matching<'_> {
    // The first task of the span of which one of the facts holds.
    fn first(&self, any: &[Fact], (low, high): (TaskId, TaskId)) -> Option<TaskId> {
        let of = |fact: &Fact| {
            let mut range = self.entries.range(Entry::new(*fact, low)..=Entry::new(*fact, high));
            if self.oldest_first { range.next() } else { range.next_back() }
        };
        let ids = any.iter().filter_map(of).map(|entry| entry.id());
        if self.oldest_first { ids.min() } else { ids.max() }
    }
}

impl Iterator for Matching<'_> {
    type Item = TaskId;

    fn next(&mut self) -> Option<TaskId> {
        let (mut low, mut high) = self.span.take().filter(|(low, high)| low <= high)?;
        for any in &self.wanted {
            let first = self.first(any, (low, high))?;
            if self.oldest_first { low = first } else { high = first }
        }
        let (at, beside) = if self.oldest_first { (low, 1) } else { (high, -1) };
        let next = TaskId::from_raw(at.raw().saturating_add(beside)).filter(|next| *next != at);
        self.span = next.map(|next| if self.oldest_first { (next, high) } else { (low, next) });
        Some(at)
    }
}

#[cfg(test)]
pub(super) mod tests;
