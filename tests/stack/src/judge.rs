//! Holds what clients were told, what handlers did and what the rows say against the log.

use std::collections::BTreeMap;
use std::path::Path;

use snapshot_store::SnapshotStore;
use task_events::{Kind, TaskId, TaskState};

use crate::history::{Outcome, Told};
use crate::journal::Journal;
use crate::worker::lines;

/// Most ids of a read of rows.
const ROWS: usize = 200;

/// Every create as its client was told: ok is there, once, under that id; fail is not there; info is
/// there at most once. Every key made one task.
///
/// # Panics
/// One is not.
pub fn creates(told: &Told, journal: &Journal) {
    for (op, outcome) in &told.creates {
        let there = journal.created.get(op.to_string().as_str()).map_or(&[][..], Vec::as_slice);
        let right = match outcome {
            Outcome::Ok(task) => there == [*task],
            Outcome::Fail(_) => there.is_empty(),
            Outcome::Info(_) | Outcome::Invoked => there.len() <= 1,
        };
        let keyed = told.keyed.contains(op);
        assert!(right, "create {op} (keyed: {keyed}) was told {outcome:?}, and there are {there:?}");
    }
    let unknown = journal.created.keys().find(|op| op.parse().map_or(true, |op: u64| !told.creates.contains_key(&op)));
    assert_eq!(unknown, None, "nobody asked for this one");
}

/// Cancels and replays that were answered are on record; those that failed are not.
///
/// # Panics
/// One is not so.
pub fn commands(told: &Told, journal: &Journal) {
    let asked: Vec<_> = journal.accepted(Kind::TaskCancelRequested).filter_map(|event| event.task_id).collect();
    for (task, outcome) in &told.cancels {
        let is_there = asked.contains(task);
        match outcome {
            Outcome::Ok(()) => assert!(is_there, "cancel of {task} was answered, and is not on record"),
            Outcome::Fail(why) => assert!(!is_there, "cancel of {task} failed ({why}), and is on record"),
            Outcome::Info(_) | Outcome::Invoked => {}
        }
    }
    let mut runs: BTreeMap<TaskId, u32> = BTreeMap::new();
    for event in journal.accepted(Kind::TaskReplayRequested) {
        runs.insert(event.task_id.expect("a task"), event.run_no.get());
    }
    for (task, outcome) in &told.replays {
        let run = runs.get(task).copied();
        match outcome {
            Outcome::Ok(told) => assert_eq!(run, Some(*told), "replay of {task}"),
            Outcome::Fail(why) => assert_eq!(run, None, "replay of {task} failed: {why}"),
            Outcome::Info(_) | Outcome::Invoked => {}
        }
    }
}

/// Every task that is there ended as it should: as a success, or cancelled if somebody asked for that.
///
/// # Panics
/// One is open, or ended otherwise.
pub fn ends(told: &Told, journal: &Journal) {
    for task in journal.created.values().flatten() {
        let Some(core) = journal.closed.get(task) else { panic!("{task} is open") };
        let right = match core.state {
            TaskState::Success => true,
            TaskState::Cancelled => told.cancels.contains_key(task),
            TaskState::Created
            | TaskState::Assigned
            | TaskState::Executing
            | TaskState::Failed
            | TaskState::Lost
            | TaskState::RetryApproved
            | TaskState::ReplayPlanned
            | TaskState::Retrying
            | TaskState::FailedPermanently => false,
        };
        assert!(right, "{task} ended as {}", core.state.as_str());
    }
}

/// No handler was entered twice in one epoch, and none wrote to the fenced sink after one of a later epoch.
///
/// # Panics
/// One did.
pub fn handlers(sink: &Path) {
    let mut epochs: BTreeMap<String, u32> = BTreeMap::new();
    let mut entered: BTreeMap<(String, u32), usize> = BTreeMap::new();
    for (task, epoch, what) in lines(sink) {
        let newest = epochs.entry(task.clone()).or_default();
        assert!(epoch >= *newest, "{task}: epoch {epoch} wrote after epoch {newest}");
        *newest = epoch;
        *entered.entry((task, epoch)).or_default() += usize::from(what == "in");
    }
    let twice: Vec<_> = entered.into_iter().filter(|(_, times)| *times > 1).collect();
    assert_eq!(twice, [], "entered twice in one epoch");
}

/// The first task whose row does not tell its end, and why.
pub async fn wrong_row(journal: &Journal, store: &impl SnapshotStore) -> Option<String> {
    let ids: Vec<TaskId> = journal.closed.keys().copied().collect();
    for ids in ids.chunks(ROWS) {
        let rows = match store.snapshots(ids.to_vec()).await {
            Ok(rows) => rows,
            Err(why) => return Some(format!("rows cannot be read: {why}")),
        };
        for (id, row) in ids.iter().zip(rows) {
            let Some(row) = row else { return Some(format!("{id} has no row")) };
            if row.core != journal.closed[id] {
                return Some(format!("{id} is {:?} in the log, {:?} in its row", journal.closed[id], row.core));
            }
        }
    }
    None
}
