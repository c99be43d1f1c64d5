//! What the index finds, against a look at every task.

use std::collections::BTreeMap;

use proptest::prelude::*;
use task_events::{HashForm, Sha256Hash, Text, Timeouts};

use super::*;

/// What a task of this queue, type, creator and these labels said when it was created.
pub(in super::super) fn created(queue: &str, of_type: &str, creator: &str, labels: &[(&str, &str)]) -> TaskCreated {
    TaskCreated {
        task_type: of_type.into(),
        queue: queue.into(),
        creator: creator.into(),
        priority: 4,
        deadline: None,
        not_before: None,
        payload_hash: Sha256Hash::of(b"{}"),
        hash_form: HashForm::PlainSha256,
        payload_ref: None,
        business_key: None,
        labels: labels.iter().map(|(label, value)| ((*label).into(), (*value).into())).collect(),
        concurrency_key: None,
        timeouts: Timeouts { start_to_close_ms: 1, schedule_to_start_ms: None },
        max_retries: 3,
        trace_given: false,
        key_hash: None,
        request_hash: None,
    }
}

#[derive(Clone, Debug)]
struct Task {
    created: TaskCreated,
    state: TaskState,
    worker: Option<Text>,
    code: Option<Text>,
}

impl Task {
    fn changing(&self) -> Changing {
        Changing {
            state: (self.state != TaskState::Created).then(|| Fact::state(self.state)),
            worker: self.worker.as_ref().map(|worker| Fact::new(WORKER, worker)),
            code: self.code.as_ref().map(|code| Fact::new(CODE, code)),
        }
    }

    fn is_taken_by(&self, filter: &TaskFilter) -> bool {
        let is = |wanted: &Option<Text>, there: Option<&Text>| wanted.is_none() || wanted.as_ref() == there;
        (filter.states.is_empty() || filter.states.contains(&self.state))
            && is(&filter.queue, Some(&self.created.queue))
            && is(&filter.task_type, Some(&self.created.task_type))
            && is(&filter.creator, Some(&self.created.creator))
            && is(&filter.worker, self.worker.as_ref())
            && is(&filter.code, self.code.as_ref())
            && filter.labels.iter().all(|(label, value)| self.created.labels.get(label) == Some(value))
    }
}

fn name() -> impl Strategy<Value = Text> {
    prop::sample::select(vec!["a", "b", "c"]).prop_map(Text::from)
}

fn labels() -> impl Strategy<Value = BTreeMap<Text, Text>> {
    prop::collection::btree_map(name(), name(), 0..3)
}

fn state() -> impl Strategy<Value = TaskState> {
    prop::sample::select(vec![TaskState::Created, TaskState::Assigned, TaskState::Lost])
}

fn task() -> impl Strategy<Value = Task> {
    let said = (name(), name(), name(), labels());
    let changing = (state(), prop::option::of(name()), prop::option::of(name()));
    (said, changing).prop_map(|((queue, of_type, creator, labels), (state, worker, code))| Task {
        created: TaskCreated { labels, ..created(&queue, &of_type, &creator, &[]) },
        state,
        worker,
        code,
    })
}

