//! From the parameters of a list to what is asked of it.

use std::collections::BTreeMap;

use axum::http::Uri;
use coordinator::owner::TaskFilter;
use rest_contract::{DEFAULT_PAGE, ListOrder, MAX_LABELS, Problem};
use serde::Serialize;
use task_events::{
    MAX_PARTITIONS, MAX_SEQUENCE, MAX_TASK_MS, PartitionId, Sha256Hash, TASK_ID_EPOCH_MS, TaskId, TaskState, Text,
};

use crate::problems::{Failure, bad_parameter, defect};
use crate::upstream::parameters::{page_limit, query_with_lists};
use crate::upstream::validate::name_of;

/// Filters that a list takes besides those of every list.
pub(super) const OF_TASKS: [&str; 10] =
    ["state", "type", "queue", "creator", "worker", "code", "from", "to", "label", "order"];
/// The same for the review list.
pub(super) const OF_REVIEW: [&str; 5] = ["type", "queue", "creator", "code", "order"];

/// What is asked of a list.
#[derive(Debug)]
pub(super) struct Asked {
    pub filter: TaskFilter,
    /// Lowest and highest id.
    pub low: TaskId,
    pub high: TaskId,
    pub order: ListOrder,
    pub limit: usize,
    pub cursor: Option<String>,
    /// Names the list: its kind, its filters and its order.
    pub list: Sha256Hash,
}

// The names of fields are part of every cursor.
#[derive(Serialize)]
struct Named<'a> {
    kind: &'static str,
    filter: &'a TaskFilter,
    from: Option<i64>,
    to: Option<i64>,
    order: ListOrder,
}

/// Reads a query that takes these filters.
pub(super) fn asked(uri: &Uri, kind: &'static str, filters: &[&str]) -> Result<Asked, Failure> {
    let known: Vec<&str> = filters.iter().copied().chain(["limit", "cursor"]).collect();
    let (mut given, labels) = query_with_lists(uri, &known, "label")?;
    let mut name = |name: &str| -> Result<Option<Text>, Problem> {
        let Some(text) = given.remove(name).map(Text::from) else { return Ok(None) };
        name_of(name, &text)?;
        Ok(Some(text))
    };
    let (task_type, queue, creator) = (name("type")?, name("queue")?, name("creator")?);
    let (worker, code) = (name("worker")?, name("code")?);
    let states = given.remove("state").map(|text| states(&text)).transpose()?.unwrap_or_default();
    let (from, to) = (time(&given, "from")?, time(&given, "to")?);
    if let (Some(from), Some(to)) = (from, to)
        && from > to
    {
        return Err(bad_parameter("from", &from.to_string(), &format!("at most to, which is {to}")).into());
    }
    let order = given.get("order").map_or(Ok(ListOrder::default()), |text| {
        ListOrder::named(text).ok_or_else(|| bad_parameter("order", text, "newest or oldest"))
    })?;
    let limit = page_limit(given.get("limit"), DEFAULT_PAGE)?;
    let filter = TaskFilter { states, task_type, queue, creator, worker, code, labels: label_map(labels)? };
    let named = Named { kind, filter: &filter, from, to, order };
    let list = serde_json::to_vec(&named).map_err(|why| defect(why.to_string()))?;
    let list = Sha256Hash::of(&list);
    let (low, high) = (lowest(from), highest(to));
    Ok(Asked { filter, low, high, order, limit, cursor: given.remove("cursor"), list })
}

fn states(text: &str) -> Result<Vec<TaskState>, Problem> {
    let named = |name: &str| {
        TaskState::ALL.iter().copied().find(|state| state.as_str() == name).ok_or_else(|| {
            let all: Vec<_> = TaskState::ALL.iter().map(|state| state.as_str()).collect();
            bad_parameter("state", name, &format!("any of {}, separated by commas", all.join(", ")))
        })
    };
    let mut states = text.split(',').map(named).collect::<Result<Vec<_>, _>>()?;
    states.sort_unstable();
    states.dedup();
    Ok(states)
}

fn time(given: &BTreeMap<String, String>, name: &str) -> Result<Option<i64>, Problem> {
    let read = |text: &String| {
        let at = text.parse().ok().filter(|at: &i64| *at >= 0);
        at.ok_or_else(|| bad_parameter(name, text, "a time in Unix ms, 0 or later"))
    };
    given.get(name).map(read).transpose()
}

