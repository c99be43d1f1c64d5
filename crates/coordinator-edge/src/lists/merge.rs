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
    let settled = parts.iter().filter(|part| part.to == To::All).filter_map(|part| part.settled_to).min();
    let sure = all.iter().take_while(|(id, _)| known.is_none_or(|known| !list.before(known, *id)));
    let mut shown: Vec<_> = sure.take(limit).collect();
    let full = shown.len() == limit && (known.is_some() || all.len() > limit);
    let mut last = if full { shown.last().map(|(id, _)| *id) } else { known };
    // A cursor must not pass a task that was given its id and is not in the log yet.
    if let (Some(end), Some(settled)) = (last, settled)
        && end > settled
    {
        shown.retain(|(id, _)| *id <= settled);
        // Never back to what was shown on an earlier page.
        last = Some(TaskId::from_raw(list.low.raw() - 1).map_or(settled, |before| before.max(settled)));
    }
    (shown.into_iter().map(|(_, task)| (*task).clone()).collect(), last)
}

#[cfg(test)]
mod tests {
    use coordinator::owner::TaskFilter;
    use task_events::{RunNo, TaskState, Text};

    use super::*;

    fn id(raw: i64) -> TaskId {
        TaskId::from_raw(raw).expect("an id")
    }

    fn task(raw: i64) -> TaskSummary {
        TaskSummary {
            id: id(raw),
            state: TaskState::Created,
            run_no: RunNo(1),
            created_at: 0,
            completed_at: None,
            task_type: "t".into(),
            queue: "t".into(),
            creator: "c".into(),
            worker_id: Text::default(),
            error_code: None,
            error_summary: None,
            category: None,
            failed_step: None,
            labels: BTreeMap::new(),
            review: None,
        }
    }

    // A partition that was looked at to its end.
    fn part(number: u16, tasks: &[i64], settled_to: Option<i64>) -> Part {
        let mut part = Part::new(PartitionId(number));
        part.to = To::All;
        part.open = tasks.iter().map(|raw| (id(*raw), task(*raw))).collect();
        part.settled_to = settled_to.map(id);
        part
    }

    #[test]
    fn a_cursor_never_passes_what_may_still_turn_up_before_it() {
        let list = |low: i64| List {
            review: false,
            filter: TaskFilter::default(),
            low: id(low),
            high: id(i64::MAX),
            oldest_first: true,
        };
        let page = |low: i64, limit: usize, parts: &[Part]| {
            let (tasks, last) = take(&list(low), parts, limit);
            (tasks.iter().map(|task| task.id.raw()).collect::<Vec<_>>(), last.map(TaskId::raw))
        };
        // A create of the second one has the id 25 and is not in the log yet.
        let parts = [part(0, &[10, 30, 50], Some(99)), part(1, &[20, 24], Some(24))];
        assert_eq!(page(1, 2, &parts), (vec![10, 20], Some(20)));
        assert_eq!(page(1, 4, &parts), (vec![10, 20, 24], Some(24)), "30 lies behind it");
        assert_eq!(page(25, 1, &[part(0, &[30, 50], Some(99)), part(1, &[], Some(24))]), (vec![], Some(24)));
        assert_eq!(
            page(29, 1, &[part(0, &[30, 50], Some(99)), part(1, &[], Some(24))]),
            (vec![], Some(28)),
            "never back"
        );
        // The last page has no cursor that could pass anything.
        assert_eq!(page(1, 9, &parts), (vec![10, 20, 24, 30, 50], None));
        // One that does not answer is named, and waited for by nobody.
        assert_eq!(page(1, 4, &[part(0, &[10, 30, 50], Some(99)), part(1, &[], None)]), (vec![10, 30, 50], None));
        assert_eq!(page(1, 2, &[part(0, &[10, 30, 50], Some(99)), part(1, &[], None)]), (vec![10, 30], Some(30)));
    }
}
