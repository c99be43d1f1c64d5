//! Checks of fields: what is refused is named with its value and its limit.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::Uri;
use rest_contract::{Code, MAX_NAME_BYTES, MAX_QUEUES, MAX_STEPS, MAX_TEXT_BYTES, Problem, StepBody};
use task_events::{ExecutionId, TaskId, Text};

/// Parameters of the path, as axum gives them.
pub(super) type PathText = Result<Path<String>, PathRejection>;

pub(super) fn invalid(pointer: impl Into<String>, why: &str) -> Problem {
    let pointer = pointer.into();
    Problem::new(Code::InvalidField, format!("{pointer} {why}")).field(pointer)
}

pub(super) fn parameter(name: &str, value: &str, why: &str) -> Problem {
    Problem::new(Code::InvalidParameter, format!("{name} {value:?} {why}")).field(name).value(value)
}

/// A name: not empty, and not too long.
pub(super) fn name(pointer: &str, text: &str) -> Result<(), Problem> {
    if text.is_empty() {
        return Err(invalid(pointer, "is empty").value("").limit(MAX_NAME_BYTES));
    }
    at_most(pointer, text, MAX_NAME_BYTES)
}

/// A free text.
pub(super) fn text(pointer: &str, text: &str) -> Result<(), Problem> {
    at_most(pointer, text, MAX_TEXT_BYTES)
}

fn at_most(pointer: &str, text: &str, limit: usize) -> Result<(), Problem> {
    if text.len() <= limit {
        return Ok(());
    }
    Err(invalid(pointer, &format!("has {} bytes, the limit is {limit}", text.len())).value(text).limit(limit))
}

/// A number in a range.
pub(super) fn within<N: PartialOrd + std::fmt::Display + Into<u64> + Copy>(
    pointer: &str,
    value: N,
    low: N,
    high: N,
) -> Result<(), Problem> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    let why = format!("is {value}, it may be {low} to {high}");
    Err(invalid(pointer, &why).value(value.into()).limit(format!("{low} to {high}")))
}

/// A count of items.
pub(super) fn count(pointer: &str, count: usize, low: usize, high: usize) -> Result<(), Problem> {
    if (low..=high).contains(&count) {
        return Ok(());
    }
    let why = format!("has {count} items, it may have {low} to {high}");
    Err(invalid(pointer, &why).value(count).limit(high))
}

pub(super) fn memory(pointer: &str, percent: u32) -> Result<(), Problem> {
    within(pointer, percent, 0, 100)
}

pub(super) fn queues(pointer: &str, queues: &[Text]) -> Result<(), Problem> {
    count(pointer, queues.len(), 1, MAX_QUEUES)?;
    queues.iter().enumerate().try_for_each(|(n, queue)| name(&format!("{pointer}/{n}"), queue))
}

pub(super) fn steps(pointer: &str, steps: &[StepBody]) -> Result<(), Problem> {
    count(pointer, steps.len(), 0, MAX_STEPS)?;
    steps.iter().enumerate().try_for_each(|(n, step)| name(&format!("{pointer}/{n}/step"), &step.step))
}

/// An attempt names its task and its epoch itself; both must be what stands beside it.
pub(super) fn attempt(below: &str, id: ExecutionId, exec_epoch: u32) -> Result<TaskId, Problem> {
    let pointer = format!("{below}/execution_id");
    let Some((task, epoch)) = id.parts() else {
        return Err(invalid(pointer, "is no attempt's id").value(id.to_string()));
    };
    if epoch.get() != exec_epoch {
        let why = format!("is {exec_epoch}, the execution_id is that of epoch {epoch}");
        return Err(invalid(format!("{below}/exec_epoch"), &why).value(exec_epoch).limit(epoch.get()));
    }
    Ok(task)
}

/// The task of the path.
pub(super) fn task(path: PathText) -> Result<TaskId, Problem> {
    let text = path_text(path)?;
    let why = "is no task id: a decimal number";
    text.parse().map_err(|_| parameter("id", &text, why))
}

/// A text of the path.
pub(super) fn path_text(path: PathText) -> Result<String, Problem> {
    path.map(|Path(text)| text).map_err(|why| Problem::new(Code::InvalidParameter, why.body_text()).field("id"))
}

/// Parameters of the query; each at most once, and none but those named.
pub(super) fn query<const N: usize>(uri: &Uri, names: [&str; N]) -> Result<[Option<String>; N], Problem> {
    let read = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri);
    let pairs = read.map_err(|why| Problem::new(Code::InvalidParameter, why.body_text()).field("query"))?;
    let mut found = [const { None }; N];
    for (name, value) in pairs.0 {
        let Some(at) = names.iter().position(|n| *n == name) else {
            return Err(parameter(&name, &value, "is not known"));
        };
        if found[at].is_some() {
            return Err(parameter(&name, &value, "is given twice"));
        }
        found[at] = Some(value);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use task_events::ExecEpoch;

    use super::*;

    #[test]
    fn what_is_refused_is_named_with_value_and_limit() {
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        let problem = name("/worker_id", &long).unwrap_err();
        assert_eq!((problem.field.as_deref(), problem.limit), (Some("/worker_id"), Some(256.into())));
        let problem = within("/slots", 0_u32, 1, 9).unwrap_err();
        assert_eq!(problem.detail, "/slots is 0, it may be 1 to 9");
        let id = ExecutionId::new(TaskId::from_raw(1 << 22).unwrap(), ExecEpoch(3));
        assert_eq!(attempt("", id, 3).unwrap(), TaskId::from_raw(1 << 22).unwrap());
        assert_eq!(attempt("/reports/0", id, 2).unwrap_err().field.as_deref(), Some("/reports/0/exec_epoch"));
        assert!(attempt("", ExecutionId([0xff; 16]), 1).is_err());
        for wrong in ["", "x", "007", "+7", "-7", "0", "99999999999999999999"] {
            let problem = task(Ok(Path(wrong.into()))).unwrap_err();
            assert_eq!((problem.code, problem.value), (Code::InvalidParameter, Some(wrong.into())));
        }
    }

    #[test]
    fn a_query_holds_what_is_known_and_once() {
        let uri = |text: &str| text.parse::<Uri>().unwrap();
        let read = query(&uri("/x?step=a%2Fb&item=step"), ["item", "step"]).unwrap();
        assert_eq!(read, [Some("step".into()), Some("a/b".into())]);
        assert_eq!(query(&uri("/x"), ["item"]).unwrap(), [None]);
        assert!(query(&uri("/x?item=1&item=2"), ["item"]).unwrap_err().detail.contains("twice"));
        assert!(query(&uri("/x?mood=1"), ["item"]).unwrap_err().detail.contains("mood"));
    }
}
