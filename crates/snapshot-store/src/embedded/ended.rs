//! Reading lists of ended tasks. In the tree a list of a partition is one range of keys, so neither the
//! bucket nor the day of its CQL tables is needed here.

use task_events::TaskId;

use super::coding;
use super::tables::Tables;
use crate::{EndedList, EndedPage, EndedSpan, StoreError, TaskSummary};

/// The summary of a task, from `tasks_by_time`.
pub(super) fn summary(tables: &Tables, task: TaskId, now_ms: i64) -> Result<Option<TaskSummary>, StoreError> {
    let (table, name) = coding::ended_list(&EndedList::All, task.partition());
    let key = coding::ended_key(name, task);
    let Some(stored) = tables.alive(table, &key, now_ms)? else { return Ok(None) };
    coding::summary(task, &stored.body).map(Some).map_err(|why| table.damaged(&key, &why))
}

/// What lies in a span.
pub(super) fn page(tables: &Tables, span: &EndedSpan, now_ms: i64, limit: usize) -> Result<EndedPage, StoreError> {
    let limit = limit.max(1);
    let (table, name) = coding::ended_list(&span.list, span.partition);
    // Inverted ids: the highest one comes first.
    let range = (coding::ended_key(name.clone(), span.high), coding::ended_key(name, span.low));
    let mut found = tables.between(table, range, span.oldest_first, limit.saturating_add(1))?;
    let more = found.len() > limit;
    found.truncate(limit);
    let mut page = EndedPage { looked_at: found.len(), ..EndedPage::default() };
    for (key, stored) in &found {
        let task = coding::ended_task(key).ok_or_else(|| table.damaged(key, "no task"))?;
        page.looked_to = more.then_some(task);
        if now_ms >= stored.expires_ms {
            continue;
        }
        let shown = match &span.list {
            EndedList::All => Some(coding::summary(task, &stored.body).map_err(|why| table.damaged(key, &why))?),
            // A later end has another code, perhaps.
            EndedList::Code(code) => {
                summary(tables, task, now_ms)?.filter(|ended| ended.error_code.as_ref() == Some(code))
            }
            EndedList::Review if stored.body == coding::WAITS => summary(tables, task, now_ms)?,
            EndedList::Review => None,
        };
        page.tasks.extend(shown);
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_its_task_in_every_list() {
        let task = TaskId::from_raw(i64::MAX - 7).expect("an id");
        for list in [EndedList::All, EndedList::Code("DISK_FULL".into()), EndedList::Review] {
            let (table, name) = coding::ended_list(&list, task.partition());
            let key = coding::ended_key(name, task);
            assert_eq!(coding::ended_task(&key), Some(task), "{table:?}");
            assert!(table.damaged(&key, "cut").to_string().contains(&task.to_string()));
        }
        assert_eq!(coding::ended_task(&[1, 2]), None);
    }
}
