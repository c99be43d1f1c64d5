//! A page of a list over all partitions. What is shown is what lies before the point up to which every
//! partition was looked at; how much is looked at for one page is bounded, so a page may be short or
//! empty and still have a next one.

use std::collections::BTreeMap;

use coordinator::owner::{Answer, Command, Look, Looked};
use coordinator::surface::Peers;
use event_log::EventLog;
use futures::future::{join_all, try_join_all};
use service_kit::Clock;
use snapshot_store::{SnapshotStore, StoreError, TaskSummary};
use task_events::{PartitionId, TaskId};

use super::partition::{List, Part, To};
use crate::Edge;

/// Most rounds for one page: in each, every partition that holds the page back is looked at further.
const ROUNDS: usize = 6;

/// Tasks looked at in a partition at a time, four times as many with every round.
const LEAST: usize = 16;
const MOST: usize = 256;

/// A page.
pub(super) struct Page {
    pub tasks: Vec<TaskSummary>,
    /// Behind which id the next page begins; `None`: that was all.
    pub last: Option<TaskId>,
    pub looked_at: u64,
    pub unanswered: Vec<u16>,
}

impl<L: EventLog, S: SnapshotStore, C: Clock, P: Peers> Edge<L, S, C, P> {
    /// The first tasks of a list.
    pub(super) async fn page(&self, list: &List, limit: usize) -> Result<Page, StoreError> {
        let mut parts: Vec<Part> = (0..self.surface.partitions()).map(PartitionId).map(Part::new).collect();
        // About twice what a partition has of a page if they have equally much.
        let mut some = (limit * 2 / parts.len().max(1)).clamp(LEAST, MOST);
        for _ in 0..ROUNDS {
            let needed = needed(list, &parts, limit);
            let behind = parts.iter_mut().filter(|part| holds_back(list, part.to, needed) && !part.is_spent());
            let looks: Vec<_> = behind.map(|part| part.look(self, list, some)).collect();
            if looks.is_empty() {
                break;
            }
            try_join_all(looks).await?;
            some = (some * 4).min(MOST);
        }
        let (tasks, last) = take(list, &parts, limit);
        let tasks = self.as_they_stand(list, &parts, tasks).await;
        Ok(Page {
            tasks,
            last,
            looked_at: parts.iter().map(Part::looked_at).sum(),
            unanswered: parts.iter().filter(|part| !part.answered).map(|part| part.partition.0).collect(),
        })
    }

    // A row of the store may be of a task that is open again: the owner's word counts. Without a filter
    // the owner was asked for all of its tasks already, before the store.
    async fn as_they_stand(&self, list: &List, parts: &[Part], tasks: Vec<TaskSummary>) -> Vec<TaskSummary> {
        if list.filter.is_empty() && !list.review {
            return tasks;
        }
        let mut doubtful: BTreeMap<PartitionId, Vec<TaskId>> = BTreeMap::new();
        for task in &tasks {
            let partition = task.id.partition();
            let part = parts.iter().find(|part| part.partition == partition);
            if part.is_some_and(|part| part.answered && !part.open.contains_key(&task.id)) {
                doubtful.entry(partition).or_default().push(task.id);
            }
        }
        let asks = doubtful
            .into_iter()
            .map(|(partition, ids)| async move { self.surface.ask(partition, Command::Look(Look::Stands(ids))).await });
        let mut stand = BTreeMap::new();
        for answer in join_all(asks).await {
            if let Answer::Looked(looked) = answer
                && let Looked::Tasks { tasks, .. } = *looked
            {
                stand.extend(tasks.into_iter().map(|task| (task.id, task)));
            }
        }
        let now = |task: TaskSummary| stand.remove(&task.id).unwrap_or(task);
        let listed = |task: &TaskSummary| list.filter.takes(task) && (!list.review || task.waits_for_review());
        tasks.into_iter().map(now).filter(listed).collect()
    }
}

// Everything found so far, in the order of the list; the memory's word before the store's.
fn found<'a>(list: &List, parts: &'a [Part]) -> Vec<(TaskId, &'a TaskSummary)> {
    let mut all: BTreeMap<TaskId, &TaskSummary> = BTreeMap::new();
    for part in parts {
        all.extend(part.ended.iter().map(|(id, task)| (*id, task)));
        all.extend(part.open.iter().map(|(id, task)| (*id, task)));
    }
    let mut all: Vec<_> = all.into_iter().collect();
    if !list.oldest_first {
        all.reverse();
    }
    all
}

// How far must be looked for a full page, as far as is known.
fn needed(list: &List, parts: &[Part], limit: usize) -> Option<TaskId> {
    found(list, parts).get(limit.saturating_sub(1)).map(|(id, _)| *id)
}

fn holds_back(list: &List, to: To, needed: Option<TaskId>) -> bool {
    match (to, needed) {
        (To::All, _) => false,
        (To::Nothing, _) | (To::Id(_), None) => true,
        (To::Id(to), Some(needed)) => list.before(to, needed),
    }
}

// What can be shown, and where the next page begins.
fn take(list: &List, parts: &[Part], limit: usize) -> (Vec<TaskSummary>, Option<TaskId>) {
    let mut known: Option<TaskId> = None;
    for part in parts {
        match part.to {
            To::Id(to) => known = Some(known.map_or(to, |known| if list.before(to, known) { to } else { known })),
            // Nobody looked at it at all: nothing is known of the list.
            To::Nothing => return (Vec::new(), None),
            To::All => {}
        }
    }
    let all = found(list, parts);
    let sure = all.iter().take_while(|(id, _)| known.is_none_or(|known| !list.before(known, *id)));
    let shown: Vec<_> = sure.take(limit).collect();
    let full = shown.len() == limit && (known.is_some() || all.len() > limit);
    let last = if full { shown.last().map(|(id, _)| *id) } else { known };
    (shown.into_iter().map(|(_, task)| (*task).clone()).collect(), last)
}