fn label_map(labels: Vec<String>) -> Result<BTreeMap<Text, Text>, Problem> {
    if labels.len() > MAX_LABELS {
        return Err(bad_parameter("label", &labels.len().to_string(), &format!("given at most {MAX_LABELS} times")));
    }
    let mut found = BTreeMap::new();
    for text in labels {
        let pair = text.split_once('=').filter(|(label, _)| !label.is_empty());
        let (label, value) = pair.ok_or_else(|| bad_parameter("label", &text, "KEY=VALUE"))?;
        if found.insert(label.into(), value.into()).is_some_and(|before: Text| before != value) {
            return Err(bad_parameter("label", &text, "given once for each key"));
        }
    }
    Ok(found)
}

// Ids of this time and later. An id is minted by its instance just before the log takes the creation, so
// its time is within a second of `created_at`.
fn lowest(from: Option<i64>) -> TaskId {
    let ms = from.map_or(0, |at| at.saturating_sub(TASK_ID_EPOCH_MS));
    if ms > MAX_TASK_MS {
        return highest(None);
    }
    TaskId::from_parts(ms.max(0), PartitionId(0), 0).unwrap_or(TaskId::ZERO)
}

// Ids before this time.
fn highest(to: Option<i64>) -> TaskId {
    let ms = to.map_or(MAX_TASK_MS, |at| at.saturating_sub(TASK_ID_EPOCH_MS).saturating_sub(1)).min(MAX_TASK_MS);
    if ms < 0 {
        return TaskId::ZERO;
    }
    TaskId::from_parts(ms, PartitionId(MAX_PARTITIONS - 1), MAX_SEQUENCE).unwrap_or(TaskId::ZERO)
}

#[cfg(test)]
mod tests {
    use rest_contract::Code;

    use super::*;

    fn of(query: &str) -> Result<Asked, Problem> {
        let uri = format!("/api/v1/tasks?{query}").parse().expect("a URI");
        asked(&uri, "tasks", &OF_TASKS).map_err(|failure| failure.0)
    }

    #[test]
    fn every_filter_is_read_and_names_the_list() {
        let one =
            of("state=LOST,FAILED,LOST&type=t&label=a%3Db%3Dc&label=x%3D&limit=7&from=0&order=oldest").expect("read");
        assert_eq!(one.filter.states, [TaskState::Failed, TaskState::Lost]);
        assert_eq!(one.filter.labels.iter().map(|(k, v)| format!("{k}:{v}")).collect::<Vec<_>>(), ["a:b=c", "x:"]);
        assert_eq!((one.limit, one.order), (7, ListOrder::Oldest));
        let again = of("state=FAILED,LOST&label=x%3D&label=a%3Db%3Dc&type=t&from=0&order=oldest").expect("read");
        assert_eq!(one.list, again.list, "neither order nor limit of the parameters matters");
        for other in ["state=FAILED", "state=FAILED&order=oldest", "", "from=1", "to=1", "label=a%3Db"] {
            assert_ne!(of(other).expect("read").list, one.list, "{other}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        for limit in ["0", "-1", "1000000000", "1001", "99999999999999999999", "x", "", "1.5"] {
            let problem = of(&format!("limit={limit}")).expect_err(limit);
            assert_eq!(
                (problem.code, problem.field.as_deref(), problem.limit),
                (Code::InvalidField, Some("limit"), Some(1_000.into()))
            );
        }
        for (query, field) in [
            ("state=", "state"),
            ("state=BORED", "state"),
            ("from=-1", "from"),
            ("to=x", "to"),
            ("from=8&to=7", "from"),
            ("type=%FF", "type"),
            ("label=a%3D%FF", "label"),
            ("order=up", "order"),
            ("label=x", "label"),
            ("label==x", "label"),
            ("label=a%3D1&label=a%3D2", "label"),
            ("mood=1", "mood"),
            ("limit=1&limit=2", "limit"),
        ] {
            let problem = of(query).expect_err(query);
            assert_eq!((problem.status, problem.field.as_deref()), (400, Some(field)), "{query}");
        }
    }

    #[test]
    fn times_bound_ids_on_both_sides() {
        let (at, id) = (TASK_ID_EPOCH_MS + 5, |ms, p, n| TaskId::from_parts(ms, PartitionId(p), n).expect("an id"));
        let asked = of(&format!("from={at}&to={}", at + 1)).expect("read");
        assert_eq!((asked.low, asked.high), (id(5, 0, 0), id(5, MAX_PARTITIONS - 1, MAX_SEQUENCE)));
        let nothing = of(&format!("from={at}&to={at}")).expect("read");
        assert!(nothing.low > nothing.high);
        let (early, late) = (of("to=7").expect("read"), of(&format!("from={}", i64::MAX)).expect("read"));
        assert_eq!((early.high, late.low), (TaskId::ZERO, of("").expect("read").high));
    }
}