fn filter() -> impl Strategy<Value = TaskFilter> {
    let may = || prop::option::of(name());
    let states = prop::collection::vec(state(), 0..3);
    (states, may(), may(), may(), may(), may(), labels()).prop_map(
        |(states, task_type, queue, creator, worker, code, labels)| TaskFilter {
            states,
            task_type,
            queue,
            creator,
            worker,
            code,
            labels,
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    Open(Box<Task>),
    Change(usize, TaskState, Option<Text>, Option<Text>),
    Close(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => task().prop_map(|task| Step::Open(Box::new(task))),
        2 => (any::<prop::sample::Index>(), task())
            .prop_map(|(at, task)| Step::Change(at.index(1_000), task.state, task.worker, task.code)),
        1 => any::<prop::sample::Index>().prop_map(|at| Step::Close(at.index(1_000))),
    ]
}

fn id(raw: i64) -> TaskId {
    TaskId::from_raw(raw).expect("an id")
}

proptest! {
    #[test]
    fn what_is_found_is_in_order_and_misses_nothing(
        steps in prop::collection::vec(step(), 1..60),
        filters in prop::collection::vec(filter(), 1..12),
        span in (1_i64..80, 1_i64..80),
    ) {
        let (mut facts, mut open) = (Facts::default(), BTreeMap::<TaskId, Task>::new());
        // Ids that differ in both halves.
        let mut next = id(u32::MAX as i64 - 20);
        for step in steps {
            let nth = |n: usize| open.keys().nth(n % open.len().max(1)).copied();
            match step {
                Step::Open(task) => {
                    facts.opened(next, &task.created, task.changing());
                    open.insert(next, *task);
                    next = id(next.raw() + 1);
                }
                Step::Change(n, state, worker, code) => {
                    let Some(at) = nth(n) else { continue };
                    let task = open.get_mut(&at).expect("it is open");
                    let before = task.changing();
                    (task.state, task.worker, task.code) = (state, worker, code);
                    facts.changed(at, before, task.changing());
                }
                Step::Close(n) => {
                    let Some(at) = nth(n) else { continue };
                    let task = open.remove(&at).expect("it is open");
                    facts.closed(at, &task.created, task.changing());
                }
            }
        }
        let anew = Facts::of(open.iter().map(|(id, task)| (*id, &task.created, task.changing())));
        prop_assert_eq!(&anew.entries, &facts.entries, "nothing is left of what is gone");
        let (low, high) = (id(u32::MAX as i64 - 21 + span.0), id(u32::MAX as i64 - 21 + span.1));
        for filter in filters {
            let mut expected: Vec<_> = open
                .range(low..=high.max(low))
                .filter(|(at, task)| **at <= high && task.is_taken_by(&filter))
                .map(|(at, _)| *at)
                .collect();
            for oldest_first in [true, false] {
                if let Some(matching) = facts.matching(&filter, low, high, oldest_first) {
                    let seen: Vec<_> = matching.collect();
                    prop_assert!(seen.is_sorted_by(|one, other| (one < other) == oldest_first && one != other));
                    prop_assert!(seen.iter().all(|at| open.contains_key(at) && (low..=high).contains(at)));
                    let found: Vec<_> = seen.into_iter().filter(|at| open[at].is_taken_by(&filter)).collect();
                    prop_assert_eq!(&found, &expected);
                }
                expected.reverse();
            }
        }
    }
}

#[test]
fn one_in_many_is_found_at_once_and_so_is_none() {
    let many = created("q", "q", "c", &[("of", "many")]);
    let one = created("q", "u", "c", &[("of", "many"), ("n", "7")]);
    let tasks = (1..20_001).map(|raw| (id(raw), if raw == 7 { &one } else { &many }, Changing::default()));
    let facts = Facts::of(tasks);
    let label = |label: &str, value: &str| BTreeMap::from([(label.into(), value.into())]);
    let (low, high) = (TaskId::ZERO, id(i64::MAX));
    for (filter, most) in [
        (TaskFilter { labels: label("n", "7"), ..TaskFilter::default() }, 1),
        (TaskFilter { labels: label("n", "7"), queue: Some("q".into()), ..TaskFilter::default() }, 2),
        (TaskFilter { task_type: Some("u".into()), creator: Some("c".into()), ..TaskFilter::default() }, 2),
        (TaskFilter { labels: label("n", "8"), creator: Some("c".into()), ..TaskFilter::default() }, 0),
        (TaskFilter { states: vec![TaskState::Success], ..TaskFilter::default() }, 0),
    ] {
        for oldest_first in [true, false] {
            let seen = facts.matching(&filter, low, high, oldest_first).expect("a fact").count();
            assert!(seen <= most, "{filter:?} looks at {seen}");
        }
    }
    let all = TaskFilter { states: vec![TaskState::Created], ..TaskFilter::default() };
    assert!(facts.matching(&all, low, high, true).is_none(), "most are: nothing to be found by");
    assert_eq!(std::mem::size_of::<Entry>(), 12);
}
