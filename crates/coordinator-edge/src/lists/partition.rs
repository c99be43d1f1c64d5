//! One partition's part of a page: first what its owner has in memory, then, no further than that was
//! looked at, what the store has. A row that is acknowledged in between is found twice, never missed.

use std::collections::BTreeMap;

use coordinator::owner::{Answer, Command, ListAsk, Look, Looked, TaskFilter};
use coordinator::surface::Peers;
use event_log::EventLog;
use service_kit::Clock;
use snapshot_store::{EndedList, EndedSpan, SnapshotStore, StoreError, TaskSummary};
use task_events::{PartitionId, TaskId};

use crate::Edge;

/// Most tasks of its memory that an owner looks at for a page: it decides nothing meanwhile. What is asked
/// for has an index there, so these are tasks that match, but where several filters meet.
const LOOK_MEMORY: usize = 1_024;

/// What is listed, and how.
#[derive(Clone, Debug)]
pub(super) struct List {
    pub review: bool,
    pub filter: TaskFilter,
    /// Ids still to be listed.
    pub low: TaskId,
    pub high: TaskId,
    pub oldest_first: bool,
}

impl List {
    /// Whether the first id is listed before the second.
    pub fn before(&self, one: TaskId, other: TaskId) -> bool {
        if self.oldest_first { one < other } else { one > other }
    }

    // What is left of a span behind an id.
    fn behind(&self, last: TaskId) -> (TaskId, TaskId) {
        let beside = |by: i64| TaskId::from_raw(last.raw().saturating_add(by));
        match (self.oldest_first, beside(1), beside(-1)) {
            (true, Some(next), _) => (next, self.high),
            (false, _, Some(next)) => (self.low, next),
            // Nothing lies beyond the last id there can be.
            (true, None, _) | (false, _, None) => (TaskId::from_raw(1).unwrap_or(TaskId::ZERO), TaskId::ZERO),
        }
    }

    /// The same list behind an id.
    pub fn rest(&self, last: TaskId) -> Self {
        let (low, high) = self.behind(last);
        Self { low, high, ..self.clone() }
    }

    // Whether the store may have tasks of the list: all that it has are closed.
    fn may_have_ended(&self) -> bool {
        let states = &self.filter.states;
        self.review || states.is_empty() || states.iter().any(|state| state.is_terminal())
    }

    fn ended(&self) -> EndedList {
        match &self.filter.code {
            _ if self.review => EndedList::Review,
            Some(code) => EndedList::Code(code.clone()),
            None => EndedList::All,
        }
    }
}

/// How far something was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Nothing,
    Id(TaskId),
    All,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Part {
    pub partition: PartitionId,
    memory: To,
    /// Never further than `memory`: up to there everything is known.
    pub to: To,
    /// Tasks of the memory that match.
    pub open: BTreeMap<TaskId, TaskSummary>,
    /// Tasks of the store that match.
    pub ended: BTreeMap<TaskId, TaskSummary>,
    pub answered: bool,
    /// Of a list that begins with the oldest: up to this id no task can turn up any more that is not known.
    pub settled_to: Option<TaskId>,
    /// Tasks of the memory and entries of the store.
    looked_at: (u64, u64),
}

impl Part {
    pub fn new(partition: PartitionId) -> Self {
        let (open, ended) = Default::default();
        let nothing = To::Nothing;
        Self {
            partition,
            memory: nothing,
            to: nothing,
            open,
            ended,
            answered: true,
            settled_to: None,
            looked_at: (0, 0),
        }
    }

    /// How many tasks were looked at.
    pub const fn looked_at(&self) -> u64 {
        self.looked_at.0 + self.looked_at.1
    }

    /// Whether its owner would have to look at more of its memory than one page is worth.
    pub fn is_spent(&self) -> bool {
        self.memory == self.to && self.looked_at.0 >= LOOK_MEMORY as u64
    }

    /// Looks further: at about so many tasks.
    pub async fn look<L: EventLog, S: SnapshotStore, C: Clock, P: Peers>(
        &mut self,
        edge: &Edge<L, S, C, P>,
        list: &List,
        some: usize,
    ) -> Result<(), StoreError> {
        if self.memory == self.to {
            self.look_at_memory(edge, list, some).await;
        }
        let (mut low, mut high) = match self.to {
            To::Nothing => (list.low, list.high),
            To::Id(last) => list.behind(last),
            To::All => return Ok(()),
        };
        if !list.may_have_ended() {
            self.to = self.memory;
            return Ok(());
        }
        if let To::Id(known) = self.memory {
            if list.oldest_first { high = high.min(known) } else { low = low.max(known) }
        }
        let partition = self.partition;
        let span = EndedSpan { list: list.ended(), partition, low, high, oldest_first: list.oldest_first };
        let page = edge.store.ended(span, some).await?;
        self.looked_at.1 += page.looked_at as u64;
        let wanted = page.tasks.into_iter().filter(|task| list.filter.takes(task));
        self.ended.extend(wanted.map(|task| (task.id, task)));
        self.to = page.looked_to.map_or(self.memory, To::Id);
        Ok(())
    }

    async fn look_at_memory<L: EventLog, S: SnapshotStore, C: Clock, P: Peers>(
        &mut self,
        edge: &Edge<L, S, C, P>,
        list: &List,
        some: usize,
    ) {
        let (low, high) = match self.memory {
            To::Nothing => (list.low, list.high),
            To::Id(last) => list.behind(last),
            To::All => return,
        };
        let ask = ListAsk {
            review: list.review,
            filter: list.filter.clone(),
            low,
            high,
            oldest_first: list.oldest_first,
            limit: some,
            look: LOOK_MEMORY,
        };
        let answer = edge.surface.ask(self.partition, Command::Look(Look::List(Box::new(ask)))).await;
        self.memory = To::All;
        let Answer::Looked(looked) = answer else {
            self.answered = false;
            return;
        };
        if let Looked::Tasks { tasks, looked_at, looked_to, settled_to } = *looked {
            self.settled_to = settled_to;
            self.looked_at.0 += looked_at;
            self.open.extend(tasks.into_iter().map(|task| (task.id, task)));
            self.memory = looked_to.map_or(To::All, To::Id);
        }
    }
}
