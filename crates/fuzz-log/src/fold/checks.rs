//! What must hold after any record, whoever wrote it.

use task_core::invariants::{adds_up, unchanged};
use task_core::{Change, MAX_LOST, PartitionState, Record, Verdict};
use task_events::{KindClass, PartitionEpoch, RunNo};

/// About a state.
pub fn state(state: &PartitionState) -> Result<(), String> {
    adds_up(state).map_err(|v| v.what)?;
    let mut sum = 0u128;
    let mut open = 0;
    for slot in state.tasks.iter() {
        let core = &slot.core;
        let attempt = core.exec_epoch.0 > 0;
        let well = !core.state.is_terminal()
            && core.id.partition() == state.partition
            && core.id <= state.highest
            && core.version.0 > 0
            && core.run_no > RunNo(0)
            && core.retry_count <= core.max_retries
            && core.lost_count <= MAX_LOST
            && (attempt || !core.state.is_live());
        if !well {
            return Err(format!("a task that cannot be: {core:?}"));
        }
        sum = sum.wrapping_add(core.hash());
        open += 1;
    }
    if sum != state.tasks.hash_sum() || open != state.tasks.len() {
        return Err("the hash kept is not the hash computed".to_owned());
    }
    Ok(())
}

/// About a record, as a reader without rows met it.
pub fn record(
    before: &PartitionState,
    record: &Record,
    verdict: &Verdict,
    after: &PartitionState,
) -> Result<(), String> {
    let event = &record.event;
    if after.next_offset.0 != before.next_offset.0 + 1 || after.row_clock_us < before.row_clock_us {
        return Err("offset or row clock did not move on".to_owned());
    }
    if verdict.rejected().is_some() {
        return unchanged(before, after, record).map_err(|v| v.what);
    }
    if event.kind.class() != KindClass::TaskEvent && before.tasks.hash_sum() != after.tasks.hash_sum() {
        return Err(format!("{} changed a task", event.kind));
    }
    if before.epoch != after.epoch && (after.epoch, after.owner_seq.0) != (PartitionEpoch(before.epoch.0 + 1), 0) {
        return Err("a claim that is not the next".to_owned());
    }
    let Some(id) = event.task_id.filter(|_| event.kind.class() == KindClass::TaskEvent) else { return Ok(()) };
    let version = |s: &PartitionState| s.tasks.get(id).map(|slot| slot.core.version);
    match (version(before), version(after)) {
        (Some(was), Some(is)) if Some(is) != was.next() => Err(format!("version {is} after {was}")),
        (Some(_), Some(_)) | (_, None) => Ok(()),
        (None, Some(is)) if is == event.event_sequence => Ok(()),
        (None, Some(is)) => Err(format!("opened at version {is}")),
    }
}

/// Whether a reader without rows came to the same verdict.
pub fn same(rows: &Verdict, bare: &Verdict) -> bool {
    match (rows, bare) {
        (Verdict::Accepted(Change::Closed(closed)), Verdict::Accepted(Change::Forgotten(core))) => closed.core == *core,
        (Verdict::Accepted(Change::Reviewed(a)), Verdict::Accepted(Change::Reviewed(b))) => a.core == b.core,
        _ => rows == bare,
    }
}

/// The rows of two readers, and that a history can be read.
pub fn rows(a: &PartitionState, b: &PartitionState) -> Result<(), String> {
    for slot in a.tasks.iter() {
        let id = slot.core.id;
        let other = b.tasks.get(id).ok_or_else(|| format!("task {id} is missing"))?;
        if slot.row != other.row {
            return Err(format!("rows of {id} differ: {:?} and {:?}", slot.row, other.row));
        }
        let Some(row) = &slot.row else { return Err(format!("task {id} has no row")) };
        let entries = row.history.entries();
        if entries.len() != row.history.len() as usize || !entries.is_sorted_by(|a, b| a.offset < b.offset) {
            return Err(format!("history of {id} cannot be read: {} entries", entries.len()));
        }
        if row.history_overflow == 0 && entries.last().is_none_or(|e| e.offset >= a.next_offset) {
            return Err(format!("history of {id} ends with {:?} before offset {}", entries.last(), a.next_offset));
        }
        if !row.steps.is_sorted_by(|a, b| (a.done.index, &a.done.step) < (b.done.index, &b.done.step)) {
            return Err(format!("steps of {id} are out of order"));
        }
    }
    Ok(())
}
